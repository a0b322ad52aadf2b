"""``load`` and ``load_header``: trees of arrays from safetensors files, and what is in a file.

The safetensors library checks the header of a file that is opened. Where the arrays are in data
files beside it, these are opened as they are needed.

Arrays are read into memory of their own, aligned as compiled programs want it
(docs/decisions/0019-safetensors.md); of one that is to be on devices, what each of these needs.
"""

from __future__ import annotations

import errno
import io
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np
import safetensors

from stretto._engine import xla
from stretto._engine.api import varying_sizes
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.api.sharding.shardings import fit
from stretto._engine.api.varying_sizes.sizes import holds_ragged
from stretto._engine.core import tree
from stretto._engine.core.files import checked_path, open_regular
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.mesh import PartitionSpec
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.shardings import Index as Box
from stretto._engine.core.shardings import Sharding, SingleDeviceSharding
from stretto._engine.core.types import ArrayType, array_type, canonical_dtype, kind_of
from stretto._engine.core.typing import Tree
from stretto._engine.ops.sharding_constraint import named_here
from stretto._engine.xla.array import Array
from stretto._engine.xla.device import Device, as_device
from stretto.files.file_elements import (
    Type,
    fits_number,
    is_number,
    item_size,
    kind_of_leaf,
    restored,
    true_type,
)
from stretto.files.file_parts import (
    BLOCK,
    CHECKSUM,
    INDEX,
    Grid,
    Index,
    Part,
    aligned,
    block_checksums,
    box_of,
    checksum,
    folder_of,
    parse_index,
)
from stretto.files.names import (
    DESCRIPTION,
    Damaged,
    Description,
    damaged,
    leaf_names,
    parse,
    rebuild,
    refuse_twice,
)

_ZIP = b"PK\x03\x04"
_PIECE = 1 << 24  # bytes of which a checksum is computed at once


class Entry(NamedTuple):
    """An array in the file."""

    type: Type
    kind: str | None
    grid: Grid
    """The places of its elements, in the form in which they are stored."""
    itemsize: int
    """The bytes of one of these."""


class Contents(NamedTuple):
    """All that a file's header says."""

    entries: dict[str, Entry]
    node: Any
    metadata: dict[str, str]
    ties: dict[str, str]
    """The names among them whose array is that of another name."""

    @property
    def described(self) -> bool:
        """True where the file says what tree it is."""
        return self.node is not _NO_NODE


_NO_NODE = object()


class Replaced(Exception):
    """The file was replaced while it was read, and its data files are gone."""


