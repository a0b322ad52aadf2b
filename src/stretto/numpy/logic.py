"""Truth, element by element: comparisons, logical operations, kinds of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_complex, is_inexact, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import FLOAT, binary_function, eager
from stretto._engine.ops import bits
from stretto._engine.ops import comparison as ops
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.bitcast import bitcast_convert_type
from stretto._engine.ops.comparison import full_like, select
from stretto._engine.ops.complex_parts import imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.rounding import is_finite
from stretto.numpy.arguments import refuse_complex, refuse_out

if TYPE_CHECKING:
    from stretto._engine.core.primitive import Primitive

__all__ = ["copysign", "equal", "greater", "greater_equal", "isclose", "iscomplex",
           "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "less",
           "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor",
           "not_equal", "signbit"]  # fmt: skip


def _ordered(primitive: Primitive) -> Callable[[ArrayLike, ArrayLike], Array]:
    """Make a comparison with promotion; complex numbers by real, then imaginary part, as NumPy."""

    def compare(x: ArrayLike, y: ArrayLike) -> Array:
        a, b = promote_values(primitive.name, x, y)
        if is_complex(a.dtype):
            tie = ops.EQ(real(a), real(b))
            return select(tie, primitive(imag(a), imag(b)), primitive(real(a), real(b)))
        return primitive(a, b)

    return compare


_equal = binary_function(ops.EQ, ops.eq, operator="eq")
_not_equal = binary_function(ops.NE, ops.ne, operator="ne")
_less = binary_function(ops.LT, _ordered(ops.LT), operator="lt")
_less_equal = binary_function(ops.LE, _ordered(ops.LE), operator="le")
_greater = binary_function(ops.GT, _ordered(ops.GT), operator="gt")
_greater_equal = binary_function(ops.GE, _ordered(ops.GE), operator="ge")


def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x == y``, element by element.

    Args:
        x: an array, or a number.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``equal``.

    >>> import stretto.numpy as snp
    >>> snp.equal(snp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return _equal(x, y)


@described_like(equal)
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x != y``, element by element.

    As NumPy's and the array API standard's ``not_equal``.

    >>> import stretto.numpy as snp
    >>> snp.not_equal(snp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return _not_equal(x, y)


@described_like(equal)
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x < y``, element by element.

    Args:
        x: an array, or a number; complex numbers are ordered by real, then imaginary part.

    As NumPy's and the array API standard's ``less``.

    >>> import stretto.numpy as snp
    >>> snp.less(snp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return _less(x, y)


@described_like(less)
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x <= y``, element by element.

    As NumPy's and the array API standard's ``less_equal``.

    >>> import stretto.numpy as snp
    >>> snp.less_equal(snp.array([1, 2]), 2)
    Array([ True,  True], dtype=bool)
    """
    return _less_equal(x, y)


@described_like(less)
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x > y``, element by element.

    As NumPy's and the array API standard's ``greater``.

    >>> import stretto.numpy as snp
    >>> snp.greater(snp.array([1, 2]), 2)
    Array([False, False], dtype=bool)
    """
    return _greater(x, y)


@described_like(less)
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x >= y``, element by element.

    As NumPy's and the array API standard's ``greater_equal``.

    >>> import stretto.numpy as snp
    >>> snp.greater_equal(snp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return _greater_equal(x, y)


_BOOL = np.dtype(bool)


# Truth


def truth(x: ArrayLike, caller: str, argument: str = "x") -> Array:
    """Say whether each element is not zero."""
    return convert(as_value(x, caller, argument), _BOOL)


def mask_of_where(where: ArrayLike, caller: str) -> Array:
    """Return the argument ``where`` as a mask; raise ``TypeError`` for what is not boolean."""
    mask = as_value(where, caller, "where")
    if mask.type.kind != "bool":
        raise TypeError(
            f"{caller}: where must be boolean, got {mask.type}; compare its elements (where > 0), "
            "or convert it with .astype(bool)"
        )
    return mask


def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether both elements are true (not zero).

    Args:
        x: an array, or a number.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's ``logical_and``.

    >>> import stretto.numpy as snp
    >>> snp.logical_and(snp.array([True, False]), 1)
    Array([ True, False], dtype=bool)
    """
    return bits.bitwise_and(truth(x, "logical_and"), truth(y, "logical_and", "y"))


