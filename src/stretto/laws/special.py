"""Compiled code held to eager code where it most often differs: at the ends of the range.

Zeros, infinities, NaN and their like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.api.jit.jit import jit
from stretto._engine.core.config import config, enable_x64
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import is_inexact, kind_of
from stretto._engine.core.typing import DTypeLike
from stretto.laws.comparing import FULLY, as_wide, tolerance_of

__all__ = ["check_special", "special_pairs", "special_values"]


def special_values(dtype: DTypeLike) -> np.ndarray:
    """Make an array of the numbers of a dtype at which functions tend to be wrong.

    Zeros, ones, small and large numbers, and the ends of the range; of floats also infinities and
    NaN. Complex numbers are finite, without -0.

    Args:
        dtype: the dtype.

    Returns:
        The numbers, of this dtype and rank 1.

    >>> from stretto.laws import special_values
    >>> special_values("int8")
    array([   0,    1,    2,    3,    7,   -1,   -2,   -3,  127,  126, -128,
           -127], dtype=int8)
    """
    dtype = np.dtype(dtype)
    kind = kind_of(dtype)
    if kind == "bool":
        return np.array([False, True])
    if kind in ("int", "uint"):
        bounds = ml_dtypes.iinfo(dtype)
        low, high = int(bounds.min), int(bounds.max)
        numbers = (0, 1, 2, 3, 7, -1, -2, -3, high, high - 1, low, low + 1)
        return np.array([(n - low) % (high - low + 1) + low for n in numbers], object).astype(dtype)
    if kind == "complex":
        parts = np.array([0, 1, -1, 0.5, -0.5, 2, -2, 1e-5, -1e-5, 3], dtype)
        return (parts[:, None] + parts * dtype.type(1j)).ravel()
    f = ml_dtypes.finfo(dtype)
    ends = [float(f.max), float(f.tiny), float(f.eps), 1 + float(f.eps), 1 - float(f.eps) / 2]
    plain = [0.0, 1, 0.5, 2, 3, 1.5, 2.5, 10, 20, 88, 100, 1e-5, 0.1, 1e4, np.inf, *ends]
    with np.errstate(all="ignore"):
        return np.array([*plain, *(-x for x in plain), np.nan]).astype(dtype)


def special_pairs(dtype: DTypeLike) -> tuple[np.ndarray, np.ndarray]:
    """Make two arrays of all pairs of the special values of a dtype.

    Args:
        dtype: the dtype.

    Returns:
        The first number of each pair, and the second, of this dtype and rank 1.

    >>> from stretto.laws import special_pairs
    >>> special_pairs("bool")
    (array([False, False,  True,  True]), array([False,  True, False,  True]))
    """
    values = special_values(dtype)
    return np.repeat(values, values.size), np.tile(values, values.size)


def check_special(functions: Mapping[str, Callable[..., Any]], *args: np.ndarray) -> None:
    """Check that each function gives compiled what it gives eagerly.

    All are compiled as one program. Elements are compared up to rounding, with the sign of zeros.
    Numbers below the least normal one count as zero, since compiled programs flush them.

    Args:
        functions: the functions of these arrays, by name.
        *args: the arrays, such as those of ``special_values``.

    Raises:
        AssertionError: results differ; the message has each function and element where they do.

    >>> import stretto.numpy as snp
    >>> from stretto.laws import check_special, special_values
    >>> check_special({"abs": snp.abs}, special_values("float32"))
    """
    wide = any(x.dtype.itemsize >= 8 and x.dtype != np.complex64 for x in args)
    with enable_x64(wide):
        values = [as_value(x) for x in args]
        each = lambda *xs: {name: f(*xs) for name, f in functions.items()}
        with config(interpret_small=False):
            together = jit(each, compiler_options=FULLY)(*values)
        broken = []
        for name, got in together.items():
            compiled, eager = np.asarray(got), np.asarray(functions[name](*values))
            assert (compiled.dtype, compiled.shape) == (eager.dtype, eager.shape), name
            for place in np.argwhere(~_alike(compiled, eager)):
                at = tuple(place)
                arguments = ", ".join(str(x[at] if x.ndim else x) for x in args)
                broken.append(f"{name}({arguments}): compiled {compiled[at]}, eager {eager[at]}")
        assert not broken, "\n".join(broken)


def _alike(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if not is_inexact(x.dtype):
        return x == y
    tolerance = tolerance_of(x.dtype)
    flushed = 4 * float(ml_dtypes.finfo(np.real(x).dtype).tiny)
    x, y = as_wide(x), as_wide(y)
    with np.errstate(all="ignore"):
        near = np.abs(x - y) <= tolerance * np.abs(y) + flushed
        if np.iscomplexobj(x):
            return near | (_same(np.real(x), np.real(y)) & _same(np.imag(x), np.imag(y)))
        return _same(x, y) | (near & (np.signbit(x) == np.signbit(y)))


def _same(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Say whether they are equal, with the sign of zeros, or both NaN."""
    return (np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))


exports(__name__)
