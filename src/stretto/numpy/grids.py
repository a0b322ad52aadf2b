"""Grids, and indices of diagonals, triangles and masks.

``r_`` and ``c_`` join arrays written as indices, ``mgrid`` and ``ogrid`` make grids,
``fromfunction`` an array from its indices; ``ravel_multi_index`` and ``unravel_index`` convert.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from stretto._engine.api.vectorize import vmap
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import default_dtype, promote, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, ShapeLike, Tree
from stretto._engine.ops.arithmetic import DIV, REM
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, full_like, lt, zeros_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import reshape, transpose
from stretto.numpy.arithmetic import remainder
from stretto.numpy.creation import arange, array, linspace, shape_of
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.extrema import clip
from stretto.numpy.filled import ones
from stretto.numpy.indexing import concrete_of
from stretto.numpy.joining import concatenate, stack
from stretto.numpy.searching import index_array, nonzero

if TYPE_CHECKING:
    from stretto._engine.core.typing import Index

__all__ = ["c_", "diag_indices", "diag_indices_from", "fromfunction", "index_exp",
           "ix_", "mask_indices", "mgrid", "ogrid", "r_", "ravel_multi_index", "s_",
           "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from",
           "unravel_index"]  # fmt: skip

G = TypeVar("G")
"""Stands for a grid of several axes: one array, or a list of them."""

s_ = np.s_
"""``s_[1:3, ...]`` is the index itself, to be used later."""

index_exp = np.index_exp
"""Gives what ``s_`` does, but always as a tuple."""


def _range(caller: str, part: slice) -> Array:
    """Make ``start:stop:step``; an imaginary step is the number of elements, with the last one."""
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if part.stop is None:
        raise ValueError(f"{caller}: a slice needs its stop, as in 0:3; got {part}")
    if isinstance(step, complex):
        return linspace(start, part.stop, int(abs(step)))
    return arange(start, part.stop, step)


# Joined


class _Joined:
    """The class of ``r_`` and ``c_``, which join what they are indexed with along an axis."""

    def __init__(self, name: str, axis: int, ndim: int, place: int) -> None:
        self._name = name
        self._settings = (axis, ndim, place)

    def __repr__(self) -> str:
        return f"<stretto.numpy.{self._name}>"

    def __getitem__(self, key: Index | str) -> Array:
        parts: Any = key if isinstance(key, tuple) else (key,)
        axis, ndim, place = self._settings
        row = column = False
        if parts and isinstance(parts[0], str):
            row, column = parts[0] == "r", parts[0] == "c"
            if not (row or column):
                axis, ndim, place = self._directive(parts[0])
            parts = parts[1:]
        if not parts:
            raise ValueError(f"{self._name}: expected something to join, got nothing")
        values = []
        for part in parts:
            if isinstance(part, str):
                raise ValueError(f"{self._name}: a directive comes first, got {part!r} later")
            value = _range(self._name, part) if isinstance(part, slice) else _array(part)
            values.append(_raised(value, ndim, place))
        joined = concatenate(values, axis)
        if (row or column) and joined.ndim == 1:
            return reshape(joined, (1, -1) if row else (-1, 1))
        return joined

    def _directive(self, text: str) -> tuple[int, int, int]:
        """Return the axis to join along, the least rank, and where the first axis goes in it."""
        axis, ndim, place = self._settings
        try:
            numbers = [int(n) for n in text.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise ValueError(
                f"{self._name}: a directive is 'r', 'c', or up to three integers, as in '0,2,1'; "
                f"got {text!r}"
            )
        return (*numbers, *(axis, ndim, place)[len(numbers) :])  # type: ignore[return-value]


def _array(part: object) -> Array:
    """A number keeps its weak type, so that it takes the dtype of arrays beside it."""
    x = array(part, copy=False)
    return reshape(x, (1,)) if not x.ndim else x


def _raised(x: Array, ndim: int, place: int) -> Array:
    """Add axes of size 1 up to a rank; the array's own axes begin at ``place`` among them."""
    new = ndim - x.ndim
    if new <= 0:
        return x
    first = place if place >= 0 else new + place + 1
    order = [*range(x.ndim, ndim)]
    order[first:first] = range(x.ndim)
    return transpose(reshape(x, (*x.shape, *(1,) * new)), tuple(order))