class File:
    """An open file with what its header says, as the safetensors library read and checked it."""

    def __init__(self, path: str, caller: str) -> None:
        self._path, self._caller = path, caller
        self._data: dict[str, io.FileIO] = {}
        if os.path.isdir(path):
            raise IsADirectoryError(
                errno.EISDIR,
                f"{caller}: {path} is a folder, and must be a regular file; name one, or read a "
                f"model of several files with stretto.merge.Checkpoint",
            )
        self.raw = open_regular(path, caller)
        try:
            self._check()
        except BaseException:
            self.raw.close()
            raise

    def _check(self) -> None:
        try:
            with safetensors.safe_open(self._path, "np") as file:
                names = file.offset_keys()
                slices = [file.get_slice(name) for name in names]
                self.metadata: dict[str, str] = dict(file.metadata() or {})
        except safetensors.SafetensorError as error:
            raise Damaged(_what_is_wrong(self.raw, error)) from None
        # The library takes the last of several arrays of a name, and others may take the first.
        header = bytes_at(self.raw, 8, int.from_bytes(bytes_at(self.raw, 0, 8), "little"))
        refuse_twice(header.tobytes())
        stated = [(s.get_dtype(), tuple(s.get_shape())) for s in slices]
        self.stated: dict[str, tuple[str, tuple[int, ...]]] = dict(zip(names, stated, strict=True))
        # The path may lead to another file by now; the library opened it between these two.
        self.is_current = self._is_there()

    def _is_there(self) -> bool:
        return os.path.samestat(os.stat(self._path), os.fstat(self.raw.fileno()))

    def __enter__(self) -> File:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it, and the data files that were opened."""
        for file in (*self._data.values(), self.raw):
            file.close()

    def check_data(self, index: Index) -> None:
        """Raise ``Damaged`` unless the data files are there, with the sizes that they had."""
        folder = folder_of(self._path)
        for name, size in index.files.items():
            try:
                there = os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                raise self._missing(name) from None
            if there != size:
                raise Damaged(
                    f"its data file {os.path.join(folder, name)} is "
                    f"{'truncated' if there < size else 'damaged'}: it has {there} bytes, and had "
                    f"{size}"
                )

    def _missing(self, name: str) -> Exception:
        if not self._is_there():
            return Replaced()
        return Damaged(
            f"its data file {os.path.join(folder_of(self._path), name)} is missing: the file and "
            f"the folder beside it belong together, and are copied and renamed together"
        )

    def size(self) -> int:
        """Return the bytes of the file."""
        return os.fstat(self.raw.fileno()).st_size

    def places(self) -> dict[str, tuple[int, int]]:
        """Return of each own array its first byte in the file, and how many there are."""
        # The format leaves no holes: each array begins where the one before it ends.
        offset = 8 + int.from_bytes(bytes_at(self.raw, 0, 8), "little")
        places = {}
        for name, (code, shape) in self.stated.items():
            size = item_size(name, code) * math.prod(shape)
            places[name] = offset, size
            offset += size
        return places

    def read(self, name: str, entry: Entry, box: Box | None = None) -> np.ndarray:
        """Return the bytes of an array, or of a box of it, in aligned memory of their own.

        The box is one of what is stored. Raises ``Damaged`` where a checksum is another.
        """

        def fetch(part: Part, size: int, begin: int, end: int) -> np.ndarray:
            return self._bytes_of(name, part, size, begin, end)

        return box_of(entry.grid, box, entry.itemsize, fetch)

    def _bytes_of(self, name: str, part: Part, size: int, begin: int, end: int) -> np.ndarray:
        if part.file is None:
            return bytes_at(self.raw, part.offset + begin, end - begin)
        first, last = begin // BLOCK * BLOCK, min(-(-end // BLOCK) * BLOCK, size)
        raw = bytes_at(self._opened(part.file), part.offset + first, last - first)
        written = part.checksums[first // BLOCK : -(-last // BLOCK)]
        if block_checksums(raw.data) != list(written):
            raise Damaged(
                f"its data file {os.path.join(folder_of(self._path), part.file)} is damaged: a "
                f"part of {name} has other checksums than it was written with"
            )
        return raw[begin - first : end - first]

    def _opened(self, name: str) -> io.FileIO:
        if name not in self._data:
            try:
                self._data[name] = open_regular(
                    os.path.join(folder_of(self._path), name), self._caller
                )
            except FileNotFoundError:
                raise self._missing(name) from None
        return self._data[name]


def open_file(path: str | os.PathLike[str], caller: str) -> File:
    """Return the file that is there, also while others replace it."""
    text = checked_path(path, caller)
    while True:
        file = File(text, caller)
        if file.is_current:
            return file
        file.close()


def contents_of(file: File, *, data: bool = True) -> Contents:
    """Return arrays with their places, and the description; ``data`` checks that all are there."""
    metadata = dict(file.metadata)
    said = Description(_NO_NODE, {}, {}, {})
    if INDEX in metadata:
        _check_index(file)
        index = parse_index(metadata.pop(INDEX))
        _check_extents(index)
        if data:
            file.check_data(index)
        places = index.arrays
    else:
        places = _in_one_file(file)
    metadata.pop(CHECKSUM, None)
    if DESCRIPTION in metadata:
        said = parse(metadata.pop(DESCRIPTION))
    entries = {}
    for name, (code, grid) in places.items():
        type = true_type(name, code, grid.shape, said.dtypes.get(name))
        entries[name] = Entry(type, said.kinds.get(name), grid, item_size(name, code))
    for name, first in said.ties.items():
        if first not in places or name in places:
            raise damaged(f"it ties {name} to {first}")
        entries[name] = entries[first]
    return Contents(entries, said.node, metadata, said.ties)


def _in_one_file(file: File) -> dict[str, tuple[str, Grid]]:
    places = file.places()
    return {
        name: (code, Grid(shape, shape, (Part(None, places[name][0]),)))
        for name, (code, shape) in file.stated.items()
    }


def _check_index(file: File) -> None:
    if file.stated or file.metadata.get(CHECKSUM) != checksum({}, file.metadata, lambda name: ()):
        raise Damaged("it is damaged: it is the index of several files, and its checksum is wrong")


def _check_extents(index: Index) -> None:
    """Raise ``Damaged`` unless all parts are within their files."""
    for name, (code, grid) in index.arrays.items():
        size = math.prod(grid.part_shape) * item_size(name, code)
        for part in grid.parts:
            room = index.files[part.file or ""]
            if part.offset + size > room or len(part.checksums) != -(-size // BLOCK):
                raise Damaged(
                    f"its index is damaged: a part of {name} takes {size} bytes, with "
                    f"{len(part.checksums)} checksums, from byte {part.offset} of a file of {room}"
                )


def check(file: File) -> None:
    """Raise ``Damaged`` unless the file holds what it was written with.

    Data files are checked as they are read.
    """
    written = file.metadata.get(CHECKSUM)
    if written is None:
        raise Damaged("it has no checksum")
    places = file.places()

    def pieces(name: str) -> Iterator[memoryview]:
        offset, size = places[name]
        for done in range(0, size, _PIECE):
            yield bytes_at(file.raw, offset + done, min(_PIECE, size - done)).data

    if written != checksum(file.stated, file.metadata, pieces):
        raise Damaged("it is damaged: its checksum is not that of what is in it")


def _what_is_wrong(file: io.FileIO, error: object) -> str:
    size = os.fstat(file.fileno()).st_size
    begins = bytes_at(file, 0, min(size, 8)).tobytes()
    if begins[:4] == _ZIP:
        return "it is a zip archive (as PyTorch's .pt and NumPy's .npz are), not a safetensors file"
    if size < 8:
        return f"it has {size} bytes, and a safetensors file has 8 before its header"
    length = int.from_bytes(begins, "little")
    if begins.lstrip()[:1] == b"{":
        return (
            "it is text, not a safetensors file; where it is the index of a model of several "
            "files, stretto.merge.Checkpoint reads them"
        )
    if length > size - 8:
        return (
            f"it is truncated, or not a safetensors file: it has {size} bytes, and its first 8 "
            f"say that its header takes {length}"
        )
    return f"it is damaged, or not a safetensors file: {error} (it has {size} bytes)"


def bytes_at(file: io.FileIO, offset: int, size: int) -> np.ndarray:
    """Read these bytes of a file into aligned memory; raise ``Damaged`` at its end."""
    raw = aligned(size)
    view = raw.data
    file.seek(offset)
    done = 0
    while done < size:
        count = file.readinto(view[done:])
        if not count:
            raise Damaged(f"it ended while it was read, at byte {offset + done}")
        done += count
    return raw


Places: TypeAlias = dict[str, Sharding]
"""The shardings that arrays are asked to have, by name."""


def places_of(
    asked: Tree, root: Tree, names: Sequence[str], entries: Mapping[str, Entry], caller: str
) -> Places:
    """Return where ``load`` is asked to put the arrays of these names, a tree's leaves.

    Raises ``TypeError`` for what is not a place, ``ValueError`` for a device that is not there, an
    array that cannot be split so, or what is not a prefix of the tree.
    """
    if asked is None:
        return {}
    if callable(asked) and not isinstance(asked, (Sharding, Device)):
        each = [asked(name, ShapeDtypeStruct(*_typed(entries[name].type))) for name in names]
    else:
        each = tree.prefix_leaves(asked, root, caller, "sharding")
    places = {}
    for name, where in zip(names, each, strict=True):
        if where is None:
            continue
        if isinstance(where, (Sharding, PartitionSpec)):
            sharding = named_here(where, caller, "sharding")
        elif isinstance(where, (Device, str)):
            sharding = SingleDeviceSharding(as_device(where, caller, "sharding"))
        else:
            raise TypeError(
                f"{caller}: sharding must be a sharding, such as NamedSharding(mesh, P('data')), a "
                f"device, a tree of these, or a function of name and type; for {name} it is "
                f"{where!r}"
            )
        if not is_number(entries[name].kind):
            type = entries[name].type
            fit(sharding, _array_type(type, None, name), f"{caller}: {name}, {type},")
            places[name] = sharding
    return places


def of_like(leaves: Sequence[Any], names: Sequence[str]) -> Places:
    """Return where the leaves of a tree are, those that were put anywhere."""
    there = [getattr(leaf, "_sharding", None) for leaf in leaves]
    return {name: s for name, s in zip(names, there, strict=True) if s is not None}


def read_leaf(
    file: File, name: str, entry: Entry, kind: str | None, place: Sharding | None, lost: list[str]
) -> Tree:
    """Return the leaf of this kind, where it is asked to be; raises as ``restored`` does."""
    if place is None or is_number(kind):
        return restored(file.read(name, entry), entry.type, kind, name, lost)
    weak = "weak" if kind == "weak" else None
    if _is_usual(place):
        return restored(file.read(name, entry), entry.type, weak, name, lost)
    shape = entry.type.shape
    tail = tuple([slice(0, n) for n in entry.grid.shape[len(shape) :]])  # parts of an element
    type = _array_type(entry.type, weak, name)
    seen: dict[Any, np.ndarray] = {}
    parts = []
    for device, index in zip(place.device_list, place.indices(shape), strict=True):
        if device.is_local:
            key = tuple([(s.start, s.stop) for s in index])
            if key not in seen:
                raw = file.read(name, entry, (*index, *tail))
                part = Type(place.shard_shape(shape), entry.type.dtype)
                made = restored(raw, part, weak, name, lost)
                seen[key] = as_value(made, "load", name).to_host()
            parts.append(seen[key])
    return xla.sharded.of_parts(type, xla.partitions.put(parts, type, place), place)


def put(x: Array, place: Sharding) -> Array:
    """Return an array that is here, where it is asked to be."""
    return x if _is_usual(place) else xla.sharded.place(x, place)


def _is_usual(place: Sharding) -> bool:
    """Say whether it is where arrays are that were not put anywhere."""
    return place == SingleDeviceSharding(as_device(None, "load"))


def _typed(type: Type) -> tuple[tuple[int, ...], np.dtype]:
    return type.shape, canonical_dtype(type.dtype)


def _array_type(type: Type, kind: str | None, name: str) -> ArrayType:
    try:
        np.broadcast_to(np.empty(()), type.shape)
    except ValueError as error:
        raise Damaged(f"{name} is {type}, which no array can be: {error}") from None
    return array_type(*_typed(type), kind == "weak")


T = TypeVar("T")


class Header(NamedTuple):
    """The description of a file's contents, without the elements."""

    arrays: dict[str, ShapeDtypeStruct]
    """Shape and dtype of each array, by name."""
    metadata: dict[str, str]
    """The text that ``save`` was given, by name."""


