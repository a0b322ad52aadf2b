"""Pooling to a given size: the window of each output is its share of the input.

Names and meanings are those of ``torch.nn.functional``. Output o of m, over n elements, has the
window from floor(o n / m) to ceil((o + 1) n / m). Where m divides n these tile the axis, and the
pool is that of ``pooling``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.sizes import is_size
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.comparison import where, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import expand_dims, reshape
from stretto._engine.ops.reducing.reduce import ReduceMax, widened
from stretto._engine.ops.reducing.window import PLAIN, AxisWindow, ReduceWindowMax
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto.nn.functional.checks import add_batch_axis, as_float, drop_batch_axis
from stretto.nn.functional.windows import Table, elements_of, greatest_and_indices
from stretto.numpy.taking import take


def _sizes(
    caller: str, x: Array, output_size: int | Sequence[int | None] | None
) -> tuple[int, ...]:
    """Return the output's spatial sizes; None keeps the input's."""
    spatial = x.shape[2:]
    n = len(spatial)
    wanted: Any = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    valid = all(
        size is None or (isinstance(size, (int, np.integer)) and size > 0) for size in wanted
    )
    if len(wanted) != n or not valid:
        raise ValueError(
            f"{caller}: output_size must be a positive integer, or {n} of them or None; got "
            f"{output_size!r}"
        )
    if any([without_elements(n, caller) for n in spatial]):
        raise ValueError(f"{caller}: input {x.type} has an empty spatial axis")
    return tuple(s if size is None else int(size) for s, size in zip(spatial, wanted, strict=True))


def _table(n: int, m: int) -> Table:
    o = np.arange(m)
    starts, ends = o * n // m, -(-(o + 1) * n // m)
    index = starts[:, None] + np.arange((ends - starts).max())
    inside = index < ends[:, None]
    return np.minimum(index, ends[:, None] - 1).astype(np.int32), inside


def _adaptive_avg_pool(
    n: int, input: ArrayLike, output_size: int | Sequence[int | None] | None
) -> Array:
    caller = f"adaptive_avg_pool{n}d"
    x, single = add_batch_axis(input, n, caller)
    x = as_float(x, caller)
    sizes = _sizes(caller, x, output_size)
    out = convert(x, widened(x.dtype))
    # The mean over a product of windows is the mean of means, axis by axis.
    for axis, m in enumerate(sizes, 2):
        n = out.shape[axis]
        if is_size(n):
            mean = lambda part, axis=axis: reduce_sum(part, (axis,)) / part.shape[axis]
            out = _shares(out, axis, m, mean)
        elif n % m:
            out = _mean_along(out, axis, m)
    tiles = [(m, n // m) for n, m in zip(out.shape[2:], sizes)]
    out = reshape(out, (*x.shape[:2], *[size for tile in tiles for size in tile]))
    count = int(np.prod([k for _, k in tiles]))
    out = reduce_sum(out, tuple(range(3, out.ndim, 2))) / count
    return drop_batch_axis(convert(out, x.dtype), single)


def _shares(x: Array, axis: int, m: int, reduce: Callable[[Array], Array]) -> Array:
    """Return what ``reduce`` gives for each of ``m`` windows along an axis whose size varies."""
    n: Any = x.shape[axis]
    if is_size(m):  # that of the input
        return x
    bounds = [(o * n // m, -(-(o + 1) * n // m)) for o in range(m)]
    parts = [reduce(slice_in_dim(x, start, end, 1, axis)) for start, end in bounds]
    return concatenate([expand_dims(part, axis) for part in parts], axis)


def _mean_along(x: Array, axis: int, m: int) -> Array:
    """Return the means of ``m`` windows that do not tile the axis.

    A few long windows are summed one by one: the derivative of ``take`` is a scatter.
    """
    index, inside = _table(x.shape[axis], m)
    after = (1,) * (x.ndim - axis - 1)
    if m <= index.shape[1]:
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        sums = [reduce_sum(elements_of(x, axis, line), (axis,)) for line in index]
        total = concatenate([reshape(one, shape) for one in sums], axis)
    else:
        lines = take(x, index, axis, mode="clip")
        counted = as_value(inside.reshape(*inside.shape, *after))
        total = reduce_sum(where(counted, lines, zeros_like(lines)), (axis + 1,))
    return total / as_value(inside.sum(1).astype(total.dtype).reshape(*(1,) * axis, m, *after))


def _adaptive_max_pool(
    n: int, input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool
) -> Tree:
    caller = f"adaptive_max_pool{n}d"
    x, single = add_batch_axis(input, n, caller)
    sizes = _sizes(caller, x, output_size)
    if not return_indices:
        for axis, m in enumerate(sizes, 2):
            if is_size(x.shape[axis]):
                x = _shares(x, axis, m, ReduceMax((axis,)))
    pairs = [*zip(x.shape[2:], sizes, strict=True)]
    if not return_indices and all(n % m == 0 for n, m in pairs):
        windows = [AxisWindow(n // m, n // m) for n, m in pairs]
        return drop_batch_axis(ReduceWindowMax((PLAIN, PLAIN, *windows))(x), single)
    values, indices = greatest_and_indices(x, [_table(n, m) for n, m in pairs])
    if not return_indices:
        return drop_batch_axis(values, single)
    return drop_batch_axis(values, single), drop_batch_axis(indices, single)


def adaptive_avg_pool1d(input: ArrayLike, output_size: int | Sequence[int | None] | None) -> Array:
    """Take the mean of each of a given number of windows of signals.

    Args:
        input: (batch, channels, length), or without the batch.
        output_size: the number of windows; None keeps the input's size.

    Returns:
        (batch, channels, length), without the batch if the input is; integers become floats.

    Raises:
        ValueError: ``input`` has another rank or an empty axis, or a size is not positive.

    As PyTorch's ``nn.functional.adaptive_avg_pool1d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_avg_pool1d(snp.array([[1.0, 2.0, 3.0]]), 2)
    Array([[1.5, 2.5]], dtype=float32)
    """
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: ArrayLike, output_size: int | Sequence[int | None] | None) -> Array:
    """Take the mean of each of a given number of windows of images.

    Args:
        input: (batch, channels, height, width), or without the batch.
        output_size: the number of windows along each axis, a number or one per axis; None keeps the
            input's.

    Returns:
        (batch, channels, height, width), without the batch if the input is; integers become floats.

    Raises:
        ValueError: ``input`` has another rank or an empty axis, or a size is not positive.

    As PyTorch's ``nn.functional.adaptive_avg_pool2d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_avg_pool2d(snp.ones((2, 16, 7, 5)), (1, None)).shape
    (2, 16, 1, 5)
    """
    return _adaptive_avg_pool(2, input, output_size)


@described_like(adaptive_avg_pool2d)
def adaptive_avg_pool3d(input: ArrayLike, output_size: int | Sequence[int | None] | None) -> Array:
    """Take the mean of each of a given number of windows of volumes.

    Args:
        input: (batch, channels, depth, height, width), or without the batch.

    Returns:
        (batch, channels, depth, height, width), without the batch if the input is; integers become
        floats.

    As PyTorch's ``nn.functional.adaptive_avg_pool3d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_avg_pool3d(snp.ones((2, 16, 4, 7, 5)), 2).shape
    (2, 16, 2, 2, 2)
    """
    return _adaptive_avg_pool(3, input, output_size)


@overload
def adaptive_max_pool1d(
    input: ArrayLike,
    output_size: int | Sequence[int | None] | None,
    return_indices: Literal[False] = False,
) -> Array: ...
@overload
def adaptive_max_pool1d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]
) -> tuple[Array, Array]: ...
@overload
def adaptive_max_pool1d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree: ...
@described_like(adaptive_avg_pool1d)
def adaptive_max_pool1d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree:
    """Take the maximum of each of a given number of windows of signals.

    Args:
        return_indices: whether to return the indices of the maxima as well.

    Returns:
        (batch, channels, length), without the batch if the input is; with ``return_indices`` also
        the index of each in its channel, flattened, int32.

    As PyTorch's ``nn.functional.adaptive_max_pool1d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_max_pool1d(snp.array([[1.0, 2.0, 3.0]]), 2)
    Array([[2., 3.]], dtype=float32)
    """
    return _adaptive_max_pool(1, input, output_size, return_indices)


@overload
def adaptive_max_pool2d(
    input: ArrayLike,
    output_size: int | Sequence[int | None] | None,
    return_indices: Literal[False] = False,
) -> Array: ...
@overload
def adaptive_max_pool2d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]
) -> tuple[Array, Array]: ...
@overload
def adaptive_max_pool2d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree: ...
@described_like(adaptive_avg_pool2d)
def adaptive_max_pool2d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree:
    """Take the maximum of each of a given number of windows of images.

    Args:
        return_indices: whether to return the indices of the maxima as well.

    Returns:
        (batch, channels, height, width), without the batch if the input is; with ``return_indices``
        also the index of each in its channel, flattened, int32.

    As PyTorch's ``nn.functional.adaptive_max_pool2d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_max_pool2d(snp.ones((2, 16, 7, 5)), (3, None)).shape
    (2, 16, 3, 5)
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


@overload
def adaptive_max_pool3d(
    input: ArrayLike,
    output_size: int | Sequence[int | None] | None,
    return_indices: Literal[False] = False,
) -> Array: ...
@overload
def adaptive_max_pool3d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]
) -> tuple[Array, Array]: ...
@overload
def adaptive_max_pool3d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree: ...
@described_like(adaptive_avg_pool3d)
def adaptive_max_pool3d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree:
    """Take the maximum of each of a given number of windows of volumes.

    Args:
        return_indices: whether to return the indices of the maxima as well.

    Returns:
        (batch, channels, depth, height, width), without the batch if the input is; with
        ``return_indices`` also the index of each in its channel, flattened, int32.

    As PyTorch's ``nn.functional.adaptive_max_pool3d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_max_pool3d(snp.ones((2, 16, 4, 7, 5)), 2).shape
    (2, 16, 2, 2, 2)
    """
    return _adaptive_max_pool(3, input, output_size, return_indices)
