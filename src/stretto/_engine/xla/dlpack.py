"""Memory shared with other libraries, by the DLPack protocol.

NumPy reads and writes the protocol's structures, and jaxlib those for dtypes that NumPy does not
know, such as bfloat16.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import refuse_masked
from stretto._engine.core.types import ArrayType
from stretto._engine.xla import pjrt

CPU_PAIR = (1, 0)
"""The protocol's device type for the CPU, and the device's number."""

_READ_ONLY_SINCE = (1, 0)  # the first version that can mark memory as read-only


UNSAID: Any = object()
"""Stands for an argument of ``__dlpack__`` that was not passed."""


def export(
    host: np.ndarray,
    type: ArrayType,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
    caller: CodeType,
) -> Any:
    """Return a capsule of the protocol, as ``__dlpack__`` of the array API standard returns it.

    It holds a copy, marked as one, unless the array's own memory can be shared, marked read-only:
    with NumPy, which respects the mark, and with callers that pass ``copy=False``. Others may write
    to shared memory, as PyTorch does. ``caller`` is the code that called ``__dlpack__``. Raises
    ``ValueError`` for a stream, ``BufferError`` for another device, or if ``copy=False`` and a copy
    is needed.
    """
    by_numpy = _is_numpy(stream, dl_device, copy, caller)
    stream = None if stream is UNSAID else stream
    dl_device = None if dl_device is UNSAID else dl_device
    copy = None if copy is UNSAID else copy
    if stream is not None:
        raise ValueError(f"__dlpack__: stream must be None on the CPU; got {stream!r}")
    if dl_device is not None and tuple(map(int, dl_device)) != CPU_PAIR:
        raise BufferError(f"__dlpack__: the array is on the CPU, {CPU_PAIR}; got {dl_device}")
    foreign = host.dtype.isbuiltin != 1  # a dtype of ml_dtypes
    markable = max_version is not None and max_version >= _READ_ONLY_SINCE
    if copy is False and (foreign or not markable):
        raise BufferError(
            f"__dlpack__: {type} cannot be shared without a copy: "
            + ("NumPy cannot export its dtype" if foreign else
               "the consumer asks for a version that cannot mark memory as read-only")
        )  # fmt: skip
    if foreign:
        return pjrt.to_dlpack(pjrt.to_device(np.array(host), type, own=True))
    if copy is False or (copy is None and by_numpy and markable):
        return read_only(host).__dlpack__(max_version=max_version)
    return host.__dlpack__(max_version=max_version, copy=True)


def _is_numpy(stream: Any, dl_device: Any, copy: Any, caller: CodeType) -> bool:
    """Say whether the caller is NumPy's ``from_dlpack``.

    It passes its own arguments on, ``None`` or not, while others leave out what their users did;
    and it is written in C, so the calling Python code does not contain the method's name.
    """
    like_numpy = stream is UNSAID and dl_device is not UNSAID and copy is not UNSAID
    return like_numpy and "__dlpack__" not in caller.co_names


def read_only(host: np.ndarray) -> np.ndarray:
    """Return a view that is read-only and cannot be made writable.

    NumPy allows a view to be made writable if any array that it is a view of is writable, so all of
    them are made read-only.
    """
    owner: Any = host
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            owner.flags.writeable = False
        owner = owner.base
    return host.view()


def _unchanging(x: Any) -> bool:
    """Say whether memory marked read-only really never changes.

    NumPy marks only the view: the array that it is a view of may be writable.
    """
    while isinstance(x, np.ndarray):
        if x.flags.writeable:
            return False
        x = x.base
        if x is None or isinstance(x, bytes):
            return True
        if not isinstance(x, np.ndarray):
            return False  # memory of something else, which may change it
    return True


def take(x: Any, copy: bool | None) -> np.ndarray:
    """Return the elements of another library's array, in memory that nobody else writes to.

    They are copied, unless the memory is marked read-only, or ``copy=False``, in which case later
    writes show through. Raises ``BufferError`` for another device, or if ``copy=False`` and a copy
    is needed.
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
    if copy is False or (copy is None and not shared.flags.writeable and _unchanging(x)):
        return shared
    return np.array(shared)
