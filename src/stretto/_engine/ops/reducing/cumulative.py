"""Running sums, products, extrema and log-sum-exponentials along an axis; linear recurrences.

Each is a primitive. The derivatives of running reductions are made of linear recurrences,
``y[i] = a[i] y[i-1] + b[i]``, whose own derivative and transpose are recurrences again. Source:
Blelloch, Prefix Sums and Their Applications, 1990.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from stretto._engine.core.functions import described
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import NOT_LINEAR, Kernel, Primitive
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import reducing
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.comparison import eq, full_like, ne, select, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import COMPARABLE, FLOAT, INEXACT, NUMERIC, align_mapped
from stretto._engine.ops.exponential import exp, log
from stretto._engine.ops.extrema import maximum, minimum
from stretto._engine.ops.layout import canonical_axis
from stretto._engine.ops.reducing.along import called_along
from stretto._engine.ops.reducing.reduce import greatest_below, least_above, widened
from stretto._engine.ops.shape import pad


class Cumulative(Primitive, abstract=True):
    """An operation over all elements up to each, along an axis; from there on if ``reverse``.

    A subclass states the kinds of dtype that it ``accepts``, the NumPy function ``ufunc`` and its
    twin of values, ``combine``, that combine two elements, and the ``identity`` for a dtype.
    """

    axis: int
    reverse: bool
    accepts: ClassVar[frozenset[str]]
    ufunc: ClassVar[np.ufunc]
    kernel = Kernel.ONE
    transpose = NOT_LINEAR

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """Return what combines with any element to that element."""
        raise NotImplementedError

    @staticmethod
    def combine(before: Any, here: Any, /) -> Any:
        """Combine what was combined so far, and what follows."""
        raise NotImplementedError

    def infer(self, x: ArrayType) -> ArrayType:
        if not 0 <= self.axis < x.ndim:
            raise ValueError(f"{self.name}: axis {self.axis} is not an axis of {x}")
        if kind_of(x.dtype) not in self.accepts:
            raise TypeError(
                f"{self.name}: expected an array of kind {' or '.join(sorted(self.accepts))}, got "
                f"{x}; convert it with .astype(...)"
            )
        return x

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Return the ufunc's ``accumulate``; narrow dtypes in wider ones, as in XLA."""
        wide = x.astype(widened(x.dtype), copy=False)
        line = np.flip(wide, self.axis) if self.reverse else wide
        out = self.ufunc.accumulate(line, axis=self.axis, dtype=wide.dtype)
        out = np.flip(out, self.axis) if self.reverse else out
        return out.astype(x.dtype, copy=False)

    def lower(self, b: Any, x: Any) -> Any:
        """Write ``composed``, narrow dtypes in wider ones."""
        if not x.type.size:
            return x
        wide = b.convert(x, widened(x.type.dtype))
        called = called_along(b, self.name, (wide,), self.axis, wide.type, self.reverse)
        if called is not None:
            return b.convert(called, x.type.dtype)
        if is_size(x.type.shape[self.axis]):
            combine = lambda before, here: [self.combine(*before, *here)]
            first = (self.identity(wide.type.dtype),)
            (out,) = reducing.running.in_a_loop(b, combine, first, (wide,), self.axis, self.reverse)
            return b.convert(out, x.type.dtype)
        return b.convert(b.inline(self.composed, wide), x.type.dtype)

    def composed(self, x: Any) -> Any:
        """Write it with other operations."""

        def combine(before: tuple[Any, ...], here: tuple[Any, ...]) -> tuple[Any]:
            return (self.combine(*before, *here),)

        return reducing.running.running(
            combine, (self.identity(x.dtype),), (x,), self.axis, self.reverse
        )[0]

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        (axis,) = axes
        assert axis is not None
        return type(self)(self.axis + (axis <= self.axis), self.reverse)(args[0]), axis

    def recur(self, a: Any, b: Any) -> Any:
        """Compute ``y[i] = a[i] y[i-1] + b[i]`` along this axis, in this direction."""
        return LinearRecurrence(self.axis, self.reverse)(a, b)

    def before(self, x: Any, first: Any) -> Any:
        """Return ``x[i-1]``, with ``first`` at the start."""
        return shift_by_one(x, self.axis, self.reverse, first)

    def padded(self, at: Any, x: Any) -> Any:
        """Padding comes last, or counts as the identity where it comes first."""
        if self.reverse:
            x = at.filled(x, at.types[0], self.identity(x.type.dtype), (self.axis,))
        return self(x)


class Cumsum(Cumulative):
    """The running sum."""

    accepts = NUMERIC
    ufunc = np.add
    combine = staticmethod(operator.add)

    def onnx(self, b: Any, x: Any) -> Any:
        """Write ``CumSum``."""
        return b.cumulative("CumSum", x, self.axis, self.reverse)

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """Return 0."""
        return 0

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        return (Cumsum(self.axis, not self.reverse)(ct),)


