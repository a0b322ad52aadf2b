"""Whether results are those that were expected; in float32, as near to them as PyTorch's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.types import canonical_dtype

__all__ = ["difference", "is_as_exact"]

TOLERANCE = {"float64": 1e-7, "complex128": 1e-7, "float16": 4e-3, "bfloat16": 3e-2}
OTHERS = 2e-5


def difference(found: Sequence[Any], expected: Sequence[np.ndarray]) -> str:
    """Return what is wrong with results; an empty string if nothing is."""
    if len(found) != len(expected):
        return f"{len(found)} results and not {len(expected)}"
    for k, (x, y) in enumerate(zip(found, expected, strict=True)):
        a, dtype = np.asarray(x), canonical_dtype(y.dtype)
        if a.shape != y.shape:
            return f"result {k} has shape {a.shape} and not {y.shape}"
        if a.dtype != dtype and y.dtype.kind in "fciub":
            return f"result {k} has dtype {a.dtype} and not {dtype}"
        far = ~_close(_wide(a, y), _wide(y, y), dtype.name)
        if far.any():
            i = int(np.flatnonzero(far.ravel())[0])
            return f"result {k} differs: {a.ravel()[i]!r} and not {y.ravel()[i]!r}"
    return ""


def is_as_exact(
    found: Sequence[Any], expected: Sequence[np.ndarray], exact: Sequence[np.ndarray]
) -> bool:
    """Return whether results are as near to those of float64 as PyTorch's own of float32.

    An element is, if it is as close to float64's as :func:`difference` asks, or no farther off than
    the one of PyTorch's in that result that is farthest.
    """
    if not len(found) == len(expected) == len(exact):
        return False
    for x, y, z in zip(map(np.asarray, found), expected, map(np.asarray, exact), strict=True):
        if not x.shape == y.shape == z.shape or x.dtype != canonical_dtype(y.dtype):
            return False
        a, theirs, true = _wide(x, z), _wide(y, z), _wide(z, z)
        with np.errstate(invalid="ignore"):
            off, rounding = np.abs(a - true), np.abs(theirs - true)
        worst = np.max(rounding, initial=0, where=np.isfinite(rounding))
        near = _close(a, true, canonical_dtype(y.dtype).name)
        if not (near | (np.isfinite(off) & (off <= worst))).all():
            return False
    return True


def _wide(a: np.ndarray, like: np.ndarray) -> np.ndarray:
    return a.astype(np.complex128 if like.dtype.kind == "c" else np.float64)


def _close(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    bound = TOLERANCE.get(dtype, OTHERS)
    return np.isclose(a, b, rtol=bound, atol=bound, equal_nan=True)
