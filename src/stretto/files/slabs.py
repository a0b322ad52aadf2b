"""Arrays that are split over devices, on their way to a file: some rows at a time, or by part.

Nothing here puts a whole array together. Read ``file_elements``, which says in which form elements
are stored, next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from stretto._engine import xla
from stretto._engine.core.shardings import Index
from stretto._engine.xla.device import Device

_PIECE = 1 << 24  # bytes that are put together at once, where a row has no more


class Part:
    """A part of an array, as it is stored; ``data`` fetches it.

    ``start`` is its first element along each axis of the array.
    """

    def __init__(
        self,
        start: tuple[int, ...],
        shape: tuple[int, ...],
        dtype: np.dtype,
        data: Callable[[], np.ndarray],
    ) -> None:
        self.start, self.shape, self.dtype, self._data = start, shape, dtype, data

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.itemsize

    def pieces(self) -> Iterator[np.ndarray]:
        """The part, fetched from its device, in one piece."""
        yield self._data()


def owner(device: Device) -> int:
    """The process that a device belongs to."""
    return device.process_index


class Slabs:
    """A ``Sharded`` array in the form in which it is stored, which ``form`` makes of a part.

    ``shape`` and ``dtype`` are those of what is stored. Raises ``DonatedArrayError`` for an array
    that was donated or deleted.
    """

    def __init__(
        self,
        x: xla.sharded.Sharded,
        dtype: np.dtype,
        tail: tuple[int, ...],
        form: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        x.to_give()
        self._x, self._form, self._tail = x, form, tail
        self.shape: tuple[int, ...] = (*x.type.shape, *tail)
        self.dtype = dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.itemsize

    @property
    def is_here(self) -> bool:
        """Whether all of it is on devices of this process."""
        return self._x.sharding.is_fully_addressable

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it is on."""
        return self._x.sharding.device_list

    @property
    def part_shape(self) -> tuple[int, ...]:
        """The shape of each part."""
        return (*self._x.sharding.shard_shape(self._x.type.shape), *self._tail)

    def parts(self, process: int, owner: Callable[[Device], int] = owner) -> list[Part]:
        """The parts that this process writes: each part is written where its first copy is."""
        return [
            Part(
                (*_starts(shard.index), *(0 for _ in self._tail)),
                self.part_shape,
                self.dtype,
                lambda shard=shard: self._of(shard.data.to_host()),
            )
            for shard in xla.sharded.shards_of(self._x)
            if shard.replica_id == 0 and owner(shard.device) == process
        ]

    def pieces(self) -> Iterator[np.ndarray]:
        """The elements in the order of C, some rows at a time. All must be on devices here."""
        first = {_starts(s.index): s for s in xla.sharded.shards_of(self._x) if s.replica_id == 0}
        shape, part = self._x.type.shape, self._x.sharding.shard_shape(self._x.type.shape)
        if not shape or len(first) == 1:
            (whole,) = first.values()
            yield self._of(whole.data.to_host())
            return
        rows: dict[int, list[Any]] = {}
        for start, shard in first.items():
            rows.setdefault(start[0], []).append((shard.index[1:], shard.data))
        step = max(1, _PIECE // max(1, math.prod(shape[1:]) * self._x.type.dtype.itemsize))
        for begin in sorted(rows):
            side_by_side = [(index, data.to_host()) for index, data in rows.pop(begin)]
            for i in range(0, part[0], step):
                yield self._of(self._rows(side_by_side, slice(i, min(i + step, part[0]))))

    def _rows(self, parts: list[Any], rows: slice) -> np.ndarray:
        """These rows of parts that lie side by side, put together."""
        if len(parts) == 1:
            return parts[0][1][rows]
        made = np.empty((rows.stop - rows.start, *self._x.type.shape[1:]), self._x.type.dtype)
        for index, data in parts:
            made[(slice(None), *index)] = data[rows]
        return made

    def _of(self, part: np.ndarray) -> np.ndarray:
        return self._form(np.require(part, requirements="C"))


def _starts(index: Index) -> tuple[int, ...]:
    return tuple([part.start for part in index])


Elements: TypeAlias = np.ndarray | Slabs | Part
"""What is written of an array."""


def pieces_of(x: Elements) -> Iterator[memoryview]:
    """The bytes of an array, in one piece or several."""
    for piece in (x,) if isinstance(x, np.ndarray) else x.pieces():
        yield piece.reshape(-1).view(np.uint8).data
