"""Weights of sums that lie on arcs between models, from the products of the models with each other.

A point of the span of tensors x_1, …, x_n is Σ c_i x_i; its products with others, and so its length
and its angles, follow from the matrix of all x_i·x_j. So what the methods do on a sphere is done on
the coefficients here, in float64, and never needs the tensors. Several rows have several matrices,
along the first axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

Products: TypeAlias = np.ndarray
"""(..., n, n): the products of each with each."""

_NEARLY_PARALLEL = 0.9995
_SMALL = 1e-8


def lengths(products: Products) -> np.ndarray:
    """Return the norm of each tensor, (..., n)."""
    diagonal = np.diagonal(products, axis1=-2, axis2=-1)
    return np.sqrt(np.maximum(diagonal, 0))


def slerp(products: Products, t: float) -> np.ndarray:
    """Return the weights of spherical interpolation from the first tensor to the second.

    Tensors that are nearly parallel, or opposite, are interpolated linearly.

    Source: Shoemake, "Animating rotation with quaternion curves", 1985.

    >>> slerp(np.eye(2), 0.5).round(4)
    array([0.7071, 0.7071])
    """
    long = lengths(products)
    long = np.where(long > _SMALL, long, 1)
    cosine = np.clip(products[..., 0, 1] / (long[..., 0] * long[..., 1]), -1, 1)
    return _between(cosine, t, np.abs(cosine) > _NEARLY_PARALLEL)


def nuslerp(products: Products, t: float) -> np.ndarray:
    """Return the weights of spherical interpolation, which is linear only where it must be."""
    long = np.maximum(lengths(products), 1e-7)
    cosine = np.clip(products[..., 0, 1] / (long[..., 0] * long[..., 1]), -1, 1)
    return _between(cosine, t, 1 - cosine**2 <= _SMALL**2)


def _between(cosine: np.ndarray, t: float, linear: np.ndarray) -> np.ndarray:
    angle = np.arccos(np.where(linear, 0, cosine))
    first = np.where(linear, 1 - t, np.sin((1 - t) * angle) / np.sin(angle))
    second = np.where(linear, t, np.sin(t * angle) / np.sin(angle))
    return np.stack([first, second], -1)


def multislerp(products: Products, weights: np.ndarray | Sequence[float]) -> np.ndarray:
    """Return the weights of interpolation of several on a sphere, in the plane at their mean.

    Raises ``ValueError`` where the weighted mean of the directions is 0, and there are more than 2.
    """
    share = np.asarray(weights, np.float64)
    long = lengths(products)
    scale = 1 / (long + _SMALL)  # of each, to length one
    mean = share * scale
    size = _length(mean, products)
    if size < _SMALL:
        if len(share) == 2:
            return share
        raise ValueError(
            "the weighted mean of the models' directions is 0, so that there is no arc between "
            "them: use other weights"
        )
    mean = mean / size
    cosines = scale * (products @ mean)  # of each with the mean
    tangent = share * scale - np.sum(share * cosines) * mean
    far = _length(tangent, products) + _SMALL
    return np.sum(share * long) * (np.cos(far) * mean + np.sin(far) / far * tangent)


def karcher(products: Products, most_steps: int, tolerance: float) -> np.ndarray:
    """Return the weights of the Karcher mean of the directions, as long as the models on average.

    Of a model that is 0 there is no direction; it counts for the length alone.

    Source: Karcher, "Riemannian center of mass and mollifier smoothing", 1977.
    """
    count = products.shape[-1]
    long = lengths(products)
    there = long > tolerance
    if not there.any():
        return np.zeros(count)
    unit = np.where(there, 1 / np.where(there, long, 1), 0)
    share = np.where(there, 1 / there.sum(), 0)
    mean = share * unit
    size = _length(mean, products)
    mean = mean / size if size >= tolerance else unit * (np.arange(count) == np.argmax(there))
    for _ in range(most_steps):
        cosines = np.clip(unit * (products @ mean), -1, 1)
        angles = np.arccos(cosines)
        turned = np.where(
            there & (angles >= tolerance), angles / np.sin(np.maximum(angles, tolerance)), 0
        )
        pull = share * turned
        tangent = pull * unit - np.sum(pull * cosines) * mean
        far = _length(tangent, products)
        if far < tolerance:
            break
        mean = np.cos(far) * mean + np.sin(far) / far * tangent
        size = _length(mean, products)
        mean = mean / size if size > tolerance else mean
    return np.mean(long) * mean


def stock(products: Products) -> np.ndarray:
    """Return how far to go from the base to the mean of the models, of products of their deltas.

    t = N cos θ / (1 + (N − 1) cos θ), with the mean cosine between two; 0 where there is no such t.

    Source: Jang et al., "Model stock: all we need is just a few fine-tuned models", 2024.
    """
    count = products.shape[-1]
    long = lengths(products)
    first, second = np.triu_indices(count, 1)
    both = np.maximum(long[..., first] * long[..., second], 1e-6)
    cosine = np.mean(np.clip(products[..., first, second] / both, -1, 1), axis=-1)
    below = 1 + (count - 1) * cosine
    none = np.abs(below) < 1e-6
    return np.where(none, 0, count * cosine / np.where(none, 1, below))


def _length(weights: np.ndarray, products: Products) -> float:
    return float(np.sqrt(max(weights @ products @ weights, 0.0)))
