"""NumPy's files, and arrays from bytes, text, iterators and other libraries.

A file holds data only: nothing is pickled, and nothing unpickled. NumPy's format has no name for
bfloat16, which is written as two bytes of no type, and read back as bfloat16. Headers are checked
before memory is allocated: NumPy allocates as much as a header names, and reads a negative size as
all that is left. Trees of arrays are written by ``stretto.save``.
"""

from __future__ import annotations

import contextlib
import errno
import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import ml_dtypes
import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.files import checked_path, open_regular, write_whole
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import array_type, canonical_dtype, kind_of
from stretto._engine.core.typing import ArrayLike, DTypeLike, ShardingLike
from stretto._engine.ops.convert import convert
from stretto._engine.xla.array import Array, import_dlpack
from stretto.numpy.arguments import put_result
from stretto.numpy.creation import asarray
from stretto.numpy.creation import copy as copy_of

if TYPE_CHECKING:
    from numpy.lib.npyio import NpzFile

    from stretto._engine.xla.device import Device

__all__ = ["ArrayFile", "from_dlpack", "frombuffer", "fromfile", "fromiter",
           "fromstring", "load", "save", "savez", "savez_compressed"]  # fmt: skip

zipfile = LazyModule("zipfile")
zlib = LazyModule("zlib")

_MAGIC = b"\x93NUMPY"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")

_VERSIONS: dict[Any, Any] = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}
"""Gives by version the bytes that the header's length takes, and what reads the header."""

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
    """Return the size of a file in bytes; its position is kept."""
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


_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_BYTES = np.dtype("V2")


def _refuse_pickle(caller: str, allow_pickle: bool) -> None:
    if allow_pickle:
        raise ValueError(
            f"{caller}: allow_pickle=True is refused: what is unpickled can run any code. "
            "Arrays need no pickling; stretto.save writes trees of them"
        )


def _to_write(caller: str, x: ArrayLike, name: str) -> np.ndarray:
    """Return the elements, of a dtype that is recognized when read back.

    NumPy's arrays and Python's numbers keep their 64 bits, whether or not arrays here have them.
    """
    value = as_value(x, caller, name)
    if isinstance(value, Tracer):
        raise TracedValueError(
            f"{caller}: a file holds values, but {name}, a {value.type}, is traced: "
            f"{value.origin()}. Return it from the function that is transformed, and save it then"
        )
    host = np.asarray(value if isinstance(x, Value) else x)
    dtype = host.dtype
    if dtype != _BFLOAT16 and dtype.isbuiltin != 1:
        raise TypeError(
            f"{caller}: NumPy's format has no name for {dtype.name}, so {name} could not be read "
            f"back: convert it with .astype(...), or use stretto.save"
        )
    return host


def _write(
    caller: str,
    file: str | os.PathLike[str] | BinaryIO,
    suffix: str,
    write: Callable[[Any], object],
) -> None:
    """Write to an open file, or to one of this name, whole or not at all."""
    if hasattr(file, "write"):
        write(file)
        return
    path = checked_path(file, caller)
    write_whole(path if path.endswith(suffix) else path + suffix, write, caller)