class Cumprod(Cumulative):
    """The running product."""

    accepts = NUMERIC
    ufunc = np.multiply
    combine = staticmethod(operator.mul)

    def onnx(self, b: Any, x: Any) -> Any:
        """Write ``CumProd``, which is younger than other operators."""
        whole = b.opset >= 26 and x.type.kind != "complex"
        return b.cumulative("CumProd", x, self.axis, self.reverse) if whole else self.lower(b, x)

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """Return 1."""
        return 1

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """dp[i] = x[i] dp[i-1] + p[i-1] dx[i]: without division, so zeros are no special case."""
        (x,), (dx,) = primals, tangents
        out = self(x)
        return out, self.recur(x, self.before(out, 1) * dx)


class RunningChooser(Cumulative, abstract=True):
    """A running extremum."""

    accepts = COMPARABLE | {"bool"}

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the mean of the tangents of the elements so far that equal the extremum.

        Their sum and their number restart where the extremum changes; NaN equals NaN.
        """
        (x,), (dx,) = primals, tangents
        out = self(x)
        before = self.before(out, self.identity(x.dtype))
        same = convert(eq(before, out) | ne(before, before), x.dtype)
        here = eq(x, out) | ne(x, x)
        total = self.recur(same, select(here, dx, zeros_like(dx)))
        return out, total / self.recur(same, convert(here, x.dtype))


class Cummax(RunningChooser):
    """The running maximum."""

    ufunc = np.maximum
    combine = staticmethod(maximum)
    identity = staticmethod(greatest_below)


class Cummin(RunningChooser):
    """The running minimum."""

    ufunc = np.minimum
    combine = staticmethod(minimum)
    identity = staticmethod(least_above)


class Cumlogsumexp(Cumulative):
    """The logarithm of the running sum of exponentials."""

    accepts = FLOAT
    ufunc = np.logaddexp

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """Return negative infinity, or the least there is."""
        return greatest_below(dtype)

    def lower(self, b: Any, x: Any) -> Any:
        """Write ``composed``, whose parts go along an axis of any size."""
        wide = b.convert(x, widened(x.type.dtype))
        return b.convert(b.inline(self.composed, wide), x.type.dtype)

    def composed(self, x: Any) -> Any:
        """Return m + log s, with the running maximum m and the sum s of exp(x - m) so far.

        s[i] = exp(m[i-1] - m[i]) s[i-1] + exp(x[i] - m[i]): no exponent is positive.
        """
        return _logarithm(*self._parts(x)[:2])

    def _parts(self, x: Any) -> tuple[Any, ...]:
        """Return m and s, exp(m[i-1] - m[i]), and exp(x[i] - m[i])."""
        top = Cummax(self.axis, self.reverse)(x)
        keep, here = _weight(self.before(top, -np.inf), top), _weight(x, top)
        return top, self.recur(keep, here), keep, here

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """dy[i] = exp(m[i-1] - m[i]) s[i-1] / s[i] dy[i-1] + exp(x[i] - m[i]) / s[i] dx[i]."""
        # With y = m + log s, exp(x - y) would be off by the rounding of y, which is 5e-4 in float32
        # where m is 10,000.
        (x,), (dx,) = primals, tangents
        wide, moved = (convert(v, widened(x.dtype)) for v in (x, dx))
        top, sums, keep, here = self._parts(wide)
        infinite = eq(absolute(top), full_like(top, np.inf))
        sums_or_1 = select(infinite, full_like(sums, 1), sums)
        kept = keep * self.before(sums_or_1, 1) / sums_or_1
        moved = self.recur(kept, here / sums_or_1 * moved)
        return convert(_logarithm(top, sums), x.dtype), convert(moved, x.dtype)


def _weight(x: Any, total: Any) -> Any:
    """Return exp(x - total) for x <= total; for infinite totals, 1 where x = inf, else 0."""
    infinite = eq(absolute(total), full_like(total, np.inf))
    there = select(eq(x, full_like(x, np.inf)), zeros_like(x), full_like(x, -np.inf))
    return exp(select(infinite, there, x - select(infinite, zeros_like(total), total)))


def _logarithm(top: Any, sums: Any) -> Any:
    """Return m + log s; -inf where there is nothing to sum."""
    return select(eq(top, full_like(top, -np.inf)), top, top + log(sums))


# Functions

_cumulative = described(
    {
        "operand": "an array.",
        "axis": "the axis to go along, negative from the end.",
        "reverse": """whether to go from the end, so that each result covers the elements from
        there on.""",
    },
    returns="The results up to each element, of the shape and dtype of ``operand``.",
    raises="""TypeError: ``operand`` is boolean.
    ValueError: the axis is out of bounds.""",
)


def _running(family: type[Cumulative], x: Any, axis: int, reverse: bool, caller: str) -> Any:
    x = as_value(x, caller, "operand")
    return family(canonical_axis(axis, x.ndim, caller), bool(reverse))(x)


@_cumulative
def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Sum the elements up to each one along an axis.

    >>> import stretto as st
    >>> st.lax.cumsum(st.numpy.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _running(Cumsum, operand, axis, reverse, "cumsum")


@_cumulative
def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Multiply the elements up to each one along an axis.

    >>> import stretto as st
    >>> st.lax.cumprod(st.numpy.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _running(Cumprod, operand, axis, reverse, "cumprod")


@_cumulative
def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Take the greatest element up to each one along an axis.

    NaN from the first NaN on. The derivative is shared equally among elements that tie.

    Raises:
        ValueError: the axis is out of bounds.

    >>> import stretto as st
    >>> st.lax.cummax(st.numpy.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _running(Cummax, operand, axis, reverse, "cummax")


@_cumulative
def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Take the least element up to each one along an axis.

    NaN from the first NaN on. The derivative is shared equally among elements that tie.

    Raises:
        ValueError: the axis is out of bounds.

    >>> import stretto as st
    >>> st.lax.cummin(st.numpy.array([2, 1, 3]))
    Array([2, 1, 1], dtype=int32)
    """
    return _running(Cummin, operand, axis, reverse, "cummin")


