"""Elements taken along one axis, at indices of their own for each line.

Each is one gather.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import lesser
from stretto._engine.core.types import kind_of
from stretto._engine.ops.arithmetic import add
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import lt, where
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.index.geometry import GatherDimensionNumbers, access_mode, reading_mode
from stretto._engine.ops.index.primitives import Gather, fill_bytes
from stretto._engine.ops.layout import canonical_axis, reshape


def take_along_axis(
    x: Any,
    indices: Any,
    axis: int,
    mode: str | None = None,
    fill_value: Any = None,
    wrap_negative: bool = True,
) -> Any:
    """Return the elements of ``x`` at ``indices`` along ``axis``, line by line.

    ``x`` and ``indices`` have one number of axes, and broadcast along the others. Negative indices
    count from the end if ``wrap_negative``; ``mode`` and ``fill_value`` are those of ``gather``.

    >>> import stretto.numpy as snp
    >>> x = snp.array([[3, 1, 2], [6, 5, 4]])
    >>> snp.take_along_axis(x, snp.argsort(x, axis=1), axis=1)
    Array([[1, 2, 3],
           [4, 5, 6]], dtype=int32)
    """
    x, indices = as_value(x, "take_along_axis"), as_value(indices, "take_along_axis", "indices")
    if x.ndim != indices.ndim:
        raise ValueError(
            f"take_along_axis: x and indices must have one number of axes, got {x.type} and "
            f"{indices.type}"
        )
    axis = canonical_axis(axis, x.ndim, "take_along_axis")
    n, m = x.shape[axis], indices.shape[axis]
    shapes = [(*v.shape[:axis], 1, *v.shape[axis + 1 :]) for v in (x, indices)]
    shape = broadcast_shapes("take_along_axis", *shapes)
    x = broadcast_to(x, (*shape[:axis], n, *shape[axis + 1 :]))
    indices = broadcast_to(indices, (*shape[:axis], m, *shape[axis + 1 :]))
    if wrap_negative and kind_of(indices.dtype) == "int":
        if indices.dtype.itemsize < 4:  # so that the size fits
            indices = convert(indices, np.dtype(np.int32))
        indices = where(lt(indices, 0), add(indices, n), indices)
    if not indices.size:  # of an axis without elements no window can be taken, nor given a slope
        return convert(indices, x.dtype)
    others = tuple(d for d in range(x.ndim) if d != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    sizes = tuple(1 if d == axis else lesser(k, 1) for d, k in enumerate(x.shape))
    access = access_mode("take_along_axis", reading_mode(mode, fill_value), "clip")
    fill = fill_bytes(x.dtype, fill_value, "take_along_axis") if access == "fill" else b""
    return Gather(numbers, sizes, access, fill)(x, reshape(indices, (*indices.shape, 1)))
