"""Gather and scatter: windows of an array read, or updated, at places given by an array.

NumPy's indexing comes down to these two where an index is an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.combine import ScatterMax, ScatterMin, ScatterMul
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
)


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
    mode: str | GatherScatterMode | None = None,
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
