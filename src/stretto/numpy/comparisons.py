"""Comparisons of two arrays, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.binary import binary_function
from stretto._engine.ops import comparison as ops
from stretto._engine.ops.comparison import select
from stretto._engine.ops.complex_parts import imag, real
from stretto._engine.ops.elementwise import promote_values

if TYPE_CHECKING:
    from stretto._engine.core.primitive import Primitive

__all__ = ["equal", "greater", "greater_equal", "less", "less_equal", "not_equal"]


def _ordered(primitive: Primitive) -> Callable[[ArrayLike, ArrayLike], Array]:
    """The comparison, promoted; complex numbers by real part, then imaginary part, as in NumPy."""

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
