"""Arrays joined along an axis, old or new, and split into parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer, integers
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.sizes import greater, lesser
from stretto._engine.core.types import promote
from stretto._engine.core.typing import Array, ArrayLike, Axis, DTypeLike, Tree
from stretto._engine.eager.twins import ANY, eager
from stretto._engine.ops import shape as ops
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import Reshape, canonical_axis, reshape
from stretto.numpy.arguments import refuse_out
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.indexing import getitem
from stretto.numpy.manipulation import atleast_1d, atleast_2d, atleast_3d, ravel

__all__ = ["append", "array_split", "block", "column_stack", "concat", "concatenate",
           "dsplit", "dstack", "hsplit", "hstack", "row_stack", "split", "stack",
           "unstack", "vsplit", "vstack"]  # fmt: skip


def _promoted(
    arrays: ArrayLike | Iterable[ArrayLike], caller: str, dtype: DTypeLike | None = None
) -> list[Array]:
    """Return the arrays of a sequence (or along the first axis of one), promoted to one dtype."""
    if isinstance(arrays, (Value, np.ndarray)):
        whole = as_value(arrays, caller, "arrays")
        if not whole.ndim:
            raise TypeError(f"{caller}: expected a sequence of arrays, got {whole.type}")
        parts: Any = [getitem(whole, i) for i in range(whole.shape[0])]
    elif isinstance(arrays, (list, tuple, Iterable)):
        parts = arrays
    else:
        raise TypeError(f"{caller}: expected a sequence of arrays, got {arrays!r}")
    values: list[Any] = [
        x if isinstance(x, Value) else as_value(x, caller, f"array {i}")
        for i, x in enumerate(parts)
    ]
    if not values:
        raise ValueError(f"{caller}: expected at least one array, got none")
    first = values[0].type
    if dtype is None and all([x.type is first for x in values]):
        return values
    if dtype is not None:
        wanted, weak = as_dtype(dtype), False
    else:
        wanted, weak = promote([(v.type.dtype, v.type.weak_type) for v in values], caller)
    return [convert(v, wanted, weak) for v in values]


def concatenate(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Join arrays along an axis that they have.

    Args:
        arrays: a sequence of arrays, equal in the other axes, or one array of them; dtypes are
            promoted.
        axis: the axis to join along; None flattens the arrays first.
        dtype: the dtype of the result; by default the one that the dtypes promote to.

    Returns:
        One array, as long along the axis as all together.

    Raises:
        TypeError: ``arrays`` is an array of rank 0.
        ValueError: there is no array, ``axis`` is out of bounds, or the arrays differ in rank or in
            another axis.

    As NumPy's ``concatenate``.

    >>> import stretto.numpy as snp
    >>> snp.concatenate([snp.array([1, 2]), snp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    return _join("concatenate", arrays, axis, dtype)


def _join(
    caller: str, arrays: ArrayLike | Iterable[ArrayLike], axis: Axis, dtype: DTypeLike | None = None
) -> Array:
    values = _promoted(arrays, caller, dtype)
    if axis is None:
        values, axis = [ravel(v) for v in values], 0
    if not values[0].ndim:
        raise ValueError(f"{caller}: arrays of rank 0 have no axis to join along; use stack")
    return _along(caller, values, canonical_axis(axis, values[0].ndim, caller))


def _along(caller: str, values: list[Array], axis: int) -> Array:
    """Join values of one dtype along an axis."""
    try:
        return _concatenate(*values, axis=axis)
    except ValueError:
        first = values[0].type
        for i, x in enumerate(values):
            others = [t.shape[:axis] + t.shape[axis + 1 :] for t in (first, x.type)]
            if x.ndim != first.ndim or others[0] != others[1]:
                raise ValueError(
                    f"{caller}: arrays must have one shape except along axis {axis}; got {first} "
                    f"(array 0) and {x.type} (array {i})"
                ) from None
        raise


def _concatenate_hosts(*arrays: np.ndarray, axis: int) -> np.ndarray:
    return np.concatenate(arrays, axis)


@eager(_concatenate_hosts, ANY)
def _concatenate(*arrays: Any, axis: int) -> Array:
    return ops.concatenate(arrays, axis)


@described_like(concatenate)
def concat(arrays: ArrayLike | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an axis that they have, as ``concatenate`` does.

    Args:
        arrays: a sequence of arrays, equal in the other axes; dtypes are promoted.

    As the array API standard's ``concat``.

    >>> import stretto.numpy as snp
    >>> snp.concat([snp.array([1, 2]), snp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    return _join("concat", arrays, axis)


def stack(
    arrays: ArrayLike | Sequence[ArrayLike],
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Join arrays of one shape along a new axis.

    Args:
        arrays: a sequence of arrays, or one array of them; dtypes are promoted.
        axis: the place of the new axis in the result.
        out: must be None: arrays are immutable.
        dtype: the dtype of the result; by default the one that the dtypes promote to.

    Returns:
        One array, with one more axis.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``arrays`` is an array of rank 0.
        ValueError: there is no array, the shapes differ, or ``axis`` is out of bounds.

    As NumPy's ``stack``.

    >>> import stretto.numpy as snp
    >>> snp.stack([snp.array([1, 2]), snp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    refuse_out("stack", out)
    values = _promoted(arrays, "stack", dtype)
    if len({v.shape for v in values}) > 1:
        raise ValueError(
            f"stack: the arrays must have one shape, got {', '.join(str(v.type) for v in values)}"
        )
    shape = values[0].shape
    place = canonical_axis(axis, len(shape) + 1, "stack")
    return _stack(*values, axis=place)


def _stack_hosts(*arrays: np.ndarray, axis: int) -> np.ndarray:
    return np.stack(arrays, axis)


@eager(_stack_hosts, ANY)
def _stack(*arrays: Any, axis: int) -> Array:
    shape = arrays[0].shape
    row = Reshape((*shape[:axis], 1, *shape[axis:]))
    return ops.concatenate([row(x) for x in arrays], axis)


def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the first axis, vectors as rows.

    Args:
        tup: a sequence of arrays, or one array of them; dtypes are promoted.
        dtype: the dtype of the result; by default the one that the dtypes promote to.

    Returns:
        One array of rank 2 or more.

    Raises:
        TypeError: ``tup`` is an array of rank 0.
        ValueError: there is no array, or they differ in another axis.

    As NumPy's ``vstack``.

    >>> import stretto.numpy as snp
    >>> snp.vstack([snp.array([1, 2]), snp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    rows = [atleast_2d(v) for v in _promoted(tup, "vstack", dtype)]
    return _along("vstack", rows, 0)


row_stack = vstack


@described_like(vstack)
def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the second axis, vectors along their only one.

    Returns:
        One array of rank 1 or more.

    As NumPy's ``hstack``.

    >>> import stretto.numpy as snp
    >>> snp.hstack([snp.array([1, 2]), snp.array([3, 4])])
    Array([1, 2, 3, 4], dtype=int32)
    """
    values = [atleast_1d(v) for v in _promoted(tup, "hstack", dtype)]
    return _along("hstack", values, min(values[0].ndim - 1, 1))


