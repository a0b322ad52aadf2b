"""Kronecker factors of curvature: for each weight B ⊗ A, from the traced program.

B = Σ g gᵀ over examples, positions and columns of the root, with g the cotangents of a product's
result, and A the mean over examples and positions of a aᵀ, with a the other factor: positions of a
sequence or of an image count as examples of their own, which is KFAC-expand. What is added has
a = 1. A weight that meets anything else, as the scale of a norm, has its exact block, with A = 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import vjp
from stretto._engine.api.graph import eval_shape, record_call
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.rewriting import live
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Tree
from stretto.curvature.matrices import (
    Batch,
    batch_of,
    dtype_of,
    multiply,
    need_room,
    rank_of,
    roots_of,
    sum_over_batches,
)
from stretto.curvature.uses import Use, arranged, run, uses_of

if TYPE_CHECKING:
    from stretto.curvature.curvature import Curvature

__all__ = ["Factors", "Kron", "KronEigen"]

V = TypeVar("V", bound=Any)

_LARGEST_EXACT = 4096
"""How many numbers a matrix may have to get an exact block where it has no factors."""


class _Layout(NamedTuple):
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


@register_dataclass
@dataclass(frozen=True, eq=False)
class Factors:
    """The two factors of one weight's block, B ⊗ A.

    A weight that is several matrices, as the kernel of a convolution in groups, has as many blocks:
    groups along axis 0, where a factor that all share has one.
    """

    B: Array
    """(outputs, outputs), or (groups, outputs, outputs): the sum over the data of g gᵀ."""
    A: Array
    """(inputs, inputs), or (groups, inputs, inputs): the mean over the data of a aᵀ."""
    layout: _Layout = field(metadata={"static": True})
    terms: int = field(metadata={"static": True})
    """How many examples and positions A is the mean of."""

    def matrix(self, v: ArrayLike) -> Array:
        """Return an array of the weight's shape as (outputs, inputs), or (groups, ...) of those.

        Axes behind those of the weight stay behind.
        """
        m = self.layout.matrix(as_value(v))
        return m if self.layout.grouped else m[0]

    def weight(self, m: ArrayLike) -> Array:
        """Return what ``matrix`` gives as an array of the weight's shape."""
        value = as_value(m)
        return self.layout.weight(value if self.layout.grouped else value[None])

    def multiply(self, v: Array) -> Array:
        """Multiply by columns (*shape, k): B V A, since A is symmetric."""
        m = self.matrix(v)
        return self.weight(snp.einsum("...op,...pik,...ij->...ojk", self.B, m, self.A))

    def dense(self) -> Array:
        """Compute the block, in the order of the weight's elements."""
        size = math.prod(self.layout.shape)
        eye = snp.eye(size, dtype=self.B.dtype).reshape((*self.layout.shape, size))
        return self.multiply(eye).reshape(size, size)

    def diagonal(self) -> Array:
        """Compute the diagonal of the block, in the weight's shape."""
        b = snp.diagonal(self.B, axis1=-2, axis2=-1)
        a = snp.diagonal(self.A, axis1=-2, axis2=-1)
        return self.weight(b[..., :, None] * a[..., None, :])


@register_dataclass
@dataclass(frozen=True, eq=False)
class KronEigen:
    """Eigenvalues and eigenvectors of the two factors of one weight.

    The block is (U ⊗ V) diag(λ μᵀ) (U ⊗ V)ᵀ. Values in ascending order, none below 0.
    """

    B_values: Array
    """λ, (outputs,), or (groups, outputs)."""
    B_vectors: Array
    """U, (outputs, outputs), as columns, or one for each group."""
    A_values: Array
    """μ, (inputs,), or (groups, inputs)."""
    A_vectors: Array
    """V, (inputs, inputs), as columns, or one for each group."""
    factors: Factors
    """What they are of; its ``matrix`` and ``weight`` go from and to the weight's shape."""

    @property
    def values(self) -> Array:
        """The eigenvalues of the block, λ μᵀ: (outputs, inputs), or (groups, outputs, inputs)."""
        return self.B_values[..., :, None] * self.A_values[..., None, :]


