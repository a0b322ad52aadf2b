"""Constants, and the limits of dtypes: ``e`` and ``pi``, ``finfo`` and ``iinfo``."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.interpreter import Value
from stretto._engine.core.types import is_inexact, kind_of
from stretto._engine.core.typing import ArrayLike, DType, DTypeLike
from stretto.numpy.dtypes import plain_dtype


class FloatLimits:
    """The limits that ``ml_dtypes.finfo`` has for a dtype, as Python numbers.

    Args:
        dtype: a float or complex dtype.

    Raises:
        ValueError: the dtype is neither.
    """

    bits: int
    dtype: DType
    eps: float
    epsneg: float
    iexp: int
    machep: int
    max: float
    maxexp: int
    min: float
    minexp: int
    negep: int
    nexp: int
    nmant: int
    precision: int
    resolution: float
    smallest_normal: float
    smallest_subnormal: float
    tiny: float

    def __init__(self, dtype: DType) -> None:
        self._limits = ml_dtypes.finfo(dtype)

    def __getattr__(self, name: str) -> object:
        value = getattr(self.__dict__["_limits"], name)
        return float(value) if isinstance(value, np.generic) else value

    def __repr__(self) -> str:
        return repr(self._limits)

    def __reduce__(self) -> tuple[Any, ...]:
        return FloatLimits, (self.dtype,)


def finfo(dtype: ArrayLike | DTypeLike) -> FloatLimits:
    """Give the limits of a float dtype: ``eps``, ``max``, ``min``, ``tiny``, ``bits``.

    Args:
        dtype: a float dtype or an array of it; of a complex one the limits are those of its parts.

    Returns:
        The limits, as Python numbers: they take the dtype of an array that they are combined with.

    Raises:
        ValueError: the dtype is neither float nor complex.

    As NumPy 2's ``finfo``, and the array API standard's, 2024.12.

    >>> import stretto.numpy as snp
    >>> snp.finfo(snp.bfloat16).eps, snp.finfo(snp.float32).bits
    (0.0078125, 32)
    """
    asked = _of(dtype)
    if not is_inexact(asked):
        raise ValueError(f"finfo: expected a float or complex dtype, got {asked.name}")
    return FloatLimits(asked)


def iinfo(int_type: ArrayLike | DTypeLike) -> ml_dtypes.iinfo:
    """Give the limits of an integer dtype: ``min``, ``max``, ``bits``.

    Args:
        int_type: an integer dtype, or an array of it.

    Returns:
        The limits, as Python integers.

    Raises:
        ValueError: the dtype is not an integer dtype.

    As NumPy's ``iinfo``.

    >>> import stretto.numpy as snp
    >>> snp.iinfo(snp.int8).max
    127
    """
    asked = _of(int_type)
    if kind_of(asked) not in ("int", "uint"):
        raise ValueError(f"iinfo: expected an integer dtype, got {asked.name}")
    return ml_dtypes.iinfo(asked)


def _of(x: ArrayLike | DTypeLike) -> np.dtype:
    """The dtype of an array, or the one named."""
    named: Any = x
    return x.dtype if isinstance(x, (Value, np.ndarray, np.generic)) else plain_dtype(named)


pi = math.pi
e = math.e
euler_gamma = 0.57721566490153286060651209008240243
inf = math.inf
nan = math.nan
newaxis = None
