"""Quotients and remainders of integers, in NumPy.

Truncating division follows XLA: by zero, the quotient is -1, or the greatest number of an unsigned
dtype, and the remainder is the dividend. Floor division follows NumPy: by zero, both are 0. The
least integer divided by -1 is itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core.boundary import reraise_foreign
from stretto._engine.core.types import kind_of

# For integers of up to 32 bits, float64 division is several times as fast as NumPy's for integers,
# and exact once truncated or rounded down: x / y is at least 1/|y| away from any other whole
# number, or 1/|x| relative to itself, which is more than rounding moves it by. A quotient that is
# not finite, or does not fit, makes the processor flag an invalid conversion.


def _whole(x: np.ndarray, y: np.ndarray, down: bool) -> np.ndarray | None:
    """``x / y`` truncated, or rounded down; None where a quotient is undefined or does not fit."""
    if x.dtype.itemsize > 4 or x.dtype.kind not in "iu":
        return None
    if down and _one(y) not in (None, 0, -1):
        return np.asarray(np.floor_divide(x, y))  # which multiplies by an inverse
    if x.size > _BLOCK and x.shape == y.shape and x.flags.c_contiguous and y.flags.c_contiguous:
        return _in_blocks(x, y, down)
    out = np.asarray(np.true_divide(x, y))
    if down:
        np.floor(out, out=out)
    try:
        with np.errstate(invalid="raise"):
            whole = out.astype(np.int32 if x.dtype.kind == "i" else np.int64)
    except FloatingPointError as error:
        reraise_foreign(error)
        return None
    return whole.astype(x.dtype, copy=False)


_BLOCK = 1 << 15


def _in_blocks(x: np.ndarray, y: np.ndarray, down: bool) -> np.ndarray | None:
    """Return the same, block by block, so that the 64-bit floats are few and stay in the cache."""
    out = np.empty(x.shape, x.dtype)
    lines = [v.reshape(-1) for v in (out, x, y)]
    for start in range(0, x.size, _BLOCK):
        target, dividend, divisor = (v[start : start + _BLOCK] for v in lines)
        whole = _whole(dividend, divisor, down)
        if whole is None:
            return None
        target[:] = whole
    return out


def _one(y: np.ndarray) -> int | None:
    """Return the one element that ``y`` repeats; None where there may be several."""
    return int(y[(0,) * y.ndim]) if y.size and not any(y.strides) else None


def _less(x: np.ndarray, y: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """``x - y whole``, in the memory of ``whole``."""
    np.multiply(whole, y, out=whole)
    return np.subtract(x, whole, out=whole)


def quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``x / y`` truncated towards zero."""
    result = _whole(x, y, down=False)
    if result is not None:
        return result
    safe = np.where(y == 0, 1, y).astype(y.dtype)
    if kind_of(x.dtype) == "uint":
        return np.where(y == 0, ~np.zeros_like(x), x // safe)
    # The least integer over -1 overflows to itself; -1 is negation, which wraps.
    safe = np.where(y == -1, 1, safe).astype(y.dtype)
    whole = x // safe
    towards_zero = whole + ((whole * safe != x) & ((x < 0) != (safe < 0)))
    return np.where(y == 0, -1, np.where(y == -1, -x, towards_zero)).astype(x.dtype)


def rest(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the remainder of ``quotient``, which has the sign of ``x``."""
    if x.size > _BLOCK and x.dtype.kind in "iu" and y.size and y.min() > 0:
        return np.fmod(x, y)
    result = _whole(x, y, down=False)
    if result is not None:
        return _less(x, y, result)
    # Division by 1 or -1 leaves nothing; that by -1 overflows at the least integer.
    unsafe = (y == 0) if kind_of(x.dtype) == "uint" else (y == 0) | (y == -1)
    safe = np.where(unsafe, 1, y).astype(y.dtype)
    return np.where(y == 0, x, np.fmod(x, safe)).astype(x.dtype)


def floored(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``x / y`` rounded down; by zero 0."""
    result = _whole(x, y, down=True)
    return _in_numpy(np.floor_divide, x, y) if result is None else result


def modulo(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the remainder of ``floored``, which has the sign of ``y``; by zero 0."""
    result = _whole(x, y, down=True)
    return _in_numpy(np.remainder, x, y) if result is None else _less(x, y, result)


def signed_rest(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the remainder of truncating division, which has the sign of ``x``; by zero 0."""
    return _in_numpy(np.fmod, x, y)


def _in_numpy(function: Callable[..., Any], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Use NumPy's function; that of ``ml_dtypes`` for 4 bits crashes on division by zero."""
    if x.dtype.isbuiltin == 1:
        return np.asarray(function(x, y))
    wide = np.int8 if kind_of(x.dtype) == "int" else np.uint8
    return np.asarray(function(x.astype(wide), y.astype(wide))).astype(x.dtype)