@described_like(logical_and)
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether either element is true (not zero).

    As NumPy's ``logical_or``.

    >>> import stretto.numpy as snp
    >>> snp.logical_or(snp.array([True, False]), 1)
    Array([ True,  True], dtype=bool)
    """
    return bits.bitwise_or(truth(x, "logical_or"), truth(y, "logical_or", "y"))


@described_like(logical_and)
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether exactly one element is true (not zero).

    As NumPy's ``logical_xor``.

    >>> import stretto.numpy as snp
    >>> snp.logical_xor(snp.array([True, False]), 1)
    Array([False,  True], dtype=bool)
    """
    return bits.bitwise_xor(truth(x, "logical_xor"), truth(y, "logical_xor", "y"))


def logical_not(x: ArrayLike, /) -> Array:
    """Say whether each element is false (zero).

    Args:
        x: an array, or a number.

    Returns:
        Booleans, of the shape of ``x``.

    As NumPy's ``logical_not``.

    >>> import stretto.numpy as snp
    >>> snp.logical_not(snp.array([0, 3]))
    Array([ True, False], dtype=bool)
    """
    return bits.bitwise_not(truth(x, "logical_not"))


@eager(np.isnan, FLOAT, _BOOL)
def isnan(x: ArrayLike, /) -> Array:
    """Say whether each element is NaN.

    Args:
        x: an array, or a number.

    Returns:
        Booleans, of the shape of ``x``.

    As NumPy's and the array API standard's ``isnan``.

    >>> import stretto.numpy as snp
    >>> snp.isnan(snp.array([snp.nan, 1.0]))
    Array([ True, False], dtype=bool)
    """
    value = as_value(x, "isnan")
    return ops.NE(value, value) if is_inexact(value.dtype) else full_like_bool(value, False)


def full_like_bool(x: Array, element: bool) -> Array:
    """Return truth values of the shape of ``x``."""
    return ops.full(x.shape, element, _BOOL)


@described_like(isnan)
def isfinite(x: ArrayLike, /) -> Array:
    """Say whether each element is neither infinite nor NaN.

    As NumPy's and the array API standard's ``isfinite``.

    >>> import stretto.numpy as snp
    >>> snp.isfinite(snp.array([snp.inf, 1.0]))
    Array([False,  True], dtype=bool)
    """
    value = as_value(x, "isfinite")
    return is_finite(value) if is_inexact(value.dtype) else full_like_bool(value, True)


@eager(np.isinf, FLOAT, _BOOL)
@described_like(isnan)
def isinf(x: ArrayLike, /) -> Array:
    """Say whether each element is infinite; complex numbers in either part.

    As NumPy's and the array API standard's ``isinf``.

    >>> import stretto.numpy as snp
    >>> snp.isinf(snp.array([-snp.inf, 1.0]))
    Array([ True, False], dtype=bool)
    """
    value = as_value(x, "isinf")
    if is_complex(value.dtype):
        return bits.bitwise_or(isinf(real(value)), isinf(imag(value)))
    if not is_inexact(value.dtype):
        return full_like_bool(value, False)
    return ops.EQ(absolute(value), full_like(value, np.inf))


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Say whether each element is plus infinity.

    Args:
        x: an array of real numbers.
        out: must be None: arrays are immutable.

    Returns:
        Booleans, of the shape of ``x``.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``x`` is complex.

    As NumPy's ``isposinf``.

    >>> import stretto.numpy as snp
    >>> snp.isposinf(snp.array([snp.inf, -snp.inf]))
    Array([ True, False], dtype=bool)
    """
    refuse_out("isposinf", out)
    refuse_complex("isposinf", x=x)
    return _equals_infinity(x, np.inf)


@described_like(isposinf)
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Say whether each element is minus infinity.

    As NumPy's ``isneginf``.

    >>> import stretto.numpy as snp
    >>> snp.isneginf(snp.array([snp.inf, -snp.inf]))
    Array([False,  True], dtype=bool)
    """
    refuse_out("isneginf", out)
    refuse_complex("isneginf", x=x)
    return _equals_infinity(x, -np.inf)


