"""The greater and the lesser of two elements, and elements kept between bounds.

At ties each gets half of the derivative. Complex numbers are ordered as NumPy and ``sort`` order
them: by real part, then by imaginary part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.functions import described
from stretto._engine.core.types import is_complex, kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import thresholds
from stretto._engine.ops.bitcast import has_negative_zero, has_zero, upper_halves
from stretto._engine.ops.comparison import (
    EQ,
    GE,
    LE,
    SELECT,
    eq,
    full_like,
    gt,
    lt,
    ne,
    select,
    zeros_like,
)
from stretto._engine.ops.complex_parts import imag, real
from stretto._engine.ops.elementwise import (
    COMPARABLE,
    NOT_BROADCAST,
    OPERANDS,
    Elementwise,
    promote_values,
)

_WITH_INFINITY = {np.float16, np.float32, np.float64, ml_dtypes.bfloat16}
"""The dtypes whose extrema are lowered as ``clamp`` with one bound that never holds.

The library that XLA hands extrema to loses NaN in them; it does not take ``clamp`` (decision 22).
"""


class Choice(Elementwise, abstract=True):
    """An operation that gives one of its operands; ``counts`` says which."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Take each tangent where its operand counts."""
        out, total = self(*primals), None
        for partial, counts, dx in zip(self.partials, self.counts, tangents, strict=True):
            if dx is not None and partial is not None:
                part = SELECT(counts(*primals), partial(dx, out, *primals), zeros_like(dx))
                total = part if total is None else total + part
        return out, total

    def widely(self, *operands: np.ndarray) -> np.ndarray:
        """Compute in float32, from which the upper halves are taken without loss."""
        return upper_halves(super().widely(*operands), operands[0].dtype)


class Extremum(Choice, abstract=True):
    """The greater or the lesser; NaN where either is."""

    accepts = COMPARABLE | {"bool"}
    costs = thresholds.EXTREMUM
    widens = True
    # at ties each argument gets half
    partials = (lambda dx, out, x, y: dx * _share(x, y), lambda dy, out, x, y: dy * _share(y, x))


class Max(Extremum):
    """The greater; NaN where either is."""

    op = "maximum"
    counts = (GE, lambda x, y: GE(y, x))

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Use NumPy's, with -0 less than 0."""
        out = np.maximum(x, y)
        if not _may_be_zeros(x, y) or not has_negative_zero(out):
            return out
        return np.where((x == 0) & (y == 0), x + y, out)

    def lower(self, b: Any, x: Any, y: Any) -> Any:
        if x.type.dtype.type not in _WITH_INFINITY:
            return super().lower(b, x, y)
        return b.operation("stablehlo.clamp", (y, x, b.infinite(1, x.type)))


class Min(Extremum):
    """The lesser; NaN where either is."""

    op = "minimum"
    counts = (LE, lambda x, y: LE(y, x))

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Use NumPy's, with -0 less than 0."""
        out = np.minimum(x, y)
        if not _may_be_zeros(x, y) or not has_zero(out):
            return out
        if not (has_negative_zero(x) or has_negative_zero(y)):
            return out
        return np.where((x == 0) & (y == 0), -(-x - y), out)

    def lower(self, b: Any, x: Any, y: Any) -> Any:
        if x.type.dtype.type not in _WITH_INFINITY:
            return super().lower(b, x, y)
        return b.operation("stablehlo.clamp", (b.infinite(-1, x.type), x, y))


# NumPy's extrema return either of two zeros, whatever their signs. Looking for -0 takes one pass.


def _may_be_zeros(x: np.ndarray, y: np.ndarray) -> bool:
    """Say whether both may hold zeros; where one repeats an element, that element is checked."""
    if kind_of(x.dtype) != "float" or not x.size or not y.size:
        return False
    return not any(v[(0,) * v.ndim] != 0 for v in (x, y) if not any(v.strides))


def _share(x: Any, y: Any) -> Any:
    """Return what an argument that is not beaten has of the derivative: all, or half at ties."""
    return SELECT(EQ(x, y), full_like(x, 0.5), full_like(x, 1))


class Clamp(Choice):
    """``x`` kept between two bounds of the same shape."""

    accepts = COMPARABLE
    widens = True
    op = "clamp"
    partials = (
        lambda dl, out, low, x, high: dl,
        lambda dx, out, low, x, high: dx,
        lambda dh, out, low, x, high: dh,
    )
    counts = (
        lambda low, x, high: gt(low, x),
        lambda low, x, high: gt(x, low) & lt(x, high),
        lambda low, x, high: gt(x, high),
    )

    def reference(self, low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
        return MIN.reference(MAX.reference(low, x), high)


MAX, MIN, CLAMP = Max(), Min(), Clamp()

_extremum = described(
    OPERANDS, "The values, of the promoted dtype; NaN where either is.", NOT_BROADCAST
)


def _of_both(primitive: Extremum, x: ArrayLike, y: ArrayLike) -> Array:
    value, other = promote_values(primitive.name, x, y)
    if is_complex(value.dtype):
        return complex_extremum(value, other, primitive is MAX)
    return primitive(value, other)


@_extremum
def maximum(x: ArrayLike, y: ArrayLike) -> Array:
    """Choose the greater of ``x`` and ``y``, element by element.

    Complex numbers are ordered by real part, then imaginary part.

    Source: StableHLO, ``maximum``.

    >>> import stretto as st
    >>> st.lax.max(st.numpy.array([1.0, 4.0]), 2.0)
    Array([2., 4.], dtype=float32)
    """
    return _of_both(MAX, x, y)


@_extremum
def minimum(x: ArrayLike, y: ArrayLike) -> Array:
    """Choose the lesser of ``x`` and ``y``, element by element.

    Complex numbers are ordered by real part, then imaginary part.

    Source: StableHLO, ``minimum``.

    >>> import stretto as st
    >>> st.lax.min(st.numpy.array([1.0, 4.0]), 2.0)
    Array([1., 2.], dtype=float32)
    """
    return _of_both(MIN, x, y)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Keep each element between two bounds.

    Args:
        min: the lower bounds.
        x: the values.
        max: the upper bounds; all three are promoted and broadcast together.

    Returns:
        The values within the bounds, of the promoted dtype.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``clamp``.

    >>> import stretto as st
    >>> st.lax.clamp(0.0, st.numpy.array([-1.0, 0.5, 2.0]), 1.0)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return CLAMP(*promote_values("clamp", min, x, max))


def complex_greater(x: Any, y: Any) -> Any:
    """Say whether ``x`` is the greater."""
    a, b = real(x), real(y)
    return gt(a, b) | (eq(a, b) & gt(imag(x), imag(y)))


def complex_extremum(x: Any, y: Any, greatest: bool) -> Any:
    """Return the greater or lesser; the first that is NaN; half the derivative of each at ties."""
    first = complex_greater(x, y) if greatest else complex_greater(y, x)
    half = full_like(x, 0.5)
    out = select(eq(x, y), half * x + half * y, select(first, x, y))
    return select(ne(x, x), x, select(ne(y, y), y, out))
