"""Arrays from those of other libraries, by the DLPack protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import array_type, canonical_dtype, kind_of
from stretto._engine.core.typing import ShardingLike
from stretto._engine.ops.convert import convert
from stretto._engine.xla.array import Array, import_dlpack
from stretto.numpy.arguments import put_result
from stretto.numpy.creation import copy as copy_of

if TYPE_CHECKING:
    from stretto._engine.xla.device import Device


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