@overload
def load(
    path: str | os.PathLike[str], like: None = None, *, sharding: Tree = None, strict: bool = True
) -> Tree: ...
@overload
def load(
    path: str | os.PathLike[str], like: T, *, sharding: Tree = None, strict: bool = True
) -> T: ...
def load(
    path: str | os.PathLike[str], like: Tree = None, *, sharding: Tree = None, strict: bool = True
) -> Tree:
    """Read the tree that ``save`` wrote to a file; or arrays by name, from a file by others.

    Without ``like``, dictionaries, lists, tuples, ``None`` and ragged arrays come back as they
    were; a named tuple, a dataclass, a module or another object as a dictionary of what is in it by
    dotted name. A leaf comes back as what it was, or is in ``like``: an ``Array``, NumPy's, a
    Python number. Arrays of 64 bits become those of 32 while ``enable_x64`` is off, with a warning
    where floats lose digits. Loading runs no code from the file.

    Arrays come back whole, however they were split when they were saved. With ``sharding`` they
    come back on devices, on as many as there are now, and of each array this process reads what its
    own devices need.

    Args:
        path: the file.
        like: a tree of any kind, whose structure comes back; its arrays (or ``ShapeDtypeStruct``)
            say which shapes and dtypes are expected, and where they are to be unless ``sharding``
            says it; their values are not used.
        sharding: where arrays are to be: a sharding, a ``PartitionSpec`` over the mesh in use, a
            ``Device`` or its name; a tree of these that is a prefix of the one that comes back; or
            a function of an array's name in the file and its ``ShapeDtypeStruct``. None for nowhere
            in particular. NumPy's arrays become ``Array``; Python numbers stay what they are.
        strict: whether arrays of the file that ``like`` lacks are an error; otherwise they are not
            read.

    Returns:
        A tree of arrays. What one array was, under two names (tied weights), is one again.

    Raises:
        TypeError: a leaf of ``like`` has a type that a file cannot hold, or ``sharding`` is not a
            place.
        ValueError: the file is damaged or not a safetensors file, or does not match ``like``: then
            all names that are missing or unexpected, and all types that differ, are listed; or
            ``strict`` is false without ``like``; or an array cannot be split as ``sharding`` says.
        OverflowError: integers of 64 bits do not fit into 32.
        FileNotFoundError: there is no such file.
        OSError: it is a folder, a device, a FIFO or a socket.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> st.save(path, {"w": snp.ones(2), "b": snp.float32(0.5)})
    >>> st.load(path, like={"w": snp.zeros(2), "b": snp.zeros(())})
    {'w': Array([1., 1.], dtype=float32), 'b': Array(0.5, dtype=float32)}

    >>> mesh = st.make_mesh((1,), ("data",))
    >>> split = st.sharding.NamedSharding(mesh, st.P("data"))
    >>> st.load(path, sharding=lambda name, x: split if x.shape else None)["w"].sharding
    NamedSharding(Mesh('data': 1), PartitionSpec('data'))
    """
    if like is None and not strict:
        raise ValueError("load: strict=False reads what `like` has, and there is none")
    return _load(
        path, None if like is None else lambda header: like, sharding, checked=False, strict=strict
    )