@described_like(vstack)
def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the third axis, each made at least three-dimensional by ``atleast_3d``.

    Returns:
        One array of rank 3 or more.

    As NumPy's ``dstack``.

    >>> import stretto.numpy as snp
    >>> snp.dstack([snp.array([1, 2]), snp.array([3, 4])])
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    layers = [atleast_3d(v) for v in _promoted(tup, "dstack", dtype)]
    return _along("dstack", layers, 2)


@described_like(vstack)
def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Join arrays side by side, vectors as columns.

    As NumPy's ``column_stack``.

    >>> import stretto.numpy as snp
    >>> snp.column_stack([snp.array([1, 2]), snp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    values = _promoted(tup, "column_stack")
    columns = [v if v.ndim > 1 else reshape(v, (v.size, 1)) for v in values]
    return _along("column_stack", columns, 1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Join values to the end of an array.

    Args:
        arr: an array, or a number.
        values: what comes after it, of the same rank if there is an axis.
        axis: the axis to join along; by default both are flattened.

    Returns:
        A new array.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: ``axis`` is out of bounds, or the arrays differ in rank or in another axis.

    As NumPy's ``append``.

    >>> import stretto.numpy as snp
    >>> snp.append(snp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    parts = [as_value(arr, "append", "arr"), as_value(values, "append", "values")]
    return _join("append", parts, axis)


def block(arrays: ArrayLike | list[Any]) -> Array:
    """Assemble an array from nested lists of blocks.

    Args:
        arrays: lists of lists of arrays: the innermost lists join along the last axis.

    Returns:
        One array.

    Raises:
        TypeError: a block is not an array or a number.
        ValueError: a list is empty, the depths of lists differ, or blocks differ in another axis.

    As NumPy's ``block``.

    >>> import stretto.numpy as snp
    >>> snp.block([[snp.ones((1, 1)), snp.zeros((1, 2))]])
    Array([[1., 0., 0.]], dtype=float32)
    """

    def depth(x: object) -> int:
        if not isinstance(x, list):
            return 0
        depths = sorted({depth(part) for part in x})
        if len(depths) != 1:
            description = f"some {depths[0]} deep, some {depths[-1]}" if depths else "an empty list"
            raise ValueError(f"block: all blocks must be in lists of one depth; got {description}")
        return 1 + depths[0]

    def joined(x: Tree, level: int) -> Array:
        if not isinstance(x, list):
            v = as_value(x, "block", "a block")
            return reshape(v, (1,) * (rank - v.ndim) + v.shape)
        return _join("block", [joined(part, level - 1) for part in x], -level)

    def ranks(x: Tree) -> int:
        return max(map(ranks, x)) if isinstance(x, list) else as_value(x, "block").ndim

    levels = depth(arrays)
    rank = max(levels, ranks(arrays))
    return joined(arrays, levels)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into its parts along an axis, each without it.

    Args:
        x: an array of rank 1 or more.
        axis: the axis to split.

    Returns:
        A tuple of arrays, one for each place along the axis.

    Raises:
        ValueError: ``axis`` is out of bounds.

    As the array API standard's ``unstack``.

    >>> import stretto.numpy as snp
    >>> snp.unstack(snp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    value = as_value(x, "unstack")
    place = canonical_axis(axis, value.ndim, "unstack")
    lead = (slice(None),) * place
    return tuple(getitem(value, (*lead, i)) for i in range(value.shape[place]))


def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Split an array along an axis into parts of nearly one size, or at given places.

    Args:
        ary: an array of rank 1 or more.
        indices_or_sections: the number of parts, or the places to cut at.
        axis: the axis to split along.

    Returns:
        A list of arrays; the first ones are longer by one where the size does not divide.

    Raises:
        TypeError: ``indices_or_sections`` is not of integers.
        ValueError: ``axis`` is out of bounds; or there are less than 1 parts.

    As NumPy's ``array_split``.

    >>> import stretto.numpy as snp
    >>> snp.array_split(snp.arange(3), 2)
    [Array([0, 1], dtype=int32), Array([2], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis)


@described_like(array_split)
def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Split an array along an axis into parts of one size, or at given places.

    Returns:
        A list of arrays.

    Raises:
        TypeError: ``indices_or_sections`` is not of integers.
        ValueError: ``axis`` is out of bounds; or the size does not divide into that many parts.

    As NumPy's ``split``.

    >>> import stretto.numpy as snp
    >>> snp.split(snp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def _split(caller: str, ary: ArrayLike, at: ArrayLike | Sequence[int], axis: int) -> list[Array]:
    x = as_value(ary, caller, "ary")
    place = canonical_axis(axis, x.ndim, caller)
    n = x.shape[place]
    places_or_count: Any = at
    if np.ndim(places_or_count):
        places = integers(at, caller, "indices_or_sections")
        bounds = [0, *(lesser(greater(i + n if i < 0 else i, 0), n) for i in places), n]
    else:
        parts = integer(at, caller, "indices_or_sections")
        if parts < 1 or (caller != "array_split" and n % parts):
            raise ValueError(
                f"{caller}: axis {axis} of {x.type} does not divide into {parts} equal parts"
            )
        size, more = divmod(n, parts)
        bounds = [i * size + min(i, more) for i in range(parts + 1)]
    slices = [slice(a, greater(a, b)) for a, b in itertools.pairwise(bounds)]
    return _parts(x, slices=slices, axis=place)


def _parts_of_host(x: np.ndarray, *, slices: list[slice], axis: int) -> list[np.ndarray]:
    if not axis:
        return [x[part] for part in slices]
    before = (slice(None),) * axis
    return [x[(*before, part)] for part in slices]


@eager(_parts_of_host, ANY)
def _parts(x: Array, *, slices: list[slice], axis: int) -> list[Array]:
    """Return the parts of an array along an axis."""
    return [ops.slice_in_dim(x, part.start, part.stop, 1, axis) for part in slices]


@described_like(split)
def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array along the second axis, a vector along its only one.

    Raises:
        TypeError: ``indices_or_sections`` is not of integers.
        ValueError: the size does not divide into that many parts.

    As NumPy's ``hsplit``.

    >>> import stretto.numpy as snp
    >>> [part.shape for part in snp.hsplit(snp.ones((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    x = as_value(ary, "hsplit", "ary")
    return _split("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


@described_like(hsplit)
def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array along the first axis.

    As NumPy's ``vsplit``.

    >>> import stretto.numpy as snp
    >>> [part.shape for part in snp.vsplit(snp.ones((3, 4)), [1])]
    [(1, 4), (2, 4)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array along the third axis.

    Args:
        ary: an array of rank 3 or more.
        indices_or_sections: the number of parts, or the places to cut at.

    Returns:
        A list of arrays.

    Raises:
        TypeError: ``indices_or_sections`` is not of integers.
        ValueError: the rank is below 3, or the size does not divide into that many parts.

    As NumPy's ``dsplit``.

    >>> import stretto.numpy as snp
    >>> [part.shape for part in snp.dsplit(snp.ones((2, 2, 2)), 2)]
    [(2, 2, 1), (2, 2, 1)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)
