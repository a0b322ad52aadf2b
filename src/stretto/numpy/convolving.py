"""Parts of the full convolution of two arrays, for functions that name the part by a mode.

By ``_engine/ops/convolution/general``, without batches and features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.typing import Array
from stretto._engine.ops.convert import convert
from stretto._engine.ops.convolution.general import conv_general_dilated
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.shape import rev

__all__ = ["MODES", "checked_mode", "part_of_convolution"]

MODES = ("full", "same", "valid")


def checked_mode(caller: str, mode: str) -> str:
    """The mode; raises ``ValueError`` for any other."""
    if mode not in MODES:
        raise ValueError(f"{caller}: mode must be 'full', 'same' or 'valid'; got {mode!r}")
    return mode


def part_of_convolution(
    x: Array, y: Array, starts: Sequence[int], sizes: Sequence[int], *options: Any
) -> Array:
    """The part of the full convolution that begins at ``starts`` and has these ``sizes``.

    Along an axis of n and m elements the full one has n + m - 1: element k is the sum of
    x[i] y[k - i]. The arrays have one dtype and one rank; booleans are combined by "and" and "or".
    ``options`` are the precision and the preferred dtype of ``conv_general_dilated``.
    """
    boolean = x.dtype == np.dtype(bool)
    if boolean:
        x, y = (convert(v, np.dtype(np.int32)) for v in (x, y))
    pads = []
    for n, m, start, size in zip(x.shape, y.shape, starts, sizes, strict=True):
        low = m - 1 - start
        pads.append((low, size - 1 - (n + low - m)))
    lhs, rhs = (reshape(v, (1, 1, *v.shape)) for v in (x, rev(y, tuple(range(y.ndim)))))
    precision, preferred = options or (None, None)
    out = conv_general_dilated(
        lhs,
        rhs,
        (1,) * len(pads),
        pads,
        precision=precision,
        preferred_element_type=preferred,
    )
    out = reshape(out, out.shape[2:])
    return convert(out, np.dtype(bool)) if boolean else out
