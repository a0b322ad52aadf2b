"""Floating numbers taken apart: exponents, fractions, neighbours; and bytes taken into bits.

Next, read ``products``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype, is_complex
from stretto._engine.ops import arithmetic as ops
from stretto._engine.ops.bitcast import bitcast_convert_type
from stretto._engine.ops.broadcast import broadcast_to, canonical_axis, expand_dims, reshape
from stretto._engine.ops.comparison import (
    SHIFT_RIGHT_LOGICAL,
    eq,
    full_like,
    lt,
    ne,
    select,
    shift_left,
    zeros_like,
)
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes, promote_values
from stretto._engine.ops.shape import pad, slice_in_dim
from stretto._engine.runtime.eager import quiet
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import clip
from stretto.numpy.directly import BOOL, FLOAT, INTEGER, directly, host_of
from stretto.numpy.dtypes import finfo
from stretto.numpy.logic import copysign, isfinite, isinf, truth
from stretto.numpy.quick import array_of
from stretto.numpy.reductions import sum as sum_

__all__ = ["frexp", "ldexp", "modf", "nextafter", "packbits", "spacing", "unpackbits"]

_INT32, _UINT8 = np.dtype(np.int32), np.dtype(np.uint8)


def _floats(who: str, x: Any) -> Any:
    """As a real float, integers in the default one."""
    x = as_value(x, who)
    if is_complex(x.dtype):
        raise TypeError(f"{who}: expected real numbers, got {x.type}")
    return convert(x, inexact_dtype(x.dtype), x.weak_type)


def _wide(x: Any) -> Any:
    """In float32 at least, which holds every narrower number exactly."""
    return convert(x, np.dtype(np.float32)) if x.dtype.itemsize < 4 else x


# Exponents


def _layout(dtype: np.dtype) -> tuple[np.dtype, int, int]:
    """The integers of its width, the bits of its fraction, and the bias of its exponent."""
    info = np.finfo(dtype)
    return np.dtype(f"i{dtype.itemsize}"), info.nmant, 1 - info.minexp


def frexp(x: Any, /) -> tuple[Any, Any]:
    """``m`` and ``e`` with ``x = m * 2**e`` and ``m`` from 0.5 to 1 in magnitude; ``e`` as int32.

    Zeros, infinities and NaN are their own ``m``, with ``e = 0``. The derivative of ``m`` is
    ``2**-e``.

    >>> import stretto.numpy as snp
    >>> snp.frexp(snp.array([6.0, -0.25]))
    (Array([ 0.75, -0.5 ], dtype=float32), Array([ 3, -1], dtype=int32))
    """
    x = _floats("frexp", x)
    found = directly(np.frexp, FLOAT, x, out=(None, _INT32))
    if found is not None:
        return found
    wide = _wide(x)
    integers, fraction, bias = _layout(wide.dtype)
    bits = bitcast_convert_type(ops.absolute(wide), integers)
    raw = SHIFT_RIGHT_LOGICAL(bits, full_like(bits, fraction))
    # Numbers below the least normal one are multiples of 2^(1 - bias - fraction), and compiled
    # code takes them for zero: they are the integer of their bits, as a float, times that.
    tiny = eq(raw, zeros_like(raw))
    many = convert(bits, wide.dtype)
    field = SHIFT_RIGHT_LOGICAL(bitcast_convert_type(many, integers), full_like(bits, fraction))
    down = full_like(bits, fraction + bias - 1)
    exponent = select(tiny, field - down, raw) - full_like(bits, bias - 1)
    plain = isfinite(wide) & ne(bits, zeros_like(bits))
    exponent = select(plain, exponent, zeros_like(exponent))
    whole = select(tiny & plain, copysign(many, wide), wide)
    shift = select(tiny & plain, exponent + down, exponent)
    mantissa = convert(_scaled(whole, -shift), x.dtype, x.weak_type)
    return mantissa, convert(exponent, _INT32)


def ldexp(x1: Any, x2: Any, /) -> Any:
    """``x1 * 2**x2``, exactly but for the rounding of the result, for integers ``x2``.

    Compiled, a result below the least normal number is zero, as everywhere.

    Raises ``TypeError`` for an ``x2`` that is no integer.

    >>> import stretto.numpy as snp
    >>> snp.ldexp(snp.array([0.75, 1.0]), snp.array([3, -1]))
    Array([6. , 0.5], dtype=float32)
    """
    x, n = _floats("ldexp", x1), as_value(x2, "ldexp", "x2")
    if n.type.kind not in ("int", "uint", "bool"):
        raise TypeError(f"ldexp: x2 must hold integers, got {n.type}")
    hosts = host_of(x, FLOAT), host_of(n, INTEGER)
    if hosts[0] is not None and hosts[1] is not None and n.dtype.itemsize < 8:
        return array_of(quiet.run(np.ldexp, *hosts), x.dtype)
    shape = broadcast_shapes("ldexp", x.shape, n.shape)
    x, n = broadcast_to(x, shape), broadcast_to(n, shape)
    return convert(_scaled(_wide(x), n), x.dtype, x.weak_type)


def _scaled(x: Any, n: Any) -> Any:
    """x 2^n in three steps, since 2^n itself may be out of range where the result is not."""
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


def modf(x: Any, /, out: None = None) -> tuple[Any, Any]:
    """The part of each number after the point, and the part before, both with its sign.

    >>> import stretto.numpy as snp
    >>> snp.modf(snp.array([1.5, -2.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    refuse_out("modf", out)
    x = _floats("modf", x)
    found = directly(np.modf, FLOAT, x, out=(None, None))
    if found is not None:
        return found
    whole = ops.truncated(x)
    infinite = isinf(x)
    # inf - inf is NaN, which would also spoil the derivative
    rest = select(infinite, zeros_like(x), x) - select(infinite, zeros_like(x), whole)
    return rest, whole


def nextafter(x: Any, y: Any, /) -> Any:
    """The number next to ``x`` on the way to ``y``.

    >>> import stretto.numpy as snp
    >>> snp.nextafter(snp.float32(1.0), 2) - 1
    Array(1.1920929e-07, dtype=float32)
    """
    return ops.nextafter(*promote_values("nextafter", x, y, inexact=True))


def spacing(x: Any, /) -> Any:
    """The distance to the next number away from zero, with the sign of ``x``.

    Of float16, as in NumPy, that to the next greater number, which has no sign; NaN of infinities.

    >>> import stretto.numpy as snp
    >>> snp.spacing(snp.array([1.0, -1024.0]))
    Array([ 1.1920929e-07, -1.2207031e-04], dtype=float32)
    """
    x = _floats("spacing", x)
    found = directly(np.spacing, FLOAT, x)
    if found is not None:
        return found
    end = np.array(np.inf, np.float32).astype(x.dtype)
    if not np.isinf(end):  # the dtype has no infinity, and of its greatest numbers this is NaN
        end = np.array(finfo(x.dtype).max)
    greatest = full_like(x, end)
    if x.dtype == np.float16:
        x = select(eq(x, -greatest), greatest, x)
        return ops.nextafter(x, greatest) - x
    # inf - inf is NaN, as it should be
    step = ops.nextafter(x, select(lt(x, zeros_like(x)), -greatest, greatest)) - x
    return step if np.isinf(end) else select(eq(step, zeros_like(x)), full_like(x, np.nan), step)


# Bits


def _check_order(who: str, bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{who}: bitorder must be 'big' or 'little', got {bitorder!r}")


def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Any:
    """Eight truth values along ``axis`` in each byte, the first in the highest bit.

    Integers count as true unless they are zero; what is missing at the end is 0. Without ``axis``
    of all elements in row-major order; ``bitorder="little"`` puts the first in the lowest bit.

    >>> import stretto.numpy as snp
    >>> snp.packbits(snp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    _check_order("packbits", bitorder)
    x = as_value(a, "packbits", "a")
    if x.type.kind not in ("bool", "int", "uint"):
        raise TypeError(f"packbits: expected booleans or integers, got {x.type}")
    options = {"axis": axis, "bitorder": bitorder}
    found = directly(np.packbits, BOOL + INTEGER, x, out=_UINT8, **options)
    if found is not None:
        return found
    x, axis = (reshape(x, (x.size,)), 0) if axis is None else (x, axis)
    along = canonical_axis(axis, x.ndim, "packbits")
    n = -(-x.shape[along] // 8)
    config = [(0, 8 * n - x.shape[d] if d == along else 0, 0) for d in range(x.ndim)]
    bits = pad(convert(truth(x, "packbits"), _UINT8), 0, config)
    bits = reshape(bits, (*x.shape[:along], n, 8, *x.shape[along + 1 :]))
    return sum_(bits * _weights(bitorder, bits.ndim, along + 1), along + 1, _UINT8)


def _weights(bitorder: str, rank: int, axis: int) -> Any:
    """1, 2, 4, ... along an axis, from the highest or the lowest."""
    weights = 1 << np.arange(8)[:: -1 if bitorder == "big" else 1]
    return as_value(weights.astype(np.uint8).reshape([8 if d == axis else 1 for d in range(rank)]))


def unpackbits(
    a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Any:
    """The eight bits of each byte along ``axis``, the highest first, as 0 and 1.

    ``count`` is how many to keep of them, with zeros for those that there are not; if it is
    negative, how many to leave out at the end. Raises ``TypeError`` for another dtype than uint8.

    >>> import stretto.numpy as snp
    >>> snp.unpackbits(snp.array([160], dtype=snp.uint8), count=3)
    Array([1, 0, 1], dtype=uint8)
    """
    _check_order("unpackbits", bitorder)
    x = as_value(a, "unpackbits", "a")
    if x.dtype != _UINT8:
        raise TypeError(f"unpackbits: expected uint8, got {x.type}")
    options = {"axis": axis, "count": count, "bitorder": bitorder}
    found = directly(np.unpackbits, INTEGER, x, **options)
    if found is not None:
        return found
    x, axis = (reshape(x, (x.size,)), 0) if axis is None else (x, axis)
    along = canonical_axis(axis, x.ndim, "unpackbits")
    found = expand_dims(x, along + 1) & _weights(bitorder, x.ndim + 1, along + 1)
    n = 8 * x.shape[along]
    bits = convert(ne(found, zeros_like(found)), _UINT8)
    bits = reshape(bits, (*x.shape[:along], n, *x.shape[along + 1 :]))
    kept = n if count is None else count + n if count < 0 else count
    if kept < 0:
        raise ValueError(f"unpackbits: count {count} leaves out more than the {n} bits there are")
    bits = slice_in_dim(bits, 0, min(kept, n), axis=along)
    return pad(bits, 0, [(0, max(kept - n, 0) if d == along else 0, 0) for d in range(bits.ndim)])
