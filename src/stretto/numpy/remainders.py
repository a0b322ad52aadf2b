"""Division with a remainder: quotients rounded down, and what is left."""

from __future__ import annotations

from functools import partial

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.types import is_complex, is_inexact, kind_of
from stretto._engine.core.typing import ArrayLike
from stretto._engine.eager.twins import binary_function
from stretto._engine.ops import arithmetic as ops
from stretto._engine.ops import rounding
from stretto._engine.ops.comparison import eq, full_like, lt, ne, select, zeros_like
from stretto._engine.xla.array import Array
from stretto.numpy.arguments import numeric_values
from stretto.numpy.logic import copysign

__all__ = ["divmod", "floor_divide", "fmod", "mod", "remainder"]


# With the remainder r of the division truncated towards zero: where r is not zero and its sign
# differs from that of the divisor y, the quotient rounded down is less by one, and its remainder is
# r + y. For floats a remainder of zero has the sign of y, and a quotient of zero that of x / y.
# Integers divided by zero give 0, as in NumPy. It is written twice: for values that are traced, and
# for NumPy.


def _real_values(caller: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    value, other = numeric_values(caller, x, y)
    if is_complex(value.dtype):
        raise TypeError(f"{caller}: expected real numbers, got {value.type}")
    return value, other


def _opposed(rest: Array, y: Array) -> Array:
    zero = zeros_like(rest)
    return ne(rest, zero) & ne(lt(rest, zero), lt(y, zero))


def _unless_by_zero(result: Array, y: Array) -> Array:
    """The result for integers, or 0 where the divisor is 0."""
    host = y.to_host() if y.__class__ is Array else None
    if host is not None and host.size and not any(host.strides) and host[(0,) * host.ndim]:
        return result
    none = zeros_like(y)
    return select(eq(y, none), none, result)


def _trace_remainder(x: Array, y: Array) -> Array:
    x, y = _real_values("remainder", x, y)
    rest = ops.REM(x, y)
    if is_inexact(x.dtype):
        rest = select(eq(rest, zeros_like(rest)), copysign(rest, y), rest)
        return select(_opposed(rest, y), rest + y, rest)
    if kind_of(x.dtype) != "uint":
        rest = select(_opposed(rest, y), rest + y, rest)
    return _unless_by_zero(rest, y)


def _host_remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.remainder(x, y) if is_inexact(x.dtype) else ops.modulo(x, y)


def _trace_floor_divide(x: Array, y: Array, caller: str = "floor_divide") -> Array:
    x, y = _real_values(caller, x, y)
    if kind_of(x.dtype) == "uint":
        return _unless_by_zero(ops.DIV(x, y), y)
    rest = ops.REM(x, y)
    # For floats x - r is a multiple of y, so that only rounding errors are rounded away.
    whole = rounding.round_((x - rest) / y) if is_inexact(x.dtype) else ops.DIV(x, y)
    whole = select(_opposed(rest, y), whole - full_like(whole, 1), whole)
    if not is_inexact(x.dtype):
        return _unless_by_zero(whole, y)
    quotient, none = rounding.floor(x / y), zeros_like(x)
    whole = select(eq(whole, none), copysign(whole, quotient), whole)
    return select(eq(y, none), quotient, whole)


def _host_floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.floor_divide(x, y) if is_inexact(x.dtype) else ops.floor_quotient(x, y)


def _trace_fmod(x: Array, y: Array) -> Array:
    x, y = _real_values("fmod", x, y)
    rest = ops.REM(x, y)
    return rest if is_inexact(x.dtype) else _unless_by_zero(rest, y)


def _host_fmod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.fmod(x, y) if is_inexact(x.dtype) else ops.signed_rest(x, y)


_SIGNED = frozenset(("int", "float"))
_fmod = binary_function(ops.REM, _trace_fmod, _SIGNED, _host_fmod)
_remainder = binary_function(ops.REM, _trace_remainder, _SIGNED, _host_remainder, operator="mod")
_floor_divide = binary_function(
    ops.REM, _trace_floor_divide, _SIGNED, _host_floor_divide, operator="floordiv"
)


_divmod_quotient = binary_function(
    ops.REM, partial(_trace_floor_divide, caller="divmod"), _SIGNED, _host_floor_divide
)


def floor_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Divide and round down: the greatest whole number not above ``x / y``.

    Args:
        x: an array of real numbers.
        y: the divisors; both broadcast.

    Returns:
        An array of the promoted dtype and the shape that the two broadcast to; 0 for integers
        divided by zero.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``floor_divide``.

    >>> import stretto.numpy as snp
    >>> snp.floor_divide(snp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    return _floor_divide(x, y)


@described_like(floor_divide)
def remainder(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Find the remainder ``x - y * floor(x / y)``, with the sign of ``y``.

    As NumPy's and the array API standard's ``remainder``.

    >>> import stretto.numpy as snp
    >>> snp.remainder(snp.array([7, -7]), 3)
    Array([1, 2], dtype=int32)
    """
    return _remainder(x, y)


mod = remainder


@described_like(floor_divide)
def divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Array, Array]:
    """Find ``floor_divide`` and ``remainder`` together.

    Returns:
        A tuple of the quotients and the remainders; 0 for integers divided by zero.

    As NumPy's ``divmod``.

    >>> import stretto.numpy as snp
    >>> snp.divmod(snp.array([7.0, -7.0]), 2)
    (Array([ 3., -4.], dtype=float32), Array([1., 1.], dtype=float32))
    """
    return _divmod_quotient(x, y), _remainder(x, y)


@described_like(floor_divide)
def fmod(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Find the remainder of ``x / y`` with the sign of ``x``.

    As NumPy's ``fmod``.

    >>> import stretto.numpy as snp
    >>> snp.fmod(snp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)
    """
    return _fmod(x, y)