def _equals_infinity(x: ArrayLike, infinity: float) -> Array:
    value = as_value(x)
    if not is_inexact(value.dtype):
        return full_like_bool(value, False)
    return equal(value, infinity)


@described_like(isnan)
def isreal(x: ArrayLike) -> Array:
    """Say whether the imaginary part of each element is zero.

    As NumPy's ``isreal``.

    >>> import stretto.numpy as snp
    >>> snp.isreal(snp.array([1j, 2.0]))
    Array([False,  True], dtype=bool)
    """
    value = as_value(x, "isreal")
    return equal(imag(value), 0) if is_complex(value.dtype) else full_like_bool(value, True)


@described_like(isnan)
def iscomplex(x: ArrayLike) -> Array:
    """Say whether the imaginary part of each element is not zero.

    As NumPy's ``iscomplex``.

    >>> import stretto.numpy as snp
    >>> snp.iscomplex(snp.array([1j, 2.0]))
    Array([ True, False], dtype=bool)
    """
    value = as_value(x, "iscomplex")
    return not_equal(imag(value), 0) if is_complex(value.dtype) else full_like_bool(value, False)


@eager(np.signbit, FLOAT, _BOOL)
@described_like(isposinf)
def signbit(x: ArrayLike, /) -> Array:
    """Say whether the sign bit of each element is set, also for negative zero and NaN.

    Raises:
        TypeError: ``x`` is complex.

    As NumPy's and the array API standard's ``signbit``.

    >>> import stretto.numpy as snp
    >>> snp.signbit(snp.array([-1.0, -0.0, 0.0]))
    Array([ True,  True, False], dtype=bool)
    """
    value = as_value(x, "signbit")
    if is_complex(value.dtype):
        raise TypeError(f"signbit: expected real numbers, got {value.type}")
    if is_inexact(value.dtype):
        value = bitcast_convert_type(value, np.dtype(f"i{value.dtype.itemsize}"))
    return less(value, 0)


@eager(np.copysign, FLOAT)
def copysign(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Combine the magnitude of ``x`` with the sign of ``y``.

    Args:
        x: an array of real numbers.
        y: an array of real numbers; both broadcast.

    Returns:
        An array of the promoted float dtype and the shape that the two broadcast to.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``copysign``.

    >>> import stretto.numpy as snp
    >>> snp.copysign(snp.array([1.0, 2.0]), -0.0)
    Array([-1., -2.], dtype=float32)
    """
    value, other = promote_values("copysign", x, y, inexact=True)
    size = absolute(value)
    return select(signbit(other), -size, size)


@described_like(equal)
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Say whether ``|a - b| <= atol + rtol * |b|``; equal infinities are close.

    Args:
        a: an array, or a number.
        b: the array to compare with; both broadcast.
        rtol: the tolerance relative to ``b``.
        atol: the absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    As NumPy's ``isclose``.

    >>> import stretto.numpy as snp
    >>> snp.isclose(snp.array([1.0, 2.0]), snp.array([1.000001, 2.1]))
    Array([ True, False], dtype=bool)
    """
    value, other = promote_values("isclose", a, b)
    if not is_inexact(value.dtype):
        value, other = (convert(v, scalar_dtype(float)) for v in (value, other))
    near = ops.le(absolute(value - other), atol + rtol * absolute(other)) & isfinite(other)
    close = near | ops.EQ(value, other)
    return close | bits.bitwise_and(isnan(value), isnan(other)) if equal_nan else close