class _Plain:
    """A file that shows NumPy only its ``write``, so that errors are the system's."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write


def _read(host: np.ndarray, name: str) -> Array:
    if host.dtype == _BYTES:
        host = host.view(_BFLOAT16)
    if host.dtype.kind not in "biufcV" or (host.dtype.kind == "V" and host.dtype != _BFLOAT16):
        raise TypeError(f"load: {name} holds elements of dtype {host.dtype}, which are not numbers")
    return asarray(host)


def save(
    file: str | os.PathLike[str] | BinaryIO, arr: ArrayLike, allow_pickle: bool = False
) -> None:
    """Write an array to a ``.npy`` file.

    Args:
        file: the name of the file, to which ``.npy`` is added where it is missing, or a file open
            for writing bytes. A file by its name is replaced once the new one is complete and on
            the disk, as by ``stretto.save``.
        arr: an array, or a number.
        allow_pickle: must be ``False``: what is unpickled can run any code.

    Raises:
        TypeError: the format has no name for the dtype, as for int4 and the float8 kinds.
        ValueError: ``allow_pickle`` is set.
        TracedValueError: ``arr`` is traced.
        OSError: the file cannot be written, or the name is that of something other than a file.

    As NumPy's ``save``.

    >>> import io
    >>> import stretto.numpy as snp
    >>> file = io.BytesIO()
    >>> snp.save(file, snp.array([1.0, 2.0], snp.bfloat16))
    >>> snp.load(io.BytesIO(file.getvalue()))
    Array([1, 2], dtype=bfloat16)
    """
    _refuse_pickle("save", allow_pickle)
    host = _to_write("save", arr, "arr")

    def write(to: BinaryIO) -> None:
        np.lib.format.write_array(_Plain(to), host, allow_pickle=False)  # type: ignore[arg-type]

    _write("save", file, ".npy", write)


def _save_archive(
    caller: str,
    file: str | os.PathLike[str] | BinaryIO,
    args: tuple[ArrayLike, ...],
    kwds: Mapping[str, ArrayLike],
    allow_pickle: bool,
) -> None:
    _refuse_pickle(caller, allow_pickle)
    arrays = {f"arr_{i}": x for i, x in enumerate(args)}
    if shared := sorted(arrays.keys() & kwds.keys()):
        raise ValueError(
            f"{caller}: {', '.join(shared)} would name two arrays; choose another name"
        )
    arrays |= kwds
    hosts: Any = {name: _to_write(caller, x, name) for name, x in arrays.items()}
    write = np.savez if caller == "savez" else np.savez_compressed
    _write(caller, file, ".npz", lambda to: write(to, allow_pickle=False, **hosts))


def savez(
    file: str | os.PathLike[str] | BinaryIO,
    *args: ArrayLike,
    allow_pickle: bool = False,
    **kwds: ArrayLike,
) -> None:
    """Write several arrays to a ``.npz`` file.

    Args:
        file: the name of the file, to which ``.npz`` is added where it is missing, or a file open
            for writing bytes. A file by its name is replaced once the new one is complete and on
            the disk, as by ``stretto.save``.
        *args: arrays, named ``arr_0``, ``arr_1``, ….
        allow_pickle: must be ``False``: what is unpickled can run any code.
        **kwds: arrays by name.

    Raises:
        TypeError: the format has no name for a dtype, as for int4 and the float8 kinds.
        ValueError: ``allow_pickle`` is set, or two arrays have one name.
        TracedValueError: an array is traced.
        OSError: the file cannot be written, or the name is that of something other than a file.

    As NumPy's ``savez``.

    >>> import io
    >>> import stretto.numpy as snp
    >>> file = io.BytesIO()
    >>> snp.savez(file, snp.array([1, 2]), w=snp.array([3.0]))
    >>> sorted(snp.load(io.BytesIO(file.getvalue())))
    ['arr_0', 'w']
    """
    _save_archive("savez", file, args, kwds, allow_pickle)


@described_like(savez)
def savez_compressed(
    file: str | os.PathLike[str] | BinaryIO,
    *args: ArrayLike,
    allow_pickle: bool = False,
    **kwds: ArrayLike,
) -> None:
    """Write several arrays to a compressed ``.npz`` file.

    As NumPy's ``savez_compressed``.

    >>> import io
    >>> import stretto.numpy as snp
    >>> file = io.BytesIO()
    >>> snp.savez_compressed(file, w=snp.zeros(1000))
    >>> len(file.getvalue()) < 1000
    True
    """
    _save_archive("savez_compressed", file, args, kwds, allow_pickle)


class ArrayFile(Mapping[str, Array]):
    """The arrays of a ``.npz`` file by name, each read when it is asked for; close it after use.

    Args:
        archive: the open archive; ``load`` makes it.

    >>> import io
    >>> import stretto.numpy as snp
    >>> file = io.BytesIO()
    >>> snp.savez(file, w=snp.array([3.0]))
    >>> with snp.load(io.BytesIO(file.getvalue())) as arrays:
    ...     print(arrays.files, arrays["w"])
    ['w'] [3.]
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    @property
    def files(self) -> list[str]:
        """The names."""
        return list(self._archive.names)

    def __getitem__(self, name: str) -> Array:
        return _read(self._archive.read(name), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._archive.names)

    def __len__(self) -> int:
        return len(self._archive.names)

    def __repr__(self) -> str:
        return f"ArrayFile of {', '.join(self.files)}"

    def __enter__(self) -> ArrayFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._archive.close()


