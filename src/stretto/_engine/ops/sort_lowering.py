"""Lower ``sort`` by comparators, and by integer keys that need only ``<``.

XLA sorts one operand of integers by ``<`` several times faster than anything by another comparator.
So floats sort as the integers that their bits are, and a short key that carries other operands
along sorts in one 64-bit integer with its index.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.types import array_type, is_complex, kind_of, real_dtype

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_FLOAT32 = np.dtype(np.float32)
_KEY_BITS, _INDEX_BITS = 32, 31


def lower_sort(
    b: Any, operands: Sequence[Any], dimension: int, num_keys: int, is_stable: bool
) -> list[Any]:
    """Return the operands in the order of the keys."""
    if len(operands) == 1 and not is_complex(operands[0].type.dtype):
        return [_sort_alone(b, operands[0], dimension)]
    return _sort_by(b, operands, dimension, is_stable, functools.partial(_before, b, num_keys))


def _sort_by(
    b: Any,
    operands: Sequence[Any],
    dimension: int,
    is_stable: bool,
    before: Callable[[Sequence[Any], Sequence[Any]], Any],
) -> list[Any]:
    """Write StableHLO ``sort``; ``before`` compares two places, an element for each operand."""
    elements = [array_type((), x.type.dtype) for x in operands]
    pairs = [t for t in elements for _ in range(2)]
    region = b.scalar_region(pairs, lambda *scalars: [before(scalars[::2], scalars[1::2])])
    attributes = f"dimension = {dimension} : i64, is_stable = {str(is_stable).lower()}"
    return b.emit_many("sort", operands, [x.type for x in operands], attributes, (region,))


def _less(b: Any) -> Callable[..., Any]:
    return lambda xs, ys: b.compare("LT", xs[0], ys[0])


def _before(b: Any, num_keys: int, xs: Sequence[Any], ys: Sequence[Any]) -> Any:
    """Say whether the keys of one place come before those of another: x < y, or x = y and so on."""
    parts = []
    for x, y in zip(xs[:num_keys], ys[:num_keys], strict=True):
        if is_complex(x.type.dtype):
            half = array_type((), real_dtype(x.type.dtype))
            parts += [[b.emit(part, v, out=half) for v in (x, y)] for part in ("real", "imag")]
        else:
            parts.append([x, y])
    out = None
    for x, y in reversed(parts):
        less, equal = b.compare("LT", x, y), b.compare("EQ", x, y)
        if kind_of(x.type.dtype) == "float":  # NaN last, and equal to NaN
            x_nan, y_nan = b.compare("NE", x, x), b.compare("NE", y, y)
            number = b.compare("EQ", x, x)
            last = b.emit("and", number, y_nan, out=y_nan.type)
            less = b.emit("or", less, last, out=less.type)
            both = b.emit("and", x_nan, y_nan, out=y_nan.type)
            equal = b.emit("or", equal, both, out=equal.type)
        if out is not None:
            later = b.emit("and", equal, out, out=equal.type)
            less = b.emit("or", less, later, out=less.type)
        out = less
    return out


# Integer keys


def canonical_key(b: Any, x: Any, zeros: bool = True) -> Any:
    """Give a key whose bits compare as its numbers do: one NaN, and one zero if ``zeros``; no bool.

    Floats below 32 bits become float32.
    """
    kind = kind_of(x.type.dtype)
    if kind == "bool":
        return b.convert(x, _INT32)
    if kind != "float":
        return x
    if x.type.dtype.itemsize * 8 < _KEY_BITS:
        x = b.convert(x, _FLOAT32)
    type = x.type
    if zeros:
        zero = b.splat(0, type)
        x = b.emit("select", b.compare("EQ", x, zero), zero, x, out=type)
    return b.emit("select", b.compare("NE", x, x), b.splat(np.nan, type), x, out=type)


def _bitcast(b: Any, x: Any, dtype: np.dtype) -> Any:
    return b.emit("bitcast_convert", x, out=array_type(x.type.shape, dtype))


def _flip(b: Any, bits: Any) -> Any:
    """Return signed integers that rise as the floats with these bits do; and from these the bits.

    Of two negative floats the greater has the smaller magnitude bits, so those are flipped.
    """
    type = bits.type
    negative = b.compare("LT", bits, b.splat(0, type))
    flipped = b.emit("xor", bits, b.splat(np.iinfo(type.dtype).max, type), out=type)
    return b.emit("select", negative, flipped, bits, out=type)


def _sort_alone(b: Any, x: Any, dimension: int) -> Any:
    """Sort one real operand, floats by their bits: a negative zero goes before a positive one."""
    if kind_of(x.type.dtype) != "float":
        return _sort_by(b, [x], dimension, False, _less(b))[0]
    key = canonical_key(b, x, zeros=False)
    bits = _flip(b, _bitcast(b, key, np.dtype(f"i{key.type.dtype.itemsize}")))
    (bits,) = _sort_by(b, [bits], dimension, False, _less(b))
    return b.convert(_bitcast(b, _flip(b, bits), key.type.dtype), x.type.dtype)


def order_by_value(b: Any, operands: Sequence[Any], dimension: int) -> Any:
    """Return the stable permutation along the axis that sorts by the first operand, as int32.

    ``None`` where there is no other operand, or the key has more than 32 bits.

    The key in the upper bits of a 64-bit integer, the index in the lower 31: all are different,
    so the sort is stable, whatever XLA makes of it.
    """
    if len(operands) == 1 or operands[0].type.dtype.itemsize * 8 > _KEY_BITS:
        return None
    key = canonical_key(b, operands[0])
    if kind_of(key.type.dtype) == "float":
        key = _flip(b, _bitcast(b, key, _INT32))
    wide = array_type(key.type.shape, _INT64)
    upper = b.emit("shift_left", b.convert(key, _INT64), b.splat(_INDEX_BITS, wide), out=wide)
    index = b.iota(dimension, wide)
    packed = b.emit("or", upper, index, out=wide)
    (packed,) = _sort_by(b, [packed], dimension, False, _less(b))
    lower = b.emit("and", packed, b.splat((1 << _INDEX_BITS) - 1, wide), out=wide)
    return b.convert(lower, _INT32)
