"""A model's program with taps where its weights enter, run on batches of examples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import vjp
from stretto._engine.api.graph import eval_shape, record_call
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.rewriting import live
from stretto._engine.core.typing import Array, Tree
from stretto.curvature.batches import Batch, dtype_of, need_room, outputs_of, roots_of
from stretto.curvature.uses import Use, arranged, run, uses_of

if TYPE_CHECKING:
    from stretto.curvature.curvature import Curvature


class Layout(NamedTuple):
    """How a weight is a matrix of outputs and inputs, or several, one a group."""

    shape: tuple[int, ...]
    """The weight's own shape."""
    axes: tuple[tuple[str, int], ...]
    """Roles and sizes of what its elements are, in rows: ``"shared"``, ``"out"``, ``"in"``."""

    @property
    def order(self) -> tuple[int, ...]:
        """The axes with groups first, then outputs, then inputs."""
        rank = {"shared": 0, "out": 1, "in": 2}
        return tuple(sorted(range(len(self.axes)), key=lambda i: rank[self.axes[i][0]]))

    @property
    def grouped(self) -> bool:
        """Whether it is several matrices."""
        return any(role == "shared" for role, _ in self.axes)

    def size(self, role: str) -> int:
        """Return the number of groups, outputs or inputs."""
        return math.prod([n for r, n in self.axes if r == role])

    def matrix(self, v: Array) -> Array:
        """Return (*shape, ...) as (groups, outputs, inputs, ...)."""
        rest = v.shape[len(self.shape) :]
        x = v.reshape((*[n for _, n in self.axes], *rest))
        behind = range(len(self.axes), x.ndim)
        x = snp.transpose(x, (*self.order, *behind))
        return x.reshape((self.size("shared"), self.size("out"), self.size("in"), *rest))

    def weight(self, m: Array) -> Array:
        """Return (groups, outputs, inputs, ...) as (*shape, ...)."""
        rest = m.shape[3:]
        x = m.reshape((*[self.axes[i][1] for i in self.order], *rest))
        back = np.argsort(self.order).tolist()
        x = snp.transpose(x, (*back, *range(len(back), x.ndim)))
        return x.reshape((*self.shape, *rest))


class Plan:
    """What a curvature's program is, and where weights enter it."""

    def __init__(self, curvature: Curvature, once: bool = False) -> None:
        """Trace the model; ``once`` leaves out the uses of weights with several terms."""
        apply, chosen, names = curvature.parts
        x = tree.map(lambda a: a[:1], curvature.x)
        # Weights in a list: leaves of a dictionary come in another order.
        call = lambda weights, x: apply(dict(zip(names, weights, strict=True)), x)
        program, _, self.captured = record_call(call, (list(chosen.values()), x), {})
        self.program = live(program)
        self.uses = uses_of(self.program, len(names))
        if once:
            self.uses = self.uses.of_one_term()
        self.listed = self.uses.in_order()
        self.layouts = [
            self._layout(self.uses.found.get(i), x) for i, x in enumerate(chosen.values())
        ]
        self.by_path: dict[tuple[int, ...], list[tuple[int, Use]]] = {}
        for n, use in enumerate(self.listed):
            self.by_path.setdefault(use.path, []).append((n, use))
        run_alone = lambda c: self.run(c, self._taps(), {}, tree.map(lambda a: a[:1], c.x))[1]
        seen = tree.leaves(eval_shape(run_alone, curvature))
        exact = [x.size for i, x in enumerate(chosen.values()) if i in self.uses.unknown]
        given = sum(exact) + sum(math.prod(u.tap_shape) for u in self.listed)
        _, root = outputs_of(curvature)
        self.rank, self.dtype = root.shape[-1], dtype_of(curvature)
        self.elements = self.rank * given + root.size + sum(math.prod(a.shape) for a in seen)

    def need_room(self, caller: str) -> None:
        """Raise ``MemoryError`` where what one example needs does not fit."""
        what = f"{self.rank:,} cotangents, one for each column of an example's root,"
        need_room(caller, self.elements, self.dtype, what)

    def _layout(self, uses: list[Use] | None, x: Array) -> Layout:
        """Return how a weight is a matrix: a row of outputs where it has no uses."""
        axes = uses[0].layout if uses else None
        return Layout(x.shape, axes or (("out", x.size),))

    def positions(self, weight: int) -> int:
        """Return how many positions of an example A is the mean of."""
        uses = self.uses.found.get(weight, [])
        return sum(u.positions for u in uses if u.a_axes is not None) or 1

    def _taps(self) -> dict[int, Array]:
        return {n: snp.zeros(u.tap_shape, u.type.dtype) for n, u in enumerate(self.listed)}

    def run(
        self, curvature: Curvature, taps: Mapping[int, Array], exact: Mapping[int, Array], x: Tree
    ) -> tuple[Array, dict[int, Array]]:
        """Run the model with taps; return the outputs, and the other operands at uses."""
        chosen = list(curvature.parts.chosen.values())
        weights = [w + exact[i] if i in exact else w for i, w in enumerate(chosen)]
        args = [*weights, *tree.leaves(x), *self.captured]
        outs, seen = run(self.program, args, self.by_path, taps)
        return outs[0], seen

    def cotangents(
        self, curvature: Curvature, batch: Batch
    ) -> tuple[dict[int, Array], dict[int, Array], dict[int, Array]]:
        """Return the cotangents at taps and of weights, (examples, rank, ...), and operands."""
        chosen = list(curvature.parts.chosen.values())

        def one(x: Tree, y: Tree, number: Array, here: Array) -> Tree:
            alone = Batch(*tree.map(lambda a: a[None], (x, y, number, here)))
            zeros = {i: snp.zeros_like(chosen[i]) for i in self.uses.unknown}
            out, pull, seen = vjp(
                lambda taps, exact: self.run(curvature, taps, exact, alone.x),
                self._taps(),
                zeros,
                has_aux=True,
            )
            root = roots_of(curvature, out, alone)[0].astype(out.dtype)
            taps, exact = vmap(lambda column: pull(column.reshape(out.shape)), in_axes=-1)(root)
            return taps, exact, tree.map(lambda a: snp.where(here, a, 0), seen)

        return vmap(one)(batch.x, batch.y, batch.numbers, batch.here)

    def operands(
        self, use: int, taps: Mapping[int, Array], seen: Mapping[int, Array]
    ) -> tuple[Array, Array | None]:
        """Return g and a at a use, (groups, positions, elements), examples first; a None if 1."""
        one = self.listed[use]
        loops = [axis for _, axis in one.loops]
        g = arranged(taps[use], [*loops, *one.g_axes], "out")
        a_axes = one.a_axes
        return g, None if a_axes is None else arranged(seen[use], [*loops, *a_axes], "in")
