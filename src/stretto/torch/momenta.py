"""Batch normalization whose statistics are plain means over batches, while PyTorch exports.

Like ``capture`` this imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch  # pyright: ignore[reportMissingImports]

from stretto.torch.statistics import COUNTED

__all__ = ["counting"]


@contextmanager
def counting(module: torch.nn.Module) -> Iterator[None]:
    """Mark layers whose statistics are plain means over batches (``momentum=None``).

    PyTorch computes their momentum from the count as a number of Python, which no program can.
    """
    plain = [
        part
        for part in module.modules()
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.momentum is None
    ]
    for part in plain:
        part.momentum = COUNTED
    try:
        yield
    finally:
        for part in plain:
            part.momentum = None
