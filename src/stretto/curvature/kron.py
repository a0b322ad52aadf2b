"""Kronecker factors of curvature: for each weight B ⊗ A, from the traced program.

B = Σ g gᵀ over examples, positions and columns of the root, with g the cotangents of a product's
result, and A the mean over examples and positions of a aᵀ, with a the other factor: positions of a
sequence or of an image count as examples of their own, which is KFAC-expand. What is added has
a = 1. A weight that meets anything else, as the scale of a norm, has its exact block, with A = 1.
Sums that several weights have in common, as a weight and its bias, are computed once.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.jit.jit import jit
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Tree
from stretto.curvature.batches import (
    Batch,
    batch_of,
    dtype_of,
    knows_split,
    need_room,
    roots_of,
    splits_of,
    sum_over_batches,
)
from stretto.curvature.matrices import multiply
from stretto.curvature.plan import Layout, Plan
from stretto.curvature.uses import arranged, arrangement, squared

if TYPE_CHECKING:
    from stretto.curvature.curvature import Curvature

__all__ = ["Factors", "Kron", "KronEigen"]

V = TypeVar("V", bound=Any)

_MANY = 1e14
"""The operations of passes back through a model from which ``kron`` says how long they take."""
_CUBE, _LONG = 4e-11, 30.0
"""Seconds that eigenvectors of n by n numbers take, over n³ (2.5 s for 4,000 on two cores), and the
seconds from which ``eigen`` says so."""

_FEWER = (
    "the factors of a last layer, weights='last', take no passes, and those of "
    "fisher(kind='monte_carlo') or of a Likelihood whose root has few columns take few"
)

_SMALLER = "choose fewer weights=, or a smaller structure, such as .diagonal() or .low_rank()"

_LARGEST_EXACT = 4096
"""How many numbers a matrix may have to get an exact block where it has no factors."""


@register_dataclass
@dataclass(frozen=True, eq=False)
class Factors:
    """The two factors of one weight's block, B ⊗ A.

    A weight that is several matrices, as the kernel of a convolution in groups, has as many blocks:
    groups along axis 0, where a factor that all share has one.

    >>> import stretto as st, stretto.numpy as snp
    >>> model = (lambda w, x: x @ w, snp.zeros((2, 1)))
    >>> kron = st.curvature.ggn(model, snp.array([[1.0, 2.0]]), "gaussian").kron()
    >>> (factors,) = kron.factors.values()
    >>> factors.A
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """

    B: Array
    """(outputs, outputs), or (groups, outputs, outputs): the sum over the data of g gᵀ."""
    A: Array
    """(inputs, inputs), or (groups, inputs, inputs): the mean over the data of a aᵀ."""
    layout: Layout = field(metadata={"static": True})
    """How the weight is a matrix of outputs and inputs."""
    terms: int = field(metadata={"static": True})
    """How many examples and positions A is the mean of."""

    def matrix(self, v: ArrayLike) -> Array:
        """Return an array of the weight's shape as (outputs, inputs), or (groups, ...) of those.

        Args:
            v: (*shape, ...); axes behind those of the weight stay behind.

        Returns:
            (outputs, inputs, ...), or (groups, outputs, inputs, ...).
        """
        m = self.layout.matrix(as_value(v))
        return m if self.layout.grouped else m[0]

    def weight(self, m: ArrayLike) -> Array:
        """Return what ``matrix`` gives as an array of the weight's shape.

        Args:
            m: (outputs, inputs, ...), or (groups, outputs, inputs, ...).

        Returns:
            (*shape, ...).
        """
        value = as_value(m)
        return self.layout.weight(value if self.layout.grouped else value[None])

    def multiply(self, v: Array) -> Array:
        """Multiply by columns: B V A, since A is symmetric.

        Args:
            v: (*shape, k).

        Returns:
            (*shape, k).
        """
        m = self.matrix(v)
        return self.weight(snp.einsum("...op,...pik,...ij->...ojk", self.B, m, self.A))

    def dense(self) -> Array:
        """Compute the block, in the order of the weight's elements.

        Returns:
            (size, size), for the size of the weight.
        """
        size = math.prod(self.layout.shape)
        eye = snp.eye(size, dtype=self.B.dtype).reshape((*self.layout.shape, size))
        return self.multiply(eye).reshape(size, size)

    def diagonal(self) -> Array:
        """Compute the diagonal of the block.

        Returns:
            An array of the weight's shape.
        """
        b = snp.diagonal(self.B, axis1=-2, axis2=-1)
        a = snp.diagonal(self.A, axis1=-2, axis2=-1)
        return self.weight(b[..., :, None] * a[..., None, :])


@register_dataclass
@dataclass(frozen=True, eq=False)
class KronEigen:
    """Eigenvalues and eigenvectors of the two factors of one weight.

    The block is (U ⊗ V) diag(λ μᵀ) (U ⊗ V)ᵀ. Values in ascending order, none below 0.

    >>> import stretto as st, stretto.numpy as snp
    >>> model = (lambda w, x: x @ w, snp.zeros((2, 1)))
    >>> kron = st.curvature.ggn(model, snp.array([[3.0, 4.0]]), "gaussian").kron()
    >>> (eigen,) = kron.eigen().values()
    >>> eigen.values.round(3)
    Array([[ 0., 25.]], dtype=float32)
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
        """Compute the matrix, zero between weights.

        Returns:
            (P, P), for P numbers in all weights.

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
        """Compute the diagonal.

        Returns:
            An array of each weight's shape, by name.
        """
        return {n: f.diagonal() for n, f in self._ordered().items()}

    def eigen(self) -> dict[str, KronEigen]:
        """Compute eigenvalues and eigenvectors of all factors.

        Returns:
            Those of each weight, by name. Where that takes long, a warning says so before.
        """
        factors = self._ordered()
        _warn_of_eigenvectors(factors)
        return {n: _eigen(f) for n, f in factors.items()}


def _joined(one: Factors, other: Factors) -> Factors:
    terms = one.terms + other.terms
    mean = (one.A * one.terms + other.A * other.terms) / terms
    return Factors(one.B + other.B, mean, one.layout, terms)


def _warn_of_eigenvectors(factors: dict[str, Factors]) -> None:
    """Say so where the eigenvectors of factors take long."""
    cubes = {
        n: sum([math.prod(x.shape) * x.shape[-1] for x in (f.B, f.A)]) for n, f in factors.items()
    }
    seconds = sum(cubes.values()) * _CUBE
    if seconds < _LONG:
        return
    worst = max(cubes, key=cubes.__getitem__)
    outs, ins = (x.shape[-1] for x in (factors[worst].B, factors[worst].A))
    warnings.warn(
        f"Kron.eigen: eigenvectors of all factors take some {seconds / 60:,.1f} minutes, most of "
        f"them those of {worst}, {outs:,} × {outs:,} and {ins:,} × {ins:,}; {_SMALLER}",
        stacklevel=user_stack_level(),
    )


def _eigen(f: Factors) -> KronEigen:
    b, u = snp.linalg.eigh(f.B)
    a, v = snp.linalg.eigh(f.A)
    return KronEigen(snp.maximum(b, 0), u, snp.maximum(a, 0), v, f)


# Fitting


@jit
def kron_of(curvature: Curvature) -> Kron:
    """Compute the Kronecker factors of a curvature."""
    names = curvature.names
    plan = Plan(curvature)
    layouts = plan.layouts
    for i, n in enumerate(names):
        _refuse(n, layouts[i], plan.uses.unknown.get(i), dtype_of(curvature))
    each = plan.elements_by_columns
    plan.need_room("Curvature.kron", each, _FEWER)
    _warn_of_passes(plan, curvature)
    squares = _Squares(plan, curvature)
    sums = sum_over_batches(curvature, batch_of(curvature, each), squares)
    factors = {}
    for i, n in enumerate(names):
        B, A = squares.of_weight(i, sums)
        terms = curvature.examples * plan.positions(i)
        A = snp.ones((1, 1, 1), B.dtype) if A is None else A / terms
        if not layouts[i].grouped:
            B, A = B[0], A[0]
        factors[n] = Factors(B, A, layouts[i], terms)
    return Kron(factors, names)


def needs_roots(curvature: Curvature) -> bool:
    """Say whether its Kronecker factors take the root of each example."""
    return Plan(curvature).needs_roots


def _warn_of_passes(plan: Plan, curvature: Curvature) -> None:
    """Say so where the passes back through the model take long."""
    passes = curvature.examples * plan.rank
    operations = passes * plan.work
    if operations < _MANY:
        return
    warnings.warn(
        f"Curvature.kron: {curvature.examples:,} examples with roots of {plan.rank:,} columns, for "
        f"{plan.outputs:,} outputs, take {passes:,} passes back through the model, some "
        f"{operations:.0e} operations: {operations / 3.6e14:,.1f} hours at 1e11 a second; {_FEWER}",
        stacklevel=user_stack_level(),
    )


def _refuse(name: str, layout: Layout, met: str | None, dtype: DTypeLike) -> None:
    """Raise for a weight that has no factors, or for one whose factors do not fit."""
    size = math.prod(layout.shape)
    if met is not None and len(layout.shape) > 1 and size > _LARGEST_EXACT:
        raise NotImplementedError(
            f"Curvature.kron: {name} {layout.shape} has no Kronecker factors: it meets {met}; "
            f"expected products, convolutions, sums or look-ups of rows (an exact block is made of "
            f"at most {_LARGEST_EXACT} numbers): leave it out by weights=, or use .diagonal() or "
            f".low_rank()"
        )
    groups, outs, ins = (layout.size(role) for role in ("shared", "out", "in"))
    what = f"the factors of {name}, {groups} of {outs:,} × {outs:,} and {ins:,} × {ins:,},"
    need_room("Curvature.kron", groups * (outs**2 + ins**2), dtype, what, _SMALLER)


class _Squares:
    """The sums of g gᵀ and of a aᵀ over a batch, each once, whatever weights it is of.

    Uses have the same one where their cotangents are the same, in the same arrangement.
    """

    def __init__(self, plan: Plan, curvature: Curvature) -> None:
        self.plan, self.curvature = plan, curvature
        g, a = {}, {}
        for n, use in enumerate(plan.listed):
            tap = -1 if n in plan.at_outputs else plan.same[n]
            g.setdefault((tap, arrangement(use.tap_shape, plan.axes_of_g(n), "out")), []).append(n)
            if use.a_axes is not None:
                other = plan.same_other[n]
                a.setdefault((other, plan.axes_of_a(n)), []).append(n)
        self.of_g, self.of_a = list(g.values()), a

    def __call__(self, batch: Batch) -> tuple[list[Array], list[Array], list[Array]]:
        """Return the squares of g, of gradients that are exact, and of a: (groups, n, n) each."""
        plan = self.plan

        def of_columns(taps: Tree, exact: Tree) -> Tree:
            own = {k: uses[0] for k, uses in enumerate(self.of_g) if plan.same[uses[0]] in taps}
            squares = {
                k: squared(taps[plan.same[n]], plan.axes_of_g(n), "out") for k, n in own.items()
            }
            rows = {i: g.reshape(-1, math.prod(g.shape[2:])) for i, g in exact.items()}
            wide = {i: g.astype(snp.promote_types(g.dtype, np.float32)) for i, g in rows.items()}
            return squares, {i: (g.T @ g)[None] for i, g in wide.items()}

        sums, seen, out = plan.sum_over_columns(self.curvature, batch, of_columns)
        squares, exact = sums or ({}, {})
        ends = {
            k: _square_at_outputs(self.curvature, plan, uses[0], batch, out)
            for k, uses in enumerate(self.of_g)
            if k not in squares
        }
        every = {**squares, **ends}
        return (
            [every[k] for k in range(len(self.of_g))],
            [exact[i] for i in plan.uses.unknown],
            [squared(seen[uses[0]], axes, "in") for (_, axes), uses in self.of_a.items()],
        )

    def of_weight(self, weight: int, sums: Tree) -> tuple[Array, Array | None]:
        """Return B of a weight, and the sum of a aᵀ, None where a is 1."""
        squares, exact, others = sums
        if weight in self.plan.uses.unknown:
            return exact[list(self.plan.uses.unknown).index(weight)], None

        def total(of: list[list[int]], parts: list[Array]) -> Array | None:
            own = [
                x
                for uses, x in zip(of, parts, strict=True)
                for n in uses
                if self.plan.listed[n].weight == weight
            ]
            return sum(own[1:], own[0]) if own else None

        B = total(self.of_g, squares)
        assert B is not None
        return B, total(list(self.of_a.values()), others)


def _square_at_outputs(
    curvature: Curvature, plan: Plan, use: int, batch: Batch, out: Array
) -> Array:
    """Return the sum of g gᵀ at a use whose cotangent is that of the outputs: there it is Λ."""
    shape, axes = plan.listed[use].tap_shape, plan.axes_of_g(use)
    if not knows_split(curvature):
        roots = roots_of(curvature, out, batch).astype(out.dtype)
        columns = snp.moveaxis(roots, -1, 0).reshape((-1, len(out), *shape))
        return squared(columns, axes, "out")
    diagonal, factor = splits_of(curvature, out, batch)
    diagonal = arranged(diagonal.reshape((len(out), *shape)), axes, "out")
    diagonal = diagonal.sum(axis=1, dtype=snp.promote_types(diagonal.dtype, np.float32))
    eye = snp.eye(diagonal.shape[-1], dtype=bool)
    if factor is None:
        return snp.where(eye, diagonal[..., None], 0)
    columns = snp.moveaxis(factor, -1, 0).reshape((-1, len(out), *shape))
    return snp.where(eye, diagonal[..., None], -squared(columns, axes, "out"))
