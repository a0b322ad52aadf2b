"""Indices of diagonals, triangles, masks and grids, converted from one form to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import default_dtype
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, ShapeLike
from stretto._engine.ops.arithmetic import DIV, REM
from stretto._engine.ops.comparison import full_like, lt, zeros_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import reshape
from stretto.numpy.clipping import clip
from stretto.numpy.creation import shape_of
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.filled import ones
from stretto.numpy.indexing import concrete_of
from stretto.numpy.remainders import remainder
from stretto.numpy.searching import index_array, nonzero

# Of diagonals and triangles


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """List the indices of the main diagonal of an array whose axes have one size.

    Args:
        n: the size of the axes.
        ndim: the number of axes.

    Returns:
        An array ``[n]`` of the default integer for each axis.

    Raises:
        TypeError: ``n`` or ``ndim`` is not an integer.
        ValueError: ``n`` or ``ndim`` is negative.

    As NumPy's ``diag_indices``.

    >>> import stretto.numpy as snp
    >>> snp.ones((2, 2)).at[snp.diag_indices(2)].set(0)
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    n, ndim = integer(n, "diag_indices", "n"), integer(ndim, "diag_indices", "ndim")
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim must not be negative, got {n} and {ndim}")
    return (index_array(np.arange(n)),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """List the indices of the main diagonal of an array.

    Args:
        arr: an array of rank 2 or more, whose axes have one size.

    Returns:
        An array of the default integer for each axis.

    Raises:
        ValueError: the rank is below 2, or the sizes differ.

    As NumPy's ``diag_indices_from``.

    >>> import stretto.numpy as snp
    >>> snp.diag_indices_from(snp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    x = as_value(arr, "diag_indices_from", "arr")
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise ValueError(
            f"diag_indices_from: expected two or more axes, all of one size, got {x.type}"
        )
    return diag_indices(x.shape[0], x.ndim)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """List the indices of the elements on and below a diagonal of a matrix.

    Args:
        n: the number of rows.
        k: the diagonal, counted upwards from the main one.
        m: the number of columns; by default ``n``.

    Returns:
        The rows and the columns, of the default integer.

    Raises:
        TypeError: an argument is not an integer.
        ValueError: a size is negative.

    As NumPy's ``tril_indices``.

    >>> import stretto.numpy as snp
    >>> snp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = np.tril_indices(*_sizes("tril_indices", n, k, m))
    return index_array(rows), index_array(columns)


@described_like(tril_indices)
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """List the indices of the elements on and above a diagonal of a matrix.

    As NumPy's ``triu_indices``.

    >>> import stretto.numpy as snp
    >>> snp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = np.triu_indices(*_sizes("triu_indices", n, k, m))
    return index_array(rows), index_array(columns)


def _sizes(caller: str, n: int, k: int, m: int | None) -> tuple[int, int, int]:
    rows, columns = shape_of((n, n if m is None else m), caller)
    return rows, integer(k, caller, "k"), columns


def _matrix_shape(caller: str, arr: ArrayLike) -> tuple[int, int]:
    matrix: Any = arr
    shape = matrix.shape if hasattr(arr, "shape") else as_value(arr, caller, "arr").shape
    if len(shape) != 2:
        raise ValueError(f"{caller}: expected an array of rank 2, got shape {tuple(shape)}")
    return shape[0], shape[1]


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """List the indices of the elements on and below a diagonal of a given matrix.

    Args:
        arr: anything with a shape of two sizes.
        k: the diagonal, counted upwards from the main one.

    Returns:
        The rows and the columns, of the default integer.

    Raises:
        TypeError: ``k`` is not an integer.
        ValueError: the rank is not 2.

    As NumPy's ``tril_indices_from``.

    >>> import stretto.numpy as snp
    >>> snp.tril_indices_from(snp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    n, m = _matrix_shape("tril_indices_from", arr)
    rows, columns = np.tril_indices(*_sizes("tril_indices_from", n, k, m))
    return index_array(rows), index_array(columns)


@described_like(tril_indices_from)
def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """List the indices of the elements on and above a diagonal of a given matrix.

    As NumPy's ``triu_indices_from``.

    >>> import stretto.numpy as snp
    >>> snp.triu_indices_from(snp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    n, m = _matrix_shape("triu_indices_from", arr)
    rows, columns = np.triu_indices(*_sizes("triu_indices_from", n, k, m))
    return index_array(rows), index_array(columns)


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: ArrayLike = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """List the indices of the elements that a function of a matrix of ones does not set to zero.

    Args:
        n: the number of rows and columns.
        mask_func: a function of a matrix and ``k``, such as ``snp.triu``.
        k: passed on to ``mask_func``.
        size: how many to find, which must be given where the function's result is traced.

    Returns:
        The rows and the columns, of the default integer.

    Raises:
        TracedValueError: the function's result is traced, and ``size`` is not given.
        TypeError: ``n`` is not an integer.
        ValueError: ``n`` or ``size`` is negative.

    As NumPy's ``mask_indices``; ``size`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.mask_indices(2, snp.triu, 1)
    (Array([0], dtype=int32), Array([1], dtype=int32))
    """
    (rows,) = shape_of((n,), "mask_indices")
    places = nonzero(mask_func(ones((rows, rows)), k), size=size)
    return places[0], places[1]


# Of grids


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Form an open grid of index vectors.

    ``x[snp.ix_(rows, columns)]`` takes these rows and columns.

    Args:
        *args: arrays of rank 1, of integers, or of booleans that stand for the places where they
            hold.

    Returns:
        For each vector an array that has it along its own axis, so that they broadcast.

    Raises:
        TracedValueError: an array of booleans is traced.
        ValueError: an array is not of rank 1.

    As NumPy's ``ix_``.

    >>> import stretto.numpy as snp
    >>> snp.arange(6).reshape(2, 3)[snp.ix_(snp.array([0, 1]), snp.array([0, 2]))]
    Array([[0, 2],
           [3, 5]], dtype=int32)
    """
    out = []
    for i, arg in enumerate(args):
        x = as_value(arg, "ix_", f"argument {i}")
        if x.ndim != 1:
            raise ValueError(f"ix_: expected arrays of rank 1, argument {i} is {x.type}")
        if not x.size:
            x = convert(x, default_dtype("int"))
        if x.type.kind == "bool":
            if concrete_of(x) is None:
                raise TracedValueError(
                    f"ix_: how many places argument {i} stands for depends on values, but this "
                    f"{x.type} is traced: {x.origin()}. Give indices"
                )
            (x,) = nonzero(x)
        out.append(reshape(x, tuple([x.size if d == i else 1 for d in range(len(args))])))
    return tuple(out)


# From places in row-major order to indices, and back


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: ShapeLike,
    mode: str | Sequence[str] = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Find the places, in row-major order, of the elements at given indices.

    Args:
        multi_index: an array of integers for each axis.
        dims: the sizes of the axes.
        mode: what happens out of bounds, one or one for each axis: ``"raise"``, which is not for
            traced indices; ``"wrap"`` wraps around; ``"clip"`` takes the nearest.
        order: ``"C"``, or ``"F"`` to count the first axis first.
        dtype: the dtype of the places; the default integer by default.

    Returns:
        The places, of the shape that the indices broadcast to.

    Raises:
        TypeError: an index is not of integers.
        ValueError: an index is out of bounds, or traced, in mode ``"raise"``; there is not an index
            and a mode for each axis; or ``mode`` or ``order`` is another.

    As NumPy's ``ravel_multi_index``.

    >>> import stretto.numpy as snp
    >>> snp.ravel_multi_index((snp.array([0, 1]), snp.array([2, 1])), (2, 3))
    Array([2, 4], dtype=int32)
    """
    caller = "ravel_multi_index"
    shape = shape_of(dims, caller)
    if order not in ("C", "F"):
        raise ValueError(f"{caller}: order must be 'C' or 'F', got {order!r}")
    if not (
        multi_index.ndim if isinstance(multi_index, Value) else hasattr(multi_index, "__len__")
    ):
        raise TypeError(
            f"{caller}: multi_index must have an index for each axis, got {multi_index}"
        )
    modes = (mode,) * len(shape) if isinstance(mode, str) else tuple(mode)
    if len(multi_index) != len(shape) or len(modes) != len(shape):
        raise ValueError(
            f"{caller}: expected an index and a mode for each of {len(shape)} axes, got "
            f"{len(multi_index)} and {len(modes)}"
        )
    wanted = default_dtype("int") if dtype is None else as_dtype(dtype)
    places = as_value(np.zeros((), wanted))
    axes = range(len(shape)) if order == "C" else reversed(range(len(shape)))
    for d in axes:
        x = as_value(multi_index[d], caller, f"the index of axis {d}")
        if x.type.kind not in ("int", "uint"):
            raise TypeError(f"{caller}: expected integers for axis {d}, got {x.type}")
        places = places * shape[d] + convert(_inside(caller, x, shape[d], modes[d]), wanted)
    return places


def _inside(caller: str, x: Array, n: int, mode: str) -> Array:
    if mode == "wrap":
        return remainder(x, n)
    if mode == "clip":
        return clip(x, 0, n - 1)
    if mode != "raise":
        raise ValueError(f"{caller}: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    known = concrete_of(x)
    if known is None:
        raise ValueError(
            f"{caller}: whether a traced index, {x.type}, is out of bounds cannot be known; pass "
            f"mode='clip' or mode='wrap'"
        )
    if known.size and not 0 <= known.min() <= known.max() < n:
        raise ValueError(f"{caller}: an index is out of bounds for an axis of size {n}: {known}")
    return x


def unravel_index(indices: ArrayLike, shape: ShapeLike, order: str = "C") -> tuple[Array, ...]:
    """Find the indices of the elements at given places in row-major order.

    Args:
        indices: an array of integers; negative ones count from the end; out of bounds the nearest
            element is taken.
        shape: the sizes of the axes.
        order: ``"C"``, or ``"F"`` to count the first axis first.

    Returns:
        An array of the dtype and shape of ``indices`` for each axis.

    Raises:
        TypeError: ``indices`` is not of integers.
        ValueError: a size is negative, or ``order`` is another.

    As NumPy's ``unravel_index``.

    >>> import stretto.numpy as snp
    >>> snp.unravel_index(snp.array([2, 4]), (2, 3))
    (Array([0, 1], dtype=int32), Array([2, 1], dtype=int32))
    """
    caller = "unravel_index"
    sizes = shape_of(shape, caller)
    if order not in ("C", "F"):
        raise ValueError(f"{caller}: order must be 'C' or 'F', got {order!r}")
    x = as_value(indices, caller, "indices")
    if x.type.kind not in ("int", "uint"):
        raise TypeError(f"{caller}: expected integers, got {x.type}")
    total = int(np.prod(sizes, dtype=np.int64))
    x = clip(choose(lt(x, zeros_like(x)), x + total, x), 0, max(total - 1, 0))
    out = []
    for n in reversed(sizes) if order == "C" else sizes:
        size = full_like(x, max(n, 1))
        out.append(REM(x, size))
        x = DIV(x, size)
    return tuple(out[::-1] if order == "C" else out)
