"""Spectra of segments of signals: over time, and averaged.

Source: Welch, The use of fast Fourier transform for the estimation of power spectra (1967); names
and factors are those of ``scipy.signal``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import square
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.complex_parts import complex_, conj, imag, real
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import canonical_axis, move_axis
from stretto._engine.ops.shape import pad, rev, slice_in_dim
from stretto.scipy.signal.detrending import detrend as remove_trend
from stretto.scipy.signal.segments import Window, overlap_of, rate_of, segments, window_of

__all__ = ["csd", "stft", "welch"]

_SEGMENT = 256

Trend: TypeAlias = str | bool | Callable[[Array], Array] | None
"""What is removed from segments: ``"constant"``, ``"linear"``, by a function, or nothing."""


class _Settings(NamedTuple):
    """How a signal is cut, weighted and transformed."""

    caller: str
    window: Array
    nperseg: int
    noverlap: int
    nfft: int
    detrend: Trend
    onesided: bool

    @property
    def step(self) -> int:
        return self.nperseg - self.noverlap

    def transforms(self, x: Array) -> Array:
        """``[..., n]`` to ``[..., frequencies, segments]``."""
        if x.shape[-1] < self.nperseg:
            raise ValueError(
                f"{self.caller}: expected at least {self.nperseg} points, got {x.shape[-1]}"
            )
        cut = _without_trend(self.caller, self.detrend, segments(x, self.nperseg, self.step))
        transform = snp.fft.rfft if self.onesided else snp.fft.fft
        weighted = cut * convert(of_rank(self.window, cut.ndim), cut.dtype)
        return move_axis(transform(weighted, self.nfft), x.ndim, x.ndim - 1)

    def frequencies(self, fs: ArrayLike) -> Array:
        """In the unit of ``fs``."""
        rate: Any = fs
        dtype = real_dtype(self.window.dtype)
        return (snp.fft.rfftfreq if self.onesided else snp.fft.fftfreq)(
            self.nfft, 1 / rate, dtype=dtype
        )


def _without_trend(caller: str, kind: Trend, x: Array) -> Array:
    if kind is None or kind is False:
        return x
    if callable(kind):
        return kind(x)
    if kind not in ("constant", "linear"):
        raise ValueError(
            f"{caller}: detrend must be False, 'constant', 'linear' or a function; got {kind!r}"
        )
    return remove_trend(x, type=kind)


def _settings(
    caller: str,
    x: Array,
    length: int,
    window: Window,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    detrend: Trend,
    onesided: bool,
) -> _Settings:
    weights, size = window_of(caller, window, nperseg, length, _SEGMENT, real_dtype(x.dtype))
    overlap = overlap_of(caller, noverlap, size)
    points = size if nfft is None else integer(nfft, caller, "nfft")
    if points < size:
        raise ValueError(f"{caller}: nfft must be at least nperseg, {size}; got {nfft}")
    is_onesided = bool(onesided) and not is_complex(x.dtype)
    return _Settings(caller, weights, size, overlap, points, detrend, is_onesided)


# Beyond the ends


def _end(x: Array, first: bool) -> Array:
    """The first or the last element along the last axis, which is kept."""
    n = x.shape[-1]
    return slice_in_dim(x, 0, 1, axis=-1) if first else slice_in_dim(x, n - 1, n, axis=-1)


def _mirrored(x: Array, n: int) -> tuple[Array, Array]:
    """The ``n`` elements after the first one and before the last one, in reverse order."""
    size = x.shape[-1]
    return (
        rev(slice_in_dim(x, 1, n + 1, axis=-1), (-1,)),
        rev(slice_in_dim(x, size - n - 1, size - 1, axis=-1), (-1,)),
    )


def _extended(caller: str, x: Array, n: int, boundary: str | None) -> Array:
    """``x`` with ``n`` more elements at each end of the last axis."""
    if boundary is None or n == 0:
        return x
    if boundary not in ("zeros", "even", "odd", "constant"):
        raise ValueError(
            f"{caller}: boundary must be None, 'zeros', 'even', 'odd' or 'constant'; got "
            f"{boundary!r}"
        )
    if boundary == "zeros":
        return pad(x, 0, [*[(0, 0, 0)] * (x.ndim - 1), (n, n, 0)])
    first, last = _end(x, True), _end(x, False)
    if boundary == "constant":
        return concatenate([*[first] * n, x, *[last] * n], -1)
    if n >= x.shape[-1]:
        raise ValueError(
            f"{caller}: boundary {boundary!r} needs more than {n} points, got {x.type}"
        )
    before, after = _mirrored(x, n)
    if boundary == "odd":
        before, after = 2 * first - before, 2 * last - after
    return concatenate([before, x, after], -1)


# Functions


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int = _SEGMENT,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Compute a short-time Fourier transform: spectra of segments that overlap.

    Args:
        x: the signal.
        fs: the number of samples in a unit of time.
        window: a name or a tuple for SciPy's ``get_window``, or weights.
        nperseg: how many points a segment has.
        noverlap: how many points neighbours share; by default half of them.
        nfft: how many points are transformed; by default ``nperseg``.
        detrend: ``"constant"``, ``"linear"``, False, or a function of segments.
        return_onesided: whether to leave out the negative frequencies of real signals.
        boundary: how half a segment is added at each end: ``"zeros"``, ``"even"``, ``"odd"``,
            ``"constant"``, or None.
        padded: whether to pad the last segment with zeros.
        axis: the axis of time, negative from the end.

    Returns:
        The frequencies, the times of the segments' middles, and the transforms, with the
            frequencies in place of ``axis`` and the times last.

    Raises:
        TypeError: ``nfft`` is not an integer.
        ValueError: the settings contradict each other or the signal, or there is no such boundary.

    As SciPy's ``stft``.

    >>> import stretto as st
    >>> f, t, z = st.scipy.signal.stft(st.numpy.ones(8), nperseg=4)
    >>> f, z.shape
    (Array([0.  , 0.25, 0.5 ], dtype=float32), (3, 5))
    """
    caller, rate = "stft", rate_of("stft", fs)
    value = as_value(x, caller)
    value = convert(value, inexact_dtype(value.dtype))
    place = canonical_axis(axis, value.ndim, caller)
    value = move_axis(value, place, value.ndim - 1)
    settings = _settings(
        caller, value, value.shape[-1], window, nperseg, noverlap, nfft, detrend, return_onesided
    )
    value = _extended(caller, value, settings.nperseg // 2, boundary)
    if padded:
        missing = -(value.shape[-1] - settings.nperseg) % settings.step % settings.nperseg
        value = pad(value, 0, [*[(0, 0, 0)] * (value.ndim - 1), (0, missing, 0)])
    out = settings.transforms(value)
    out = out / convert(snp.sum(settings.window), out.dtype)
    starts = np.arange(out.shape[-1]) * settings.step
    middle = 0 if boundary is not None else settings.nperseg / 2
    times = as_value((starts + middle).astype(real_dtype(value.dtype))) / rate
    return settings.frequencies(rate), times, move_axis(out, value.ndim - 1, place)


@rounded_once
def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Compute the cross spectral density of two signals, by Welch's method.

    Args:
        x: a signal.
        y: another; the shorter one is padded with zeros. None stands for ``x``.
        fs: the number of samples in a unit of time.
        window: a name or a tuple for SciPy's ``get_window``, or weights.
        nperseg: how many points a segment has; by default 256.
        noverlap: how many points neighbours share; by default half of them.
        nfft: how many points are transformed; by default ``nperseg``.
        detrend: ``"constant"``, ``"linear"``, False, or a function of segments.
        return_onesided: whether to leave out the negative frequencies of real signals.
        scaling: ``"density"`` for a power per unit of frequency, ``"spectrum"`` for a power.
        axis: the axis of time, negative from the end.
        average: ``"mean"``, or ``"median"``, corrected for its bias.

    Returns:
        The frequencies, and the averages over segments of ``conj(X) Y``, with the transforms X and
            Y.

    Raises:
        TypeError: ``nfft`` is not an integer.
        ValueError: the settings contradict each other or the signals.

    As SciPy's ``csd``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, -1.0, 1.0, -1.0])
    >>> st.scipy.signal.csd(x, x, window="boxcar", scaling="spectrum")[1].real
    Array([0., 0., 1.], dtype=float32)
    """
    options = (window, nperseg, noverlap, nfft, detrend, return_onesided)
    return _averaged("csd", x, y, fs, options, scaling, axis, average)


@rounded_once
def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Compute the power spectral density of a signal, by Welch's method.

    Args:
        x: a signal.
        fs: the number of samples in a unit of time.
        window: a name or a tuple for SciPy's ``get_window``, or weights.
        nperseg: how many points a segment has; by default 256.
        noverlap: how many points neighbours share; by default half of them.
        nfft: how many points are transformed; by default ``nperseg``.
        detrend: ``"constant"``, ``"linear"``, False, or a function of segments.
        return_onesided: whether to leave out the negative frequencies of real signals.
        scaling: ``"density"`` for a power per unit of frequency, ``"spectrum"`` for a power.
        axis: the axis of time, negative from the end.
        average: ``"mean"``, or ``"median"``, corrected for its bias.

    Returns:
        The frequencies, and the powers, which are real.

    Raises:
        TypeError: ``nfft`` is not an integer.
        ValueError: the settings contradict each other or the signal.

    As SciPy's ``welch``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, -1.0, 1.0, -1.0])
    >>> st.scipy.signal.welch(x, window="boxcar", scaling="spectrum")[1]
    Array([0., 0., 1.], dtype=float32)
    """
    options = (window, nperseg, noverlap, nfft, detrend, return_onesided)
    return _averaged("welch", x, None, fs, options, scaling, axis, average)


def _averaged(
    caller: str,
    in1: ArrayLike,
    in2: ArrayLike | None,
    fs: ArrayLike,
    options: tuple[Window, int | None, int | None, int | None, Trend, bool],
    scaling: str,
    axis: int,
    average: str,
) -> tuple[Array, Array]:
    """The frequencies, and the average over segments of the products of two transforms."""
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{caller}: scaling must be 'density' or 'spectrum'; got {scaling!r}")
    if average not in ("mean", "median"):
        raise ValueError(f"{caller}: average must be 'mean' or 'median'; got {average!r}")
    rate = rate_of(caller, fs)
    x = as_value(in1, caller)
    y = x if in2 is None else as_value(in2, caller, "y")
    if x.ndim != y.ndim:
        raise ValueError(f"{caller}: x and y must have the same rank, got {x.type} and {y.type}")
    x, y = promote_dtypes(caller, x, y)
    x, y = (convert(v, inexact_dtype(v.dtype)) for v in (x, y))
    place = canonical_axis(axis, x.ndim, caller)
    x, y = (move_axis(v, place, v.ndim - 1) for v in (x, y))
    broadcast_shapes(caller, x.shape[:-1], y.shape[:-1])
    length = max(x.shape[-1], y.shape[-1])
    settings = _settings(caller, x, length, *options)
    x, y = (pad(v, 0, [*[(0, 0, 0)] * (v.ndim - 1), (0, length - v.shape[-1], 0)]) for v in (x, y))
    spectrum = settings.transforms(x)
    out = _power(spectrum) if in2 is None else conj(spectrum) * settings.transforms(y)
    if scaling == "density":
        scale = rate * snp.sum(square(settings.window))
    else:
        scale = square(snp.sum(settings.window))
    out = out / convert(as_value(scale), out.dtype)
    if settings.onesided:
        # Frequencies that stand for their negatives too count twice.
        twice = np.full((*(1,) * (out.ndim - 2), out.shape[-2], 1), 2, out.dtype)
        twice[..., 0, :] = 1
        if settings.nfft % 2 == 0:
            twice[..., -1, :] = 1
        out = out * twice
    return settings.frequencies(rate), move_axis(_average(out, average), out.ndim - 2, place)


def _power(x: Array) -> Array:
    return square(real(x)) + square(imag(x))


def _average(x: Array, kind: str) -> Array:
    """Over the last axis."""
    if kind == "mean" or x.shape[-1] == 1:
        return snp.mean(x, -1)
    # The median of n exponentially distributed numbers is this fraction of their mean.
    even = 2 * np.arange(1, (x.shape[-1] - 1) // 2 + 1)
    bias = float(1 + np.sum(1 / (even + 1) - 1 / even))
    if is_complex(x.dtype):
        return complex_(snp.median(real(x), -1), snp.median(imag(x), -1)) / bias
    return snp.median(x, -1) / bias
