"""The headers of NumPy's files, checked before memory is allocated.

NumPy allocates as much memory as a header names, and reads a negative size as all that is left.
Read ``files`` first.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.lazy import LazyModule

if TYPE_CHECKING:
    from typing import IO

    from numpy.lib.npyio import NpzFile

zipfile = LazyModule("zipfile")
zlib = LazyModule("zlib")

_MAGIC = b"\x93NUMPY"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")

_VERSIONS: dict[Any, Any] = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}
"""By version: how many bytes the header's length takes, and what reads the header."""

_DEFLATED = 1032
"""Deflate expands one byte to at most this many (RFC 1951: 258 bytes in two bits)."""


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Report what is wrong with a file as ``ValueError``, with its name.

    Args:
        name: the name of the file, for messages.

    Raises:
        ValueError: in place of the errors of damaged files.
    """
    try:
        yield
    except ValueError as error:
        message = str(error)
    except (EOFError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, EOFError) and str(error).startswith("load:"):
            raise
        message = f"it is damaged: {error}"
    except OSError as error:
        if error.errno != errno.EINVAL:  # an impossible place in the file
            raise
        message = f"it is damaged: {error}"
    except (zipfile.BadZipFile, zlib.error) as error:
        message = f"it is damaged: {error}"
    else:
        return
    raise ValueError(
        message if message.startswith("load:") else f"load: {name}: {message}"
    ) from None


def check_header(file: IO[bytes], name: str, max_header_size: int, left: int | None = None) -> bool:
    """Check that a file holds an array, and no zip archive; the file's position is kept.

    Args:
        file: a file open for reading bytes.
        name: its name, for messages.
        max_header_size: the greatest size of the header, in bytes.
        left: how many bytes there are; by default as many as to the end.

    Returns:
        Whether it holds an array; if not, it is a zip archive.

    Raises:
        EOFError: the file is empty.
        ValueError: it holds pickled objects or another format, or less of the array than it says.
    """
    begin = file.tell()
    room: int = _size(file) - begin if left is None else left
    magic = file.read(len(_MAGIC))
    file.seek(begin)
    if not magic:
        raise EOFError(f"load: {name} is empty: there is no array in it")
    if magic.startswith(_ZIP):
        return False
    if magic != _MAGIC:
        raise _pickled(name)
    version = np.lib.format.read_magic(file)
    if version not in _VERSIONS:
        raise ValueError(
            f"it has version {version} of the format, which arrays of numbers never have"
        )
    digits, read = _VERSIONS[version]
    place = file.tell()
    length = int.from_bytes(file.read(digits), "little")
    if length > room:
        raise ValueError(f"its header is damaged: it takes {length} bytes, but there are {room}")
    file.seek(place)
    try:
        shape, _, dtype = read(file, max_header_size)
    except Exception as error:  # the header is parsed as Python, which can fail in any way
        raise ValueError(f"its header is damaged: {error}") from None
    if dtype.hasobject:
        raise _pickled(name)
    if any(size < 0 for size in shape):
        raise ValueError(f"it is damaged: its header says that the shape is {shape}")
    size, rest = dtype.itemsize * math.prod(shape), room - (file.tell() - begin)
    if size > rest:
        raise ValueError(
            f"it is truncated: {dtype}{list(shape)} takes {size} bytes, but there are {rest}"
        )
    file.seek(begin)
    return True


def _size(file: IO[bytes]) -> int:
    """The size of a file in bytes; its position is kept."""
    place = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(place)
    return size


def _pickled(name: str) -> ValueError:
    return ValueError(
        f"load: {name}: expected numbers in NumPy's format; this file has another, or holds "
        f"pickled objects, which are not read, since that can run any code"
    )


class Archive:
    """A zip archive of arrays, as NumPy opened it; each is read when it is asked for.

    Args:
        archive: what NumPy opened.
        file: the file beneath it.
        name: its name, for messages.
        max_header_size: the greatest size of an array's header, in bytes.
        own: whether to close the file with the archive.
    """

    def __init__(
        self, archive: NpzFile, file: IO[bytes], name: str, max_header_size: int, own: bool
    ) -> None:
        self.names: list[str] = list(archive.files)
        self._archive, self._file, self._own = archive, file, own
        self._name, self._max_header_size = name, max_header_size

    def read(self, name: str) -> np.ndarray:
        """Read one array.

        Args:
            name: its name.

        Returns:
            The array, in NumPy.

        Raises:
            KeyError: there is none of this name.
            ValueError: the array is damaged, or holds pickled objects.
        """
        if name not in self._archive:
            raise KeyError(f"load: {self._name} has no array {name!r}; it has {self.names}")
        whole = f"{name} in {self._name}"
        with reading(whole):
            members: Any = self._archive.zip
            info = members.getinfo(name if name in members.namelist() else f"{name}.npy")
            left = info.file_size
            if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                left = min(left, _DEFLATED * _size(self._file))
            with members.open(info) as file:
                if not check_header(file, whole, self._max_header_size, left):
                    raise ValueError("it is an archive, not an array")
                return np.lib.format.read_array(file, False, max_header_size=self._max_header_size)

    def close(self) -> None:
        """Close the archive, and the file if it was opened for the archive."""
        self._archive.close()
        if self._own:
            self._file.close()

    def __del__(self) -> None:
        self.close()
