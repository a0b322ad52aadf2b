"""Precisions of the weights: full, Kronecker-factored, diagonal, or of low rank over the prior.

The precision is P = H/σ² + δ with H the curvature of the data, δ the prior's precision of each
weight. All is computed of M = 1 + δ^{-1/2} H δ^{-1/2}/σ², whose eigenvalues are at least 1, so that
nothing is lost to rounding where the data say little. ``spread`` below is 1/σ².

A class here has H of one member. What it gives: the evidence's log|P| − Σ log δ, draws of
N(0, P⁻¹), and J P⁻¹ Jᵀ of the Jacobians of predictions.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto import random
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, Key, Tree
from stretto.curvature.jacobians import Outer, gram
from stretto.curvature.kron import Kron, KronEigen
from stretto.curvature.plan import Layout
from stretto.linalg import cholesky, eigh, solve_triangular

Prior = Mapping[str, Array]
"""The prior's precision of each weight, by name, in the order of the weights."""


Shapes = tuple[tuple[str, tuple[int, ...]], ...]


class Flat:
    """What the precisions of the flat vector of weights have in common."""

    shapes: Shapes

    def _scale(self, prior: Prior) -> Array:
        """Return δ^{-1/2} of each weight of the flat vector."""
        parts = [snp.broadcast_to(prior[n], (math.prod(shape),)) for n, shape in self.shapes]
        return 1 / snp.sqrt(snp.concatenate(parts))

    def _by_name(self, flat: Array) -> dict[str, Array]:
        """Return the parts of a flat vector."""
        ends = np.cumsum([math.prod(shape) for _, shape in self.shapes])[:-1]
        parts = snp.split(flat, ends.tolist())
        return {n: x.reshape(shape) for (n, shape), x in zip(self.shapes, parts, strict=True)}

    def divided(self, factor: Tree, rows: Array) -> Array:
        """Return rows (count, weights) times δ^{-1/2} R, where R Rᵀ = M⁻¹."""
        raise NotImplementedError

    def covariance(self, factor: Tree, jacobian: Array, joint: bool) -> Array:
        """Return J P⁻¹ Jᵀ of a Jacobian (examples, outputs, weights)."""
        divided = self.divided(factor, jacobian.reshape(-1, jacobian.shape[-1]))
        rows = divided if joint else divided.reshape(jacobian.shape)
        return rows @ snp.swapaxes(rows, -1, -2)


@register_dataclass
@dataclasses.dataclass(frozen=True)
class FullPrecision(Flat):
    """All of H: exact where predictions are linear in the weights."""

    curvature: Array
    """H, (weights, weights)."""
    shapes: Shapes = dataclasses.field(metadata={"static": True})

    def factor(self, prior: Prior, spread: Array) -> tuple[Array, Array]:
        """Return δ^{-1/2}, and L with L Lᵀ = M."""
        scale = self._scale(prior)
        matrix = spread * scale[:, None] * self.curvature * scale
        return scale, cholesky(matrix + snp.eye(len(scale), dtype=matrix.dtype))

    def log_determinant(self, prior: Prior, spread: Array) -> Array:
        """Return log|P| − Σ log δ."""
        return 2 * snp.sum(snp.log(snp.diagonal(self.factor(prior, spread)[1])))

    def draw(self, factor: tuple[Array, Array], key: Key) -> dict[str, Array]:
        """Draw the weights, less their mean: δ^{-1/2} L^{-T} z."""
        scale, lower = factor
        z = random.normal(key, scale.shape, lower.dtype)
        return self._by_name(scale * solve_triangular(lower, z, trans=1, lower=True))

    def divided(self, factor: tuple[Array, Array], rows: Array) -> Array:
        """Return rows times δ^{-1/2} L^{-T}."""
        scale, lower = factor
        return solve_triangular(lower, (rows * scale).T, lower=True).T


