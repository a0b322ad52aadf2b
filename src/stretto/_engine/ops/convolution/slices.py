"""The image of a convolution with its padding, slices of it, and the output of its parts.

``op`` is a ``ConvGeneralDilated``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.convert import convert
from stretto._engine.ops.convolution.axes import relaid
from stretto._engine.ops.convolution.geometry import dilated
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import reshape, transpose
from stretto._engine.ops.shape import pad, part_of


def spread(op: Any, lhs: Any) -> Any:
    """The image with its padding, and zeros between elements where it is dilated."""
    config = [(0, 0, 0)] * lhs.ndim
    for a, (low, high), d in zip(op.dims.lhs_spec[2:], op.padding, op.lhs_dilation, strict=True):
        config[a] = (low, high, d - 1)
    return lhs if config == [(0, 0, 0)] * lhs.ndim else pad(lhs, 0, config)


def cut(
    x: Any,
    axes: Sequence[int],
    starts: Sequence[int],
    counts: Sequence[int],
    steps: Sequence[int],
    hidden: bool = False,
) -> Any:
    """So many elements along these axes, from a start on, in steps.

    If their place is ``hidden``, kernels that read those at several places are compiled once.
    """
    low, high, by = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for a, start, count, step in zip(axes, starts, counts, steps, strict=True):
        low[a], high[a], by[a] = start, start + dilated(count, step), step
    return part_of(x, tuple(low), tuple(high), tuple(by), hidden)


def assembled(op: Any, parts: Sequence[Any], out: ArrayType) -> Any:
    """The output, of its elements at each position: (groups, own, others) features."""
    groups, own, others = parts[0].shape
    counts = [out.shape[a] for a in op.dims.out_spec[2:]]
    n = len(counts)
    total = concatenate([reshape(part, (1, groups, own, others)) for part in parts], 0)
    total = reshape(total, (*counts, groups, own, others))
    total = transpose(total, (n + 1, n, n + 2, *range(n)))  # own, groups, others, positions
    total = reshape(total, (own, groups * others, *counts))
    return convert(relaid(total, range(out.ndim), op.dims.out_spec), out.dtype)
