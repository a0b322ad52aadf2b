"""Floating-point numbers: constants, limits of dtypes, exponents, fractions, neighbours, bits.

``iinfo`` and the bits of bytes are here too.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.sizes import greater, lesser
from stretto._engine.core.types import is_complex, is_inexact, kind_of
from stretto._engine.core.typing import Array, ArrayLike, Axis, DType, DTypeLike
from stretto._engine.eager.twins import BOOL, FLOAT, INTEGER, eager
from stretto._engine.ops import rounding as ops
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.bitcast import bitcast_convert_type
from stretto._engine.ops.bits import SHIFT_RIGHT_LOGICAL, shift_left
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import eq, full_like, lt, ne, select, zeros_like
from stretto._engine.ops.convert import as_inexact, convert
from stretto._engine.ops.elementwise import broadcast_shapes, promote_values
from stretto._engine.ops.layout import canonical_axis, expand_dims, reshape
from stretto._engine.ops.shape import pad, slice_in_dim
from stretto.numpy.arguments import refuse_out
from stretto.numpy.dtypes import plain_dtype
from stretto.numpy.extrema import clip
from stretto.numpy.logic import copysign, isfinite, isinf, truth
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.ufunc import attach

__all__ = ["e", "euler_gamma", "finfo", "frexp", "iinfo", "inf", "ldexp", "modf",
           "nan", "newaxis", "nextafter", "packbits", "pi", "spacing", "unpackbits"]  # fmt: skip


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
    """Return the dtype of an array, or the one named."""
    named: Any = x
    return x.dtype if isinstance(x, (Value, np.ndarray, np.generic)) else plain_dtype(named)


pi = math.pi
e = math.e
euler_gamma = 0.57721566490153286060651209008240243
inf = math.inf
nan = math.nan
newaxis = None


_INT32, _UINT8 = np.dtype(np.int32), np.dtype(np.uint8)


def _floats(caller: str, x: ArrayLike, argument: str = "x") -> Array:
    """Return the value as a real float, integers in the default one."""
    value: Any = as_inexact(x, caller, argument)
    if is_complex(value.dtype):
        raise TypeError(f"{caller}: expected real numbers, got {value.type}")
    return value


def _wide(x: Array) -> Array:
    """Convert to float32 at least, which holds every narrower number exactly."""
    return convert(x, np.dtype(np.float32)) if x.dtype.itemsize < 4 else x


# Exponents


def _layout(dtype: np.dtype) -> tuple[np.dtype, int, int]:
    """Return the integers of its width, the bits of its fraction, and the bias of its exponent."""
    info = np.finfo(dtype)
    return np.dtype(f"i{dtype.itemsize}"), info.nmant, 1 - info.minexp


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Split floats into a fraction and an exponent: ``x = m * 2**e``.

    The derivative of ``m`` is ``2**-e``.

    Args:
        x: a real array, or a number; integers become floats.

    Returns:
        ``m``, from 0.5 to 1 in magnitude, and ``e`` as int32; both of the shape of ``x``. Zeros,
        infinities and NaN are their own ``m``, with ``e = 0``.

    Raises:
        TypeError: ``x`` is not an array or a number, or is complex.

    As NumPy's ``frexp``.

    >>> import stretto.numpy as snp
    >>> snp.frexp(snp.array([6.0, -0.25]))
    (Array([ 0.75, -0.5 ], dtype=float32), Array([ 3, -1], dtype=int32))
    """
    return _frexp(_floats("frexp", x))