def load_checked(path: str | os.PathLike[str], like: Callable[[Header], Any]) -> Tree:
    """Load a file that was written with a checksum, as ``load`` does; ``like`` gets its header.

    Raises ``Damaged`` before anything else where the checksum is not there, or is another.
    """
    return _load(path, like, None, checked=True, strict=True)


def _load(
    path: str | os.PathLike[str],
    like: Callable[[Header], Any] | None,
    sharding: Tree,
    *,
    checked: bool,
    strict: bool,
) -> Tree:
    caller = f"load: {checked_path(path, 'load')}"
    lost: list[str] = []
    while True:
        try:
            with open_file(path, "load") as file:
                if checked:
                    check(file)
                contents = contents_of(file)
                if like is None:
                    made = _as_described(file, contents, sharding, caller, lost)
                else:
                    asked = like(_header(contents))
                    made = _as_like(file, contents, asked, sharding, caller, lost, strict)
            made = _remade(made, caller)
        except Replaced:
            continue
        except Damaged as error:
            raise type(error)(f"{caller}: {error}") from None
        except OverflowError as error:
            raise OverflowError(f"{caller}: {error}") from None
        break
    warn_of_lost(lost, caller)
    return made


def warn_of_lost(lost: Sequence[str], caller: str) -> None:
    """Say which arrays of 64 bits lost digits while they were read, if any did."""
    if lost:
        warnings.warn(
            f"{caller}: loses digits of {', '.join(dict.fromkeys(lost))}, of 64 bits in the file: "
            f"64-bit types are off; set stretto.config.enable_x64 = True, or use "
            f"`with stretto.enable_x64():`",
            stacklevel=user_stack_level(),
        )


