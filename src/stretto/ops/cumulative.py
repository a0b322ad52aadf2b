"""Running sums, products, extrema and log-sum-exponentials along an axis.

Layer 2 (ops). Each is a primitive. Their derivatives are all linear recurrences
``y[i] = a[i] y[i-1] + b[i]``, so that recurrence is a primitive too, and closes the family: its own
derivative and transpose are recurrences again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from stretto.core.interpreter import Linear, as_value
from stretto.core.primitive import NOT_LINEAR, Primitive
from stretto.core.types import ArrayType, array_type, kind_of
from stretto.ops.arithmetic import absolute
from stretto.ops.broadcast import broadcast_in_dim, canonical_axis, reshape
from stretto.ops.comparison import eq, full_like, select, zeros_like
from stretto.ops.convert import convert
from stretto.ops.elementwise import COMPARABLE, FLOAT, INEXACT, NUMERIC, align_mapped
from stretto.ops.exponential import exp, log
from stretto.ops.reduce import greatest_below, least_above, widened
from stretto.ops.shape import pad, rev, slice_in_dim

__all__ = ["cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "linear_recurrence"]

_FLOAT32 = np.dtype(np.float32)


def _shifted(x: Any, axis: int, reverse: bool, first: Any, by: int = 1) -> Any:
    """The element ``by`` places before each (after, if ``reverse``); ``first`` where none is."""
    low, high = (-by, by) if reverse else (by, -by)
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (low, high, 0)
    return pad(x, first, config)


class Cumulative(Primitive, abstract=True):
    """An operation over all elements up to each, along an axis; from there on if ``reverse``.

    A subclass states the kinds of dtype that it ``accepts``, the StableHLO operation ``op`` and
    the NumPy function ``ufunc`` that combine two elements, and the ``identity`` for a dtype.
    """

    axis: int
    reverse: bool
    accepts: ClassVar[frozenset[str]]
    op: ClassVar[str]
    ufunc: ClassVar[np.ufunc]
    transpose = NOT_LINEAR

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """What combines with any element to that element."""
        raise NotImplementedError

    def infer(self, x: ArrayType) -> ArrayType:
        """The operand's type."""
        if not 0 <= self.axis < x.ndim:
            raise ValueError(f"{self.name}: axis {self.axis} is not an axis of {x}")
        if kind_of(x.dtype) not in self.accepts:
            raise TypeError(
                f"{self.name}: expected an array of kind {' or '.join(sorted(self.accepts))}, got "
                f"{x}; convert it with .astype(...)"
            )
        return x

    def reference(self, x: np.ndarray) -> np.ndarray:
        """The ufunc's ``accumulate``; narrow dtypes in wider ones, as in XLA."""
        wide = x.astype(widened(x.dtype), copy=False)
        line = np.flip(wide, self.axis) if self.reverse else wide
        out = self.ufunc.accumulate(line, axis=self.axis, dtype=wide.dtype)
        out = np.flip(out, self.axis) if self.reverse else out
        return out.astype(x.dtype, copy=False)

    def lower(self, b: Any, x: Any) -> Any:
        """A window from the first element to each, which XLA makes a scan in blocks."""
        if not x.type.size:
            return x
        type, axis = x.type, self.axis
        narrow = kind_of(type.dtype) == "float" and type.dtype.itemsize < 4
        wide = b.convert(x, _FLOAT32) if narrow else x
        element = array_type((), wide.type.dtype)
        ones = b.ints((1,) * type.ndim)
        window = b.ints([n if d == axis else 1 for d, n in enumerate(type.shape)])
        rows = [[0, 0] for _ in type.shape]
        rows[axis][self.reverse] = type.shape[axis] - 1
        region = b.region((element, element), lambda u, v: [b.emit(self.op, u, v, out=element)])
        (out,) = b.emit_many(
            "reduce_window",
            (wide, b.scalar(self.identity(element.dtype), element.dtype)),
            (array_type(type.shape, element.dtype),),
            f"window_dimensions = {window}, window_strides = {ones}, base_dilations = {ones}, "
            f"window_dilations = {ones}, padding = dense<{rows}> : tensor<{type.ndim}x2xi64>",
            (region,),
        )
        return b.convert(out, type.dtype)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis is stepped over."""
        (axis,) = axes
        assert axis is not None
        return type(self)(self.axis + (axis <= self.axis), self.reverse)(args[0]), axis

    def recur(self, a: Any, b: Any) -> Any:
        """``y[i] = a[i] y[i-1] + b[i]`` along this axis, in this direction."""
        return LinearRecurrence(self.axis, self.reverse)(a, b)

    def before(self, x: Any, first: Any) -> Any:
        """``x[i-1]``, with ``first`` at the start."""
        return _shifted(x, self.axis, self.reverse, first)


class Cumsum(Cumulative):
    """The running sum."""

    accepts = NUMERIC
    op = "add"
    ufunc = np.add

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """0."""
        return 0

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Linear."""
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        """The running sum from the other end."""
        return (Cumsum(self.axis, not self.reverse)(ct),)


