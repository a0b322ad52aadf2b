"""Indices: of diagonals, triangles and masks, of grids, and from one form to another.

Next, read ``grids``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import default_dtype
from stretto._engine.ops.arithmetic import DIV, REM
from stretto._engine.ops.broadcast import reshape
from stretto._engine.ops.comparison import full_like, lt, zeros_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto.numpy.arithmetic import clip
from stretto.numpy.creation import ones, shape_of
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.indices import concrete_of
from stretto.numpy.remainders import remainder
from stretto.numpy.searching import index_array, nonzero

__all__ = [
    "diag_indices",
    "diag_indices_from",
    "ix_",
    "mask_indices",
    "ravel_multi_index",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
]


# Of diagonals and triangles


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """The indices of the main diagonal of an array with ``ndim`` axes of size ``n``.

    >>> import stretto.numpy as snp
    >>> snp.ones((2, 2)).at[snp.diag_indices(2)].set(0)
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    n, ndim = integer(n, "diag_indices", "n"), integer(ndim, "diag_indices", "ndim")
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim must not be negative, got {n} and {ndim}")
    return (index_array(np.arange(n)),) * ndim


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """The indices of the main diagonal of an array whose axes, two or more, have one size."""
    x = as_value(arr, "diag_indices_from", "arr")
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise ValueError(
            f"diag_indices_from: expected two or more axes, all of one size, got {x.type}"
        )
    return diag_indices(x.shape[0], x.ndim)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """The indices of the elements on and below the diagonal ``k`` of an ``n`` by ``m`` matrix.

    >>> import stretto.numpy as snp
    >>> snp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = np.tril_indices(*_sizes("tril_indices", n, k, m))
    return index_array(rows), index_array(columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """The indices of the elements on and above the diagonal ``k`` of an ``n`` by ``m`` matrix.

    >>> import stretto.numpy as snp
    >>> snp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = np.triu_indices(*_sizes("triu_indices", n, k, m))
    return index_array(rows), index_array(columns)


def _sizes(who: str, n: Any, k: Any, m: Any) -> tuple[int, int, int]:
    rows, columns = shape_of((n, n if m is None else m), who)
    return rows, integer(k, who, "k"), columns


def _matrix_shape(who: str, arr: Any) -> tuple[int, int]:
    shape = arr.shape if hasattr(arr, "shape") else as_value(arr, who, "arr").shape
    if len(shape) != 2:
        raise ValueError(f"{who}: expected an array of rank 2, got shape {tuple(shape)}")
    return shape[0], shape[1]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """``tril_indices`` for a matrix of the shape of ``arr``."""
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """``triu_indices`` for a matrix of the shape of ``arr``."""
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: Any = 0, *, size: int | None = None
) -> tuple[Any, Any]:
    """The indices of what ``mask_func(x, k)`` leaves of an ``n`` by ``n`` matrix ``x`` of ones.

    ``mask_func`` is such as ``snp.triu``. Where what it gives is traced, ``size`` says how many
    there are, as for ``nonzero``.

    >>> import stretto.numpy as snp
    >>> snp.mask_indices(2, snp.triu, 1)
    (Array([0], dtype=int32), Array([1], dtype=int32))
    """
    (rows,) = shape_of((n,), "mask_indices")
    found = nonzero(mask_func(ones((rows, rows)), k), size=size)
    return found[0], found[1]


# Of grids


def ix_(*args: Any) -> tuple[Any, ...]:
    """For each vector of indices an array that has them along its own axis, so that they broadcast.

    ``x[snp.ix_(rows, columns)]`` takes these rows and columns. Vectors of booleans stand for the
    places where they hold, and must not be traced.

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
            (x,) = nonzero(x)
        out.append(reshape(x, tuple([x.size if d == i else 1 for d in range(len(args))])))
    return tuple(out)


# From places in row-major order to indices, and back


def ravel_multi_index(
    multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C", *, dtype: Any = None
) -> Any:
    """The places, in row-major order, of the elements at these indices of an array of shape dims.

    ``multi_index`` has an array for each axis. Out of bounds ``mode``, one or one for each axis,
    says what to do: ``"raise"`` raises ``ValueError``, and is not for traced indices; ``"wrap"``
    counts round and round; ``"clip"`` takes the nearest. ``order="F"`` counts the first axis first.

    >>> import stretto.numpy as snp
    >>> snp.ravel_multi_index((snp.array([0, 1]), snp.array([2, 1])), (2, 3))
    Array([2, 4], dtype=int32)
    """
    who = "ravel_multi_index"
    shape = shape_of(dims, who)
    if order not in ("C", "F"):
        raise ValueError(f"{who}: order must be 'C' or 'F', got {order!r}")
    modes = (mode,) * len(shape) if isinstance(mode, str) else tuple(mode)
    if len(multi_index) != len(shape) or len(modes) != len(shape):
        raise ValueError(
            f"{who}: expected an index and a mode for each of {len(shape)} axes, got "
            f"{len(multi_index)} and {len(modes)}"
        )
    wanted = default_dtype("int") if dtype is None else as_dtype(dtype)
    places = as_value(np.zeros((), wanted))
    axes = range(len(shape)) if order == "C" else reversed(range(len(shape)))
    for d in axes:
        x = as_value(multi_index[d], who, f"the index of axis {d}")
        if x.type.kind not in ("int", "uint"):
            raise TypeError(f"{who}: expected integers for axis {d}, got {x.type}")
        places = places * shape[d] + convert(_inside(who, x, shape[d], modes[d]), wanted)
    return places


def _inside(who: str, x: Any, n: int, mode: str) -> Any:
    if mode == "wrap":
        return remainder(x, n)
    if mode == "clip":
        return clip(x, 0, n - 1)
    if mode != "raise":
        raise ValueError(f"{who}: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    known = concrete_of(x)
    if known is None:
        raise ValueError(
            f"{who}: whether a traced index, {x.type}, is out of bounds cannot be known; pass "
            f"mode='clip' or mode='wrap'"
        )
    if known.size and not 0 <= known.min() <= known.max() < n:
        raise ValueError(f"{who}: an index is out of bounds for an axis of size {n}: {known}")
    return x


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """The indices, one array an axis, of the elements at these places in row-major order.

    Places out of bounds are those of the nearest elements; negative ones count from the end.
    ``order="F"`` counts the first axis first.

    >>> import stretto.numpy as snp
    >>> snp.unravel_index(snp.array([2, 4]), (2, 3))
    (Array([0, 1], dtype=int32), Array([2, 1], dtype=int32))
    """
    who = "unravel_index"
    sizes = shape_of(shape, who)
    if order not in ("C", "F"):
        raise ValueError(f"{who}: order must be 'C' or 'F', got {order!r}")
    x = as_value(indices, who, "indices")
    if x.type.kind not in ("int", "uint"):
        raise TypeError(f"{who}: expected integers, got {x.type}")
    total = int(np.prod(sizes, dtype=np.int64))
    x = clip(choose(lt(x, zeros_like(x)), x + total, x), 0, max(total - 1, 0))
    out = []
    for n in reversed(sizes) if order == "C" else sizes:
        size = full_like(x, max(n, 1))
        out.append(REM(x, size))
        x = DIV(x, size)
    return tuple(out[::-1] if order == "C" else out)
