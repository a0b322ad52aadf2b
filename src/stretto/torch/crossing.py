"""Arrays from tensors of PyTorch, and tensors from arrays; and the files of ``torch.save``.

PyTorch writes to tensors in place, whatever DLPack says of their memory, and arrays never change.
So memory is shared only by those who do not keep it, or give it away.
"""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from stretto._engine.core.config import config
from stretto._engine.core.files import open_regular
from stretto._engine.core.integers import narrow
from stretto._engine.core.types import array_type, canonical_dtype, is_inexact
from stretto._engine.core.typing import Array
from stretto._engine.xla import pjrt
from stretto._engine.xla.array import Array as _Array

_AS_BITS = {
    torch.bfloat16: (torch.int16, np.dtype(ml_dtypes.bfloat16)),
    torch.float8_e4m3fn: (torch.int8, np.dtype(ml_dtypes.float8_e4m3fn)),
    torch.float8_e5m2: (torch.int8, np.dtype(ml_dtypes.float8_e5m2)),
}
"""The dtypes that NumPy has from ``ml_dtypes``, and PyTorch's of their size that NumPy has too."""

_FROM_BITS = {dtype: theirs for theirs, (_, dtype) in _AS_BITS.items()}


def to_numpy(tensor: Any, caller: str) -> np.ndarray:
    """Return a copy of a tensor, of its dtype.

    Raises ``TypeError`` for tensors that are sparse, quantized, without elements in memory, or of a
    dtype that NumPy lacks.
    """
    return _view(tensor if tensor.is_meta else tensor.detach().cpu(), caller).copy()


def dense(tensor: Any) -> Any:
    """Return the tensor itself, or what a sparse one without gradients is in full."""
    sparse = tensor.layout is not torch.strided and not tensor.requires_grad
    return tensor.detach().to_dense() if sparse else tensor


def borrowed(tensor: Any, caller: str) -> Array:
    """Return an array in the memory of a tensor, to be used up before anybody writes to that again.

    What has another layout, or 64-bit integers while those are off, is copied. Raises ``TypeError``
    for tensors that are not on the CPU, are sparse or quantized, or would lose precision.
    """
    if tensor.device.type != "cpu":
        raise TypeError(
            f"{caller}: expected tensors on the CPU, got one on {tensor.device}: move module and "
            f'arguments there by .to("cpu")'
        )
    host = _view(tensor.detach(), caller)
    dtype = canonical_dtype(host.dtype)
    if dtype != host.dtype:
        if is_inexact(dtype):
            raise TypeError(
                f"{caller}: {host.dtype} would become {dtype}: convert the tensor, or set "
                f"stretto.config.enable_x64 = True to compute in {host.dtype}"
            )
        host = narrow(host, dtype, caller, "a tensor")
    return _Array(host, array_type(host.shape, dtype))


def _view(tensor: Any, caller: str) -> np.ndarray:
    """Return a NumPy array in the memory of a CPU tensor, if its layout is that of arrays."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        where = " on the device meta" if tensor.is_meta else ""
        raise TypeError(
            f"{caller}: expected dense tensors, got one of layout {tensor.layout} and dtype "
            f"{tensor.dtype}{where}; convert it, as by .to_dense() or .dequantize()"
        )
    plain = tensor.resolve_conj().resolve_neg().contiguous()
    bits, dtype = _AS_BITS.get(plain.dtype, (plain.dtype, None))
    try:
        host = plain.view(bits).numpy()
    except (RuntimeError, TypeError) as error:  # NumPy lacks the dtype, or there are no elements
        raise TypeError(
            f"{caller}: expected tensors with elements, of a dtype that NumPy has; got a "
            f"{type(tensor).__name__} of {tensor.dtype}"
        ) from error
    return host if dtype is None else host.view(dtype)


def given(array: Array, caller: str) -> Any:
    """Return a tensor of an array that nobody uses: in its memory, if a program computed it.

    Arrays that lie with NumPy, and all that was not compiled, are copied: others may have them.
    """
    if config.disable_jit or array.__class__ is not _Array or array.host() is not None:
        return to_torch(np.asarray(array), caller)
    return torch.from_dlpack(pjrt.to_dlpack(array.to_buffer()))


def to_torch(array: np.ndarray, caller: str) -> Any:
    """Return a tensor with a copy of an array's elements, of its dtype.

    Raises ``TypeError`` for a dtype that PyTorch lacks.
    """
    own = np.array(array, order="C")
    try:
        if own.dtype in _FROM_BITS:
            bits = torch.from_numpy(own.view(f"i{own.itemsize}"))
            return bits.view(_FROM_BITS[own.dtype])
        return torch.from_numpy(own)
    except TypeError as error:
        raise TypeError(
            f"{caller}: PyTorch has no tensors of {array.dtype}; convert it first"
        ) from error


def read(path: str, caller: str) -> Any:
    """Read a file of ``torch.save`` with PyTorch, which unpickles tensors and plain containers.

    Raises ``ValueError`` for a file that is damaged, or holds anything else; ``OSError`` for what
    is no regular file.
    """
    with open_regular(path, caller) as file, warnings.catch_warnings(action="ignore"):
        try:
            return torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # a damaged file may raise anything
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ValueError(
                f"{caller}: {path}: no weights can be read from this file: it is damaged, or holds "
                f"more than tensors in dictionaries and lists, and nothing else is unpickled. Save "
                f"module.state_dict() with torch.save. PyTorch says: {said}"
            ) from error
