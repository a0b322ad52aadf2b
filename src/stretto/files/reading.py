"""``load`` and ``load_header``: trees of arrays from safetensors files, and what is in a file.

The safetensors library checks the header, and arrays are read into memory of their own, aligned as
compiled programs want it (docs/decisions/0019-safetensors.md).
"""

from __future__ import annotations

import io
import math
import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
import safetensors

from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.core import tree
from stretto._engine.core.files import checked_path, opened
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.types import canonical_dtype, kind_of
from stretto._engine.core.typing import Tree
from stretto.files.checksums import CHECKSUM, checksum
from stretto.files.elements import (
    Type,
    fits_number,
    is_number,
    kind_of_leaf,
    restored,
    true_type,
)
from stretto.files.names import (
    DESCRIPTION,
    Damaged,
    leaf_names,
    parse,
    rebuild,
    refuse_twice,
)

__all__ = ["Header", "load", "load_checked", "load_header"]

T = TypeVar("T")

_ALIGNMENT = 64  # bytes; compiled programs use such memory where it lies
_ZIP = b"PK\x03\x04"


class Header(NamedTuple):
    """What a file holds, without the elements."""

    arrays: dict[str, ShapeDtypeStruct]
    """Shape and dtype of each array, by name."""
    metadata: dict[str, str]
    """The text that ``save`` was given, by name."""


class _Entry(NamedTuple):
    """An array in the file."""

    type: Type
    kind: str | None
    offset: int
    """Of its first byte, from the beginning of the file."""
    size: int
    """In bytes."""


class _Contents(NamedTuple):
    """All that a file's header says."""

    entries: dict[str, _Entry]
    node: Any
    metadata: dict[str, str]

    @property
    def described(self) -> bool:
        return self.node is not _NO_NODE


_NO_NODE = object()


@overload
def load(path: str | os.PathLike[str], like: None = None) -> Tree: ...
@overload
def load(path: str | os.PathLike[str], like: T) -> T: ...
def load(path: str | os.PathLike[str], like: Tree = None) -> Tree:
    """Read the tree that ``save`` wrote to a file; or arrays by name, from a file by others.

    Without ``like``, dictionaries, lists, tuples and ``None`` come back as they were; a named
    tuple, a dataclass, a module or another object as a dictionary of what is in it by dotted name.
    A leaf comes back as what it was, or is in ``like``: an ``Array``, NumPy's, a Python number.
    Arrays of 64 bits become those of 32 while ``enable_x64`` is off, with a warning where floats
    lose digits. Loading runs no code from the file.

    Args:
        path: the file.
        like: a tree of any kind, whose structure comes back; its arrays (or ``ShapeDtypeStruct``)
            say which shapes and dtypes are expected, and their values are not used.

    Returns:
        A tree of arrays.

    Raises:
        TypeError: a leaf of ``like`` has a type that a file cannot hold.
        ValueError: the file is damaged or not a safetensors file, or does not match ``like``: then
            all names that are missing or unexpected, and all types that differ, are listed.
        OverflowError: integers of 64 bits do not fit into 32.
        FileNotFoundError: there is no such file.
        OSError: it is a folder, a device, a FIFO or a socket.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> st.save(path, {"w": snp.ones(2), "b": snp.float32(0.5)})
    >>> st.load(path, like={"w": snp.zeros(2), "b": snp.zeros(())})
    {'w': Array([1., 1.], dtype=float32), 'b': Array(0.5, dtype=float32)}
    """
    return _load(path, None if like is None else lambda header: like, check=False)


def load_checked(path: str | os.PathLike[str], like: Callable[[Header], Any]) -> Tree:
    """As ``load``, of a file that was written with a checksum; ``like`` is given its header.

    Raises ``Damaged`` before anything else where the checksum is not there, or is another.
    """
    return _load(path, like, check=True)


