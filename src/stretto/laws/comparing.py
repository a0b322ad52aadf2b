"""Comparison of results by laws, up to rounding; and the options that code is compiled with."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import float0, is_complex, is_inexact, real_dtype
from stretto._engine.core.typing import ArrayLike, Tree

__all__ = ["FULLY", "as_wide", "check_close", "tolerance_of"]

FULLY: dict[str, Any] = {}
"""Options of the compiler for code as users get it; none where all code is compiled so."""


def tolerance_of(dtype: np.dtype) -> float:
    """Return a few units in the last place: XLA and NumPy round these functions differently."""
    if not is_inexact(dtype):
        return 0.0
    part = real_dtype(dtype)
    return (64 if part.itemsize >= 4 else 4) * float(ml_dtypes.finfo(part).eps)


def check_close(got: Tree, want: Tree, what: str, factor: float = 1.0) -> None:
    """Raise ``AssertionError``, which says ``what``, unless the leaves agree up to rounding."""
    got_leaves, want_leaves = tree.leaves(got), tree.leaves(want)
    assert len(got_leaves) == len(want_leaves), (
        f"{what}: {len(got_leaves)} results, expected {len(want_leaves)}"
    )
    for g, w in zip(got_leaves, want_leaves, strict=True):
        x, y = np.asarray(g), np.asarray(w)
        if x.dtype == float0:
            continue
        assert x.shape == y.shape, f"{what}: shapes {x.shape} and {y.shape}"
        assert x.dtype == y.dtype, f"{what}: dtypes {x.dtype} and {y.dtype}"
        tolerance = tolerance_of(x.dtype) * factor
        dtype = x.dtype if x.dtype.kind in "biuc" else np.dtype(np.float64)
        x, y = x.astype(dtype), y.astype(dtype)
        scale = np.max(np.abs(y), where=np.isfinite(y), initial=0) if tolerance else 0
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def as_wide(x: ArrayLike) -> np.ndarray:
    """Return the elements in 64 bits for each real part."""
    host = np.asarray(x)
    return host.astype(np.complex128 if is_complex(host.dtype) else np.float64)


exports(__name__)
