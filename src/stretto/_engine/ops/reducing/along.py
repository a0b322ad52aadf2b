"""Calls of kernels for what goes along an axis (``kernels/along.h``), where there are any.

Whether one is called depends on the axis alone, and not on how many others there are beside it, so
that members are computed alike, however many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType
from stretto._engine.kernels import DTYPES

_OPERATIONS = (
    *("cumsum", "cumprod", "cummax", "cummin", "linear_recurrence"),
    *("sum of integers", "argmax", "argmin"),
)
"""The kernel's operations, in its order."""

_INTEGERS = [np.dtype(t) for t in (np.int32, np.uint32, np.int64, np.uint64)]

WORTH = 17
"""The elements of an axis from which a kernel is called. In loops, running sums of 16 take it as
long as XLA, which makes them part of what is around, and those of 24 half the time; places take as
long until 32, and a third of the time from 100 on."""

MOST = 1 << 31
"""Those up to which places are counted in 32 bits."""

TOP = 1024
"""The most elements that a kernel chooses of a row."""


def called_along(
    b: Any,
    name: str,
    operands: Sequence[Any],
    axis: int,
    out: ArrayType,
    reverse: bool = False,
) -> Any:
    """Write a call of the kernel that does what a primitive does along an axis; None without one.

    Args:
        b: the builder.
        name: the primitive's name.
        operands: arrays of one shape and dtype; of a recurrence first what is added.
        axis: the axis.
        out: the type of the result, which of places is of 32 bits.
        reverse: whether it is gone along from the end.
    """
    shape, dtype = operands[0].type.shape, operands[0].type.dtype
    if name == "cumsum" and dtype in _INTEGERS:
        name = "sum of integers"
    elif dtype not in DTYPES:
        return None
    if not b.has_kernels or name not in _OPERATIONS or any(map(is_size, shape)):
        return None
    if not WORTH <= shape[axis] < MOST:
        return None
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    numbers = [_OPERATIONS.index(name), outer, shape[axis], inner, int(reverse)]
    called = b.called_kernel("stretto_along_axis", operands, [out], numbers)
    return None if called is None else called[0]


def called_top_k(b: Any, x: Any, k: int, outs: Sequence[ArrayType]) -> list[Any] | None:
    """Write a call of the kernel for the k greatest of each row, and their places, or None."""
    shape = x.type.shape
    if not b.has_kernels or x.type.dtype not in DTYPES or any(map(is_size, shape)):
        return None
    if shape[-1] >= MOST or k > TOP:
        return None
    numbers = [math.prod(shape[:-1]), shape[-1], k]
    return b.called_kernel("stretto_top_k", [x], outs, numbers)
