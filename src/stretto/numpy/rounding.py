"""Whole numbers near each element."""

from __future__ import annotations

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype, is_complex, is_inexact
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.ops import rounding
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.rounding import ceil, floor
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import true_divide

__all__ = ["around", "ceil", "fix", "floor", "rint", "round", "trunc"]


@eager(np.trunc, FLOAT)
@described_like(ceil)
def trunc(x: ArrayLike) -> Array:
    """Leave out the fraction of each element.

    As NumPy's and the array API standard's ``trunc``.

    >>> import stretto.numpy as snp
    >>> snp.trunc(snp.array([1.7, -1.7]))
    Array([ 1., -1.], dtype=float32)
    """
    return rounding.truncated(x)


fix = trunc


def rint(x: ArrayLike, /) -> Array:
    """Round each element to the nearest whole number, halves to the even one.

    Args:
        x: an array, or a number; complex numbers are rounded part by part.

    Returns:
        An array of the dtype of ``x``, integers as the default float.

    As NumPy's ``rint``.

    >>> import stretto.numpy as snp
    >>> snp.rint(snp.array([1.5, 2.5]))
    Array([2., 2.], dtype=float32)
    """
    value = as_value(x, "rint")
    return _rounded(convert(value, inexact_dtype(value.dtype), value.weak_type))


def _rounded(x: Array) -> Array:
    """The nearest whole number; of complex numbers, part by part."""
    if is_complex(x.dtype):
        return complex_(rounding.round_(real(x)), rounding.round_(imag(x)))
    return rounding.round_(x)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round each element to a multiple of ``10 ** -decimals``, halves to the even digit.

    Args:
        a: an array, or a number; complex numbers are rounded part by part.
        decimals: the number of digits after the point; before it for negative numbers.
        out: must be None: arrays are immutable.

    Returns:
        An array of the dtype and shape of ``a``.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``decimals`` is not an integer.

    As NumPy's ``round``.

    >>> import stretto.numpy as snp
    >>> snp.round(snp.array([1.26, 2.5]), 1)
    Array([1.3, 2.5], dtype=float32)
    """
    refuse_out("round", out)
    decimals = integer(decimals, "round", "decimals")
    return _round(as_value(a, "round", "a"), decimals=decimals)


@eager(np.round, FLOAT)
def _round(x: Array, *, decimals: int) -> Array:
    if not is_inexact(x.dtype):
        if decimals >= 0:
            return x
        step = full_like(x, 10**-decimals)
        return convert(_rounded(true_divide(x, step)), x.dtype) * step
    if decimals == 0:
        return _rounded(x)
    wide = convert(x, np.dtype(np.float32)) if x.dtype.itemsize < 4 else x
    scale = full_like(wide, 10.0 ** np.abs(decimals))
    if decimals > 0:
        result = _rounded(wide * scale) / scale
    else:
        result = _rounded(wide / scale) * scale
    return convert(result, x.dtype, x.weak_type)


around = round