def _remade(made: Tree, caller: str) -> Tree:
    """Return the tree, whose ragged arrays have the room that the lengths in the file need."""
    if not holds_ragged(made):
        return made
    try:
        each = lambda x: varying_sizes.ragged.as_read(x) if varying_sizes.ragged.is_ragged(x) else x
        return tree.map(each, made, is_leaf=varying_sizes.ragged.is_ragged)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{caller}: {error}") from None


def load_header(path: str | os.PathLike[str]) -> Header:
    """Read the names, shapes and dtypes of the arrays in a safetensors file, and its metadata.

    The elements are not read.

    Args:
        path: the file.

    Returns:
        A ``Header``.

    Raises:
        TypeError: ``path`` is not a path of text.
        ValueError: the file is damaged or not a safetensors file.
        FileNotFoundError: there is no such file.
        OSError: it is a folder, a device, a FIFO or a socket.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> st.save(path, {"w": snp.ones((3, 2))}, {"epoch": "7"})
    >>> header = st.files.load_header(path)
    >>> header.arrays, header.metadata["epoch"]
    ({'w': ShapeDtypeStruct(shape=(3, 2), dtype=float32)}, '7')
    """
    try:
        with open_file(path, "load_header") as file:
            return _header(contents_of(file, data=False))
    except Damaged as error:
        raise Damaged(f"load_header: {os.fspath(path)}: {error}") from None


def _header(contents: Contents) -> Header:
    entries = sorted(contents.entries.items())
    arrays = {name: ShapeDtypeStruct(*entry.type) for name, entry in entries}
    return Header(arrays, contents.metadata)