@register_dataclass
@dataclasses.dataclass(frozen=True)
class LowRankPrecision(Flat):
    """H by its largest eigenvalues; elsewhere the weights are as the prior has them."""

    values: Array
    """(rank,), at least 0."""
    vectors: Array
    """(weights, rank)."""
    shapes: Shapes = dataclasses.field(metadata={"static": True})

    def _product(self, prior: Prior, spread: Array) -> tuple[Array, Array]:
        """Return δ^{-1/2}, and W with M = 1 + W Wᵀ."""
        scale = self._scale(prior)
        return scale, snp.sqrt(spread) * scale[:, None] * self.vectors * snp.sqrt(self.values)

    def factor(self, prior: Prior, spread: Array) -> tuple[Array, Array, Array]:
        """Return δ^{-1/2}, and U and c with M^{-1/2} = 1 − U c Uᵀ.

        With Wᵀ W = E S Eᵀ they are W E and 1 / (√(1 + S) (1 + √(1 + S))): nothing cancels, and what
        is squared to a variance stays at least 0.
        """
        scale, product = self._product(prior, spread)
        values, vectors = eigh(product.T @ product)
        root = snp.sqrt(1 + snp.maximum(values, 0))
        return scale, product @ vectors, 1 / (root * (1 + root))

    def log_determinant(self, prior: Prior, spread: Array) -> Array:
        """Return log|P| − Σ log δ, which is log|1 + Wᵀ W|."""
        _, product = self._product(prior, spread)
        lower = cholesky(product.T @ product + snp.eye(product.shape[1], dtype=product.dtype))
        return 2 * snp.sum(snp.log(snp.diagonal(lower)))

    def draw(self, factor: tuple[Array, Array, Array], key: Key) -> dict[str, Array]:
        """Draw the weights, less their mean: δ^{-1/2} M^{-1/2} z."""
        scale, turned, less = factor
        z = random.normal(key, scale.shape, turned.dtype)
        return self._by_name(scale * (z - turned @ (less * (z @ turned))))

    def divided(self, factor: tuple[Array, Array, Array], rows: Array) -> Array:
        """Return rows times δ^{-1/2} M^{-1/2}."""
        scale, turned, less = factor
        rows = rows * scale
        return rows - ((rows @ turned) * less) @ turned.T


@register_dataclass
@dataclasses.dataclass(frozen=True)
class DiagonalPrecision:
    """The diagonal of H: each weight by itself."""

    curvature: dict[str, Array]
    """The diagonal, by name, of the shapes of the weights."""

    def factor(self, prior: Prior, spread: Array) -> dict[str, Array]:
        """Return the variance of each weight."""
        return {n: 1 / (prior[n] + spread * h) for n, h in self.curvature.items()}

    def log_determinant(self, prior: Prior, spread: Array) -> Array:
        """Return log|P| − Σ log δ."""
        return sum_of(
            [snp.sum(snp.log1p(spread * h / prior[n])) for n, h in self.curvature.items()]
        )

    def draw(self, factor: dict[str, Array], key: Key) -> dict[str, Array]:
        """Draw the weights, less their mean."""
        keys = random.split(key, len(factor))
        return {
            n: random.normal(keys[i], v.shape, v.dtype) * snp.sqrt(v)
            for i, (n, v) in enumerate(factor.items())
        }

    def covariance(
        self, factor: dict[str, Array], jacobian: Mapping[str, Outer | Array], joint: bool
    ) -> Array:
        """Return J P⁻¹ Jᵀ of the Jacobians by each weight."""
        parts = []
        for name, variance in factor.items():
            own = jacobian[name]
            scale = own.layout.matrix(variance) if isinstance(own, Outer) else variance
            parts.append(gram(own, scale, joint))
        return sum_of(parts)


