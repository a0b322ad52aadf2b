"""Leaves of trees as arrays that the format has, and back; and arrays that are split over devices.

A Python number is an array of rank 0 and 64 bits; a dtype that the format lacks is stored as the
bytes, or the parts, of its elements. What an array does not say by itself is a word in the
description: its *kind* (``int``, ``numpy``, …), and its true dtype.

Arrays that are split over devices go to a file some rows at a time (``Slabs``), or by part; nothing
here puts a whole array together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from stretto._engine import xla
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.interpreter import (
    Tracer,
    Value,
    as_value,
    constant,
    gives_array,
    refuse_masked,
)
from stretto._engine.core.shardings import Index
from stretto._engine.core.types import canonical_dtype, kind_of
from stretto._engine.core.typing import ArrayLike
from stretto._engine.xla.array import SHARDED
from stretto._engine.xla.device import Device
from stretto.files.names import Damaged

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
        """Yield the part, fetched from its device, in one piece."""
        yield self._data()


def owner(device: Device) -> int:
    """Return the process that a device belongs to."""
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
        """True where all of it is on devices of this process."""
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
        """Return the parts that this process writes: each is written where its first copy is."""
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
        """Yield the elements in C's order, some rows at a time. All must be on devices here."""
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
        """Return these rows of parts that lie side by side, put together."""
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
"""The forms in which an array is written."""


def pieces_of(x: Elements) -> Iterator[memoryview]:
    """Yield the bytes of an array, in one piece or several."""
    for piece in (x,) if isinstance(x, np.ndarray) else x.pieces():
        yield piece.reshape(-1).view(np.uint8).data


_NUMBERS = {"bool": bool, "int": int, "float": float, "complex": complex}
_WIDE = {"int": "int64", "uint": "uint64", "float": "float64", "complex": "complex128"}

