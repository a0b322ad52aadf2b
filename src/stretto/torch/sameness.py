"""Whether what a PyTorch module holds is the same as before it ran.

Like ``capture`` this imports PyTorch.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from stretto.torch.containers import content_of

__all__ = ["PLAIN", "equal", "is_rebound", "same", "same_numbers"]

PLAIN = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device)
"""Classes of what never changes, and is compared by its value."""


def same(a: Any, b: Any) -> bool:
    """Whether two values say the same to Python code: one object, or equal plain data."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, PLAIN):
        return a == b or repr(a) == repr(b)  # NaN, too
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all([same(x, y) for x, y in zip(a, b, strict=True)])
    if isinstance(a, dict):
        a, b = content_of(a), content_of(b)
        return a.keys() == b.keys() and all([same(x, b[k]) for k, x in a.items()])
    if isinstance(a, (set, frozenset, types.MethodType)):
        return a == b
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    return False


def is_rebound(a: Any, b: Any, depth: int = 4) -> bool:
    """Whether two values are alike, but that the second has new tensors in the place of others."""
    if same(a, b):
        return True
    if type(a) is not type(b) or not depth:
        return False
    if isinstance(a, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype
    if isinstance(a, (tuple, list)):
        pairs = zip(a, b, strict=False)
        return len(a) == len(b) and all([is_rebound(x, y, depth - 1) for x, y in pairs])
    if isinstance(a, dict):
        a, b = content_of(a), content_of(b)
    elif hasattr(a, "__dict__"):
        a, b = vars(a), vars(b)
    else:
        return False
    return a.keys() == b.keys() and all([is_rebound(x, b[k], depth - 1) for k, x in a.items()])


def equal(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether these have the same elements; NaN is equal to itself."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    x = x.detach()
    if x.is_floating_point() or x.is_complex():
        return bool(((x == y) | (x.isnan() & y.isnan())).all())
    return torch.equal(x, y)


def same_numbers(a: Any, b: Any) -> bool:
    """Whether these hold the same arrays."""
    return all([np.array_equal(x, y) for x, y in zip(a, b, strict=True)])
