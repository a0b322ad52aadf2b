"""Whole numbers near each element.

Next, read ``elementary``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype, is_complex, is_inexact
from stretto._engine.ops import arithmetic as ops
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.convert import convert
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import true_divide
from stretto.numpy.directly import FLOAT, directly

__all__ = ["around", "ceil", "fix", "floor", "rint", "round", "trunc"]


def floor(x: Any, /) -> Any:
    """The greatest whole number not above each element; integers as they are.

    >>> import stretto.numpy as snp
    >>> snp.floor(snp.array([1.7, -1.2]))
    Array([ 1., -2.], dtype=float32)
    """
    return ops.floor(x)


def ceil(x: Any, /) -> Any:
    """The least whole number not below each element; integers as they are.

    >>> import stretto.numpy as snp
    >>> snp.ceil(snp.array([1.2, -1.7]))
    Array([ 2., -1.], dtype=float32)
    """
    return ops.ceil(x)


def trunc(x: Any) -> Any:
    """Each element without its fraction; integers as they are.

    >>> import stretto.numpy as snp
    >>> snp.trunc(snp.array([1.7, -1.7]))
    Array([ 1., -1.], dtype=float32)
    """
    found = directly(np.trunc, FLOAT, x)
    return ops.truncated(x) if found is None else found


fix = trunc


def rint(x: Any, /) -> Any:
    """The nearest whole number, halves to the even one, as a float."""
    x = as_value(x, "rint")
    return _rounded(convert(x, inexact_dtype(x.dtype), x.weak_type))


def _rounded(x: Any) -> Any:
    """The nearest whole number; of complex numbers, part by part."""
    if is_complex(x.dtype):
        return ops.complex_(ops.round_(ops.real(x)), ops.round_(ops.imag(x)))
    return ops.round_(x)


def round(a: Any, decimals: int = 0, out: None = None) -> Any:
    """Each element to the nearest multiple of ``10 ** -decimals``, halves to the even digit.

    >>> import stretto.numpy as snp
    >>> snp.round(snp.array([1.26, 2.5]), 1)
    Array([1.3, 2.5], dtype=float32)
    """
    refuse_out("round", out)
    decimals = integer(decimals, "round", "decimals")
    found = directly(np.round, FLOAT, a, decimals=decimals)
    if found is not None:
        return found
    x = as_value(a, "round", "a")
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
