"""Arrays from those of other libraries, by the DLPack protocol.

Next, read ``runtime/dlpack``.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.core.interpreter import Value
from stretto._engine.core.types import array_type, canonical_dtype, kind_of
from stretto._engine.ops.convert import convert
from stretto._engine.runtime.array import Array
from stretto._engine.runtime.dlpack import take
from stretto.numpy.arguments import refuse_device
from stretto.numpy.creation import copy as copy_of

__all__ = ["from_dlpack"]


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """The array of another library that has ``__dlpack__``, such as NumPy's or PyTorch's.

    Memory that others can write is copied. ``copy=False`` uses it where it lies: what is written
    there later changes this array, and what was computed from it may or may not have seen that, so
    leave it alone. Memory that stays as it is, marked read-only, is used where it lies by default,
    and ``copy=True`` copies that too.
    Types of 64 bits become 32 unless ``enable_x64`` is set. Raises ``TypeError`` for what has no
    ``__dlpack__``, ``BufferError`` for memory of another device, and where ``copy=False`` and a
    copy is needed. Source: the Python array API standard, 2024.12.

    >>> import numpy as np
    >>> import stretto.numpy as snp
    >>> snp.from_dlpack(np.arange(3.0, dtype="float32"))
    Array([0., 1., 2.], dtype=float32)
    """
    refuse_device("from_dlpack", device)
    if isinstance(x, Value):
        return copy_of(x) if copy else x
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(
            f"from_dlpack: x must have __dlpack__ and __dlpack_device__; got "
            f"{type(x).__module__}.{type(x).__qualname__}; use asarray for other things"
        )
    host = take(x, copy)
    kind_of(host.dtype)
    dtype = canonical_dtype(host.dtype)
    if copy is False and dtype is not host.dtype:
        raise BufferError(
            f"from_dlpack: {host.dtype} becomes {dtype}, which needs a copy, and copy=False: set "
            f"enable_x64, or leave copy out"
        )
    return convert(Array(host, array_type(host.shape, host.dtype)), dtype)