# The leaves


def _as_described(
    file: File, contents: Contents, sharding: Tree, caller: str, lost: list[str]
) -> Tree:
    entries = contents.entries
    names = {name: name for name in (entries if contents.described else sorted(entries))}
    root = rebuild(contents.node, names) if contents.described else names
    places = places_of(sharding, root, tree.leaves(root), entries, caller)
    leaves: dict[str, Any] = {}
    for n, e in entries.items():
        first = contents.ties.get(n)
        if first is not None and places.get(n) == places.get(first):
            leaves[n] = leaves[first]
        else:
            leaves[n] = read_leaf(file, first or n, e, e.kind, places.get(n), lost)
    return rebuild(contents.node, leaves) if contents.described else {n: leaves[n] for n in names}


def _as_like(
    file: File, contents: Contents, like: Tree, sharding: Tree, caller: str, lost: list[str],
    strict: bool,
) -> Tree:  # fmt: skip
    flat, structure = tree.flatten(like)
    names, entries = leaf_names(like, caller), contents.entries
    if not strict:
        entries = {name: entry for name, entry in entries.items() if name in set(names)}
    wanted = {name: _wanted(leaf, name, caller) for name, leaf in zip(names, flat, strict=True)}
    missing = [name for name in names if name not in entries]
    unexpected = sorted(name for name in entries if name not in wanted)
    problems = [f"missing: {', '.join(missing)}"] if missing else []
    if unexpected:
        problems.append(f"unexpected: {', '.join(unexpected)}")
    for name, (kind, type) in wanted.items():
        if name in entries and (expected := _misfit(kind, type, entries[name])):
            problems.append(f"{name}: expected {expected}, got {entries[name].type}")
    if problems:
        if problems == [f"unexpected: {', '.join(unexpected)}"]:
            problems.append("to read some of a file's arrays: load(path, like, strict=False)")
        raise ValueError("\n  ".join([f"{caller} does not match `like`:", *problems]))
    places = of_like(flat, names) | places_of(sharding, like, names, entries, caller)
    leaves: dict[str, Any] = {}
    for name, entry in entries.items():  # in the file's order, second names of arrays last
        first = contents.ties.get(name)
        if (
            first in leaves
            and (wanted[name], places.get(name)) == (wanted[first], places.get(first))
            and wanted[name][0] != "numpy"
        ):
            leaves[name] = leaves[first]
        else:
            leaves[name] = _leaf(file, name, entry, *wanted[name], places, lost)
    return tree.unflatten(structure, [leaves[name] for name in names])


def _wanted(leaf: Tree, name: str, caller: str) -> tuple[str | None, Type]:
    """Return the kind and type of a leaf of ``like``."""
    if isinstance(leaf, ShapeDtypeStruct):
        return None, Type(leaf.shape, leaf.dtype)
    try:
        kind = kind_of_leaf(leaf)
    except TypeError as error:
        raise TypeError(
            f"{caller}: `like` has at {name} {error}, which a file cannot hold"
        ) from None
    if not isinstance(leaf, (Value, np.ndarray, np.generic)):
        leaf = as_value(leaf, caller, name)
    return kind, Type(leaf.shape, leaf.dtype)


def _misfit(kind: str | None, type: Type, entry: Entry) -> str:
    """Return what was expected, in words, if it was something else; else nothing."""
    if is_number(kind):
        return "" if fits_number(entry.type, kind) else f"a Python {kind}"
    if is_number(entry.kind) and fits_number(entry.type, kind_of(type.dtype)):
        return "" if not type.shape else str(type)
    same = np.dtype if kind == "numpy" else canonical_dtype
    fits = entry.type.shape == type.shape and same(entry.type.dtype) == same(type.dtype)
    return "" if fits else str(type)


def _leaf(
    file: File,
    name: str,
    entry: Entry,
    kind: str | None,
    type: Type,
    places: Places,
    lost: list[str],
) -> Tree:
    """Return the array of this name as a leaf of the kind and type that ``like`` has there."""
    place = places.get(name)
    if not is_number(kind):
        if is_number(entry.kind):
            made = read_leaf(file, name, entry, kind, None, lost).astype(type.dtype)
            return made if place is None else put(made, place)
        if kind != "numpy":
            kind = "weak" if entry.kind == "weak" else None
    return read_leaf(file, name, entry, kind, place, lost)