@eager(np.frexp, FLOAT, (None, _INT32))
def _frexp(x: Array) -> tuple[Array, Array]:
    wide = _wide(x)
    integers, fraction, bias = _layout(wide.dtype)
    bits = bitcast_convert_type(absolute(wide), integers)
    raw = SHIFT_RIGHT_LOGICAL(bits, full_like(bits, fraction))
    # Compiled code flushes subnormal numbers to zero. Each is 2^(1 - bias - fraction) times the
    # integer that its bits are, so that integer, as a float, is split instead.
    tiny = eq(raw, zeros_like(raw))
    multiples = convert(bits, wide.dtype)
    field = SHIFT_RIGHT_LOGICAL(
        bitcast_convert_type(multiples, integers), full_like(bits, fraction)
    )
    down = full_like(bits, fraction + bias - 1)
    exponent = select(tiny, field - down, raw) - full_like(bits, bias - 1)
    plain = isfinite(wide) & ne(bits, zeros_like(bits))
    exponent = select(plain, exponent, zeros_like(exponent))
    whole = select(tiny & plain, copysign(multiples, wide), wide)
    shift = select(tiny & plain, exponent + down, exponent)
    mantissa = convert(_scaled(whole, -shift), x.dtype, x.weak_type)
    return mantissa, convert(exponent, _INT32)


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply floats by powers of two: ``x1 * 2**x2``.

    Args:
        x1: a real array, or a number; integers become floats.
        x2: integers; the two broadcast.

    Returns:
        The products, exact except for the rounding of the result, of the broadcast shape; compiled,
        a result below the least normal number is zero, as everywhere.

    Raises:
        TypeError: ``x2`` does not hold integers, or ``x1`` is complex.
        ValueError: the shapes do not broadcast.

    As NumPy's ``ldexp``.

    >>> import stretto.numpy as snp
    >>> snp.ldexp(snp.array([0.75, 1.0]), snp.array([3, -1]))
    Array([6. , 0.5], dtype=float32)
    """
    x, n = _floats("ldexp", x1, "x1"), as_value(x2, "ldexp", "x2")
    if n.type.kind not in ("int", "uint", "bool"):
        raise TypeError(f"ldexp: x2 must hold integers, got {n.type}")
    return _ldexp(x, n)


@eager(np.ldexp, (FLOAT, "bhiBHI"))  # exponents below 64 bits
def _ldexp(x: Array, n: Array) -> Array:
    shape = broadcast_shapes("ldexp", x.shape, n.shape)
    x, n = broadcast_to(x, shape), broadcast_to(n, shape)
    return convert(_scaled(_wide(x), n), x.dtype, x.weak_type)


def _scaled(x: Array, n: Array) -> Array:
    """Compute x 2^n in three steps: 2^n itself may be out of range where the result is not."""
    integers, fraction, bias = _layout(x.dtype)
    if n.dtype.itemsize >= 4:
        n = clip(n, None if n.type.kind == "uint" else -3 * bias, 3 * bias)
    n = convert(n, integers)
    for _ in range(3):
        step = clip(n, 1 - bias, bias)
        power = shift_left(step + full_like(step, bias), full_like(step, fraction))
        x = x * bitcast_convert_type(power, x.dtype)
        n = n - step
    return x


# Fractions and neighbours


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Split floats into their fractional and integral parts.

    Args:
        x: a real array, or a number; integers become floats.
        out: must be ``None``: arrays are immutable.

    Returns:
        The fractional and the integral parts, both with the sign and of the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number, or is complex.
        NotImplementedError: ``out`` is given.

    As NumPy's ``modf``.

    >>> import stretto.numpy as snp
    >>> snp.modf(snp.array([1.5, -2.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    refuse_out("modf", out)
    return _modf(_floats("modf", x))


@eager(np.modf, FLOAT)
def _modf(x: Array) -> tuple[Array, Array]:
    whole = ops.truncated(x)
    infinite = isinf(x)
    # inf - inf is NaN, which would also spoil the derivative
    rest = select(infinite, zeros_like(x), x) - select(infinite, zeros_like(x), whole)
    return rest, whole


def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Find the next float after each element in the direction of another.

    Args:
        x: a real array, or a number.
        y: the numbers to go towards; the two broadcast.

    Returns:
        The neighbours, of the promoted float dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number, or is complex.
        ValueError: the shapes do not broadcast.

    As NumPy's ``nextafter``.

    >>> import stretto.numpy as snp
    >>> snp.nextafter(snp.float32(1.0), 2) - 1
    Array(1.1920929e-07, dtype=float32)
    """
    return ops.nextafter(*promote_values("nextafter", x, y, inexact=True))


def spacing(x: ArrayLike, /) -> Array:
    """Find the distance from each element to the next float away from zero.

    Args:
        x: a real array, or a number; integers become floats.

    Returns:
        The distances, with the sign of ``x`` and of its shape; NaN for infinities. For float16, as
        in NumPy, to the next greater number, without a sign.

    Raises:
        TypeError: ``x`` is not an array or a number, or is complex.

    As NumPy's ``spacing``.

    >>> import stretto.numpy as snp
    >>> snp.spacing(snp.array([1.0, -1024.0]))
    Array([ 1.1920929e-07, -1.2207031e-04], dtype=float32)
    """
    return _spacing(_floats("spacing", x))


@eager(np.spacing, FLOAT)
def _spacing(x: Array) -> Array:
    end = np.array(np.inf, np.float32).astype(x.dtype)
    if not np.isinf(end):  # the dtype has no infinity, and the result at its greatest number is NaN
        end = np.array(float(ml_dtypes.finfo(x.dtype).max))
    greatest = full_like(x, end)
    if x.dtype == np.float16:
        x = select(eq(x, -greatest), greatest, x)
        return ops.nextafter(x, greatest) - x
    # inf - inf is NaN, as it should be
    step = ops.nextafter(x, select(lt(x, zeros_like(x)), -greatest, greatest)) - x
    return step if np.isinf(end) else select(eq(step, zeros_like(x)), full_like(x, np.nan), step)


