"""Tensors of PyTorch as NumPy's arrays: copies, as PyTorch may write to its own later.

Next, read ``capture``.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch  # pyright: ignore[reportMissingImports]

__all__ = ["to_numpy"]

_AS_BITS = {
    torch.bfloat16: (torch.int16, np.dtype(ml_dtypes.bfloat16)),
    torch.float8_e4m3fn: (torch.int8, np.dtype(ml_dtypes.float8_e4m3fn)),
    torch.float8_e5m2: (torch.int8, np.dtype(ml_dtypes.float8_e5m2)),
}
"""The dtypes that NumPy has from ``ml_dtypes``, and PyTorch's of their size that NumPy has too."""


def to_numpy(tensor: Any) -> np.ndarray:
    """A copy of a tensor, of its dtype.

    Raises ``TypeError`` for tensors that are sparse, quantised or of a dtype that NumPy lacks.
    """
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise TypeError(
            f"from_torch: expected dense tensors, got one of layout {tensor.layout} and dtype "
            f"{tensor.dtype}; convert it, as by .to_dense() or .dequantize()"
        )
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if plain.dtype in _AS_BITS:
        bits, dtype = _AS_BITS[plain.dtype]
        return plain.view(bits).numpy().copy().view(dtype)
    return plain.numpy().copy()
