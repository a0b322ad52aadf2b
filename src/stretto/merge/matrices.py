"""Methods of whole matrices: singular vectors of tasks, isotropic merging, regression on inputs.

A matrix of each model is in memory, in float64; what is left of the tensors goes block by block.

Singular vectors come from the eigenvectors of the product of a matrix with itself on its shorter
side, which takes half the time of a decomposition into singular values, and less where only the
largest are asked for. In float64 what that loses, singular values below 1e-8 of the largest, is
less than the rounding of the float32 or bfloat16 that the matrices come from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.lazy import LazyModule
from stretto.merge.streams import Source, whole

__all__ = ["Matrices", "isotropic", "memory_of", "regression", "singular_vectors", "truncated"]

linalg = LazyModule("scipy.linalg")

_COPIES = 7
"""How many arrays in float64, as large as the largest that is read, a method holds at most."""


class Matrices(NamedTuple):
    """A matrix of each model, read when it is asked for."""

    models: Sequence[Source]
    base: Source | None
    beside: Sequence[Source]
    """What is beside each model for this matrix."""
    settings: Mapping[str, Any]
    name: str

    def read(self, source: Source) -> np.ndarray:
        """Return a tensor in float64.

        Raises ``ValueError`` where it has NaN or infinities, of which no decomposition is.
        """
        found = whole(source).astype(np.float64)
        strange = found.size - np.count_nonzero(np.isfinite(found))
        if strange:
            raise ValueError(
                f"merge: {strange} of {found.size} elements of {source} are NaN or infinite, and "
                f"its whole matrix is needed: look at the model"
            )
        return found

    def delta(self, i: int) -> np.ndarray:
        """Return a model minus the base."""
        base: Any = self.base
        return self.read(self.models[i]) - self.read(base)


def memory_of(sources: Sequence[Source]) -> int:
    """Return about how many bytes the matrices of these sources take while they are merged."""
    return _COPIES * 8 * max(math.prod(s.stored.shape) for s in sources)


def _spectrum(x: np.ndarray, rank: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest singular values, or all, and the right singular vectors as columns.

    For a matrix with at least as many rows as columns.
    """
    last = x.shape[1] - 1
    which = None if rank is None else (max(last + 1 - rank, 0), last)
    squares, vectors = linalg.eigh(
        x.T @ x, subset_by_index=which, overwrite_a=True, check_finite=False
    )
    return np.sqrt(np.maximum(squares[::-1], 0)), vectors[:, ::-1]