def _load(
    path: str | os.PathLike[str], like: Callable[[Header], Any] | None, *, check: bool
) -> Tree:
    caller = f"load: {checked_path(path, 'load')}"
    lost: list[str] = []
    try:
        with _opened(path, "load") as file:
            if check:
                _check(file)
            contents = _contents(file)
            if like is None:
                made = _as_described(file, contents, lost)
            else:
                made = _as_like(file, contents, like(_header(contents)), caller, lost)
    except Damaged as error:
        raise type(error)(f"{caller}: {error}") from None
    except OverflowError as error:
        raise OverflowError(f"{caller}: {error}") from None
    if lost:
        warnings.warn(
            f"{caller}: loses digits of {', '.join(lost)}, of 64 bits in the file: 64-bit types "
            f"are off; set stretto.config.enable_x64 = True, or use `with stretto.enable_x64():`",
            stacklevel=user_stack_level(),
        )
    return made


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
    >>> header = st.load_header(path)
    >>> header.arrays, header.metadata["epoch"]
    ({'w': ShapeDtypeStruct(shape=(3, 2), dtype=float32)}, '7')
    """
    try:
        with _opened(path, "load_header") as file:
            return _header(_contents(file))
    except Damaged as error:
        raise Damaged(f"load_header: {os.fspath(path)}: {error}") from None


def _header(contents: _Contents) -> Header:
    entries = sorted(contents.entries.items())
    arrays = {name: ShapeDtypeStruct(*entry.type) for name, entry in entries}
    return Header(arrays, contents.metadata)


# The header


class _File:
    """An open file with what its header says, as the safetensors library read and checked it."""

    def __init__(self, path: str, caller: str) -> None:
        self.raw = opened(path, caller)
        try:
            self._check(path)
        except BaseException:
            self.raw.close()
            raise

    def _check(self, path: str) -> None:
        try:
            with safetensors.safe_open(path, "np") as opened:
                names = opened.offset_keys()
                slices = [opened.get_slice(name) for name in names]
                self.metadata: dict[str, str] = dict(opened.metadata() or {})
        except safetensors.SafetensorError as error:
            raise Damaged(_what_is_wrong(self.raw, error)) from None
        # The library takes the last of several arrays of a name, and others may take the first.
        header = self.bytes_at(8, int.from_bytes(self.bytes_at(0, 8), "little"))
        refuse_twice(header.tobytes())
        stated = [(s.get_dtype(), tuple(s.get_shape())) for s in slices]
        self.stated = dict(zip(names, stated, strict=True))
        # The path may lead to another file by now; the library opened it between these two.
        self.is_current = os.path.samestat(os.stat(path), os.fstat(self.raw.fileno()))

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: object) -> None:
        self.raw.close()

    def bytes_at(self, offset: int, size: int) -> np.ndarray:
        """These bytes of the file, in aligned memory of their own."""
        return _bytes_at(self.raw, offset, size)


def _opened(path: str | os.PathLike[str], caller: str) -> _File:
    """The file that is there, also while others replace it."""
    text = checked_path(path, caller)
    while True:
        file = _File(text, caller)
        if file.is_current:
            return file
        file.raw.close()


def _contents(file: _File) -> _Contents:
    """The arrays with their places in the file, and the description."""
    metadata = dict(file.metadata)
    kinds: dict[str, str] = {}
    dtypes: dict[str, str] = {}
    node = _NO_NODE
    metadata.pop(CHECKSUM, None)
    if DESCRIPTION in metadata:
        node, kinds, dtypes = parse(metadata.pop(DESCRIPTION))
    entries = {}
    places = _places(file)
    for name, (code, shape) in file.stated.items():
        type = true_type(name, code, shape, dtypes.get(name))
        entries[name] = _Entry(type, kinds.get(name), *places[name])
    return _Contents(entries, node, metadata)


def _places(file: _File) -> dict[str, tuple[int, int]]:
    """Of each array the first byte in the file, and how many there are."""
    # The format leaves no holes: each array begins where the one before it ends.
    offset = 8 + int.from_bytes(file.bytes_at(0, 8), "little")
    places = {}
    for name, (code, shape) in file.stated.items():
        size = true_type(name, code, shape, None).dtype.itemsize * math.prod(shape)
        places[name] = offset, size
        offset += size
    return places


def _check(file: _File) -> None:
    """Raise ``Damaged`` unless the file holds what it was written with."""
    written = file.metadata.get(CHECKSUM)
    if written is None:
        raise Damaged("it has no checksum")
    places = _places(file)
    if written != checksum(file.stated, file.metadata, lambda name: file.bytes_at(*places[name])):
        raise Damaged("it is damaged: its checksum is not that of what is in it")


def _what_is_wrong(file: io.FileIO, error: object) -> str:
    size = os.fstat(file.fileno()).st_size
    begins = _bytes_at(file, 0, min(size, 8)).tobytes()
    if begins[:4] == _ZIP:
        return "it is a zip archive (as PyTorch's .pt and NumPy's .npz are), not a safetensors file"
    if size < 8:
        return f"it has {size} bytes, and a safetensors file has 8 before its header"
    length = int.from_bytes(begins, "little")
    if length > size - 8:
        return (
            f"it is truncated, or not a safetensors file: it has {size} bytes, and its first 8 "
            f"say that its header takes {length}"
        )
    return f"it is damaged, or not a safetensors file: {error} (it has {size} bytes)"


def _bytes_at(file: io.FileIO, offset: int, size: int) -> np.ndarray:
    room = np.empty(size + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    raw = room[start : start + size]
    view = raw.data
    file.seek(offset)
    done = 0
    while done < size:
        count = file.readinto(view[done:])
        if not count:
            raise Damaged(f"it ended while it was read, at byte {offset + done}")
        done += count
    return raw


# The leaves


def _read(file: _File, name: str, entry: _Entry, kind: str | None, lost: list[str]) -> Tree:
    return restored(file.bytes_at(entry.offset, entry.size), entry.type, kind, name, lost)


def _as_described(file: _File, contents: _Contents, lost: list[str]) -> Tree:
    leaves = {n: _read(file, n, e, e.kind, lost) for n, e in contents.entries.items()}
    if contents.described:
        return rebuild(contents.node, leaves)
    return {name: leaves[name] for name in sorted(leaves)}


def _as_like(file: _File, contents: _Contents, like: Tree, caller: str, lost: list[str]) -> Tree:
    flat, structure = tree.flatten(like)
    names, entries = leaf_names(like, caller), contents.entries
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
        raise ValueError("\n  ".join([f"{caller} does not match `like`:", *problems]))
    leaves = {}
    for name, entry in entries.items():  # in the file's order
        leaves[name] = _leaf(file, name, entry, *wanted[name], lost)
    return tree.unflatten(structure, [leaves[name] for name in names])


def _wanted(leaf: Tree, name: str, caller: str) -> tuple[str | None, Type]:
    """The kind and type of a leaf of ``like``."""
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


def _misfit(kind: str | None, type: Type, entry: _Entry) -> str:
    """What was expected, in words, if it was something else; else nothing."""
    if is_number(kind):
        return "" if fits_number(entry.type, kind) else f"a Python {kind}"
    if is_number(entry.kind) and fits_number(entry.type, kind_of(type.dtype)):
        return "" if not type.shape else str(type)
    same = np.dtype if kind == "numpy" else canonical_dtype
    fits = entry.type.shape == type.shape and same(entry.type.dtype) == same(type.dtype)
    return "" if fits else str(type)


def _leaf(
    file: _File, name: str, entry: _Entry, kind: str | None, type: Type, lost: list[str]
) -> Tree:
    """The array of this name as a leaf of the kind and type that ``like`` has there."""
    if not is_number(kind):
        if is_number(entry.kind):
            return _read(file, name, entry, kind, lost).astype(type.dtype)
        if kind != "numpy":
            kind = "weak" if entry.kind == "weak" else None
    return _read(file, name, entry, kind, lost)
