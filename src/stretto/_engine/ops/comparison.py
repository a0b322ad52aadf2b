"""Comparison, logic and choice, element by element; and arrays like another.

Layer 2 (ops).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.interpreter import Linear, as_value, splat
from stretto._engine.core.primitive import ZERO_DERIVATIVE, Primitive
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_to, reshape
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import (
    ALL,
    COMPARABLE,
    INTEGRAL,
    Elementwise,
    align_mapped,
    binary,
    broadcast_shapes,
    promote_values,
    unary,
)

__all__ = [
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "eq",
    "full",
    "full_like",
    "ge",
    "gt",
    "le",
    "lt",
    "ne",
    "population_count",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "where",
    "zeros_like",
]


class Comparison(Elementwise, abstract=True):
    """Two operands to a boolean."""

    accepts = COMPARABLE | {"bool"}
    jvp = ZERO_DERIVATIVE

    def infer(self, *types: ArrayType) -> ArrayType:
        """Boolean of the operands' shape."""
        return array_type(super().infer(*types).shape, np.dtype(bool))

    def lower(self, b: Any, x: Any, y: Any) -> Any:
        """StableHLO ``compare``."""
        return b.compare(self.op, x, y)


class Eq(Comparison):
    """x = y."""

    accepts = ALL
    op = "EQ"
    reference = staticmethod(np.equal)


class Ne(Comparison):
    """x ≠ y."""

    accepts = ALL
    op = "NE"
    reference = staticmethod(np.not_equal)


class Lt(Comparison):
    """x < y."""

    op = "LT"
    reference = staticmethod(np.less)


class Le(Comparison):
    """x ≤ y."""

    op = "LE"
    reference = staticmethod(np.less_equal)


class Gt(Comparison):
    """x > y."""

    op = "GT"
    reference = staticmethod(np.greater)


class Ge(Comparison):
    """x ≥ y."""

    op = "GE"
    reference = staticmethod(np.greater_equal)


class Bitwise(Elementwise, abstract=True):
    """Bits of integers; truth values."""

    accepts = INTEGRAL | {"bool"}
    jvp = ZERO_DERIVATIVE


class And(Bitwise):
    """Bits, or truth, in both."""

    op = "and"
    reference = staticmethod(np.bitwise_and)


class Or(Bitwise):
    """Bits, or truth, in either."""

    op = "or"
    reference = staticmethod(np.bitwise_or)


class Xor(Bitwise):
    """Bits, or truth, in one of the two."""

    op = "xor"
    reference = staticmethod(np.bitwise_xor)


class Not(Bitwise):
    """The other bits, or truth value."""

    op = "not"
    reference = staticmethod(np.bitwise_not)


class Shift(Elementwise, abstract=True):
    """Bits moved by a number of places; from the width on, all are moved out."""

    accepts = INTEGRAL
    jvp = ZERO_DERIVATIVE


def _bits(x: np.ndarray) -> np.ndarray:
    """The same bits as an unsigned integer; types of less than a byte lie in its low bits."""
    return x.view(f"u{x.dtype.itemsize}")


