"""Gather and scatter: windows of an array read, or updated, at places given by an array.

Layer 2 (ops). NumPy's indexing comes down to these two where an index is an array. Next, read
``geometry``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.combine import ScatterMax, ScatterMin, ScatterMul
from stretto._engine.ops.index.geometry import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    access_mode,
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

__all__ = [
    "GatherDimensionNumbers",
    "ScatterDimensionNumbers",
    "gather",
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
]


def gather(
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
    """Windows of ``operand``, of ``slice_sizes``, that start at the vectors in ``start_indices``.

    Out of bounds, ``mode`` ``"clip"`` (the default) moves a window inside, ``"fill"`` (that with a
    ``fill_value``) gives this: by default NaN, the least signed or greatest unsigned integer, or
    True.
    Raises ``ValueError`` where axes or sizes do not fit, ``TypeError`` for indices not integers.
    Source: StableHLO, ``gather``.

    >>> import stretto as st
    >>> numbers = st.lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> x = st.numpy.arange(6).reshape(3, 2)
    >>> st.lax.gather(x, st.numpy.array([[2], [0]]), numbers, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    operand = as_value(operand, "gather", "operand")
    start_indices = as_value(start_indices, "gather", "start_indices")
    mode = access_mode("gather", reading_mode(mode, fill_value), "clip")
    fill = fill_bytes(operand.dtype, fill_value) if mode == "fill" else b""
    sizes = tuple(map(int, slice_sizes))
    primitive = Gather(dimension_numbers, sizes, mode, fill, indices_are_sorted, unique_indices)
    return primitive(operand, start_indices)


def _scatter(
    family: type[ScatterFamily],
    operand: Any,
    indices: Any,
    updates: Any,
    numbers: ScatterDimensionNumbers,
    **options: Any,
) -> Any:
    who = family.name
    operand = as_value(operand, who, "operand")
    indices = as_value(indices, who, "scatter_indices")
    weak = not isinstance(updates, Value)
    updates = as_value(updates, who, "updates")
    if weak or updates.type.weak_type:
        updates = convert(updates, operand.dtype, operand.type.weak_type)
    options["mode"] = access_mode(who, options["mode"], "drop")
    return family(numbers, **options)(operand, indices, updates)


def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """``operand`` with the windows at ``scatter_indices`` set to ``updates``.

    Windows out of bounds are dropped, or moved inside with ``mode="clip"``. Of several updates of
    an element the last counts on the CPU; on other devices any. Raises ``TypeError`` where the
    updates do not have the windows' shape and the operand's dtype. Source: StableHLO, ``scatter``.

    >>> import stretto as st
    >>> numbers = st.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> snp = st.numpy
    >>> st.lax.scatter(snp.zeros(3), snp.array([[1]]), snp.array([5.0]), numbers)
    Array([0., 5., 0.], dtype=float32)
    """
    return _scatter(
        ScatterSet,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )


def scatter_add(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """As ``scatter``, with every update added to its element.

    >>> import stretto as st
    >>> numbers = st.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, i, u = (st.numpy.array(v) for v in ([3, 3], [[1], [1]], [2, 5]))
    >>> st.lax.scatter_add(x, i, u, numbers)
    Array([ 3, 10], dtype=int32)
    """
    return _scatter(
        ScatterAdd,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )


def scatter_sub(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """As ``scatter``, with every update subtracted from its element.

    >>> import stretto as st
    >>> numbers = st.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, i, u = (st.numpy.array(v) for v in ([3, 3], [[1], [1]], [2, 5]))
    >>> st.lax.scatter_sub(x, i, u, numbers)
    Array([ 3, -4], dtype=int32)
    """
    return _scatter(
        ScatterSub,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )


def scatter_mul(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """As ``scatter``, with each element multiplied by its updates.

    >>> import stretto as st
    >>> numbers = st.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, i, u = (st.numpy.array(v) for v in ([3, 3], [[1], [1]], [2, 5]))
    >>> st.lax.scatter_mul(x, i, u, numbers)
    Array([ 3, 30], dtype=int32)
    """
    return _scatter(
        ScatterMul,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )


def scatter_min(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """As ``scatter``, with the least of each element and its updates.

    >>> import stretto as st
    >>> numbers = st.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, i, u = (st.numpy.array(v) for v in ([3, 3], [[1], [1]], [2, 5]))
    >>> st.lax.scatter_min(x, i, u, numbers)
    Array([3, 2], dtype=int32)
    """
    return _scatter(
        ScatterMin,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )


def scatter_max(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """As ``scatter``, with the greatest of each element and its updates.

    >>> import stretto as st
    >>> numbers = st.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, i, u = (st.numpy.array(v) for v in ([3, 3], [[1], [1]], [2, 5]))
    >>> st.lax.scatter_max(x, i, u, numbers)
    Array([3, 5], dtype=int32)
    """
    return _scatter(
        ScatterMax,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )
