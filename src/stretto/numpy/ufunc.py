"""Universal functions: element-wise functions that also reduce, accumulate and update.

``add`` and its like stay plain functions, which are quicker to call than instances, with the
methods of a ``ufunc`` as their attributes: ``attach`` gives them these. Reductions that have an
operation of their own use it; the others are a scan, from left to right.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.types import default_dtype, inexact_dtype
from stretto._engine.core.typing import Array, ArrayLike, Axes, DTypeLike, Tree
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, lt
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import canonical_axes, canonical_axis, reshape, transpose
from stretto._engine.ops.reducing import reduce
from stretto._engine.ops.reducing.cumulative import cumlogsumexp, cummax, cummin
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto.numpy import arithmetic, bits, elementary, extrema, logic, reductions
from stretto.numpy.arguments import refuse_inplace, refuse_out
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.indexing import concrete_of, getitem
from stretto.numpy.logic import mask_of_where
from stretto.numpy.manipulation import moveaxis
from stretto.numpy.normalized import logsumexp
from stretto.numpy.reductions import keep, masked
from stretto.numpy.taking import take
from stretto.numpy.updating import At, IndexUpdate

__all__ = ["add", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "logaddexp",
           "logaddexp2", "logical_and", "logical_or", "logical_xor", "maximum",
           "minimum", "multiply", "negative", "power", "subtract", "true_divide",
           "ufunc"]  # fmt: skip

if TYPE_CHECKING:  # loaded when a method first needs a loop
    from stretto._engine.core.typing import Index
    from stretto._engine.higher_order import loops, scan
else:
    loops, scan = map(
        LazyModule, ("stretto._engine.higher_order.loops", "stretto._engine.higher_order.scan")
    )


METHODS = ("at", "reduce", "accumulate", "outer", "reduceat")


class _Universal(type):
    """The class of ``ufunc``, whose instances include the functions that were given the methods."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or hasattr(instance, "__ufunc__")