def load(
    file: str | os.PathLike[str] | BinaryIO,
    allow_pickle: bool = False,
    *,
    max_header_size: int = 10000,
) -> Array | ArrayFile:
    """Read the array of a ``.npy`` file, or the arrays of a ``.npz`` file by name.

    Memory is allocated only if the file has as many bytes as its header says.

    Args:
        file: the name of the file, or a file open for reading bytes.
        allow_pickle: must be ``False``: what is unpickled can run any code.
        max_header_size: the greatest size of a header, in bytes.

    Returns:
        The array, or an ``ArrayFile``. 64-bit numbers become 32-bit ones unless ``enable_x64`` is
        set.

    Raises:
        ValueError: ``allow_pickle`` is set, or the file is damaged or holds pickled objects.
        EOFError: the file is empty.
        TypeError: the file holds something other than numbers.
        OSError: there is no such file, or it is a folder, a device, a FIFO or a socket.

    As NumPy's ``load``.

    >>> import io
    >>> import stretto.numpy as snp
    >>> file = io.BytesIO()
    >>> snp.save(file, snp.array([1.0, 2.0]))
    >>> snp.load(io.BytesIO(file.getvalue()))
    Array([1., 2.], dtype=float32)
    """
    _refuse_pickle("load", allow_pickle)
    stream: Any = file
    if hasattr(stream, "read"):
        return _loaded(stream, "the file", max_header_size, own=False)
    loaded, path = None, checked_path(file, "load")
    file = io.BufferedReader(open_regular(path, "load"))
    try:
        loaded = _loaded(file, path, max_header_size, own=True)
        return loaded
    finally:
        if not isinstance(loaded, ArrayFile):
            file.close()


def _loaded(file: IO[bytes], name: str, max_header_size: int, own: bool) -> Array | ArrayFile:
    with reading(name):
        if not check_header(file, name, max_header_size):
            contents = np.load(file, allow_pickle=False, max_header_size=max_header_size)
            return ArrayFile(Archive(contents, file, name, max_header_size, own))
        contents = np.lib.format.read_array(file, False, max_header_size=max_header_size)
    return _read(contents, name)


def _dtype(dtype: DTypeLike) -> np.dtype:
    """Return the dtype of what is read: of 64 bits where that is asked for."""
    out = np.dtype(dtype)
    if out.kind not in "biufcV":
        raise TypeError(f"expected a dtype of numbers, got {out}")
    return out


def fromfile(
    file: str | os.PathLike[str] | IO[Any],
    dtype: DTypeLike = float,
    count: int = -1,
    sep: str = "",
    offset: int = 0,
) -> Array:
    """Read the numbers in a file.

    Args:
        file: the name of the file, or an open file.
        dtype: the dtype in the file, 64-bit floats by default.
        count: how many numbers to read, all by default.
        sep: what is between the numbers in a text; ``""`` for a file of bytes.
        offset: where to begin, in bytes.

    Returns:
        The numbers, of rank 1; 64-bit ones become 32-bit ones unless ``enable_x64`` is set.

    Raises:
        TypeError: ``dtype`` is not one of numbers.
        OSError: the file cannot be read.

    As NumPy's ``fromfile``.

    >>> import tempfile
    >>> import stretto.numpy as snp
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(bytes([1, 0, 2, 0])), file.seek(0)
    ...     snp.fromfile(file, snp.int16)
    Array([1, 2], dtype=int16)
    """
    return asarray(np.fromfile(file, _dtype(dtype), count, sep, offset))


