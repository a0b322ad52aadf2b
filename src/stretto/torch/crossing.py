"""Tensors of PyTorch as NumPy's arrays and back, and the files of ``torch.save``.

Copies, as PyTorch may write to its own later. Next, read ``capture``.
"""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from stretto._engine.core.files import opened

__all__ = ["read", "to_numpy", "to_torch"]

_AS_BITS = {
    torch.bfloat16: (torch.int16, np.dtype(ml_dtypes.bfloat16)),
    torch.float8_e4m3fn: (torch.int8, np.dtype(ml_dtypes.float8_e4m3fn)),
    torch.float8_e4m3fnuz: (torch.int8, np.dtype(ml_dtypes.float8_e4m3fnuz)),
    torch.float8_e5m2: (torch.int8, np.dtype(ml_dtypes.float8_e5m2)),
    torch.float8_e5m2fnuz: (torch.int8, np.dtype(ml_dtypes.float8_e5m2fnuz)),
    torch.float8_e8m0fnu: (torch.int8, np.dtype(ml_dtypes.float8_e8m0fnu)),
}
"""The dtypes that NumPy has from ``ml_dtypes``, and PyTorch's of their size that NumPy has too."""

_OF_BITS = {dtype: (theirs, bits) for theirs, (bits, dtype) in _AS_BITS.items()}


def to_numpy(tensor: Any, caller: str) -> np.ndarray:
    """A copy of a tensor, of its dtype.

    Raises ``TypeError`` for tensors that are sparse, quantised, without elements in memory, or of a
    dtype that NumPy lacks.
    """
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        where = " on the device meta" if tensor.is_meta else ""
        raise TypeError(
            f"{caller}: expected dense tensors, got one of layout {tensor.layout} and dtype "
            f"{tensor.dtype}{where}; convert it, as by .to_dense() or .dequantize()"
        )
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if plain.dtype in _AS_BITS:
        bits, dtype = _AS_BITS[plain.dtype]
        return plain.view(bits).numpy().copy().view(dtype)
    return plain.numpy().copy()


def to_torch(array: np.ndarray, caller: str) -> Any:
    """A tensor with a copy of an array's elements, of its dtype.

    Raises ``TypeError`` for a dtype that PyTorch lacks.
    """
    own = np.array(array, order="C")
    try:
        if own.dtype in _OF_BITS:
            theirs, bits = _OF_BITS[own.dtype]
            return torch.from_numpy(own.view(f"i{own.itemsize}")).view(bits).view(theirs)
        return torch.from_numpy(own)
    except TypeError as error:
        raise TypeError(
            f"{caller}: PyTorch has no tensors of {array.dtype}; convert it first"
        ) from error


def read(path: str, caller: str) -> Any:
    """What PyTorch finds in a file of ``torch.save``; it unpickles tensors and plain containers.

    Raises ``ValueError`` for a file that is damaged, or holds anything else; ``OSError`` for what
    is no regular file.
    """
    with opened(path, caller) as file, warnings.catch_warnings(action="ignore"):
        try:
            return torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # a damaged file may raise anything
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ValueError(
                f"{caller}: {path}: no weights can be read from this file: it is damaged, or holds "
                f"more than tensors in dictionaries and lists, and nothing else is unpickled. Save "
                f"module.state_dict() with torch.save. PyTorch says: {said}"
            ) from error
