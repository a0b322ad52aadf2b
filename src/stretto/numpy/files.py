"""NumPy's files, and arrays from bytes, text and iterators.

A file holds data only: nothing is pickled, and nothing unpickled. NumPy's format has no name for
bfloat16, which is written as two bytes of no type, and read back as bfloat16. Trees of arrays are
written by ``stretto.save``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import ml_dtypes
import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.files import checked_path, open_regular, write_whole
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto.numpy.creation import asarray
from stretto.numpy.file_headers import Archive, check_header, reading

if TYPE_CHECKING:
    import os

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_BYTES = np.dtype("V2")


def _refuse_pickle(caller: str, allow_pickle: bool) -> None:
    if allow_pickle:
        raise ValueError(
            f"{caller}: allow_pickle=True is refused: what is unpickled can run any code. "
            "Arrays need no pickling; stretto.save writes trees of them"
        )


def _to_write(caller: str, x: ArrayLike, name: str) -> np.ndarray:
    """The elements, of a dtype that is recognized when read back.

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
    """The dtype of what is read: of 64 bits where that is asked for."""
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