@described_like(fromfile)
def frombuffer(
    buffer: bytes | bytearray | memoryview | np.ndarray,
    dtype: DTypeLike = float,
    count: int = -1,
    offset: int = 0,
) -> Array:
    """Read the numbers that bytes hold.

    Args:
        buffer: the bytes, or what has the buffer protocol; they are copied.
        dtype: the dtype of the bytes, 64-bit floats by default.

    Raises:
        TypeError: ``dtype`` is not one of numbers.
        ValueError: there are fewer bytes, or not whole numbers of them.

    As NumPy's ``frombuffer``.

    >>> import stretto.numpy as snp
    >>> snp.frombuffer(bytes([1, 0, 2, 0]), snp.int16)
    Array([1, 2], dtype=int16)
    """
    return asarray(np.frombuffer(buffer, _dtype(dtype), count, offset))


def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1) -> Array:
    """Read the numbers that an iterator gives.

    Args:
        iter: the numbers.
        dtype: the dtype of the result.
        count: how many numbers to read, all by default.

    Returns:
        The numbers, of rank 1.

    Raises:
        TypeError: ``dtype`` is not one of numbers.
        ValueError: there are fewer than ``count`` numbers.

    As NumPy's ``fromiter``.

    >>> import stretto.numpy as snp
    >>> snp.fromiter((n * n for n in range(4)), int)
    Array([0, 1, 4, 9], dtype=int32)
    """
    return asarray(np.fromiter(iter, _dtype(dtype), count))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Read the numbers in a text; for bytes see ``frombuffer``.

    Args:
        string: the text.
        dtype: the dtype of the numbers, 64-bit floats by default.
        count: how many numbers to read, all by default.
        sep: what is between the numbers.

    Returns:
        The numbers, of rank 1; 64-bit ones become 32-bit ones unless ``enable_x64`` is set.

    Raises:
        ValueError: ``sep`` is empty.
        TypeError: ``dtype`` is not one of numbers.

    As NumPy's ``fromstring``.

    >>> import stretto.numpy as snp
    >>> snp.fromstring("1, 2, 3", int, sep=",")
    Array([1, 2, 3], dtype=int32)
    """
    if not sep:
        raise ValueError("fromstring: sep must be the text between the numbers, got ''")
    return asarray(np.fromstring(string, _dtype(dtype), count, sep=sep))


def from_dlpack(
    x: object, /, *, device: Device | ShardingLike | str | None = None, copy: bool | None = None
) -> Array:
    """Take over the array of another library by the DLPack protocol.

    Args:
        x: an array that has ``__dlpack__``, such as NumPy's or PyTorch's.
        device: the device, its name, or a sharding; by default the first device.
        copy: ``True`` copies always, ``None`` where others can write the memory. ``False`` uses the
            memory where it lies: what is written there later changes this array, and what was
            computed from it may or may not have seen that, so leave it alone.

    Returns:
        The array, of the shape of ``x`` and its dtype; 64-bit numbers become 32-bit ones unless
        ``enable_x64`` is set.

    Raises:
        TypeError: ``x`` has no ``__dlpack__``, or is not numeric.
        BufferError: the memory is that of another device, or ``copy=False`` and a copy is needed.
        ValueError: there is no such device.

    As the array API standard's ``from_dlpack``, 2024.12.

    >>> import numpy as np
    >>> import stretto.numpy as snp
    >>> snp.from_dlpack(np.arange(3.0, dtype="float32"))
    Array([0., 1., 2.], dtype=float32)
    """
    if device is not None:
        return put_result(from_dlpack(x, copy=copy), device, None, "from_dlpack")
    if isinstance(x, Array):  # or a tracer
        return copy_of(x) if copy else x
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(
            f"from_dlpack: x must have __dlpack__ and __dlpack_device__; got "
            f"{type(x).__module__}.{type(x).__qualname__}; use asarray for other things"
        )
    host = import_dlpack(x, copy)
    kind_of(host.dtype)
    dtype = canonical_dtype(host.dtype)
    if copy is False and dtype is not host.dtype:
        raise BufferError(
            f"from_dlpack: {host.dtype} becomes {dtype}, which needs a copy, and copy=False: set "
            f"enable_x64, or leave copy out"
        )
    if dtype is not host.dtype and dtype.kind in "iu":
        return as_value(host, "from_dlpack")
    return convert(Array(host, array_type(host.shape, host.dtype)), dtype)
