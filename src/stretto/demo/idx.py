"""Reads IDX files, the format of MNIST and its kin; trusts nothing that they say.

The format (Y. LeCun, "The MNIST database"): a big-endian header of two zero bytes, one byte for the
element type, one for the number of dimensions, and each dimension as a 32-bit integer; then the
elements, row by row.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from stretto.demo.errors import DemoError

__all__ = ["read_idx"]

_UNSIGNED_BYTES = 0x08
_MOST_BYTES = 2**31


def read_idx(path: Path, ndim: int) -> np.ndarray:
    """Return the array of unsigned bytes in an IDX file, gzip'd if its name ends in ``.gz``.

    Args:
        path: the file.
        ndim: how many dimensions it must have.

    Returns:
        uint8, read-only, of the shape that the header states.

    Raises:
        DemoError: the file is missing, cannot be read, is damaged, shorter or longer than its
            header says, or of another type or number of dimensions.
    """
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            return _parse(path, file, ndim)
    except FileNotFoundError:
        raise DemoError(f"{path}: no such file") from None
    except EOFError:
        raise DemoError(f"{path}: truncated: the gzip stream ends early") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DemoError(f"{path}: damaged gzip file: {error}") from None
    except OSError as error:
        raise DemoError(f"{path}: cannot be read: {error.strerror}") from None


def _parse(path: Path, file: BinaryIO | gzip.GzipFile, ndim: int) -> np.ndarray:
    header = file.read(4 + 4 * ndim)
    if len(header) < 4:
        raise DemoError(f"{path}: truncated: {len(header)} bytes, shorter than a header")
    magic, expected = int.from_bytes(header[:4]), _UNSIGNED_BYTES << 8 | ndim
    if magic != expected:
        raise DemoError(
            f"{path}: expected an IDX file of unsigned bytes in {ndim} dimensions, magic number "
            f"0x{expected:08x}, got 0x{magic:08x}"
        )
    if len(header) < 4 + 4 * ndim:
        raise DemoError(f"{path}: truncated: the header ends after {len(header)} bytes")
    shape = tuple(int(size) for size in np.frombuffer(header, ">u4", offset=4))
    size, written = math.prod(shape), "×".join(map(str, shape))
    if not 0 < size <= _MOST_BYTES:
        raise DemoError(f"{path}: expected 1 to {_MOST_BYTES} bytes of data, got {written}")
    content = file.read(size + 1)  # one more, to see the end of the file
    if len(content) != size:
        fault = "truncated" if len(content) < size else "too long"
        held = f"{len(content)} bytes" if len(content) < size else "more"
        raise DemoError(f"{path}: {fault}: the header says {written} = {size} bytes, got {held}")
    return np.frombuffer(content, np.uint8).reshape(shape)
