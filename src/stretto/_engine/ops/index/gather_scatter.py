"""Gather and scatter: windows of an array read, or updated, at places given by an array.

NumPy's indexing comes down to these two where an index is an array. The scatters that multiply, or
keep the least or greatest, are here; the others, and gather, in ``primitives``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import Linear, Value, as_value
from stretto._engine.core.primitive import NOT_LINEAR
from stretto._engine.core.types import default_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import add, divide, multiply
from stretto._engine.ops.bits import bitwise_or
from stretto._engine.ops.comparison import eq, full, ne, or_zeros, where
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.index.geometry import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    access_mode,
    check_numbers,
    out_shape,
    reading_mode,
)
from stretto._engine.ops.index.primitives import (
    Gather,
    ScatterAdd,
    ScatterFamily,
    ScatterSet,
    ScatterSub,
    fill_bytes,
    take_along_axis,
)
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.cumulative import LinearRecurrence, shift_by_one
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.ops.sort import Sort


def products_of_others(factors: Any, groups: Any) -> Any:
    """Return for each of a line of factors the product of the others in its group.

    They are sorted by group, and within one p[i] = f[i] p[i-1] is p[i-1] from one side times that
    from the other. There is no division, so zeros need no special case.
    """
    n = factors.shape[0]
    groups, order = Sort(0)(groups, iota(np.dtype(np.int32), n))
    line = take_along_axis(factors, order, 0, "promise_in_bounds", wrap_negative=False)
    inner = eq(slice_in_dim(groups, 1, n), slice_in_dim(groups, 0, n - 1))
    edge = full((1,), False, np.dtype(bool))
    product = None
    for reverse in (False, True):
        joined = concatenate([inner, edge] if reverse else [edge, inner], 0)
        running = LinearRecurrence(0, reverse)(where(joined, line, 0), where(joined, 0, line))
        before = where(joined, shift_by_one(running, 0, reverse, 1), 1)
        product = before if product is None else multiply(product, before)
    return Sort(0)(order, product)[1]


class ScatterMul(ScatterFamily):
    """The element is multiplied by the update."""

    update = "mul"
    op = "multiply"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """d(x u v) = dx u v + x v du + x u dv."""
        x, indices, updates = primals
        dx, _, du = tangents
        out = self(*primals)
        total = None if dx is None else self(dx, indices, updates)
        if du is not None:
            part = multiply(self.read(x, indices, updates), du)
            if not self.distinct(indices):
                part = multiply(part, self._others(x, indices, updates))
            total = self.other(ScatterAdd, or_zeros(total, x), indices, part)
        return out, total

    def _others(self, x: Any, indices: Any, updates: Any) -> Any:
        """Return for each update the product of the others of the same element."""
        dtype = default_dtype("int")
        numbers = reshape(add(iota(dtype, x.size), 1), x.shape)
        to = self.read(numbers, indices, updates)
        flat = (updates.size,)
        return reshape(products_of_others(reshape(updates, flat), reshape(to, flat)), updates.shape)

    def transpose(self, ct: Any, x: Any, indices: Any, updates: Any) -> tuple[Any, None, None]:
        """Multiply by the same factors, as it is linear in the operand."""
        if isinstance(updates, Linear):
            raise MissingRuleError(
                "scatter_mul is not linear in its updates: elements without any stay as they are"
            )
        return self(ct, indices, updates), None, None

    def kept(self, at: Any, x: Any, indices: Any, updates: Any, axes: Sequence[int]) -> Any:
        """Padding multiplies by 1."""
        return at.filled(updates, at.types[2], 1, axes)


class ScatterExtremum(ScatterFamily, abstract=True):
    """The least or greatest of the element and its updates."""

    transpose = NOT_LINEAR

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the mean of the tangents of those that attain the extremum."""
        x, indices, updates = primals
        dx, _, du = tangents
        out = self(*primals)

        def attains(v: Any, extremum: Any) -> Any:
            return bitwise_or(eq(v, extremum), ne(v, v))

        if self.distinct(indices):  # only the windows change: no pass over the whole array
            total = or_zeros(dx, x)
            new = self.read(out, indices, updates)
            stays, wins = attains(self.read(x, indices, updates), new), attains(updates, new)
            part = where(stays, self.read(total, indices, updates), 0)
            if du is not None:
                part = add(part, where(wins, du, 0))
            count = add(convert(stays, x.dtype), convert(wins, x.dtype))
            return out, self.other(ScatterSet, total, indices, divide(part, maximum(count, 1)))
        elements = attains(x, out)
        winners = attains(updates, self.read(out, indices, updates))
        count = self.other(
            ScatterAdd, convert(elements, x.dtype), indices, convert(winners, updates.dtype)
        )
        total = or_zeros(None if dx is None else where(elements, dx, 0), x)
        if du is not None:
            total = self.other(ScatterAdd, total, indices, where(winners, du, 0))
        return out, divide(total, maximum(count, 1))


class ScatterMin(ScatterExtremum):
    """The lesser of element and update."""

    update = "min"
    op = "minimum"


