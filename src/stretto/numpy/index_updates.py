"""``x.at[index]``: copies of an array with some elements changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.lazy import exports
from stretto._engine.core.typing import ArrayLike, ShardingLike
from stretto._engine.ops.comparison import full
from stretto._engine.ops.index.geometry import reading_mode
from stretto._engine.xla.array import Array
from stretto.numpy.indexing import getitem, show
from stretto.numpy.updating import apply_again, apply_to_mask, mask_of, names_once, update

if TYPE_CHECKING:
    from stretto._engine.core.array_updates import Index


class At:
    """The updates of an array: ``x.at[index]`` is an ``IndexUpdate``.

    Args:
        x: the array.

    >>> import stretto.numpy as snp
    >>> snp.zeros(3).at[1].set(5)
    Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("_x",)

    def __init__(self, x: Array) -> None:
        self._x = x

    def __getitem__(self, index: Index) -> IndexUpdate:
        return IndexUpdate(self._x, index)

    def __repr__(self) -> str:
        return f"<at of {self._x.type}>"


class IndexUpdate:
    """Updates of one index: each method gives a copy of ``x`` changed at ``index``; ``get`` reads.

    Values take the dtype of ``x``, and broadcast to the shape of ``x[index]``. Where an index names
    an element more than once, each update counts (``set``: the last one). The updating methods
    share these keywords: ``mode``, for places out of bounds, ``"drop"`` (the default; ``"fill"``
    means the same), ``"clip"``, ``"promise_in_bounds"`` or ``"raise"``; ``indices_are_sorted`` and
    ``unique_indices``, promises that may save work; ``wrap_negative_indices=False``, so that
    negative integers are out of bounds; ``out_sharding``, where the result is to be.

    Args:
        x: the array.
        index: as for ``getitem``.

    Raises:
        IndexError: the index does not fit the array, or ``mode="raise"`` and a place is out of
            bounds.
        ValueError: the values do not broadcast, or there is no such mode.

    >>> import stretto.numpy as snp
    >>> snp.zeros(3).at[1:].set(snp.array([5, 6]))
    Array([0., 5., 6.], dtype=float32)
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Array, index: Index) -> None:
        self._x = x
        self._index = index

    def __repr__(self) -> str:
        return f"<at[{show(self._index)}] of {self._x.type}>"

    def get(
        self,
        *,
        mode: str | None = None,
        fill_value: ArrayLike | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        wrap_negative_indices: bool = True,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        """Read ``x[index]``, with a mode for places out of bounds.

        Args:
            mode: as for ``getitem``; ``"fill"`` by default where there is a ``fill_value``.
            fill_value: what ``"fill"`` reads out of bounds.
            indices_are_sorted: a promise that may save work.
            unique_indices: a promise that no element is named twice.
            wrap_negative_indices: whether negative integers count from the end.
            out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec``
                over the mesh in use.

        Returns:
            The elements, of the dtype of ``x``.

        Raises:
            IndexError: the index does not fit the array, or ``mode="raise"`` and a place is out of
                bounds.
            ValueError: there is no such mode.

        >>> import stretto.numpy as snp
        >>> snp.arange(3.0).at[7].get(mode="fill")
        Array(nan, dtype=float32)
        """
        return getitem(
            self._x,
            self._index,
            reading_mode(mode, fill_value),
            fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            wrap_negative_indices=wrap_negative_indices,
            out_sharding=out_sharding,
        )

    def set(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] = values`` in a copy of the array.

        Args:
            values: an array that broadcasts to ``x[index]``, or a number.
            **options: the keywords that the class describes.

        Returns:
            The copy, of the shape and dtype of ``x``.

        >>> import stretto.numpy as snp
        >>> snp.zeros(2).at[0].set(3)
        Array([3., 0.], dtype=float32)
        """
        return update("set", self._x, self._index, values, **options)

    @described_like(set)
    def add(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] += values`` in a copy of the array; elements named twice add up.

        >>> import stretto.numpy as snp
        >>> snp.zeros(2).at[snp.array([1, 1])].add(3)
        Array([0., 6.], dtype=float32)
        """
        return update("add", self._x, self._index, values, **options)

    @described_like(set)
    def subtract(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] -= values`` in a copy of the array.

        >>> import stretto.numpy as snp
        >>> snp.zeros(2).at[0].subtract(3)
        Array([-3.,  0.], dtype=float32)
        """
        return update("subtract", self._x, self._index, values, **options)

    @described_like(set)
    def multiply(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] *= values`` in a copy of the array.

        >>> import stretto.numpy as snp
        >>> snp.ones(2).at[0].multiply(3)
        Array([3., 1.], dtype=float32)
        """
        return update("multiply", self._x, self._index, values, **options)

    mul = multiply

    def divide(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] /= values`` in a copy of the array.

        Args:
            values: an array that broadcasts to ``x[index]``, or a number.
            **options: the keywords that the class describes.

        Returns:
            The copy, of the shape of ``x``; integers become floats.

        >>> import stretto.numpy as snp
        >>> snp.ones(2).at[0].divide(2)
        Array([0.5, 1. ], dtype=float32)
        """
        return update("divide", self._x, self._index, values, **options)

    @described_like(set)
    def power(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] **= values`` in a copy of the array.

        >>> import stretto.numpy as snp
        >>> snp.array([3.0, 1.0]).at[0].power(2)
        Array([9., 1.], dtype=float32)
        """
        return update("power", self._x, self._index, values, **options)

    @described_like(set)
    def min(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] = minimum(x[index], values)`` in a copy of the array.

        >>> import stretto.numpy as snp
        >>> snp.ones(2).at[0].min(-1)
        Array([-1.,  1.], dtype=float32)
        """
        return update("min", self._x, self._index, values, **options)

    @described_like(set)
    def max(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] = maximum(x[index], values)`` in a copy of the array.

        >>> import stretto.numpy as snp
        >>> snp.ones(2).at[0].max(3)
        Array([3., 1.], dtype=float32)
        """
        return update("max", self._x, self._index, values, **options)

    def apply(self, func: Callable[[Any], Any], **options: Any) -> Array:
        """Do ``x[index] = func(x[index])`` in a copy, once for each time an element is named.

        An index that may name an element twice, as a traced one may, makes a ``while_loop``, which
        has no derivative in reverse: promise ``unique_indices=True`` where it does not.

        Args:
            func: a function of an array, element by element.
            **options: the keywords that the class describes.

        Returns:
            The copy, of the shape and dtype of ``x``.

        >>> import stretto.numpy as snp
        >>> snp.array([1.0, 4.0, 9.0]).at[1:].apply(snp.sqrt)
        Array([1., 2., 3.], dtype=float32)
        >>> snp.zeros(2).at[snp.array([1, 1])].apply(lambda x: x + 1)
        Array([0., 2.], dtype=float32)
        """
        x, index = self._x, self._index
        mask = mask_of(x, index)
        if mask is not None:
            return apply_to_mask(func, x, mask)
        wrap = {"wrap_negative_indices": options.get("wrap_negative_indices", True)}
        new = func(getitem(x, index, **wrap))
        if not options.get("unique_indices", False) and not names_once(x, index, **wrap):
            counts = full(x.shape, 0, np.dtype(np.int32))
            times = getitem(update("add", counts, index, 1, **options), index, **wrap)
            new = apply_again(func, x, new, times)
        return update("set", x, index, new, **options)


exports(__name__)