@_cumulative
def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Compute ``log(cumsum(exp(operand)))`` along an axis, without overflow.

    Raises:
        TypeError: ``operand`` is not of real floats.
        ValueError: the axis is out of bounds.

    >>> import stretto as st
    >>> st.lax.cumlogsumexp(st.numpy.array([1000.0, 1000.0]))
    Array([1000.    , 1000.6932], dtype=float32)
    """
    return _running(Cumlogsumexp, operand, axis, reverse, "cumlogsumexp")


def shift_by_one(x: Any, axis: int, reverse: bool, first: Any) -> Any:
    """Return the element before each, or after if ``reverse``; else ``first``."""
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad(x, first, config)


class LinearRecurrence(Primitive):
    """y[i] = a[i] y[i-1] + b[i] along an axis, with y[-1] = 0; linear in b.

    From the end, y[i] = a[i] y[i+1] + b[i], if ``reverse``.
    """

    axis: int
    reverse: bool

    def infer(self, a: ArrayType, b: ArrayType) -> ArrayType:
        if a.shape != b.shape or a.dtype != b.dtype or not 0 <= self.axis < a.ndim:
            raise TypeError(
                f"linear_recurrence: expected operands of one type with an axis {self.axis}, got "
                f"{a} and {b}"
            )
        if kind_of(a.dtype) not in INEXACT:
            raise TypeError(f"linear_recurrence: expected inexact numbers, got {a}")
        return array_type(a.shape, a.dtype, a.weak_type and b.weak_type)

    def reference(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Go by steps of doubling length: n log n work, and no loop over elements."""
        wide = widened(a.dtype)
        direction = -1 if self.reverse else 1
        factor, y = (np.moveaxis(v.astype(wide), self.axis, 0)[::direction] for v in (a, b))
        step, n = 1, y.shape[0]
        while step < n:
            y[step:] += factor[step:] * y[:-step].copy()
            factor[step:] = factor[step:] * factor[:-step]
            step *= 2
        return np.moveaxis(y[::direction], 0, self.axis).astype(a.dtype, copy=False)

    def lower(self, b: Any, x: Any, y: Any) -> Any:
        if not x.type.size:
            return y
        wide = widened(x.type.dtype)
        operands = b.convert(x, wide), b.convert(y, wide)
        called = called_along(
            b, self.name, operands[::-1], self.axis, operands[1].type, self.reverse
        )
        if called is not None:
            return b.convert(called, x.type.dtype)
        if is_size(x.type.shape[self.axis]):
            loop = reducing.running.in_a_loop
            _, out = loop(b, _after, (1, 0), operands, self.axis, self.reverse)
        else:
            out = b.inline(self.composed, *operands)
        return b.convert(out, x.type.dtype)

    def composed(self, a: Any, b: Any) -> Any:
        """Write it with other operations: (a', b') after (a, b) is (a a', a' b + b')."""
        return reducing.running.running(_after, (1, 0), (a, b), self.axis, self.reverse)[1]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """dy[i] = a[i] dy[i-1] + (da[i] y[i-1] + db[i])."""
        (a, b), (da, db) = primals, tangents
        y = self(a, b)
        source = db
        if da is not None:
            moved = da * shift_by_one(y, self.axis, self.reverse, 0)
            source = moved if db is None else moved + db
        return y, self(a, source)

    def transpose(self, ct: Any, a: Any, b: Any) -> tuple[None, Any]:
        """g[i] = a[i+1] g[i+1] + ct[i]: the recurrence from the other end."""
        after = shift_by_one(a, self.axis, not self.reverse, 0)
        return None, LinearRecurrence(self.axis, not self.reverse)(after, ct)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        values, axis = align_mapped(size, args, axes)
        return LinearRecurrence(self.axis + (axis <= self.axis), self.reverse)(*values), axis

    def padded(self, at: Any, a: Any, b: Any) -> Any:
        """Padding comes last; where it comes first, it is 0 and stays so."""
        if self.reverse:
            a, b = (at.filled(x, t, 0, (self.axis,)) for x, t in zip((a, b), at.types, strict=True))
        return self(a, b)


def _after(before: tuple[Any, ...], here: tuple[Any, ...]) -> tuple[Any, Any]:
    (a, b), (factor, source) = before, here
    return a * factor, factor * b + source