# Bits


def _check_order(caller: str, bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{caller}: bitorder must be 'big' or 'little', got {bitorder!r}")


def packbits(a: ArrayLike, axis: Axis = None, bitorder: str = "big") -> Array:
    """Pack eight truth values along an axis into each byte.

    Args:
        a: booleans, or integers, where all but zero count as true.
        axis: the axis; by default the elements are packed in row-major order.
        bitorder: ``"big"`` puts the first value in the highest bit, ``"little"`` in the lowest.

    Returns:
        The bytes, as uint8; missing bits at the end are 0.

    Raises:
        TypeError: ``a`` does not hold booleans or integers.
        ValueError: ``bitorder`` is not ``"big"`` or ``"little"``, or ``axis`` is out of bounds.

    As NumPy's ``packbits``.

    >>> import stretto.numpy as snp
    >>> snp.packbits(snp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    _check_order("packbits", bitorder)
    x = as_value(a, "packbits", "a")
    if x.type.kind not in ("bool", "int", "uint"):
        raise TypeError(f"packbits: expected booleans or integers, got {x.type}")
    place = None if axis is None else canonical_axis(axis, x.ndim, "packbits")
    return _packbits(x, axis=place, bitorder=bitorder)


@eager(np.packbits, BOOL + INTEGER, _UINT8)
def _packbits(x: Array, *, axis: int | None, bitorder: str) -> Array:
    x, axis = (reshape(x, (x.size,)), 0) if axis is None else (x, axis)
    n = -(-x.shape[axis] // 8)
    config = [(0, 8 * n - x.shape[d] if d == axis else 0, 0) for d in range(x.ndim)]
    bits = pad(convert(truth(x, "packbits"), _UINT8), 0, config)
    bits = reshape(bits, (*x.shape[:axis], n, 8, *x.shape[axis + 1 :]))
    return sum_(bits * _weights(bitorder, bits.ndim, axis + 1), axis + 1, _UINT8)


def _weights(bitorder: str, rank: int, axis: int) -> Array:
    """Return 1, 2, 4, ... along an axis, from the highest or the lowest."""
    weights = 1 << np.arange(8)[:: -1 if bitorder == "big" else 1]
    return as_value(weights.astype(np.uint8).reshape([8 if d == axis else 1 for d in range(rank)]))


def unpackbits(
    a: ArrayLike, axis: Axis = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Unpack each byte along an axis into its eight bits.

    Args:
        a: bytes, as uint8.
        axis: the axis; by default the elements are unpacked in row-major order.
        count: the number of bits in the result, padded with zeros; if negative, how many to leave
            out at the end.
        bitorder: ``"big"`` gives the highest bit first, ``"little"`` the lowest.

    Returns:
        The bits, 0 and 1 as uint8.

    Raises:
        TypeError: ``a`` is not uint8.
        ValueError: ``bitorder`` is not ``"big"`` or ``"little"``, ``axis`` is out of bounds, or
            ``count`` leaves out more bits than there are.

    As NumPy's ``unpackbits``.

    >>> import stretto.numpy as snp
    >>> snp.unpackbits(snp.array([160], dtype=snp.uint8), count=3)
    Array([1, 0, 1], dtype=uint8)
    """
    _check_order("unpackbits", bitorder)
    x = as_value(a, "unpackbits", "a")
    if x.dtype != _UINT8:
        raise TypeError(f"unpackbits: expected uint8, got {x.type}")
    place = None if axis is None else canonical_axis(axis, x.ndim, "unpackbits")
    n = 8 * (x.size if place is None else x.shape[place])
    size = n if count is None else integer(count, "unpackbits", "count")
    if size < -n:
        raise ValueError(f"unpackbits: count {count} leaves out more bits than the {n} there are")
    kept = size + n if size < 0 else size
    return _unpackbits(x, axis=place, count=kept, bitorder=bitorder)


@eager(np.unpackbits, _UINT8.char)
def _unpackbits(x: Array, *, axis: int | None, count: int, bitorder: str) -> Array:
    x, axis = (reshape(x, (x.size,)), 0) if axis is None else (x, axis)
    masked = expand_dims(x, axis + 1) & _weights(bitorder, x.ndim + 1, axis + 1)
    n = 8 * x.shape[axis]
    bits = convert(ne(masked, zeros_like(masked)), _UINT8)
    bits = reshape(bits, (*x.shape[:axis], n, *x.shape[axis + 1 :]))
    bits = slice_in_dim(bits, 0, lesser(count, n), axis=axis)
    return pad(
        bits, 0, [(0, greater(count - n, 0) if d == axis else 0, 0) for d in range(bits.ndim)]
    )


attach(sys.modules[__name__])