class ScatterMax(ScatterExtremum):
    """The greater of element and update."""

    update = "max"
    op = "maximum"


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Take windows of an array that start at given index vectors.

    Args:
        operand: an array.
        start_indices: integers; the vectors lie along the last axis.
        dimension_numbers: which axes belong together.
        slice_sizes: the sizes of the window along each axis of ``operand``.
        unique_indices: a promise that no window is taken twice.
        indices_are_sorted: a promise that the vectors are in ascending order.
        mode: what to do with windows out of bounds: ``"clip"``, the default, moves them inside;
            ``"fill"``, the default with a ``fill_value``, gives that; or a ``GatherScatterMode``.
        fill_value: a scalar; by default NaN, the least signed or greatest unsigned integer, or
            True.

    Returns:
        The windows.

    Raises:
        TypeError: indices or sizes are not integers, or ``dimension_numbers`` are not a
            ``GatherDimensionNumbers``.
        ValueError: axes or sizes do not fit, or there is no such mode.

    Source: StableHLO, ``gather``.

    >>> import stretto as st
    >>> numbers = st.lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> x = st.numpy.arange(6).reshape(3, 2)
    >>> st.lax.gather(x, st.numpy.array([[2], [0]]), numbers, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    return gathered(
        "gather",
        operand,
        start_indices,
        dimension_numbers,
        slice_sizes,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        mode=mode,
        fill_value=fill_value,
    )


def gathered(
    caller: str,
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None,
    fill_value: Any = None,
) -> Any:
    """Return what ``gather`` gives; errors name the caller."""
    x = as_value(operand, caller, "operand")
    starts = as_value(start_indices, caller, "start_indices")
    check_numbers(caller, dimension_numbers, GatherDimensionNumbers)
    mode = access_mode(caller, reading_mode(mode, fill_value), "clip")
    fill = fill_bytes(x.dtype, fill_value, caller) if mode == "fill" else b""
    sizes = integers(slice_sizes, caller, "slice_sizes")
    primitive = Gather(dimension_numbers, sizes, mode, fill, indices_are_sorted, unique_indices)
    if caller != "gather":  # the name that the primitive's own errors give
        out_shape(caller, x.type, starts.type, dimension_numbers, sizes)
    return primitive(x, starts)


def scattered(
    caller: str,
    family: type[ScatterFamily],
    operand: Any,
    indices: Any,
    updates: Any,
    numbers: ScatterDimensionNumbers,
    **options: Any,
) -> Any:
    """Return what ``scatter`` and its relatives give; errors name the caller."""
    check_numbers(caller, numbers, ScatterDimensionNumbers)
    operand = as_value(operand, caller, "operand")
    indices = as_value(indices, caller, "scatter_indices")
    weak = not isinstance(updates, Value)
    updates = as_value(updates, caller, "updates")
    if weak or updates.type.weak_type:
        updates = convert(updates, operand.dtype, operand.type.weak_type)
    options["mode"] = access_mode(caller, options["mode"], "drop")
    primitive = family(numbers, **options)
    if caller != family.name:  # the name that the primitive's own errors give
        primitive.check(caller, operand.type, indices.type, updates.type)
    return primitive(operand, indices, updates)


class Scatter(Protocol):
    """A function that updates windows of an array."""

    __name__: str

    def __call__(
        self,
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        """Return the array with the windows updated."""
        ...


_DOC = """{summary}

    Args:
        operand: an array.
        scatter_indices: integers; the index vectors lie along the last axis.
        updates: the new values, of the windows' shape and the dtype of ``operand``.
        dimension_numbers: which axes belong together.
        indices_are_sorted: a promise that the vectors are in ascending order.
        unique_indices: a promise that no element is named twice.
        mode: what to do with windows out of bounds: dropped by default; ``"clip"`` moves them
            inside.

    Returns:
        The array with {returns}.

    Raises:
        TypeError: the updates do not have that shape and dtype, or the indices are not integers.
        ValueError: axes do not fit, or there is no such mode.

    Source: StableHLO, ``scatter``.

    >>> import stretto as st
    >>> numbers = st.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, i, u = (st.numpy.array(v) for v in ([3, 3], [[1], [1]], [2, 5]))
    >>> st.lax.{name}(x, i, u, numbers)
    Array([{example}], dtype=int32)
    """


def _scatter(family: type[ScatterFamily], summary: str, returns: str, example: str) -> Scatter:
    """Make the function of a primitive, named and documented like it."""
    caller = family.name

    def scatter(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        return scattered(
            caller,
            family,
            operand,
            scatter_indices,
            updates,
            dimension_numbers,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        )

    scatter.__name__ = scatter.__qualname__ = caller
    scatter.__doc__ = _DOC.format(summary=summary, returns=returns, example=example, name=caller)
    return scatter


scatter = _scatter(
    ScatterSet,
    """Set windows of an array to new values.

    If an element is updated several times, the last update wins on a CPU, and any on others.""",
    "the windows set",
    "3, 5",
)
scatter_add = _scatter(
    ScatterAdd, "Add values to windows of an array.", "every update added to its element", " 3, 10"
)
scatter_sub = _scatter(
    ScatterSub,
    "Subtract values from windows of an array.",
    "every update subtracted from its element",
    " 3, -4",
)
scatter_mul = _scatter(
    ScatterMul,
    "Multiply windows of an array by values.",
    "each element multiplied by its updates",
    " 3, 30",
)
scatter_min = _scatter(
    ScatterMin,
    "Take the least of each element and its updates.",
    "the least of each element and its updates",
    "3, 2",
)
scatter_max = _scatter(
    ScatterMax,
    "Take the greatest of each element and its updates.",
    "the greatest of each element and its updates",
    "3, 5",
)