class Cumprod(Cumulative):
    """The running product."""

    accepts = NUMERIC
    op = "multiply"
    ufunc = np.multiply

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """1."""
        return 1

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """dp[i] = x[i] dp[i-1] + p[i-1] dx[i]: no division, so zeros are no exception."""
        (x,), (dx,) = primals, tangents
        out = self(x)
        return out, self.recur(x, self.before(out, 1) * dx)


class RunningChooser(Cumulative, abstract=True):
    """A running extremum."""

    accepts = COMPARABLE | {"bool"}

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """The mean of the tangents of the elements so far that equal the extremum.

        Their sum and their number start anew where the extremum changes.
        """
        (x,), (dx,) = primals, tangents
        out = self(x)
        same = convert(eq(self.before(out, self.identity(x.dtype)), out), x.dtype)
        here = eq(x, out)
        total = self.recur(same, select(here, dx, zeros_like(dx)))
        return out, total / self.recur(same, convert(here, x.dtype))


class Cummax(RunningChooser):
    """The running maximum."""

    op = "maximum"
    ufunc = np.maximum
    identity = staticmethod(greatest_below)


class Cummin(RunningChooser):
    """The running minimum."""

    op = "minimum"
    ufunc = np.minimum
    identity = staticmethod(least_above)


class Cumlogsumexp(Cumulative):
    """The logarithm of the running sum of exponentials."""

    accepts = FLOAT
    op = ""
    ufunc = np.logaddexp

    def lower(self, b: Any, x: Any) -> Any:
        """By ``composed``, in at least float32."""
        if not x.type.size:
            return x
        wide = b.convert(x, widened(x.type.dtype))
        return b.convert(b.inline(self.composed, wide), x.type.dtype)

    def composed(self, x: Any) -> Any:
        """m + log s, with the running maximum m and the sum s of exp(x - m) so far.

        s[i] = exp(m[i-1] - m[i]) s[i-1] + exp(x[i] - m[i]): no exponent is positive.
        """
        top = Cummax(self.axis, self.reverse)(x)
        sums = self.recur(_weight(self.before(top, -np.inf), top), _weight(x, top))
        return select(eq(top, full_like(top, -np.inf)), top, top + log(sums))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """dy[i] = exp(y[i-1] - y[i]) dy[i-1] + exp(x[i] - y[i]) dx[i]."""
        (x,), (dx,) = primals, tangents
        out = self(x)
        keep = _weight(self.before(out, -np.inf), out)
        return out, self.recur(keep, _weight(x, out) * dx)


def _weight(x: Any, total: Any) -> Any:
    """exp(x - total) for x <= total: of infinite totals 1 to x = inf, 0 to the others."""
    infinite = eq(absolute(total), full_like(total, np.inf))
    there = select(eq(x, full_like(x, np.inf)), zeros_like(x), full_like(x, -np.inf))
    return exp(select(infinite, there, x - select(infinite, zeros_like(total), total)))


