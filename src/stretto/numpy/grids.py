"""Arrays written as indices: ``r_`` and ``c_`` join, ``mgrid`` and ``ogrid`` make grids.

Also ``fromfunction``, an array made from its indices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from stretto._engine.api.vectorize import vmap
from stretto._engine.core.types import promote, scalar_dtype
from stretto._engine.core.typing import Array, DTypeLike, ShapeLike, Tree
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import reshape, transpose
from stretto.numpy.creation import array, shape_of
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.joining import concatenate, stack
from stretto.numpy.ranges import arange, linspace

if TYPE_CHECKING:
    from stretto._engine.core.array_updates import Index

G = TypeVar("G")
"""What a grid of several axes is: one array, or a list of them."""

s_ = np.s_
"""``s_[1:3, ...]`` is the index itself, to be used later."""

index_exp = np.index_exp
"""As ``s_``, but always a tuple."""


def _range(caller: str, part: slice) -> Array:
    """``start:stop:step``; an imaginary step is the number of elements, with the last one."""
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
        """The axis to join along, the least rank, and where the first axis goes in it."""
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
