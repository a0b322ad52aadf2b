"""Read from the bits of NumPy's floats zeros of either sign, signs, and upper halves of float32.

NumPy treats the two zeros as equal, and XLA does not; and reading bits is often faster than
comparing floats.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_SIGNED = {size: np.dtype(f"i{size}") for size in (2, 4, 8)}
_UNSIGNED = {size: np.dtype(f"u{size}") for size in (2, 4, 8)}
_find_least: Any = np.minimum.reduce


def has_negative_zero(x: np.ndarray) -> bool:
    """Say whether an element may be -0, whose bits are those of the least integer."""
    return _least_bits(x, _SIGNED) in (None, -1 << 8 * x.dtype.itemsize - 1)


def has_zero(x: np.ndarray) -> bool:
    """Say whether an element may be +0, whose bits are all 0."""
    return _least_bits(x, _UNSIGNED) in (None, 0)


def _least_bits(x: np.ndarray, kinds: dict[int, np.dtype]) -> int | None:
    """Return the least element's bits as an integer; None for dtypes whose zeros have others."""
    x = np.asarray(x)
    if not x.size:
        return 1
    kind = kinds.get(x.dtype.itemsize)
    return None if kind is None else int(_find_least(x.view(kind), axis=None))


@functools.cache
def _patterns(dtype: np.dtype) -> tuple[Any, ...]:
    """Return the bits of -0, 1 and infinity, and those that are not the sign's."""
    highest, one, infinity = np.array([-0.0, 1.0, np.inf], dtype).view(np.uint16)
    return highest, one, infinity, ~highest


def signs(x: np.ndarray) -> np.ndarray:
    """-1 and 1 by the sign bits of many floats of 16 bits; zeros and NaN stay.

    This takes a tenth of the time of NumPy's ``sign``, which for float32 would be as fast.
    """
    highest, one, infinity, others = _patterns(x.dtype)
    bits = x.view(highest.dtype)
    size, out = bits & others, bits & highest
    out |= one if size.min() else (size != 0) * one
    if size.max() > infinity:
        out = np.where(size > infinity, bits, out)
    return out.view(x.dtype)


def upper_halves(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return numbers in float32 whose lower 16 bits are 0, in ``dtype``: bfloat16."""
    bits = x.view(np.uint32) >> 16
    return bits.astype(np.uint16).view(dtype)