@register_dataclass
@dataclasses.dataclass(frozen=True)
class KronBlock:
    """B ⊗ A of one weight by eigenvalues and eigenvectors, for each of its groups.

    A factor that all groups share is there once.
    """

    left_values: Array
    """(groups, rows), those of B, at least 0."""
    left: Array
    """(groups, rows, rows)."""
    right_values: Array
    """(groups, columns), those of A, at least 0."""
    right: Array
    """(groups, columns, columns)."""
    layout: Layout = dataclasses.field(metadata={"static": True})

    @property
    def values(self) -> Array:
        """The eigenvalues of the block, (groups, rows, columns)."""
        return self.left_values[:, :, None] * self.right_values[:, None]

    def rotated(self, jacobian: Outer | Array) -> Outer | Array:
        """Return the Jacobian by the weight in the eigenbases."""
        if isinstance(jacobian, Outer):
            return jacobian.rotated(self.left, self.right)
        behind = snp.moveaxis(jacobian, (0, 1), (-2, -1))
        matrix = snp.moveaxis(self.layout.matrix(behind), (-2, -1), (0, 1))
        return snp.swapaxes(self.left, -1, -2) @ matrix @ self.right


@register_dataclass
@dataclasses.dataclass(frozen=True)
class KronPrecision:
    """A Kronecker product for each weight."""

    blocks: dict[str, KronBlock]

    def factor(self, prior: Prior, spread: Array) -> dict[str, Array]:
        """Return the variances in the eigenbases, (groups, rows, columns)."""
        return {n: 1 / (prior[n] + spread * b.values) for n, b in self.blocks.items()}

    def log_determinant(self, prior: Prior, spread: Array) -> Array:
        """Return log|P| − Σ log δ."""
        parts = [snp.sum(snp.log1p(spread * b.values / prior[n])) for n, b in self.blocks.items()]
        return sum_of(parts)

    def draw(self, factor: dict[str, Array], key: Key) -> dict[str, Array]:
        """Draw the weights, less their mean: U (z √variance) Vᵀ."""
        keys = random.split(key, len(factor))
        drawn = {}
        for i, (name, block) in enumerate(self.blocks.items()):
            z = random.normal(keys[i], factor[name].shape, factor[name].dtype)
            z = z * snp.sqrt(factor[name])
            drawn[name] = block.layout.weight(block.left @ z @ snp.swapaxes(block.right, -1, -2))
        return drawn

    def covariance(
        self, factor: dict[str, Array], jacobian: Mapping[str, Outer | Array], joint: bool
    ) -> Array:
        """Return J P⁻¹ Jᵀ of the Jacobians by each weight."""
        parts = [gram(b.rotated(jacobian[n]), factor[n], joint) for n, b in self.blocks.items()]
        return sum_of(parts)


def kron_precision(kron: Kron) -> KronPrecision:
    """Return the precision of Kronecker factors."""

    def block(of: KronEigen) -> KronBlock:
        arrays = of.B_values, of.B_vectors, of.A_values, of.A_vectors
        layout = of.factors.layout
        left_values, left, right_values, right = [x if layout.grouped else x[None] for x in arrays]
        return KronBlock(left_values, left, right_values, right, layout)

    return KronPrecision({n: block(e) for n, e in kron.eigen().items()})


def sum_of(parts: Sequence[Array]) -> Array:
    """Return the sum of arrays of one shape."""
    return functools.reduce(lambda x, y: x + y, parts)


Precision = FullPrecision | LowRankPrecision | DiagonalPrecision | KronPrecision


def precision_without_arrays(structure: str, shapes: tuple[Any, ...]) -> Precision:
    """Return a precision with zeros in place of arrays, to be filled from a file."""
    zero: Any = 0
    if structure == "full":
        return FullPrecision(zero, shapes)
    if structure == "low_rank":
        return LowRankPrecision(zero, zero, shapes)
    if structure == "diagonal":
        return DiagonalPrecision({n: zero for n, _ in shapes})
    if structure == "kron":
        zeros = zero, zero, zero, zero
        return KronPrecision({n: KronBlock(*zeros, Layout(*layout)) for n, layout in shapes})
    raise ValueError(f"there is no structure {structure!r}")


def shapes_of(precision: Precision) -> list[Any]:
    """Return what of a precision is not arrays, by name, as JSON has it."""
    if isinstance(precision, DiagonalPrecision):
        return [(n, None) for n in precision.curvature]
    if isinstance(precision, KronPrecision):
        return [(n, tuple(b.layout)) for n, b in precision.blocks.items()]
    return list(precision.shapes)