@register_dataclass
@dataclass(frozen=True, eq=False)
class Kron:
    """A matrix over weights with a block for each, B ⊗ A; immutable, and a tree.

    ``kron @ v``, ``dense`` and ``diagonal`` as ``Curvature`` has them. ``first + second``, of two
    parts of the data, is that of both; ``kron * c`` is scaled.

    >>> import stretto as st, stretto.numpy as snp
    >>> model = st.nn.Linear(2, 1)
    >>> x = snp.array([[1.0, 0.0], [1.0, 2.0]])
    >>> kron = st.curvature.ggn(model, x, "gaussian").kron()
    >>> kron.factors["weight"].B, kron.factors["weight"].A
    (Array([[2.]], dtype=float32), Array([[1., 1.],
           [1., 2.]], dtype=float32))
    """

    factors: dict[str, Factors]
    """By dotted name, in the order of ``names``."""
    names: tuple[str, ...] = field(metadata={"static": True})
    """The order of rows: a dictionary that went through ``jit`` may have another."""

    def _ordered(self) -> dict[str, Factors]:
        return {n: self.factors[n] for n in self.names}

    @property
    def size(self) -> int:
        """The number of weights, P."""
        return sum(math.prod(f.layout.shape) for f in self.factors.values())

    def __matmul__(self, v: V) -> V:
        """Multiply by a dictionary of arrays by name, by (P,), or by columns (P, k).

        Raises:
            ValueError: shapes do not fit.
        """
        parts = self._ordered()
        shapes = {n: f.layout.shape for n, f in parts.items()}
        return multiply(
            "Kron", lambda v: {n: f.multiply(v[n]) for n, f in parts.items()}, shapes, v
        )

    def __add__(self, other: Kron) -> Kron:
        """Join those of two parts of the data: B is added, A is the mean over both."""
        if not isinstance(other, Kron):
            return NotImplemented
        if self.names != other.names:
            raise ValueError(
                f"Kron + Kron: expected the same weights; got {self.names} and {other.names}"
            )
        return Kron({n: _joined(self.factors[n], other.factors[n]) for n in self.names}, self.names)

    def __mul__(self, scale: ArrayLike) -> Kron:
        """Scale the matrix, by B."""
        factors = {n: replace(f, B=f.B * scale) for n, f in self.factors.items()}
        return replace(self, factors=factors)

    __rmul__ = __mul__

    def dense(self) -> Array:
        """Compute the matrix, (P, P), zero between weights.

        Raises:
            MemoryError: it would not fit; see ``Curvature.dense``.
        """
        dtype = snp.result_type(*[f.B.dtype for f in self.factors.values()])
        need_room("Kron.dense", self.size**2, dtype, f"a matrix of {self.size:,} × {self.size:,}")
        rows, start = [], 0
        for f in self._ordered().values():
            block = f.dense()
            after = self.size - start - len(block)
            rows.append(snp.pad(block, ((0, 0), (start, after))))
            start += len(block)
        return snp.concatenate(rows, 0)

    def diagonal(self) -> dict[str, Array]:
        """Compute the diagonal, as an array of each weight's shape, by name."""
        return {n: f.diagonal() for n, f in self._ordered().items()}

    def eigen(self) -> dict[str, KronEigen]:
        """Compute eigenvalues and eigenvectors of all factors, by name."""
        return {n: _eigen(f) for n, f in self._ordered().items()}


def _joined(one: Factors, other: Factors) -> Factors:
    terms = one.terms + other.terms
    mean = (one.A * one.terms + other.A * other.terms) / terms
    return Factors(one.B + other.B, mean, one.layout, terms)


def _eigen(f: Factors) -> KronEigen:
    b, u = snp.linalg.eigh(f.B)
    a, v = snp.linalg.eigh(f.A)
    return KronEigen(snp.maximum(b, 0), u, snp.maximum(a, 0), v, f)


# Fitting


@jit
def kron_of(curvature: Curvature) -> Kron:
    """Compute the Kronecker factors of a curvature."""
    names, chosen = curvature.names, curvature.parts.chosen
    plan = _Plan(curvature)
    layouts = [plan.layout(i, chosen[n]) for i, n in enumerate(names)]
    for i, n in enumerate(names):
        _refuse(n, layouts[i], plan.uses.unknown.get(i), dtype_of(curvature))

    def one(batch: Batch) -> list[tuple[Array, Array]]:
        taps, exact, seen = plan.cotangents(curvature, batch)
        return [
            plan.sums(i, taps, seen, batch.here)
            if i in plan.uses.found
            else _exact_sums(exact[i], batch.here)
            for i in range(len(names))
        ]

    sums = sum_over_batches(curvature, batch_of(curvature, plan.elements), one)
    factors = {}
    for i, n in enumerate(names):
        terms = curvature.examples * plan.positions(i)
        B, A = sums[i]
        if not layouts[i].grouped:
            B, A = B[0], A[0]
        factors[n] = Factors(B, A / terms, layouts[i], terms)
    return Kron(factors, names)


