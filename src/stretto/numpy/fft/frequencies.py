"""Which frequency stands where, and zero frequency moved to the middle.

Next, read ``applying``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import default_dtype
from stretto._engine.ops.broadcast import canonical_axes
from stretto._engine.ops.convert import convert
from stretto.numpy.arguments import refuse_device
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.manipulation import roll

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _spaced(who: str, places: np.ndarray, n: int, d: Any, dtype: Any) -> Any:
    wanted = default_dtype("float") if dtype is None else as_dtype(dtype)
    if isinstance(d, (int, float)):
        return as_value((places / (n * d)).astype(wanted))
    step = as_value(d, who, "d")
    return convert(as_value(places.astype(np.float64)) / (step * n), wanted)


def _count(who: str, n: Any) -> int:
    count = integer(n, who, "n")
    if count < 1:
        raise ValueError(f"{who}: n must be positive, got {count}")
    return count


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The frequency of each element of a transform of ``n`` points ``d`` apart, in cycles a unit.

    0, 1, ..., then the negative ones, by 1 / (n d); ``n`` / 2 is negative. ``d`` may be traced.

    >>> import stretto.numpy as snp
    >>> snp.fft.fftfreq(5, 0.5)
    Array([ 0. ,  0.4,  0.8, -0.8, -0.4], dtype=float32)
    """
    refuse_device("fftfreq", device)
    n = _count("fftfreq", n)
    places = np.arange(n)
    return _spaced("fftfreq", places - n * (places >= (n + 1) // 2), n, d, dtype)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of ``rfft`` of ``n`` points ``d`` apart: 0 to ``n // 2``, by 1 / (n d).

    >>> import stretto.numpy as snp
    >>> snp.fft.rfftfreq(5, 0.5)
    Array([0. , 0.4, 0.8], dtype=float32)
    """
    refuse_device("rfftfreq", device)
    n = _count("rfftfreq", n)
    return _spaced("rfftfreq", np.arange(n // 2 + 1), n, d, dtype)


def fftshift(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    """Frequency 0 moved from the start to the middle, ``n // 2``, of ``axes``, by default all.

    >>> import stretto.numpy as snp
    >>> snp.fft.fftshift(snp.array([0, 1, 2, -2, -1]))
    Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    x = as_value(x, "fftshift")
    places = canonical_axes(axes, x.ndim, "fftshift")
    return roll(x, [x.shape[d] // 2 for d in places], places)


def ifftshift(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    """The inverse of ``fftshift``.

    >>> import stretto.numpy as snp
    >>> snp.fft.ifftshift(snp.array([-2, -1, 0, 1, 2]))
    Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    x = as_value(x, "ifftshift")
    places = canonical_axes(axes, x.ndim, "ifftshift")
    return roll(x, [-(x.shape[d] // 2) for d in places], places)