_CODES = {
    **{"BOOL": "bool", "BF16": "bfloat16", "C64": "complex64"},
    **{f"I{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"U{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"F{n}": f"float{n}" for n in (16, 32, 64)},
    **{"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu"},
    **{"F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz"},
}

_CODE_OF = {name: code for code, name in _CODES.items()}

# Dtypes that the format has not, and what their elements are stored as.
_PARTS = {
    **dict.fromkeys(("int2", "int4"), "int8"),
    **dict.fromkeys(("uint2", "uint4"), "uint8"),
    **dict.fromkeys(("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"), "uint8"),
    "float4_e2m1fn": "uint8",
    "complex128": "float64",
}


def _dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


_SIZES = {code: _dtype(name).itemsize for code, name in _CODES.items()}


class Type(NamedTuple):
    """Shape and dtype of an array in a file."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


class Stored(NamedTuple):
    """A leaf on its way to a file: the array, and its words in the description, or ``None``."""

    array: np.ndarray | Slabs
    kind: str | None
    dtype: str | None


# To the file


def stored(leaf: object, path: str, caller: str) -> Stored:
    """Return the leaf as an array of the format.

    Raises ``TracedValueError`` for a traced value, ``TypeError`` for what is neither an array nor
    a number, ``OverflowError`` for an integer of more than 64 bits.
    """
    if isinstance(leaf, Tracer):
        raise TracedValueError(
            f"{caller}: {path} is traced ({leaf.type}, {leaf.origin()}), and has no elements yet: "
            f"return it from the function, and save it outside"
        )
    try:
        kind = kind_of_leaf(leaf)
    except TypeError as error:
        raise TypeError(
            f"{caller}: {path} must be an array or a number, and is {error}; text and settings go "
            f"into metadata=, or stay static in the tree"
        ) from None
    if leaf.__class__ in SHARDED:
        x: Any = leaf
        name = x.type.dtype.name
        tail = (2,) if name == "complex128" else ()
        slabs = Slabs(x, _dtype(_PARTS.get(name, name)), tail, _form(name))
        return Stored(slabs, kind, name if name in _PARTS else None)
    if kind in _NUMBERS:
        array = _of_number(_NUMBERS[kind](leaf), kind, path, caller)
    elif kind == "numpy":
        refuse_masked(leaf, caller, path)
        array = np.asarray(leaf)
    else:
        array = np.asarray(as_value(leaf, caller, path).to_host())
    name = array.dtype.name
    array = np.require(array, requirements="C")
    return Stored(_form(name)(array), kind, name if name in _PARTS else None)


def _form(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return what makes of an array of this dtype, in the order of C, one that the format has."""

    def form(array: np.ndarray) -> np.ndarray:
        if name not in _PARTS:
            return array
        parts = array.reshape((*array.shape, 1)).view(_PARTS[name])
        return parts if name == "complex128" else parts.reshape(array.shape)

    return form


def code_of(dtype: np.dtype) -> str:
    """Return the format's code of a dtype that ``stored`` gives."""
    return _CODE_OF[dtype.name]


def kind_of_leaf(leaf: object) -> str | None:
    """Say what the leaf is beside an array: a Python number, NumPy's, weak.

    Raises ``TypeError``, saying what it is, where it is neither an array nor a number.
    """
    if isinstance(leaf, Value):
        return "weak" if leaf.weak_type else None
    if isinstance(leaf, (np.ndarray, np.generic)):
        try:
            kind_of(leaf.dtype)
        except TypeError:
            raise TypeError(f"an array of dtype {leaf.dtype}") from None
        return "numpy"
    for kind, cls in _NUMBERS.items():
        if isinstance(leaf, cls):
            return kind
    if hasattr(leaf, "__array__") or gives_array(leaf):
        return None
    raise TypeError(f"a {type(leaf).__name__}")


def _of_number(x: complex, kind: str, path: str, caller: str) -> np.ndarray:
    if kind == "bool":
        return np.array(x)
    if isinstance(x, int) and x >= 1 << 63:
        kind = "uint"
    try:
        return np.array(x, _WIDE[kind])
    except OverflowError:
        raise OverflowError(f"{caller}: {path} is an integer of more than 64 bits, {x}") from None


# From the file


def true_type(name: str, code: str, shape: tuple[int, ...], word: str | None) -> Type:
    """Return the type of what was stored, given the format's code and the description's word.

    Raises ``Damaged`` where they do not go together, or the code is of a dtype unknown here.
    """
    if code not in _CODES:
        raise Damaged(f"{name} is of type {code}, which Stretto has no dtype for")
    parts = _CODES[code]
    if word is None:
        return Type(shape, _dtype(parts))
    if _PARTS.get(word) != parts or (word == "complex128" and shape[-1:] != (2,)):
        raise Damaged(f"its description says that {name} is {word}, and it is {code}")
    return Type(shape[:-1] if word == "complex128" else shape, _dtype(word))


def item_size(name: str, code: str) -> int:
    """Return the bytes of an element of this code; raise ``Damaged`` for one unknown here."""
    size = _SIZES.get(code)
    return true_type(name, code, (), None).dtype.itemsize if size is None else size


def restored(
    raw: np.ndarray, type: Type, kind: str | None, name: str, lost: list[str]
) -> ArrayLike:
    """Return the leaf of this kind with these bytes, which nobody else writes.

    Where 64-bit types are off, an array of them is narrowed; the names of those that lose digits go
    into ``lost``. Raises ``Damaged`` where the bytes are not such a leaf, ``OverflowError`` for
    integers that do not fit.
    """
    if type.dtype == bool and raw.size and raw.max() > 1:
        raise Damaged(f"{name} is of booleans, and has bytes that are neither 0 nor 1")
    try:
        array = raw.view(type.dtype).reshape(type.shape)
    except ValueError as error:  # too many axes, or an axis too long beside an empty one
        raise Damaged(f"{name} is {type}, which no array can be: {error}") from None
    if kind == "numpy":
        return array if type.shape else array[()]
    if kind in _NUMBERS:
        if not fits_number(type, kind):
            raise Damaged(f"its description says that {name} is one {kind}, and it is {type}")
        return _NUMBERS[kind](array.item())
    if kind not in (None, "weak"):
        raise Damaged(f"its description says that {name} is {kind!r}, which is unknown")
    dtype = canonical_dtype(type.dtype)
    if dtype != type.dtype:
        array = _narrowed(array, dtype, name, lost)
    return constant(array, kind == "weak")


def is_number(kind: str | None) -> bool:
    """Say whether leaves of this kind are Python numbers."""
    return kind in _NUMBERS


def fits_number(type: Type, kind: str | None) -> bool:
    """Say whether a Python number of this kind can have been stored so."""
    stored_kind = kind_of(type.dtype)
    return not type.shape and (stored_kind == kind or (stored_kind, kind) == ("uint", "int"))


def _narrowed(array: np.ndarray, dtype: np.dtype, name: str, lost: list[str]) -> np.ndarray:
    with np.errstate(over="ignore"):
        made = array.astype(dtype)
    if not np.array_equal(made, array, equal_nan=dtype.kind in "fc"):
        if dtype.kind in "iu":
            raise OverflowError(
                f"{name} is {array.dtype} in the file, and has numbers that do not fit in "
                f"{dtype}: 64-bit types are off; set stretto.config.enable_x64 = True"
            )
        lost.append(name)
    return made
