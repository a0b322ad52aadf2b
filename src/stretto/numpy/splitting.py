"""Arrays split into parts along an axis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer, integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import greater, lesser
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import ANY, eager
from stretto._engine.ops import shape as ops
from stretto._engine.ops.layout import canonical_axis
from stretto.numpy.indexing import getitem


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
    """The parts of an array along an axis."""
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
