"""A model's program with taps where its weights enter, run on batches of examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import vjp
from stretto._engine.api.graph import eval_shape, record_call
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.program import Equation, Program, Var
from stretto._engine.core.rewriting import live
from stretto._engine.core.typing import Array, Tree
from stretto._engine.higher_order.family import Call
from stretto._engine.higher_order.scan import scan
from stretto._engine.ops.layout import Reshape, Transpose
from stretto.curvature.batches import Batch, dtype_of, knows_split, need_room, outputs_of, roots_of
from stretto.curvature.uses import Axis, Use, arranged, run, uses_of

if TYPE_CHECKING:
    from stretto.curvature.curvature import Curvature


T = TypeVar("T")

_NEAR = 1 << 20
"""How many numbers cotangents may have at a time, about: what a processor's caches hold."""


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
        self._follow(curvature)
        self.own = [n for n, m in enumerate(self.same) if n == m and n not in self.at_outputs]
        exact = [x.size for i, x in enumerate(chosen.values()) if i in self.uses.unknown]
        out, root = outputs_of(curvature)
        self.rank, self.dtype = root.shape[-1], dtype_of(curvature)
        # Of one cotangent of an example.
        self.given = sum(exact) + sum(math.prod(self.listed[n].tap_shape) for n in self.own)
        self.all_given = sum(exact) + sum(math.prod(u.tap_shape) for u in self.listed)
        self.outputs, self.knows_split = out.size, knows_split(curvature)

    @property
    def elements(self) -> int:
        """How many numbers an example takes where all its cotangents are there at once."""
        return self.rank * (self.all_given + self.outputs) + self.seen

    @property
    def needs_passes(self) -> bool:
        """Whether columns of roots are pulled back through the model."""
        return bool(self.own or self.uses.unknown)

    @property
    def needs_roots(self) -> bool:
        """Whether factors take roots: not those of a last layer, if its Λ is known without."""
        return self.needs_passes or not self.knows_split

    @property
    def is_last_layer(self) -> bool:
        """Whether all weights are of one product with the outputs as result, and what is added."""
        uses = self.uses.found.values()
        return (
            not self.needs_passes
            and all([len(own) == 1 and own[0].terms == 1 for own in uses])
            and not any([layout.grouped for layout in self.layouts])
        )

    @property
    def elements_by_columns(self) -> int:
        """How many numbers an example takes where its cotangents are there column by column."""
        return self.given + self.seen + self.outputs * (self.rank if self.needs_roots else 2)

    @property
    def work(self) -> int:
        """How many operations it takes to pull a column of an example's root back, about."""
        uses = [use for use in self.listed if use.a_axes is not None]
        sizes = [math.prod(self.layouts[use.weight].shape) * use.positions for use in uses]
        return 2 * sum(sizes) if self.needs_passes else 0

    def need_room(self, caller: str, elements: int, *way: str) -> None:
        """Raise ``MemoryError`` where what one example needs does not fit."""
        what = f"{self.rank:,} cotangents, one for each column of an example's root,"
        need_room(caller, elements, self.dtype, what, *way)

    def _follow(self, curvature: Curvature) -> None:
        """Follow a cotangent of the outputs back to the taps, in the traced derivative.

        ``same`` is for each use the first that has the same cotangent, as a weight and its bias
        have; ``same_other`` the first with the same other operand; and ``at_outputs`` are those
        whose cotangent is that of the outputs, of a last layer.
        """
        first = lambda c: tree.map(lambda a: a[:1], c.x)

        def back(curvature: Curvature, cotangent: Array) -> Any:
            run = lambda taps: self.run(curvature, taps, {}, first(curvature))
            _, pull, seen = vjp(run, self._taps(range(len(self.listed))), has_aux=True)
            (taps,) = pull(cotangent)
            return [taps[n] for n in range(len(self.listed))], [seen[n] for n in sorted(seen)]

        out = eval_shape(lambda c: self.run(c, {}, {}, first(c))[0], curvature)
        program, _, _ = record_call(back, (curvature, snp.zeros(out.shape, out.dtype)), {})
        cotangent = program.inputs[len(tree.leaves(curvature))]
        count = len(self.listed)
        taps, seen = program.outputs[:count], program.outputs[count:]
        others = [n for n, use in enumerate(self.listed) if use.a_axes is not None]
        self.same = _firsts(taps)
        self.same_other = {n: others[m] for n, m in zip(others, _firsts(seen), strict=True)}
        self.at_outputs = {n for n in range(count) if _reshaped_from(program, taps[n]) is cotangent}
        self.seen = sum(math.prod(v.type.shape) for v in seen)

    def _layout(self, uses: list[Use] | None, x: Array) -> Layout:
        """Return how a weight is a matrix: a row of outputs where it has no uses."""
        axes = uses[0].layout if uses else None
        return Layout(x.shape, axes or (("out", x.size),))

    def positions(self, weight: int) -> int:
        """Return how many positions of an example A is the mean of."""
        uses = self.uses.found.get(weight, [])
        return sum(u.positions for u in uses if u.a_axes is not None) or 1

    def _taps(self, of: Iterable[int], *front: int) -> dict[int, Array]:
        """Return zeros for these uses, with axes in front."""
        found = {n: self.listed[n] for n in of}
        return {n: snp.zeros((*front, *u.tap_shape), u.type.dtype) for n, u in found.items()}

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
                self._taps(range(len(self.listed))),
                zeros,
                has_aux=True,
            )
            root = roots_of(curvature, out, alone)[0].astype(out.dtype)
            taps, exact = vmap(lambda column: pull(column.reshape(out.shape)), in_axes=-1)(root)
            return taps, exact, tree.map(lambda a: snp.where(here, a, 0), seen)

        return vmap(one)(batch.x, batch.y, batch.numbers, batch.here)

    def sum_over_columns(
        self, curvature: Curvature, batch: Batch, of: Callable[[Tree, Tree], T]
    ) -> tuple[T | None, dict[int, Array], Array]:
        """Pull columns of the roots of a batch back to the taps, some at a time.

        Args:
            curvature: of which this is the plan.
            batch: its examples.
            of: a sum over the first two axes of cotangents at taps, by use, and of weights, by
                number: (columns, examples, ...).

        Returns:
            The sum over all columns, None where no use needs any; the operands at uses, and the
            outputs, (examples, ...).
        """
        examples, chosen = len(batch.numbers), list(curvature.parts.chosen.values())

        def forward(taps: Tree, exact: Tree) -> tuple[Array, dict[int, Array]]:
            def one(taps: Tree, exact: Tree, x: Tree, here: Array) -> tuple[Array, Tree]:
                alone = tree.map(lambda a: a[None], x)
                out, seen = self.run(curvature, taps, exact, alone)
                return out, tree.map(lambda a: snp.where(here, a, 0), seen)

            return vmap(one)(taps, exact, batch.x, batch.here)

        unknown = {i: chosen[i] for i in self.uses.unknown}
        zeros = {i: snp.zeros((examples, *w.shape), w.dtype) for i, w in unknown.items()}
        taps = self._taps(self.own, examples)
        if not taps and not zeros:
            out, seen = forward({}, {})
            return None, seen, self._of_examples(out)
        out, pull, seen = vjp(forward, taps, zeros, has_aux=True)
        roots = roots_of(curvature, self._of_examples(out), batch).astype(out.dtype)
        columns = snp.moveaxis(roots, -1, 0).reshape((-1, *out.shape))
        at_once = max(1, _NEAR // (self.given * examples))
        steps = -(-len(columns) // at_once)
        if steps == 1:
            return of(*vmap(pull)(columns)), seen, self._of_examples(out)
        size = -(-len(columns) // steps)
        columns = snp.pad(columns, ((0, steps * size - len(columns)), *[(0, 0)] * out.ndim))
        columns = columns.reshape((steps, size, *out.shape))
        types = eval_shape(lambda some: of(*vmap(pull)(some)), columns[0])
        none = tree.map(lambda t: snp.zeros(t.shape, t.dtype), types)

        def step(total: T, some: Array) -> tuple[T, None]:
            return tree.map(lambda a, b: a + b, total, of(*vmap(pull)(some))), None

        return scan(step, none, columns)[0], seen, self._of_examples(out)

    @staticmethod
    def _of_examples(out: Array) -> Array:
        """Return outputs, each of a batch of one, as (examples, ...)."""
        return out[:, 0]

    def operands(
        self, use: int, taps: Mapping[int, Array], seen: Mapping[int, Array]
    ) -> tuple[Array, Array | None]:
        """Return g and a at a use, (groups, positions, elements), examples first; a None if 1."""
        g = arranged(taps[use], self.axes_of_g(use), "out")
        return g, self.other(use, seen)

    def axes_of_g(self, use: int) -> list[Axis]:
        """Return what the axes of a tap are."""
        one = self.listed[use]
        return [*[axis for _, axis in one.loops], *one.g_axes]

    def other(self, use: int, seen: Mapping[int, Array]) -> Array | None:
        """Return a at a use, (groups, positions, elements), examples first; None if it is 1."""
        axes = self.axes_of_a(use)
        return None if axes is None else arranged(seen[use], axes, "in")

    def axes_of_a(self, use: int) -> tuple[Axis, ...] | None:
        """Return what the axes of the other operand are; None if it is 1."""
        one = self.listed[use]
        return None if one.a_axes is None else (*[axis for _, axis in one.loops], *one.a_axes)


def _firsts(values: Sequence[Any]) -> list[int]:
    """Return for each value the number of the first that is the same one."""
    return [next(m for m, other in enumerate(values) if other is v) for v in values]


def _keeps_order(op: Transpose, e: Equation) -> bool:
    """Say whether a transpose moves no axes but those of size 1."""
    moved = [i for i in op.permutation if e.inputs[0].type.shape[i] > 1]
    return moved == sorted(moved)


def _reshaped_from(program: Program, value: Any) -> Any:
    """Return the value of a program that is reshaped to this one, through calls, or is it."""
    made = {v: e for e in program.equations for v in e.outputs}
    while isinstance(value, Var) and value in made:
        e = made[value]
        op: Any = e.primitive
        inner = op.inlined() if isinstance(op, Call) else None
        if inner is not None:
            end = _reshaped_from(inner, inner.outputs[e.outputs.index(value)])
            if end not in inner.inputs:
                return value
            value = e.inputs[inner.inputs.index(end)]
        elif isinstance(op, Reshape) or (isinstance(op, Transpose) and _keeps_order(op, e)):
            (value,) = e.inputs
        else:
            return value
    return value
