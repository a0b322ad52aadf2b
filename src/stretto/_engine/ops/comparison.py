"""Comparison and choice, element by element; and arrays filled with one element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.functions import described
from stretto._engine.core.interpreter import Linear, as_value, splat
from stretto._engine.core.primitive import CARRIED, ZERO_DERIVATIVE, Primitive
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import (
    ALL,
    COMPARABLE,
    NOT_BROADCAST,
    OPERANDS,
    Elementwise,
    align_mapped,
    binary,
    broadcast_shapes,
    promote_values,
)
from stretto._engine.ops.layout import reshape


class Comparison(Elementwise, abstract=True):
    """A comparison of two operands, which gives booleans."""

    accepts = COMPARABLE | {"bool"}
    jvp = ZERO_DERIVATIVE

    def infer(self, *types: ArrayType) -> ArrayType:
        return array_type(super().infer(*types).shape, np.dtype(bool))

    def lower(self, b: Any, x: Any, y: Any) -> Any:
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


class Select(Primitive):
    """``x`` where the condition holds, else ``y``; the condition is a scalar or of their shape."""

    padded = CARRIED

    light = True
    splat = True
    picks = (None, True, False)

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        return True

    def infer(self, condition: ArrayType, x: ArrayType, y: ArrayType) -> ArrayType:
        if kind_of(condition.dtype) != "bool":
            raise TypeError(f"select: expected a boolean or integer condition, got {condition}")
        if x.shape != y.shape or x.dtype != y.dtype or condition.shape not in ((), x.shape):
            raise TypeError(
                f"select: the choices must be of one type and the condition of their shape or a "
                f"scalar, got {condition}, {x} and {y}"
            )
        return array_type(x.shape, x.dtype, x.weak_type and y.weak_type)

    def reference(self, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(condition, x, y)

    def lower(self, b: Any, condition: Any, x: Any, y: Any) -> Any:
        return b.emit("select", condition, x, y)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (condition, x, y), (_, dx, dy) = primals, tangents
        return self(condition, x, y), self(condition, or_zeros(dx, x), or_zeros(dy, y))

    def transpose(self, ct: Any, condition: Any, x: Any, y: Any) -> tuple[None, Any, Any]:
        """Return ``ct`` where chosen, zero elsewhere: NaN in the other choice never mixes in."""
        return (
            None,
            self(condition, ct, zeros_like(ct)) if isinstance(x, Linear) else None,
            self(condition, zeros_like(ct), ct) if isinstance(y, Linear) else None,
        )

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """An unmapped scalar condition stays a scalar; a mapped one gets the full shape."""
        condition, x, y = args
        if condition.ndim == 0:
            (x, y), axis = align_mapped(size, (x, y), axes[1:])
            return self(condition, x, y), axis
        larger = x.ndim != (axes[1] is not None)
        if condition.ndim == 1 and axes[0] is not None and larger:  # a scalar for each example
            if axes[1] is None and axes[2] is None:
                x = broadcast_to(x, (size, *x.shape))
                axes = (0, 0, None)
            (x, y), axis = align_mapped(size, (x, y), axes[1:])
            wide = [1] * x.ndim
            wide[axis] = size
            return self(broadcast_to(reshape(condition, tuple(wide)), x.shape), x, y), axis
        values, axis = align_mapped(size, args, axes)
        return self(*values), axis


EQ, NE, LT, LE, GT, GE, SELECT = Eq(), Ne(), Lt(), Le(), Gt(), Ge(), Select()

_comparison = described(OPERANDS, "Booleans, of the broadcast shape.", NOT_BROADCAST)


@_comparison
def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x == y``, element by element.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.eq(st.numpy.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return binary(EQ, x, y)


@_comparison
def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x != y``, element by element.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.ne(st.numpy.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return binary(NE, x, y)


@_comparison
def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x < y``, element by element.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.lt(st.numpy.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return binary(LT, x, y)


@_comparison
def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x <= y``, element by element.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.le(st.numpy.array([1, 2]), 2)
    Array([ True,  True], dtype=bool)
    """
    return binary(LE, x, y)


@_comparison
def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x > y``, element by element.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.gt(st.numpy.array([1, 2]), 1)
    Array([False,  True], dtype=bool)
    """
    return binary(GT, x, y)


@_comparison
def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Tell whether ``x >= y``, element by element.

    Source: StableHLO, ``compare``.

    >>> import stretto as st
    >>> st.lax.ge(st.numpy.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return binary(GE, x, y)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Choose the elements of ``on_true`` where ``pred`` holds, and of ``on_false`` elsewhere.

    Args:
        pred: booleans, or integers, which hold unless they are zero; of the shape of the others,
            or one for all.
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
    condition = as_value(pred, caller, "pred")
    return SELECT(
        ne(condition, 0) if condition.type.kind in ("int", "uint") else condition,
        as_value(on_true, caller, "on_true"),
        as_value(on_false, caller, "on_false"),
    )


def where(condition: Any, x: Any, y: Any) -> Any:
    """Choose ``x`` where ``condition`` holds (is not zero), else ``y``; promoted and broadcast.

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
    """Return an array of this shape and canonical dtype, each element the number ``element``."""
    if is_size(element):
        return broadcast_to(convert(as_value(element), dtype, weak_type), tuple(shape))
    return splat(element, array_type(tuple(shape), dtype, weak_type))


def full_like(x: Any, element: Any, dtype: np.dtype | None = None) -> Any:
    """Return an array of the shape of ``x``, and its dtype and weakness unless a dtype is given."""
    if dtype is not None:
        return full(x.type.shape, element, dtype)
    return full(x.type.shape, element, x.type.dtype, x.type.weak_type)


def zeros_like(x: Any) -> Any:
    """Return zeros of the type of ``x``."""
    return splat(0, x.type)


def or_zeros(tangent: Any, primal: Any) -> Any:
    """Return the tangent; zeros of the primal's type for None, which stands for them."""
    return zeros_like(primal) if tangent is None else tangent
