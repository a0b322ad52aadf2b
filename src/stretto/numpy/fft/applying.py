"""Hold what all transforms share: sizes and axes as in NumPy, norms, and any number of axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stretto._engine.core.integers import integer, integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike, Axes
from stretto._engine.ops.convert import convert
from stretto._engine.ops.fft import Fft, FftType, complex_dtype
from stretto._engine.ops.layout import canonical_axes, canonical_axis, transpose
from stretto._engine.ops.shape import pad

_NORMS = ("backward", "ortho", "forward")
_AT_ONCE = 3


def along_axis(
    caller: str, kind: FftType, a: ArrayLike, n: int | None, axis: int, norm: str | None
) -> Array:
    """The transform along one axis, with ``n`` points there."""
    x = as_value(a, caller, "a")
    if isinstance(axis, (tuple, list)):
        raise TypeError(
            f"{caller}: axis must be an integer, got {axis}; use {caller}n for several axes"
        )
    axes = (canonical_axis(axis, x.ndim, caller),)
    return _applied(
        caller, kind, x, None if n is None else (integer(n, caller, "n", 1),), axes, norm
    )


def along_axes(
    caller: str, kind: FftType, a: ArrayLike, s: Sequence[int] | None, axes: Axes, norm: str | None
) -> Array:
    """The transform along several axes, with ``s`` points; by default all axes, or the last."""
    x = as_value(a, caller, "a")
    lengths = None if s is None else integers(s, caller, "s", -1)
    if axes is None and lengths is not None:
        if len(lengths) > x.ndim:
            raise ValueError(f"{caller}: s {lengths} has more sizes than {x.type} has axes")
        places = tuple(range(x.ndim - len(lengths), x.ndim))
    else:
        places = canonical_axes(axes, x.ndim, caller)
    if lengths is not None and len(lengths) != len(places):
        raise ValueError(f"{caller}: s {lengths} and axes {axes} must have equal lengths")
    return _applied(caller, kind, x, lengths, places, norm)


def swapped_norm(caller: str, norm: str | None) -> str:
    """The norm that gives a transform the factor that this one gives its inverse."""
    return _NORMS[2 - _NORMS.index(_checked(caller, norm))]


def _checked(caller: str, norm: str | None) -> str:
    name = "backward" if norm is None else norm
    if name not in _NORMS:
        raise ValueError(
            f"{caller}: norm must be None, 'backward', 'ortho' or 'forward'; got {norm!r}"
        )
    return name


def _applied(
    caller: str,
    kind: FftType,
    x: Array,
    s: Sequence[int] | None,
    axes: tuple[int, ...],
    norm: str | None,
) -> Array:
    norm = _checked(caller, norm)
    dtype = complex_dtype(x.dtype)
    if kind is not FftType.RFFT:
        x = convert(x, dtype)
    elif is_complex(x.dtype):
        raise TypeError(
            f"{caller}: expected real numbers, got {x.type}; take x.real, or use a transform of "
            f"complex numbers, fft or fftn"
        )
    else:
        x = convert(x, real_dtype(dtype))
    if not axes:
        if kind in (FftType.RFFT, FftType.IRFFT):
            raise ValueError(f"{caller}: expected at least one axis of {x.type}, got none")
        return x
    lengths = _lengths(caller, kind, x, s, axes)
    x = _resized(kind, x, lengths, axes)
    out = _transformed(kind, x, lengths, axes)
    return out if norm == "backward" else out * _factor(kind, math.prod(lengths), norm)


def _lengths(
    caller: str, kind: FftType, x: Array, s: Sequence[int] | None, axes: tuple[int, ...]
) -> tuple[int, ...]:
    """The number of points along each axis: from ``s``, or for -1 and without ``s`` its size."""
    own = [x.shape[d] for d in axes]
    if kind is FftType.IRFFT:
        own[-1] = 2 * (own[-1] - 1)
    lengths = own if s is None else [m if n == -1 else n for n, m in zip(s, own, strict=True)]
    if min(lengths) < 1:
        raise ValueError(
            f"{caller}: a transform needs at least one point, got {tuple(lengths)} along axes "
            f"{axes} of {x.type}"
        )
    return tuple(lengths)


def _resized(kind: FftType, x: Array, lengths: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Cut off or zero-padded at the end of each axis."""
    config = [(0, 0, 0)] * x.ndim
    for d, n in zip(axes, lengths, strict=True):
        wanted = n // 2 + 1 if kind is FftType.IRFFT and d == axes[-1] else n
        config[d] = (0, wanted - x.shape[d], 0)
    return pad(x, 0, config) if any(high for _, high, _ in config) else x


def _transformed(kind: FftType, x: Array, lengths: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Transform three axes at a time; the last axes first from real numbers, last to real ones."""
    groups = [(kind, axes[-_AT_ONCE:], lengths[-_AT_ONCE:])]
    rest = len(axes) - _AT_ONCE
    other = FftType.FFT if kind in (FftType.FFT, FftType.RFFT) else FftType.IFFT
    while rest > 0:
        first = max(rest - _AT_ONCE, 0)
        groups.append((other, axes[first:rest], lengths[first:rest]))
        rest = first
    for each, places, sizes in groups[::-1] if kind is FftType.IRFFT else groups:
        order = [d for d in range(x.ndim) if d not in places] + list(places)
        inverse = [order.index(d) for d in range(x.ndim)]
        x = transpose(Fft(each, sizes)(transpose(x, order)), inverse)
    return x


def _factor(kind: FftType, count: int, norm: str) -> float:
    """The factor that ``norm`` asks for; the inverse kinds already divide by ``count``."""
    inverse = kind not in (FftType.FFT, FftType.RFFT)
    if norm == "ortho":
        return count**0.5 if inverse else count**-0.5
    return count * 1.0 if inverse else 1 / count