class LinearRecurrence(Primitive):
    """y[i] = a[i] y[i-1] + b[i] along an axis, with y[-1] = 0; linear in b.

    From the end, y[i] = a[i] y[i+1] + b[i], if ``reverse``.
    """

    axis: int
    reverse: bool

    def infer(self, a: ArrayType, b: ArrayType) -> ArrayType:
        """The operands' one type."""
        if a.shape != b.shape or a.dtype != b.dtype or not 0 <= self.axis < a.ndim:
            raise TypeError(
                f"linear_recurrence: expected operands of one type with an axis {self.axis}, got "
                f"{a} and {b}"
            )
        if kind_of(a.dtype) not in INEXACT:
            raise TypeError(f"linear_recurrence: expected inexact numbers, got {a}")
        return array_type(a.shape, a.dtype, a.weak_type and b.weak_type)

    def reference(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Steps of doubling length: n log n work, and no loop over elements."""
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
        """By ``composed``, in at least float32."""
        if not x.type.size:
            return y
        wide = widened(x.type.dtype)
        out = b.inline(self.composed, b.convert(x, wide), b.convert(y, wide))
        return b.convert(out, x.type.dtype)

    def composed(self, a: Any, b: Any) -> Any:
        """By other operations: a scan in blocks."""
        if not self.reverse:
            return _scan(a, b, self.axis)[1]
        return rev(_scan(rev(a, (self.axis,)), rev(b, (self.axis,)), self.axis)[1], (self.axis,))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """dy[i] = a[i] dy[i-1] + (da[i] y[i-1] + db[i])."""
        (a, b), (da, db) = primals, tangents
        y = self(a, b)
        source = db
        if da is not None:
            moved = da * _shifted(y, self.axis, self.reverse, 0)
            source = moved if db is None else moved + db
        return y, self(a, source)

    def transpose(self, ct: Any, a: Any, b: Any) -> tuple[None, Any]:
        """g[i] = a[i+1] g[i+1] + ct[i]: the recurrence from the other end."""
        after = _shifted(a, self.axis, not self.reverse, 0)
        return None, LinearRecurrence(self.axis, not self.reverse)(after, ct)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis is stepped over."""
        values, axis = align_mapped(size, args, axes)
        return LinearRecurrence(self.axis + (axis <= self.axis), self.reverse)(*values), axis


_BLOCK = 16


def _scan(a: Any, b: Any, axis: int) -> tuple[Any, Any]:
    """All products of ``a`` up to each element, and the recurrence's values.

    Within blocks of 16 by steps of doubling length, then over the blocks' last elements in the
    same way: linear work, and a program whose length grows with the logarithm of the size.
    (a', b') after (a, b) is (a a', a' b + b').
    """
    n = a.shape[axis]
    if n <= _BLOCK:
        step = 1
        while step < n:
            b = b + a * _shifted(b, axis, False, 0, step)
            a = a * _shifted(a, axis, False, 1, step)
            step *= 2
        return a, b
    blocks = -(-n // _BLOCK)
    shape = a.shape
    filled = [(0, blocks * _BLOCK - n if d == axis else 0, 0) for d in range(a.ndim)]
    split = (*shape[:axis], blocks, _BLOCK, *shape[axis + 1 :])
    a, b = (reshape(pad(v, e, filled), split) for v, e in ((a, 1), (b, 0)))
    a, b = _scan(a, b, axis + 1)
    last = [
        reshape(slice_in_dim(v, _BLOCK - 1, _BLOCK, axis=axis + 1), split[: axis + 1] + split[axis + 2 :])
        for v in (a, b)
    ]
    last_a, last_b = _scan(last[0], last[1], axis)
    dims = tuple(d for d in range(a.ndim) if d != axis + 1)
    before_a = broadcast_in_dim(_shifted(last_a, axis, False, 1), split, dims)
    before_b = broadcast_in_dim(_shifted(last_b, axis, False, 0), split, dims)
    whole = (*shape[:axis], blocks * _BLOCK, *shape[axis + 1 :])
    a, b = a * before_a, b + a * before_b
    a, b = (slice_in_dim(reshape(v, whole), 0, n, axis=axis) for v in (a, b))
    return a, b


# Functions


def _running(family: type[Cumulative], x: Any, axis: int, reverse: bool, who: str) -> Any:
    x = as_value(x, who)
    return family(canonical_axis(axis, x.ndim, who), bool(reverse))(x)


def cumsum(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The sum of the elements up to each along ``axis``; from each on if ``reverse``.

    The shape and dtype of ``x``. Raises ``TypeError`` for booleans.

    >>> import stretto as st
    >>> st.lax.cumsum(st.numpy.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _running(Cumsum, x, axis, reverse, "cumsum")


def cumprod(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The product of the elements up to each along ``axis``; from each on if ``reverse``.

    The shape and dtype of ``x``. Raises ``TypeError`` for booleans.

    >>> import stretto as st
    >>> st.lax.cumprod(st.numpy.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _running(Cumprod, x, axis, reverse, "cumprod")


def cummax(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The greatest element up to each along ``axis``; from each on if ``reverse``.

    NaN from the first NaN on. The derivative is shared equally among elements that tie.

    >>> import stretto as st
    >>> st.lax.cummax(st.numpy.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _running(Cummax, x, axis, reverse, "cummax")


def cummin(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The least element up to each along ``axis``; from each on if ``reverse``.

    NaN from the first NaN on. The derivative is shared equally among elements that tie.

    >>> import stretto as st
    >>> st.lax.cummin(st.numpy.array([2, 1, 3]))
    Array([2, 1, 1], dtype=int32)
    """
    return _running(Cummin, x, axis, reverse, "cummin")


def cumlogsumexp(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """``log(cumsum(exp(x)))`` along ``axis`` without overflow; from the end if ``reverse``.

    Raises ``TypeError`` unless ``x`` is of real floats.

    >>> import stretto as st
    >>> st.lax.cumlogsumexp(st.numpy.array([1000.0, 1000.0]))
    Array([1000.    , 1000.6931], dtype=float32)
    """
    return _running(Cumlogsumexp, x, axis, reverse, "cumlogsumexp")


def linear_recurrence(a: Any, b: Any, axis: int = 0, reverse: bool = False) -> Any:
    """``y[i] = a[i] y[i-1] + b[i]`` along ``axis``, from zero; from the end if ``reverse``.

    ``a`` and ``b`` are of one inexact type, which is the result's. In logarithmic depth. Source:
    Blelloch, Prefix Sums and Their Applications, 1990.

    >>> import stretto as st
    >>> st.lax.linear_recurrence(st.numpy.array([0.5, 0.5]), st.numpy.array([1.0, 1.0]))
    Array([1. , 1.5], dtype=float32)
    """
    a, b = as_value(a, "linear_recurrence", "a"), as_value(b, "linear_recurrence", "b")
    return LinearRecurrence(canonical_axis(axis, a.ndim, "linear_recurrence"), bool(reverse))(a, b)