def _shifted(f: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy's shift of the bits, zero from the width on; counts are unsigned."""
    bits, count, width = _bits(x), _bits(y), ml_dtypes.iinfo(x.dtype).bits
    if x.dtype.kind in "iu":
        return f(bits, count).view(x.dtype)
    moved = f(bits, np.minimum(count, width - 1)) & (2**width - 1)
    return np.where(count < width, moved, 0).astype(bits.dtype).view(x.dtype)


class ShiftLeft(Shift):
    """Towards the high bits."""

    op = "shift_left"

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """NumPy's, zero beyond the width, where it takes counts below 0 to be as well."""
        return np.left_shift(x, y) if x.dtype.kind in "iu" else _shifted(np.left_shift, x, y)


class ShiftRightArithmetic(Shift):
    """Towards the low bits, filled with the sign."""

    op = "shift_right_arithmetic"

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """NumPy's on signed integers, the sign beyond the width; counts are unsigned."""
        if x.dtype.kind == "i":
            return np.right_shift(x, y)
        bits, width = _bits(x), ml_dtypes.iinfo(x.dtype).bits
        # With the sign in the highest bit of the byte, a shift of signed integers repeats it.
        above = 8 * x.dtype.itemsize - width
        signed = np.left_shift(bits, above).view(f"i{x.dtype.itemsize}")
        count = np.minimum(_bits(y), width - 1) + above
        moved = np.right_shift(signed, count.astype(signed.dtype)).view(bits.dtype)
        return (moved & (2**width - 1)).astype(bits.dtype).view(x.dtype)


class ShiftRightLogical(Shift):
    """Towards the low bits, filled with zeros."""

    op = "shift_right_logical"

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """NumPy's on unsigned integers, zero beyond the width."""
        return _shifted(np.right_shift, x, y)


class PopulationCount(Bitwise):
    """The number of bits set."""

    accepts = INTEGRAL
    op = "popcnt"

    def reference(self, x: np.ndarray) -> np.ndarray:
        """NumPy's, of the bits as unsigned."""
        return np.bitwise_count(_bits(x)).astype(x.dtype)

    def lower(self, b: Any, x: Any) -> Any:
        """StableHLO ``popcnt``; of types of less than a byte XLA would count the sign's copies."""
        width = ml_dtypes.iinfo(x.type.dtype).bits
        if width >= 8:
            return b.emit(self.op, x)
        byte = array_type(x.type.shape, np.dtype(np.uint8))
        bits = b.emit("and", b.convert(x, byte.dtype), b.splat(2**width - 1, byte), out=byte)
        return b.convert(b.emit(self.op, bits, out=byte), x.type.dtype)


class Select(Primitive):
    """``x`` where the condition holds, else ``y``; the condition is a scalar or of their shape."""

    light = True
    splat = True

    def infer(self, condition: ArrayType, x: ArrayType, y: ArrayType) -> ArrayType:
        """The type of both choices."""
        if kind_of(condition.dtype) != "bool":
            raise TypeError(f"select: expected a boolean condition, got {condition}")
        if x.shape != y.shape or x.dtype != y.dtype or condition.shape not in ((), x.shape):
            raise TypeError(
                f"select: the choices must be of one type and the condition of their shape or a "
                f"scalar, got {condition}, {x} and {y}"
            )
        return array_type(x.shape, x.dtype, x.weak_type and y.weak_type)

    def reference(self, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """NumPy's ``where``."""
        return np.where(condition, x, y)

    def lower(self, b: Any, condition: Any, x: Any, y: Any) -> Any:
        """StableHLO ``select``."""
        return b.emit("select", condition, x, y)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Linear in the choices."""
        (condition, x, y), (_, dx, dy) = primals, tangents
        out = self(condition, x, y)
        dx = zeros_like(x) if dx is None else dx
        dy = zeros_like(y) if dy is None else dy
        return out, self(condition, dx, dy)

    def transpose(self, ct: Any, condition: Any, x: Any, y: Any) -> tuple[None, Any, Any]:
        """``ct`` where chosen, zero elsewhere: NaN in the other choice never mixes in."""
        return (
            None,
            self(condition, ct, zeros_like(ct)) if isinstance(x, Linear) else None,
            self(condition, zeros_like(ct), ct) if isinstance(y, Linear) else None,
        )

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """A scalar condition that is not mapped stays a scalar; one that is gets the full shape."""
        condition, x, y = args
        if condition.ndim == 0:
            (x, y), axis = align_mapped(size, (x, y), axes[1:])
            return self(condition, x, y), axis
        larger = x.ndim != (axes[1] is not None)
        if condition.ndim == 1 and axes[0] is not None and larger:  # a scalar of each
            if axes[1] is None and axes[2] is None:
                x = broadcast_to(x, (size, *x.shape))
                axes = (0, 0, None)
            (x, y), axis = align_mapped(size, (x, y), axes[1:])
            wide = [1] * x.ndim
            wide[axis] = size
            return self(broadcast_to(reshape(condition, tuple(wide)), x.shape), x, y), axis
        values, axis = align_mapped(size, args, axes)
        return self(*values), axis


EQ, NE, LT, LE, GT, GE = Eq(), Ne(), Lt(), Le(), Gt(), Ge()
AND, OR, XOR, NOT = And(), Or(), Xor(), Not()
SHIFT_LEFT, SHIFT_RIGHT_ARITHMETIC = ShiftLeft(), ShiftRightArithmetic()
SHIFT_RIGHT_LOGICAL, POPULATION_COUNT, SELECT = ShiftRightLogical(), PopulationCount(), Select()


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x == y``, element by element.

    Args:
        x: an array or a number.
        y: another, promoted and broadcast with ``x``.

    Returns:
        Booleans, of the broadcast shape.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.eq(st.numpy.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return binary(EQ, x, y)


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x != y``, element by element.

    Args:
        x: an array or a number.
        y: another, promoted and broadcast with ``x``.

    Returns:
        Booleans, of the broadcast shape.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.ne(st.numpy.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return binary(NE, x, y)


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x < y``, element by element.

    Args:
        x: an array or a number.
        y: another, promoted and broadcast with ``x``.

    Returns:
        Booleans, of the broadcast shape.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.lt(st.numpy.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return binary(LT, x, y)


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x <= y``, element by element.

    Args:
        x: an array or a number.
        y: another, promoted and broadcast with ``x``.

    Returns:
        Booleans, of the broadcast shape.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.le(st.numpy.array([1, 2]), 2)
    Array([ True,  True], dtype=bool)
    """
    return binary(LE, x, y)


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x > y``, element by element.

    Args:
        x: an array or a number.
        y: another, promoted and broadcast with ``x``.

    Returns:
        Booleans, of the broadcast shape.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.gt(st.numpy.array([1, 2]), 1)
    Array([False,  True], dtype=bool)
    """
    return binary(GT, x, y)


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x >= y``, element by element.

    Args:
        x: an array or a number.
        y: another, promoted and broadcast with ``x``.

    Returns:
        Booleans, of the broadcast shape.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.ge(st.numpy.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return binary(GE, x, y)


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute ``x & y``: of the bits of integers, or of booleans.

    Args:
        x: an array or a number, of integers or booleans.
        y: another, promoted and broadcast with ``x``.

    Returns:
        The results, of the promoted dtype.

    Raises:
        TypeError: an argument is neither of integers nor boolean.
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``and``.

    >>> import stretto as st
    >>> st.lax.bitwise_and(st.numpy.array([6, 3]), 2)
    Array([2, 2], dtype=int32)
    """
    return binary(AND, x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute ``x | y``: of the bits of integers, or of booleans.

    Args:
        x: an array or a number, of integers or booleans.
        y: another, promoted and broadcast with ``x``.

    Returns:
        The results, of the promoted dtype.

    Raises:
        TypeError: an argument is neither of integers nor boolean.
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``or``.

    >>> import stretto as st
    >>> st.lax.bitwise_or(st.numpy.array([6, 3]), 1)
    Array([7, 3], dtype=int32)
    """
    return binary(OR, x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute ``x ^ y``: of the bits of integers, or of booleans.

    Args:
        x: an array or a number, of integers or booleans.
        y: another, promoted and broadcast with ``x``.

    Returns:
        The results, of the promoted dtype.

    Raises:
        TypeError: an argument is neither of integers nor boolean.
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``xor``.

    >>> import stretto as st
    >>> st.lax.bitwise_xor(st.numpy.array([6, 3]), 2)
    Array([4, 1], dtype=int32)
    """
    return binary(XOR, x, y)


def bitwise_not(x: ArrayLike) -> Array:
    """Compute ``~x``: the other bits of integers, or the other truth value.

    Args:
        x: an array or a number, of integers or booleans.

    Returns:
        The results, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is neither of integers nor boolean.

    Source: StableHLO, ``not``.

    >>> import stretto as st
    >>> st.lax.bitwise_not(st.numpy.array([0, -1]))
    Array([-1,  0], dtype=int32)
    """
    return NOT(as_value(x, "bitwise_not"))


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Shift the bits of ``x`` up by ``y``, filling with zeros.

    Args:
        x: integers.
        y: the numbers of bits, promoted and broadcast with ``x``.

    Returns:
        The integers, of the promoted dtype; 0 from the width on.

    Raises:
        TypeError: an argument is not of integers.
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``shift_left``.

    >>> import stretto as st
    >>> st.lax.shift_left(st.numpy.array([1, 3]), 2)
    Array([ 4, 12], dtype=int32)
    """
    return binary(SHIFT_LEFT, x, y)


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Shift the bits of ``x`` down by ``y``, filling with the sign.

    Args:
        x: integers.
        y: the numbers of bits, promoted and broadcast with ``x``.

    Returns:
        The integers, of the promoted dtype; the sign alone from the width on.

    Raises:
        TypeError: an argument is not of integers.
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``shift_right_arithmetic``.

    >>> import stretto as st
    >>> st.lax.shift_right_arithmetic(st.numpy.array([-8, 8]), 1)
    Array([-4,  4], dtype=int32)
    """
    return binary(SHIFT_RIGHT_ARITHMETIC, x, y)


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Shift the bits of ``x`` down by ``y``, filling with zeros.

    Args:
        x: integers.
        y: the numbers of bits, promoted and broadcast with ``x``.

    Returns:
        The integers, of the promoted dtype; 0 from the width on.

    Raises:
        TypeError: an argument is not of integers.
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``shift_right_logical``.

    >>> import stretto as st
    >>> st.lax.shift_right_logical(st.numpy.array([-1, 8]), 1)
    Array([2147483647,          4], dtype=int32)
    """
    return binary(SHIFT_RIGHT_LOGICAL, x, y)


def population_count(x: ArrayLike) -> Array:
    """Count the bits that are set in each integer.

    Args:
        x: integers.

    Returns:
        The counts, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not of integers.

    Source: StableHLO, ``popcnt``.

    >>> import stretto as st
    >>> st.lax.population_count(st.numpy.array([7, 8]))
    Array([3, 1], dtype=int32)
    """
    return unary(POPULATION_COUNT, x)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Choose the elements of ``on_true`` where ``pred`` holds, and of ``on_false`` elsewhere.

    Args:
        pred: booleans, of the shape of the others, or one for all.
        on_true: an array.
        on_false: an array of the same shape and dtype.

    Returns:
        The chosen elements, of that shape and dtype.

    Raises:
        TypeError: the dtypes or shapes do not fit.

    Source: StableHLO, ``select``.

    >>> import stretto as st
    >>> st.lax.select(st.numpy.array([True, False]), st.numpy.array([1, 2]), st.numpy.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    caller = "select"
    return SELECT(
        as_value(pred, caller, "pred"),
        as_value(on_true, caller, "on_true"),
        as_value(on_false, caller, "on_false"),
    )


def where(condition: Any, x: Any, y: Any) -> Any:
    """``x`` where ``condition`` holds (is not zero), else ``y``; promoted and broadcast.

    The derivative of a choice not taken is zero, even where it is NaN.

    >>> import stretto.numpy as snp
    >>> snp.where(snp.array([True, False]), 1.0, snp.array([5.0, 6.0]))
    Array([1., 6.], dtype=float32)
    """
    condition = as_value(condition, "where", "condition")
    condition = convert(condition, np.dtype(bool))
    x, y = promote_values("where", x, y, ranks=True)
    shape = broadcast_shapes("where", condition.shape, x.shape)
    if condition.ndim:
        condition = broadcast_to(condition, shape)
    return SELECT(condition, broadcast_to(x, shape), broadcast_to(y, shape))


def full(shape: tuple[int, ...], element: Any, dtype: np.dtype, weak_type: bool = False) -> Any:
    """An array of this shape and canonical dtype, each element the number ``element``."""
    return splat(element, array_type(tuple(shape), dtype, weak_type))


def full_like(x: Any, element: Any, dtype: np.dtype | None = None) -> Any:
    """An array of the shape of ``x``, and its dtype and weakness unless a dtype is given."""
    if dtype is not None:
        return full(x.type.shape, element, dtype)
    return splat(element, x.type)


def zeros_like(x: Any) -> Any:
    """Zeros of the type of ``x``."""
    return splat(0, x.type)
