"""``scatter_apply``: a function applied to the windows of an array at given places."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.scan import scan
from stretto._engine.ops.index.gather_scatter import gathered, scattered
from stretto._engine.ops.index.geometry import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_numbers,
)
from stretto._engine.ops.index.primitives import ScatterSet
from stretto._engine.ops.layout import reshape

__all__ = ["scatter_apply"]


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Replace windows of an array by a function of them.

    A window named several times is mapped as often, one after another; with ``unique_indices`` all
    are mapped at once.

    Args:
        operand: an array.
        scatter_indices: integers; the index vectors lie along the last axis.
        func: a function of arrays that works element by element.
        dimension_numbers: which axes belong together.
        update_shape: the shape that updates would have, which says the sizes of the windows.
        indices_are_sorted: a promise that the vectors rise.
        unique_indices: a promise that no element is named twice.
        mode: what to do with windows out of bounds: dropped by default; ``"clip"`` moves them
            inside.

    Returns:
        The array with the windows replaced.

    Raises:
        TypeError: ``func`` returns another type.
        ValueError: axes or shapes do not fit.

    >>> import stretto as st, stretto.numpy as snp
    >>> numbers = st.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> places = snp.array([[1], [2], [2]])
    >>> x = snp.array([1.0, 1.0, 1.0])
    >>> st.lax.scatter_apply(x, places, lambda v: 2 * v, numbers, update_shape=(3,))
    Array([1., 2., 4.], dtype=float32)
    """
    caller = "scatter_apply"
    x = as_value(operand, caller, "operand")
    places = as_value(scatter_indices, caller, "scatter_indices")
    numbers = dimension_numbers
    check_numbers(caller, numbers, ScatterDimensionNumbers)
    shape = tuple(map(int, update_shape))
    windowed = numbers.update_window_dims
    if len(shape) != places.ndim - 1 + len(windowed):
        raise ValueError(
            f"{caller}: update_shape must have {places.ndim - 1 + len(windowed)} sizes, for "
            f"indices {places.type} and windows of {len(windowed)} axes; got {shape}"
        )
    places_in = (*numbers.inserted_window_dims, *numbers.scatter_dims_to_operand_dims)
    if not all(0 <= d < x.ndim for d in places_in):
        raise ValueError(f"{caller}: {numbers} names axes that operand {x.type} does not have")
    sizes = iter([shape[d] for d in windowed])
    left_out = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    window = tuple(1 if d in left_out else next(sizes) for d in range(x.ndim))
    promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}

    def once(x: Array, places: Array, numbers: ScatterDimensionNumbers, **promises: bool) -> Array:
        read = numbers.gather()
        parts = gathered(caller, x, places, read, window, mode="clip", **promises)
        new = func(parts)
        return scattered(caller, ScatterSet, x, places, new, numbers, mode=mode, **promises)

    count = math.prod(places.shape[:-1])
    if unique_indices or count < 2 or numbers.operand_batching_dims:
        return once(x, places, numbers, **promises)
    # One index vector a step; its window's axes are then all that updates have.
    each = ScatterDimensionNumbers(
        tuple(range(len(windowed))),
        numbers.inserted_window_dims,
        numbers.scatter_dims_to_operand_dims,
    )
    rows = reshape(places, (count, places.shape[-1]))
    return scan(lambda x, place: (once(x, place, each), None), x, rows)[0]