def _refuse(name: str, layout: _Layout, met: str | None, dtype: DTypeLike) -> None:
    """Raise for a weight that has no factors, or for one whose factors do not fit."""
    size = math.prod(layout.shape)
    if met is not None and len(layout.shape) > 1 and size > _LARGEST_EXACT:
        raise NotImplementedError(
            f"Curvature.kron: {name} {layout.shape} has no Kronecker factors, since it meets {met}: "
            f"expected products, convolutions, sums or look-ups of rows (an exact block is made of "
            f"at most {_LARGEST_EXACT} numbers): leave it out by weights=, or use .diagonal() or "
            f".low_rank()"
        )
    groups, outs, ins = (layout.size(role) for role in ("shared", "out", "in"))
    what = f"the factors of {name}, {groups} of {outs:,} × {outs:,} and {ins:,} × {ins:,},"
    need_room("Curvature.kron", groups * (outs**2 + ins**2), dtype, what)


class _Plan:
    """What a curvature's program is, and where weights enter it."""

    def __init__(self, curvature: Curvature) -> None:
        apply, chosen, names = curvature.parts
        x = tree.map(lambda a: a[:1], curvature.x)
        # Weights in a list: leaves of a dictionary come in another order.
        call = lambda weights, x: apply(dict(zip(names, weights, strict=True)), x)
        program, _, self.captured = record_call(call, (list(chosen.values()), x), {})
        self.program = live(program)
        self.uses = uses_of(self.program, len(names))
        self.listed = self.uses.in_order()
        self.by_path: dict[tuple[int, ...], list[tuple[int, Use]]] = {}
        for n, use in enumerate(self.listed):
            self.by_path.setdefault(use.path, []).append((n, use))
        run_alone = lambda c: self.run(c, self._taps(), {}, tree.map(lambda a: a[:1], c.x))[1]
        seen = tree.leaves(eval_shape(run_alone, curvature))
        exact = [x.size for i, x in enumerate(chosen.values()) if i in self.uses.unknown]
        given = sum(exact) + sum(math.prod(u.tap_shape) for u in self.listed)
        self.elements = rank_of(curvature) * given + sum(math.prod(a.shape) for a in seen)

    def layout(self, weight: int, x: Array) -> _Layout:
        """Return how a weight is a matrix."""
        uses = self.uses.found.get(weight)
        axes = uses[0].layout if uses else None
        return _Layout(x.shape, axes or (("out", x.size),))

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

    def sums(
        self, weight: int, taps: Mapping[int, Array], seen: Mapping[int, Array], here: Array
    ) -> tuple[Array, Array]:
        """Return the sums of g gᵀ and of a aᵀ over all uses of a weight, (groups, n, n)."""
        g, a = [], []
        for n, use in enumerate(self.listed):
            if use.weight != weight:
                continue
            loops = [axis for _, axis in use.loops]
            g.append(_square(arranged(taps[n], [*loops, *use.g_axes], "out")))
            if use.a_axes is not None:
                a.append(_square(arranged(seen[n], [*loops, *use.a_axes], "in")))
        return sum(g[1:], g[0]), sum(a[1:], a[0]) if a else _ones(here, g[0])


def _exact_sums(g: Array, here: Array) -> tuple[Array, Array]:
    """Return the sums for a weight whose gradients are known alone: its exact block, and 1."""
    B = _square(g.reshape(1, g.shape[0] * g.shape[1], -1))
    return B, _ones(here, B)


def _ones(here: Array, like: Array) -> Array:
    """Return the sum over examples of a aᵀ where a is 1."""
    return snp.sum(here, dtype=like.dtype).reshape(1, 1, 1)


def _square(x: Array) -> Array:
    """Return the sums of x xᵀ over positions: (groups, n, n) of (groups, positions, n)."""
    x = x.astype(snp.promote_types(x.dtype, np.float32))
    return snp.swapaxes(x, 1, 2) @ x
