"""Methods about an array's storage: its devices and shards, its bytes and other views of them.

Their names are those of NumPy, of JAX, and of the array API standard.
"""

from __future__ import annotations

import importlib
import operator
from typing import TYPE_CHECKING, Never

import numpy as np

from stretto._engine import api, core, xla
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.types import is_complex, kind_of, real_dtype
from stretto._engine.core.typing import ArrayLike, DTypeLike
from stretto._engine.ops.bitcast import bitcast_convert_type
from stretto._engine.ops.comparison import ne
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.shape import concatenate, rev, slice_in_dim
from stretto._engine.xla.array import SHARDED, Array
from stretto._engine.xla.device import default_device
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.inspection import VERSIONS

if TYPE_CHECKING:
    import os
    from types import ModuleType
    from typing import BinaryIO

    from stretto._engine.core.shardings import Sharding
    from stretto._engine.xla.device import Device
    from stretto._engine.xla.sharded import Shard

_BYTE = np.dtype(np.uint8)
_BOOL = np.dtype(bool)


def _refuse_sizes(*arguments: object) -> None:
    """Raise for what PyTorch's ``view`` takes: sizes, or a tuple of them."""
    if isinstance(arguments[0], (int, tuple)):
        shape = ", ".join(str(x) for x in arguments if x is not None)
        raise TypeError(
            f"view: expected a dtype, got {arguments[0]}; for a shape use x.reshape({shape})"
        )


def view(self: Array, dtype: DTypeLike | None = None, type: None = None, *sizes: Never) -> Array:
    """Read the bytes of the elements as elements of another dtype.

    Args:
        self: the array.
        dtype: the dtype to read, which changes the size of the last axis; by default the array's
            own.
        type: must be None: there is one class of arrays.
        *sizes: must be left out: ``reshape`` takes a shape.

    Returns:
        An array of ``dtype``.

    Raises:
        NotImplementedError: ``type`` is given.
        TypeError: sizes are given in place of ``dtype``.
        ValueError: the last axis does not hold a whole number of elements.

    As NumPy's ``ndarray.view``.

    >>> import stretto.numpy as snp
    >>> snp.array([1.0, 2.0]).view(snp.uint16)
    Array([    0, 16256,     0, 16384], dtype=uint16)
    """
    _refuse_sizes(dtype, type, *sizes)
    if type is not None:
        raise NotImplementedError(f"view: type must be None, got {type}; use numpy.asarray(x)")
    if dtype is None:
        return self
    x, target = self, as_dtype(dtype)
    if target == x.dtype:
        return convert(x, target)
    if kind_of(x.dtype) == "bool":
        x = convert(x, _BYTE)
    if is_complex(x.dtype):
        x = _side_by_side([reshape(part(x), (*x.shape, 1)) for part in (real, imag)], self)
    wanted = target
    if kind_of(target) == "bool":
        wanted = _BYTE
    elif is_complex(target):
        wanted = real_dtype(target)
    have, want = x.dtype.itemsize, wanted.itemsize
    size = x.shape[-1] * have if x.ndim else have
    if (not self.ndim and self.dtype.itemsize != target.itemsize) or size % target.itemsize:
        raise ValueError(
            f"view: the last axis of {self.type} holds no whole number of elements of {target}"
        )
    if want > have:
        x = reshape(x, (*x.shape[:-1], x.shape[-1] * have // want, want // have))
    x = bitcast_convert_type(x, wanted)
    if want < have:
        x = reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))
    if wanted is target:
        return x
    if wanted is _BYTE:
        return ne(x, 0)
    pairs = reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
    first, second = (slice_in_dim(pairs, i, i + 1, 1, -1) for i in (0, 1))
    return reshape(complex_(first, second), pairs.shape[:-1] if self.ndim else ())


def _side_by_side(parts: list[Array], x: Array) -> Array:
    joined = concatenate(parts, parts[0].ndim - 1)
    return reshape(joined, (*x.shape[:-1], -1)) if x.ndim else joined


def byteswap(self: Array, inplace: bool = False) -> Array:
    """Reverse the order of the bytes of each element.

    Args:
        self: the array.
        inplace: must be False: arrays are immutable.

    Returns:
        An array of the same dtype and shape.

    Raises:
        TypeError: ``inplace`` is True.

    As NumPy's ``ndarray.byteswap``.

    >>> import stretto.numpy as snp
    >>> snp.array([1, 256], snp.int16).byteswap()
    Array([256,   1], dtype=int16)
    """
    if inplace:
        raise TypeError("byteswap: arrays are immutable, so inplace=True cannot be; use the result")
    if is_complex(self.dtype):
        return complex_(byteswap(real(self)), byteswap(imag(self)))
    if self.dtype.itemsize == 1:
        return self
    parts = bitcast_convert_type(self, _BYTE)
    return bitcast_convert_type(rev(parts, (self.ndim,)), self.dtype)


def _elements(x: ArrayLike, caller: str) -> np.ndarray:
    if isinstance(x, Tracer):
        return x.__array__()  # says what is wrong, and where the value comes from
    return np.asarray(as_value(x, caller))


def tobytes(self: Array, order: str = "C") -> bytes:
    r"""Copy the bytes of the elements.

    Args:
        self: the array.
        order: ``"C"``, row-major, or ``"F"``, column-major.

    Returns:
        Python bytes.

    Raises:
        TracedValueError: the array is traced.

    As NumPy's ``ndarray.tobytes``.

    >>> import stretto.numpy as snp
    >>> snp.array([1, 2], snp.int16).tobytes()
    b'\x01\x00\x02\x00'
    """
    return _elements(self, "tobytes").tobytes("F" if order == "F" else "C")


