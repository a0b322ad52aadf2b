"""What the results of transformations are compared with: loops, and quotients of differences.

All in float64. Nothing here uses a transformation of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = [
    "Discard",
    "Mismatch",
    "NotFinite",
    "arrays",
    "assert_same",
    "assert_slope",
    "pairing",
    "slope",
]

STEP = 1e-4
TOLERANCE = 1e-9
"""Two ways of computing the same, in float64 and of moderate condition."""

SLOPE_TOLERANCE = 3e-8
"""Extrapolated differences: h⁴ f⁗′ and rounding ε f / h, with h = 1e-4. Below that of float32."""


class Mismatch(AssertionError):
    """A result is not what it must be."""


class NotFinite(Mismatch):
    """What a program gives before it is transformed is not finite: the program is at fault."""


class Discard(Exception):
    """The oracle has no reliable value here."""


def arrays(outs: Iterable[Any]) -> list[np.ndarray]:
    """The results as NumPy arrays."""
    return [np.asarray(x) for x in outs]


def assert_same(got: Sequence[Any], want: Sequence[Any], what: str) -> None:
    """Equal in number, shapes and dtypes; integers exactly, the rest to rounding."""
    got, want = arrays(got), arrays(want)
    if len(got) != len(want):
        raise Mismatch(f"{what}: {len(got)} results, expected {len(want)}")
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if (g.shape, g.dtype) != (w.shape, w.dtype):
            raise Mismatch(f"{what}: result {i} is {g.dtype}{g.shape}, expected {w.dtype}{w.shape}")
        if not np.all(np.isfinite(w)):
            raise NotFinite(f"{what}: the expected result {i} is not finite\n{w}")
        scale = max(1.0, np.max(np.abs(w), initial=0)) if w.dtype.kind in "fc" else 0.0
        if not np.all(np.abs(g * 1 - w * 1) <= TOLERANCE * scale):
            raise Mismatch(f"{what}: result {i} is\n{g}\nexpected\n{w}")


def slope(
    fun: Callable[..., Sequence[Any]], args: Sequence[np.ndarray], along: Mapping[int, np.ndarray]
) -> list[np.ndarray]:
    """The derivative of the inexact results along a direction, from differences.

    Raises ``Discard`` where two steps disagree, or both one-sided slopes do: a kink or a jump.
    """

    def at(t: float) -> list[np.ndarray]:
        moved = [a + t * along[i] if i in along else a for i, a in enumerate(args)]
        return [y for y in arrays(fun(*moved)) if y.dtype.kind in "fc"]

    here, slopes = at(0.0), []
    ahead, behind = at(STEP), at(-STEP)
    near, nearer = at(STEP / 2), at(-STEP / 2)
    for y, a, b, c, d in zip(here, ahead, behind, near, nearer, strict=True):
        if not all(np.all(np.isfinite(x)) for x in (y, a, b, c, d)):
            raise Discard("not finite")
        wide, narrow = (a - b) / (2 * STEP), (c - d) / STEP
        scale = max(1.0, np.max(np.abs(narrow), initial=0), 1e-3 * np.max(np.abs(y), initial=0))
        if np.any(np.abs(wide - narrow) > 1e-6 * scale):
            raise Discard("two steps disagree")
        # a − 2y + b is h² f″ where f is smooth, a fourth of it for h/2; h times a jump at a kink.
        bend, half = np.abs(a - 2 * y + b), np.abs(c - 2 * y + d)
        if np.any((half > 1e-6 * STEP * scale) & (bend < 2.8 * half)):
            raise Discard("a kink")
        slopes.append((4 * narrow - wide) / 3)
    return slopes


def assert_slope(got: Sequence[Any], want: Sequence[Any], what: str, scale: float = 1.0) -> None:
    """Derivatives that equal those from differences."""
    got, want = arrays(got), arrays(want)
    if len(got) != len(want):
        raise Mismatch(f"{what}: {len(got)} results, expected {len(want)}")
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if (g.shape, g.dtype) != (w.shape, w.dtype):
            raise Mismatch(f"{what}: result {i} is {g.dtype}{g.shape}, expected {w.dtype}{w.shape}")
        limit = SLOPE_TOLERANCE * max(scale, np.max(np.abs(w), initial=0))
        if not np.all(np.abs(g - w) <= limit):
            raise Mismatch(f"{what}: result {i} is\n{g}\ndifferences give\n{w}")


def pairing(xs: Sequence[Any], ys: Sequence[Any]) -> np.ndarray:
    """Re Σ x y, over all elements of all arrays."""
    terms = [np.real(np.sum(x * y)) for x, y in zip(arrays(xs), arrays(ys), strict=True)]
    return np.asarray(float(np.sum(terms)))