def truncated(x: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the largest singular values of a matrix, with their vectors as columns: (u, s, v).

    Signs are such that the largest element of each column of ``v``, or of ``u`` in a matrix of more
    columns than rows, is positive. Where a singular value is 0, so is one of its vectors.

    >>> u, s, v = truncated(np.diag([3.0, -2.0]), 1)
    >>> s, u * s @ v.T
    (array([3.]), array([[3., 0.],
           [0., 0.]]))
    """
    if x.shape[0] < x.shape[1]:
        v, s, u = truncated(x.T, rank)
        return u, s, v
    s, v = _spectrum(x, rank)
    largest = np.take_along_axis(v, abs(v).argmax(axis=0)[None], axis=0)
    v = v * np.where(largest < 0, -1.0, 1.0)
    return x @ v / np.where(s > 0, s, 1), s, v


def _direction(x: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return U Vᵀ of a matrix U S Vᵀ, without singular values of ``least`` of the largest, and S.

    U Vᵀ is the nearest matrix with orthonormal columns, or rows.
    """
    if x.shape[0] < x.shape[1]:
        turned, s = _direction(x.T, least)
        return turned.T, s
    s, v = _spectrum(x)
    kept = s > least * s[0]
    s, v = s[kept], v[:, kept]
    return (x @ v / s) @ v.T, s


def singular_vectors(m: Matrices) -> np.ndarray:
    """Add to the base the tasks' leading singular vectors, made orthogonal to each other's.

    Of n tasks each keeps the n-th part of its singular values: Δ_i ≈ U_i S_i V_iᵀ. With the U_i
    side by side in U, and V alike, the result is base + λ U' S V'ᵀ, where U' and V' are the nearest
    matrices with orthonormal columns. Vectors that depend on each other share what they span.

    Source: Gargiulo et al., "Task singular vectors: reducing task interference in model merging",
    2025.
    """
    base: Any = m.base
    count = len(m.models)
    rank = max(1, min(base.stored.shape) // count)
    parts = [truncated(m.delta(i), rank) for i in range(count)]
    left, _ = _direction(np.concatenate([u for u, _, _ in parts], axis=1), 1e-6)
    right, _ = _direction(np.concatenate([v for _, _, v in parts], axis=1), 1e-6)
    weights = np.asarray(m.settings["weight"], np.float64)
    scale = np.concatenate([w * s for w, (_, s, _) in zip(weights, parts, strict=True)])
    return m.read(base) + float(m.settings["lambda"]) * (left * scale) @ right.T


def isotropic(m: Matrices) -> np.ndarray:
    """Add to the base the sum of the tasks with all singular values alike, as large as their mean.

    ΣwΔ = U S Vᵀ gives base + λ mean(S) U Vᵀ. Singular values that float32 cannot tell from 0 are
    not counted, since their vectors are arbitrary.

    Source: Marczak et al., "No task left behind: isotropic model merging with common and
    task-specific subspaces", 2025, Iso-C.
    """
    base: Any = m.base
    weights = np.asarray(m.settings["weight"], np.float64)
    total = weights[0] * m.delta(0)
    for i in range(1, len(m.models)):
        total += weights[i] * m.delta(i)
    least = max(total.shape) * float(np.finfo(np.float32).eps)
    direction, s = _direction(total, least)
    mean = s.mean() if len(s) else 0.0
    return m.read(base) + float(m.settings["lambda"]) * mean * direction


def regression(m: Matrices) -> np.ndarray:
    """Return the weight whose outputs are nearest to those of each model, on its own inputs.

    W = (Σ w G'_i)⁻¹ Σ w G'_i W_i, for weights with the inputs first, where G_i = X_iᵀ X_i, and G'_i
    is G_i with all but its diagonal multiplied by ``alpha``. An input that was 0 wherever it was
    seen is averaged.

    Source: Jin et al., "Dataless knowledge fusion by merging weights of language models", 2023.
    """
    weights = np.asarray(m.settings["weight"], np.float64)
    total: Any = sum(_gram(m, i, w) for i, w in enumerate(weights))
    unseen = np.flatnonzero(np.diagonal(total) == 0)
    total[unseen, unseen] = weights.sum()
    right: Any = 0.0
    for i, w in enumerate(weights):
        gram = _gram(m, i, w)
        gram[unseen, unseen] = w
        own = m.read(m.models[i])
        right = right + gram @ (own if m.settings["inputs_first"] else own.T)
    try:
        factor = linalg.cho_factor(total, lower=True)
        pivots = np.diagonal(factor[0])
        if pivots.min() ** 2 <= 1e-14 * pivots.max() ** 2:
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        raise ValueError(
            f"merge: the inputs of {m.name} do not say what all of it should be: its Gram matrices "
            f"add up to one that is singular. Use alpha below 1, or Gram matrices of more inputs"
        ) from None
    found = linalg.cho_solve(factor, right)
    return found if m.settings["inputs_first"] else found.T


def _gram(m: Matrices, i: int, weight: float) -> np.ndarray:
    """Return a model's Gram matrix by its weight, with what is off the diagonal made smaller."""
    gram = m.read(m.beside[i]) * weight
    own = np.diagonal(gram).copy()
    gram *= float(m.settings["alpha"])
    np.fill_diagonal(gram, own)
    return gram