class ufunc(metaclass=_Universal):  # NumPy's name
    """A function of scalars, applied to arrays element by element, with methods to combine them.

    Attributes: ``nin`` and ``nout``, the numbers of arguments and results; ``nargs``, their sum;
    ``identity``, what combines with any element to that element, if there is such a number. Made by
    ``frompyfunc``; NumPy's are instances too.

    >>> import stretto.numpy as snp
    >>> isinstance(snp.add, snp.ufunc), snp.add.reduce(snp.array([1, 2, 3]))
    (True, Array(6, dtype=int32))
    """

    def __init__(
        self,
        function: Callable[..., Any],
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        identity: ArrayLike | None = None,
        collapse: Callable[[Any, tuple[int, ...]], Any] | None = None,
        run: Callable[[Any, int], Any] | None = None,
        update: Callable[..., Any] | None = None,
    ) -> None:
        """Wrap an element-wise function.

        ``collapse(x, axes)`` and ``run(x, axis)`` are its reduction and its running total, and
        ``update`` is the method of ``x.at[index]`` that combines with it, where these exist.
        """
        self.function = function
        self.nin, self.nout, self.nargs = nin, nout, nin + nout
        self.identity = identity
        self._collapse, self._run, self._update = collapse, run, update
        self.__name__ = self.__qualname__ = name or function.__name__
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<stretto.numpy.ufunc {self.__name__!r}>"

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Tree:
        """Apply the function to each element of broadcast arguments, without ``out`` and ``where``.

        Raises ``TypeError`` for another number of arguments.
        """
        refuse_out(self.__name__, out)
        if where is not None:
            raise NotImplementedError(
                f"{self.__name__}: arrays are immutable, so elements cannot be left as they are; "
                f"use snp.where(mask, {self.__name__}(x), y)"
            )
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__}: expected {self.nin} arguments, got {len(args)}")
        return self.function(*args)

    def _binary(self, method: str) -> str:
        """Return the name for messages; refuse all but two arguments and one result."""
        caller = f"{self.__name__}.{method}"
        if (self.nin, self.nout) != (2, 1):
            raise ValueError(f"{caller}: only functions of two arguments with one result have it")
        return caller

    def reduce(
        self,
        a: ArrayLike,
        axis: Axes = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Combine all elements along axes, from left to right.

        Args:
            a: an array.
            axis: the axes to combine along, the first by default; None is all.
            dtype: the dtype to combine in; by default that of ``a``.
            out: must be None: arrays are immutable.
            keepdims: whether the axes stay, with size 1.
            initial: what to begin with; ``where`` needs it unless there is an ``identity``.
            where: a mask of the elements that count; all by default.

        Returns:
            An array of the shape of ``a`` without the axes.

        Raises:
            NotImplementedError: ``out`` is given.
            TypeError: ``where`` is not boolean.
            ValueError: an axis is out of bounds, or is named twice; or the function does not have
                two arguments and one result, or there is nothing to begin with.

        As NumPy's ``ufunc.reduce``.

        >>> import stretto.numpy as snp
        >>> snp.subtract.reduce(snp.array([10, 2, 3]))
        Array(5, dtype=int32)
        """
        caller = self._binary("reduce")
        refuse_out(caller, out)
        x = as_value(a, caller, "a")
        x = x if dtype is None else convert(x, as_dtype(dtype))
        axes = canonical_axes(axis, x.ndim, caller)
        count = math.prod([x.shape[d] for d in axes])
        start = self.identity if initial is None else initial
        empty = without_elements(count, caller) if start is None else not count
        if start is None and (empty or where is not None):
            raise ValueError(
                f"{caller}: {self.__name__} has no identity, so for an empty axis, or with where=, "
                f"initial= must be given"
            )
        if self._collapse is None or empty:
            begins = start if empty or where is not None else initial
            result = self._fold(caller, x, axes, begins, where)
        else:
            if where is not None:
                zero = full((), 0, x.dtype, x.weak_type)
                x = convert(x, self.function(zero, zero).dtype)
                identity: Any = start if self.identity is None else self.identity
                x = masked(caller, x, where, identity)
            result = self._collapse(x, axes)
            if initial is not None:
                result = self.function(result, convert(as_value(initial, caller), result.dtype))
        result = result if dtype is None else convert(result, as_dtype(dtype))
        return keep(result, x.shape, axes, keepdims)

    def _fold(
        self,
        caller: str,
        x: Array,
        axes: tuple[int, ...],
        initial: ArrayLike | None,
        where: ArrayLike | None,
    ) -> Array:
        """Combine from left to right along the axes, in row-major order."""
        rest = [d for d in range(x.ndim) if d not in axes]
        shape = tuple([x.shape[d] for d in rest])

        def lines(v: Array) -> Array:
            return reshape(transpose(v, (*axes, *rest)), (_product(x.shape, axes), *shape))

        line = lines(x)
        mask = None if where is None else lines(broadcast_to(mask_of_where(where, caller), x.shape))
        if initial is None:
            first, line = getitem(line, 0), slice_in_dim(line, 1, None)
        else:
            first = convert(as_value(initial, caller, "initial"), x.dtype, x.weak_type)
            first = broadcast_to(first, shape)
        first = self._settled(first)

        def step(carry: Array, part: tuple[Array, Array | None]) -> tuple[Array, None]:
            element, holds = part
            new = convert(self.function(carry, element), carry.dtype, carry.weak_type)
            return (new if holds is None else choose(holds, new, carry)), None

        return scan.scan(step, first, (line, mask), line.shape[0])[0]

    def _settled(self, first: Array) -> Array:
        """Return the first elements, in the dtype of the function's result."""
        if self._collapse is None:
            combined = self.function(first, first)
        else:
            combined = self._collapse(reshape(first, (1, *first.shape)), (0,))
        return convert(first, combined.dtype, combined.weak_type)

    def accumulate(
        self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """Combine the elements up to each one along an axis, from left to right.

        Args:
            a: an array.
            axis: the axis to combine along.
            dtype: the dtype to combine in; by default that of ``a``.
            out: must be None: arrays are immutable.

        Returns:
            An array of the shape of ``a``.

        Raises:
            NotImplementedError: ``out`` is given.
            ValueError: ``axis`` is out of bounds; or the function does not have two arguments and
                one result.

        As NumPy's ``ufunc.accumulate``.

        >>> import stretto.numpy as snp
        >>> snp.maximum.accumulate(snp.array([1, 3, 2]))
        Array([1, 3, 3], dtype=int32)
        """
        caller = self._binary("accumulate")
        refuse_out(caller, out)
        x = as_value(a, caller, "a")
        x = x if dtype is None else convert(x, as_dtype(dtype))
        place = canonical_axis(axis, x.ndim, caller)
        if self._run is not None:
            totals = self._run(x, place)
        elif not x.shape[place]:
            totals = x
        else:
            lines = moveaxis(x, place, 0)
            first = self._settled(getitem(lines, 0))

            def step(carry: Array, element: Array) -> tuple[Array, Array]:
                new = convert(self.function(carry, element), carry.dtype, carry.weak_type)
                return new, new

            _, others = scan.scan(step, first, slice_in_dim(lines, 1, None))
            totals = moveaxis(concatenate([reshape(first, (1, *first.shape)), others], 0), 0, place)
        return totals if dtype is None else convert(totals, as_dtype(dtype))

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """Apply the function to every element of one array with every element of another.

        Args:
            A: an array, or a number.
            B: an array, or a number.

        Returns:
            An array of the axes of ``A``, then those of ``B``.

        Raises:
            ValueError: the function does not have two arguments.

        As NumPy's ``ufunc.outer``.

        >>> import stretto.numpy as snp
        >>> snp.add.outer(snp.array([1, 2]), snp.array([10, 20]))
        Array([[11, 21],
               [12, 22]], dtype=int32)
        """
        caller = f"{self.__name__}.outer"
        if self.nin != 2:
            raise ValueError(f"{caller}: only functions of two arguments have it")
        x, y = as_value(A, caller, "A"), as_value(B, caller, "B")
        return self.function(reshape(x, x.shape + (1,) * y.ndim), y)

    def at(
        self, a: ArrayLike, indices: Index, b: ArrayLike | None = None, /, *, inplace: bool = True
    ) -> Array:
        """Copy an array with the elements at indices combined with others, once for each index.

        Args:
            a: an array.
            indices: an index, as for ``x.at[indices]``.
            b: the other elements, which broadcast; none for a function of one argument.
            inplace: must be False: a copy is returned.

        Returns:
            A copy of ``a``.

        Raises:
            ValueError: ``inplace`` is not False; or the function has several results, or ``b`` is
                missing or too much.

        As NumPy's ``ufunc.at``, which changes its argument.

        >>> import stretto.numpy as snp
        >>> snp.add.at(snp.zeros(3), snp.array([0, 0, 2]), 1, inplace=False)
        Array([2., 0., 1.], dtype=float32)
        """
        caller = f"{self.__name__}.at"
        refuse_inplace(caller, inplace)
        if self.nout != 1 or self.nin not in (1, 2) or (b is None) != (self.nin == 1):
            raise ValueError(
                f"{caller}: expected {self.nin - 1} arrays beside a and the indices, for a "
                f"function with one result; got {0 if b is None else 1}"
            )
        x = as_value(a, caller, "a")
        if self._update is not None:
            return self._update(At(x)[indices], b)
        # Places as numbers in row-major order, updated one after another.
        index = default_dtype("int")
        where = getitem(reshape(iota(index, x.size), x.shape), indices)
        flat, places = reshape(x, (x.size,)), reshape(where, (where.size,))
        others = None
        if b is not None:
            others = reshape(broadcast_to(as_value(b, caller, "b"), where.shape), (where.size,))

        def step(carry: Array, part: tuple[Array, Array | None]) -> tuple[Array, None]:
            place, other = part
            old = getitem(carry, place)
            new = self.function(old) if other is None else self.function(old, other)
            return At(carry)[place].set(convert(new, carry.dtype)), None

        return reshape(scan.scan(step, flat, (places, others))[0], x.shape)

    def reduceat(
        self,
        a: ArrayLike,
        indices: ArrayLike,
        axis: int = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """Combine the elements from each index up to the next one along an axis.

        The last stretch goes to the end; where the next index is not greater, the result is the
        element itself.

        Args:
            a: an array.
            indices: an array of integers of rank 1.
            axis: the axis to combine along.
            dtype: the dtype to combine in; by default that of ``a``.
            out: must be None: arrays are immutable.

        Returns:
            An array with a place for each index along the axis.

        Raises:
            IndexError: an index is out of bounds, unless traced.
            NotImplementedError: ``out`` is given.
            TypeError: ``indices`` is not of integers of rank 1.
            ValueError: ``axis`` is out of bounds; or the function does not have two arguments and
                one result.

        As NumPy's ``ufunc.reduceat``.

        >>> import stretto.numpy as snp
        >>> snp.add.reduceat(snp.arange(8), snp.array([0, 4, 1, 5]))
        Array([ 6,  4, 10, 18], dtype=int32)
        """
        caller = self._binary("reduceat")
        refuse_out(caller, out)
        x, starts = as_value(a, caller, "a"), as_value(indices, caller, "indices")
        x = x if dtype is None else convert(x, as_dtype(dtype))
        place = canonical_axis(axis, x.ndim, caller)
        n = x.shape[place]
        if starts.ndim != 1 or starts.type.kind not in ("int", "uint"):
            raise TypeError(f"{caller}: expected integer indices of rank 1, got {starts.type}")
        known = concrete_of(starts)
        if known is not None and known.size and not 0 <= known.min() <= known.max() < n:
            raise IndexError(f"{caller}: indices must be from 0 to {n - 1}, got {known.tolist()}")
        last = full((min(starts.size, 1),), n, starts.dtype)
        ends = concatenate([slice_in_dim(starts, 1, None) if starts.size else starts, last], 0)
        steps = n if known is None else _longest(known, n)
        lines = moveaxis(x, place, 0)

        def step(i: Array, totals: Array) -> Array:
            at = starts + convert(i, starts.dtype)
            new = convert(self.function(totals, take(lines, at, 0, mode="clip")), totals.dtype)
            inside = reshape(lt(at, ends), (*at.shape, *(1,) * (lines.ndim - 1)))
            return choose(inside, new, totals)

        first = self._settled(take(lines, starts, 0, mode="clip"))
        result = moveaxis(loops.fori_loop(1, max(steps, 1), step, first), 0, place)
        return result if dtype is None else convert(result, as_dtype(dtype))


def _product(shape: Sequence[int], axes: Sequence[int]) -> int:
    return functools.reduce(operator.mul, [shape[d] for d in axes], 1)


def _longest(starts: np.ndarray, n: int) -> int:
    return int(np.max(np.append(starts[1:], n) - starts, initial=1)) if starts.size else 1


P = ParamSpec("P")
R = TypeVar("R")

if TYPE_CHECKING:

    class _Signed(ufunc, Generic[P, R]):
        """A ``ufunc`` that takes and gives what the function does."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


def _with_methods(function: Callable[P, R], name: str = "", **operations: Any) -> _Signed[P, R]:
    """Return the function itself, with the methods and numbers of NumPy's function of its name."""
    like = getattr(np, name or function.__name__)
    with_methods = ufunc(function, like.nin, like.nout, identity=like.identity, **operations)
    for attribute in (*METHODS, "nin", "nout", "nargs", "identity"):
        setattr(function, attribute, getattr(with_methods, attribute))
    function.__ufunc__ = with_methods  # type: ignore[attr-defined]
    return cast("_Signed[P, R]", function)


def _sum(x: Array, axes: tuple[int, ...]) -> Array:
    return reductions.sum(x, axes)


def _prod(x: Array, axes: tuple[int, ...]) -> Array:
    return reductions.prod(x, axes)


def _max(x: Array, axes: tuple[int, ...]) -> Array:
    return extrema.max(x, axes)


def _min(x: Array, axes: tuple[int, ...]) -> Array:
    return extrema.min(x, axes)


def _all(x: Array, axes: tuple[int, ...]) -> Array:
    return reductions.all(x, axes)


def _any(x: Array, axes: tuple[int, ...]) -> Array:
    return reductions.any(x, axes)


def _odd(x: Array, axes: tuple[int, ...]) -> Array:
    return reduce.reduce_xor(logic.truth(x, "logical_xor.reduce"), axes)


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Array:
    return logsumexp(x, axes)


_LN2 = math.log(2)


def _log2_sum_exp2(x: Array, axes: tuple[int, ...]) -> Array:
    return _log_sum_exp(x * _LN2, axes) / _LN2


def _running_log_sum_exp(x: Array, axis: int) -> Array:
    return cumlogsumexp(convert(x, inexact_dtype(x.dtype), x.weak_type), axis)


def _running_sum(x: Array, axis: int) -> Array:
    return reductions.cumsum(x, axis)


def _running_product(x: Array, axis: int) -> Array:
    return reductions.cumprod(x, axis)


# Those with operations of their own

add = _with_methods(arithmetic.add, collapse=_sum, run=_running_sum, update=IndexUpdate.add)
subtract = _with_methods(arithmetic.subtract, update=IndexUpdate.subtract)
multiply = _with_methods(
    arithmetic.multiply, collapse=_prod, run=_running_product, update=IndexUpdate.multiply
)
divide = true_divide = _with_methods(arithmetic.true_divide)
power = _with_methods(arithmetic.power)
maximum = _with_methods(extrema.maximum, collapse=_max, run=cummax, update=IndexUpdate.max)
minimum = _with_methods(extrema.minimum, collapse=_min, run=cummin, update=IndexUpdate.min)
negative = _with_methods(arithmetic.negative)
logaddexp = _with_methods(elementary.logaddexp, collapse=_log_sum_exp, run=_running_log_sum_exp)
logaddexp2 = _with_methods(elementary.logaddexp2, collapse=_log2_sum_exp2)
logical_and = _with_methods(logic.logical_and, collapse=_all)
logical_or = _with_methods(logic.logical_or, collapse=_any)
logical_xor = _with_methods(logic.logical_xor, collapse=_odd)
bitwise_and = _with_methods(bits.bitwise_and, collapse=reduce.reduce_and)
bitwise_or = _with_methods(bits.bitwise_or, collapse=reduce.reduce_or)
bitwise_xor = _with_methods(bits.bitwise_xor, collapse=reduce.reduce_xor)

# The others


def attach(module: ModuleType) -> None:
    """Give the functions of a module the methods of NumPy's universal functions of their names."""
    for name in module.__all__:
        function = getattr(module, name)
        if isinstance(getattr(np, name, None), np.ufunc) and not isinstance(function, ufunc):
            _with_methods(function, name)


for _module in (
    arithmetic,
    bits,
    logic,
    extrema,
    logic,
    elementary,
    elementary,
    logic,
    arithmetic,
    arithmetic,
    elementary,
):
    attach(_module)