r_ = _Joined("r_", 0, 1, -1)
"""``r_[x, 1:3, 0]``: arrays, ranges and numbers one after another along the first axis.

>>> r_[1:4, 0, 4]
Array([1, 2, 3, 0, 4], dtype=int32)
"""

c_ = _Joined("c_", -1, 2, 0)
"""``c_[x, y]``: vectors as columns side by side; arrays along their last axis.

>>> c_[1:3, 5:7]
Array([[1, 5],
       [2, 6]], dtype=int32)
"""


# Spanned


class _Grid(Generic[G]):
    """The class of ``mgrid`` and ``ogrid``, which give the coordinates of a grid of slices."""

    def __init__(self, name: str, sparse: bool) -> None:
        self._name = name
        self._sparse = sparse

    def __repr__(self) -> str:
        return f"<stretto.numpy.{self._name}>"

    @overload
    def __getitem__(self, key: slice) -> Array: ...
    @overload
    def __getitem__(self, key: tuple[slice, ...]) -> G: ...
    def __getitem__(self, key: slice | tuple[slice, ...]) -> Tree:
        if isinstance(key, slice):
            return _range(self._name, key)
        lines = [_range(self._name, part) for part in key]
        if not lines:
            return [] if self._sparse else full((0,), 0, scalar_dtype(int))
        dtype, _ = promote([(x.dtype, x.weak_type) for x in lines], self._name)
        shape = tuple([x.size for x in lines])
        out = []
        for i, x in enumerate(lines):
            place = tuple([n if d == i else 1 for d, n in enumerate(shape)])
            out.append(reshape(convert(x, dtype), place))
        if self._sparse:
            return out
        return stack([broadcast_to(x, shape) for x in out])


mgrid: _Grid[Array] = _Grid("mgrid", sparse=False)
"""``mgrid[0:2, 0:3]``: for each axis of a grid the coordinates along it, in one array.

>>> mgrid[0:2, 0:2][1]
Array([[0, 1],
       [0, 1]], dtype=int32)
"""

ogrid: _Grid[list[Array]] = _Grid("ogrid", sparse=True)
"""``ogrid[0:2, 0:3]``: for each axis of a grid its coordinates, in arrays that broadcast.

>>> [x.shape for x in ogrid[0:2, 0:1:5j]]
[(2, 1), (1, 5)]
"""


def fromfunction(
    function: Callable[..., Any], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: Any
) -> Array:
    """Make the array of a function of the indices.

    Args:
        function: a function of as many numbers as there are axes; it gets them one element at a
            time, as under ``vmap``.
        shape: the shape.
        dtype: the dtype of the indices, by default the default float.
        **kwargs: further keywords of the function.

    Returns:
        The array of ``function(i, j, ...)``, with the axes of its results after those of ``shape``.

    Raises:
        TypeError: the shape is not integers.
        ValueError: a size is negative.

    As NumPy's ``fromfunction``.

    >>> import stretto.numpy as snp
    >>> snp.fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype=int)
    Array([[ 0, 10],
           [ 1, 11]], dtype=int32)
    """
    sizes, wanted = shape_of(shape, "fromfunction"), as_dtype(dtype)

    def fun(*indices: Any) -> Array:
        return function(*indices, **kwargs)

    for d in reversed(range(len(sizes))):
        axes = tuple([0 if e == d else None for e in range(len(sizes))])
        fun = vmap(fun, axes)
    return fun(*[iota(wanted, n) for n in sizes])


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