def tofile(
    self: Array, fid: str | os.PathLike[str] | BinaryIO, sep: str = "", format: str = "%s"
) -> None:
    r"""Write the elements to a file: their bytes, or text.

    Args:
        self: the array.
        fid: a file open for writing bytes, or the name of one, which is replaced whole.
        sep: what goes between elements; if empty, bytes are written.
        format: how an element is written as text.

    Raises:
        TracedValueError: the array is traced.

    As NumPy's ``ndarray.tofile``.

    >>> import io, tempfile
    >>> import stretto.numpy as snp
    >>> with tempfile.TemporaryFile() as file:
    ...     snp.array([1, 2], snp.int16).tofile(file)
    ...     file.seek(0), file.read()
    (0, b'\x01\x00\x02\x00')
    """
    host = _elements(self, "tofile")
    if hasattr(fid, "write"):
        host.tofile(fid, sep, format)
    else:
        core.files.write_whole(fid, lambda file: host.tofile(file, sep, format), "tofile")


def sharding(self: Array) -> Sharding | None:
    """Say where the array is.

    Args:
        self: the array.

    Returns:
        A sharding; None for a traced value.
    """
    if isinstance(self, Tracer):
        return None
    return (
        xla.sharded.sharding_of(self)
        if self.__class__ in SHARDED
        else core.shardings.SingleDeviceSharding(default_device())
    )


def device(self: Array) -> Device | Sharding:
    """Say which device the array is on.

    Args:
        self: the array.

    Returns:
        A device; a sharding where there are several.
    """
    if self.__class__ not in SHARDED:
        return default_device()
    where = xla.sharded.sharding_of(self)
    return where.device_list[0] if where.num_devices == 1 else where


def is_fully_addressable(self: Array) -> bool:
    """Say whether no part of the array is on a device of another process.

    Args:
        self: the array.

    Returns:
        A Python boolean.
    """
    return self.__class__ not in SHARDED or xla.sharded.sharding_of(self).is_fully_addressable


def is_fully_replicated(self: Array) -> bool:
    """Say whether every device of the array has all of its elements.

    Args:
        self: the array.

    Returns:
        A Python boolean.
    """
    return self.__class__ not in SHARDED or xla.sharded.sharding_of(self).is_fully_replicated


def committed(self: Array) -> bool:
    """Say whether the array was put on its devices, and what is computed from it stays there.

    Args:
        self: the array.

    Returns:
        A Python boolean.
    """
    return self.__class__ in SHARDED


def addressable_shards(self: Array) -> list[Shard]:
    """List the parts of the array on devices of this process.

    Args:
        self: the array.

    Returns:
        A list of shards: ``device``, ``index``, ``replica_id`` and ``data``.
    """
    if self.__class__ in SHARDED:
        return xla.sharded.shards_of(self)
    return [xla.sharded.Shard(default_device(), tuple([slice(0, n) for n in self.shape]), 0, self)]


def devices(self: Array) -> set[Device]:
    """List the devices that the array is on.

    Args:
        self: the array.

    Returns:
        A set of devices.

    As JAX's ``Array.devices``.

    >>> import stretto.numpy as snp
    >>> snp.ones(2).devices()
    {CpuDevice(id=0)}
    """
    return (
        xla.sharded.sharding_of(self).device_set
        if self.__class__ in SHARDED
        else {default_device()}
    )


def addressable_data(self: Array, index: int = 0) -> Array:
    """Give the part of the array on one of the devices of this process that it is on.

    Args:
        self: the array.
        index: which of these devices, in the order of the sharding.

    Returns:
        The part; of an array on one device, the array itself.

    Raises:
        IndexError: there are not as many devices.

    As JAX's ``Array.addressable_data``.

    >>> import stretto.numpy as snp
    >>> snp.ones(2).addressable_data(0)
    Array([1., 1.], dtype=float32)
    """
    shards = addressable_shards(self)
    place = operator.index(index)
    if not -len(shards) <= place < len(shards):
        count = f"{len(shards)} devices" if len(shards) > 1 else "one device, 0"
        raise IndexError(f"addressable_data: the array is on {count}; got {index}")
    return shards[place].data


def copy_to_host_async(self: Array) -> None:
    """Do nothing: the elements are in the host's memory.

    Args:
        self: the array.

    As JAX's ``Array.copy_to_host_async``.

    >>> import stretto.numpy as snp
    >>> snp.ones(2).copy_to_host_async()
    """


def namespace(self: Array, /, *, api_version: str | None = None) -> ModuleType:
    """Return the module of functions that takes these arrays, for the array API standard."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__: api_version must be None or one of {', '.join(VERSIONS)}; got "
            f"{api_version!r}"
        )
    return importlib.import_module("stretto.numpy")


def to_device(
    self: Array, device: Device | Sharding | str | None, /, *, stream: None = None
) -> Array:
    """Move the array to a device; return itself if it is there.

    Args:
        self: the array.
        device: the device, its name, a sharding, or None for where it is.
        stream: must be None.

    Returns:
        The array there.

    Raises:
        ValueError: ``device`` is not there, or ``stream`` is given.

    As the array API standard's ``to_device``.

    >>> import stretto.numpy as snp
    >>> x = snp.ones(2)
    >>> x.to_device(x.device) is x
    True
    """
    if stream is not None:
        raise ValueError(f"to_device: stream must be None; got {stream!r}")
    return api.sharding.placement.device_put(self, device)
