"""Memory shared with other libraries, by the DLPack protocol.

Layer 6 (runtime). NumPy reads and writes the protocol's structures; jaxlib those of the dtypes that
NumPy has no code for, such as bfloat16. Next, read ``pjrt``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.core.interpreter import refuse_masked
from stretto.core.types import ArrayType
from stretto.runtime import pjrt

__all__ = ["CPU_PAIR", "export", "take"]

CPU_PAIR = (1, 0)
"""The protocol's number for the CPU, and which of them."""

_READ_ONLY_SINCE = (1, 0)  # the first version that can say so


def export(
    host: np.ndarray,
    type: ArrayType,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule of the protocol, as the array API standard's ``__dlpack__`` gives it.

    The memory is the array's own, marked read-only, for who understands the mark (``max_version``
    1.0 or later); a copy for others, and of dtypes that NumPy does not know. Raises ``ValueError``
    for a stream, ``BufferError`` for another device, and where ``copy=False`` and a copy is needed.
    """
    if stream is not None:
        raise ValueError(f"__dlpack__: stream must be None on the CPU; got {stream!r}")
    if dl_device is not None and tuple(map(int, dl_device)) != CPU_PAIR:
        raise BufferError(f"__dlpack__: the array lies on the CPU, {CPU_PAIR}; got {dl_device}")
    foreign = host.dtype.isbuiltin != 1  # of ml_dtypes
    shareable = not foreign and max_version is not None and max_version >= _READ_ONLY_SINCE
    if copy is False and not shareable:
        raise BufferError(
            f"__dlpack__: {type} cannot be shared without a copy: "
            + ("NumPy has no code for its dtype" if foreign else
               "the consumer asks for a version that cannot mark memory as read-only")
        )  # fmt: skip
    if foreign:
        return pjrt.to_dlpack(pjrt.to_device(np.array(host), type, own=True))
    if copy or not shareable:
        shared = np.array(host)
    else:
        shared = host.view()
        shared.flags.writeable = False
    return shared.__dlpack__(max_version=max_version)


def take(x: Any, copy: bool | None) -> np.ndarray:
    """The elements of another library's array, in memory that nobody else may write.

    It is the other's own memory where that is marked read-only, or where ``copy=False``: a promise
    not to write it any more. Raises ``BufferError`` for another device, and where ``copy=False``
    and a copy is needed.
    """
    refuse_masked(x, "from_dlpack", "x")
    kind, number = x.__dlpack_device__()
    if int(kind) != CPU_PAIR[0]:
        raise BufferError(
            f"from_dlpack: expected an array on the CPU, device {CPU_PAIR}; got "
            f"{type(x).__module__}.{type(x).__qualname__} on device {(int(kind), number)}: move it "
            f"to the CPU first"
        )
    try:
        shared = np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError) as error:
        if copy is False:
            raise BufferError(f"from_dlpack: memory cannot be shared: {error}") from None
        return np.array(pjrt.from_dlpack(x.__dlpack__()))
    return np.array(shared) if copy or (copy is None and shared.flags.writeable) else shared
