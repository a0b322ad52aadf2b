"""Spectra of segments of signals: over time, and averaged.

Next, read ``inverse``. Source: Welch, The use of fast Fourier transform for the estimation of power
spectra (1967); names and factors are those of ``scipy.signal``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.layout import canonical_axis, move_axis
from stretto._engine.ops.shape import concatenate, pad, rev, slice_in_dim
from stretto.scipy.signal.detrending import detrend as less_trend
from stretto.scipy.signal.segments import overlap_of, rate_of, segments, window_of

__all__ = ["csd", "stft", "welch"]

_SEGMENT = 256


class _Settings(NamedTuple):
    """How a signal is cut, weighted and transformed."""

    caller: str
    window: Any
    nperseg: int
    noverlap: int
    nfft: int
    detrend: Any
    onesided: bool

    @property
    def step(self) -> int:
        return self.nperseg - self.noverlap

    def transforms(self, x: Any) -> Any:
        """``[..., n]`` to ``[..., frequencies, segments]``."""
        if x.shape[-1] < self.nperseg:
            raise ValueError(
                f"{self.caller}: expected at least {self.nperseg} points, got {x.shape[-1]}"
            )
        cut = _without_trend(self.caller, self.detrend, segments(x, self.nperseg, self.step))
        transform = snp.fft.rfft if self.onesided else snp.fft.fft
        weighted = cut * convert(of_rank(self.window, cut.ndim), cut.dtype)
        return move_axis(transform(weighted, self.nfft), x.ndim, x.ndim - 1)

    def frequencies(self, fs: Any) -> Any:
        """In the unit of ``fs``."""
        dtype = real_dtype(self.window.dtype)
        return (snp.fft.rfftfreq if self.onesided else snp.fft.fftfreq)(
            self.nfft, 1 / fs, dtype=dtype
        )


def _without_trend(caller: str, kind: Any, x: Any) -> Any:
    if kind is None or kind is False:
        return x
    if callable(kind):
        return kind(x)
    if kind not in ("constant", "linear"):
        raise ValueError(
            f"{caller}: detrend must be False, 'constant', 'linear' or a function; got {kind!r}"
        )
    return less_trend(x, type=kind)


def _settings(
    caller: str,
    x: Any,
    length: int,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    detrend: Any,
    onesided: bool,
) -> _Settings:
    weights, size = window_of(caller, window, nperseg, length, _SEGMENT, real_dtype(x.dtype))
    overlap = overlap_of(caller, noverlap, size)
    points = size if nfft is None else integer(nfft, caller, "nfft")
    if points < size:
        raise ValueError(f"{caller}: nfft must be at least nperseg, {size}; got {nfft}")
    one = bool(onesided) and not is_complex(x.dtype)
    return _Settings(caller, weights, size, overlap, points, detrend, one)


# Beyond the ends


def _end(x: Any, first: bool) -> Any:
    n = x.shape[-1]
    return slice_in_dim(x, 0, 1, axis=-1) if first else slice_in_dim(x, n - 1, n, axis=-1)


def _mirrored(x: Any, n: int) -> tuple[Any, Any]:
    """The ``n`` elements after the first one and before the last one, in reverse order."""
    size = x.shape[-1]
    return (
        rev(slice_in_dim(x, 1, n + 1, axis=-1), (-1,)),
        rev(slice_in_dim(x, size - n - 1, size - 1, axis=-1), (-1,)),
    )


def _extended(caller: str, x: Any, n: int, boundary: str | None) -> Any:
    """``n`` elements more at either end of the last axis."""
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
    window: Any = "hann",
    nperseg: int = _SEGMENT,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
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
        boundary: how half a segment is put on at each end: ``"zeros"``, ``"even"``, ``"odd"``,
            ``"constant"``, or None.
        padded: whether to fill up the last segment with zeros.
        axis: the axis of time, negative from the end.

    Returns:
        The frequencies, the times of the segments' middles, and the transforms, with the
            frequencies in the place of ``axis`` and the times last.

    Raises:
        TypeError: ``nfft`` is not an integer.
        ValueError: the settings do not fit each other or the signal, or there is no such boundary.

    As SciPy's ``stft``.

    >>> import stretto as st
    >>> f, t, z = st.scipy.signal.stft(st.numpy.ones(8), nperseg=4)
    >>> f, z.shape
    (Array([0.  , 0.25, 0.5 ], dtype=float32), (3, 5))
    """
    caller, fs = "stft", rate_of("stft", fs)
    value = as_value(x, caller)
    value = convert(value, inexact_dtype(value.dtype))
    place = canonical_axis(axis, value.ndim, caller)
    value = move_axis(value, place, value.ndim - 1)
    how = _settings(
        caller, value, value.shape[-1], window, nperseg, noverlap, nfft, detrend, return_onesided
    )
    value = _extended(caller, value, how.nperseg // 2, boundary)
    if padded:
        missing = -(value.shape[-1] - how.nperseg) % how.step % how.nperseg
        value = pad(value, 0, [*[(0, 0, 0)] * (value.ndim - 1), (0, missing, 0)])
    out = how.transforms(value)
    out = out / convert(snp.sum(how.window), out.dtype)
    places = np.arange(out.shape[-1]) * how.step
    middle = 0 if boundary is not None else how.nperseg / 2
    times = as_value((places + middle).astype(real_dtype(value.dtype))) / fs
    return how.frequencies(fs), times, move_axis(out, value.ndim - 1, place)


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Compute the cross spectral density of two signals, by Welch's method.

    Args:
        x: a signal.
        y: another; the shorter is filled up with zeros. None stands for ``x``.
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
        ValueError: the settings do not fit each other or the signals.

    As SciPy's ``csd``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, -1.0, 1.0, -1.0])
    >>> st.scipy.signal.csd(x, x, window="boxcar", scaling="spectrum")[1].real
    Array([0., 0., 1.], dtype=float32)
    """
    settings = (window, nperseg, noverlap, nfft, detrend, return_onesided)
    return _averaged("csd", x, y, fs, settings, scaling, axis, average)


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
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
        ValueError: the settings do not fit each other or the signal.

    As SciPy's ``welch``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, -1.0, 1.0, -1.0])
    >>> st.scipy.signal.welch(x, window="boxcar", scaling="spectrum")[1]
    Array([0., 0., 1.], dtype=float32)
    """
    settings = (window, nperseg, noverlap, nfft, detrend, return_onesided)
    return _averaged("welch", x, None, fs, settings, scaling, axis, average)


def _averaged(
    caller: str, x: Any, y: Any, fs: Any, settings: Any, scaling: str, axis: int, average: str
) -> tuple[Any, Any]:
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{caller}: scaling must be 'density' or 'spectrum'; got {scaling!r}")
    if average not in ("mean", "median"):
        raise ValueError(f"{caller}: average must be 'mean' or 'median'; got {average!r}")
    fs = rate_of(caller, fs)
    x = as_value(x, caller)
    other = x if y is None else as_value(y, caller, "y")
    if x.ndim != other.ndim:
        raise ValueError(f"{caller}: x and y must have one rank, got {x.type} and {other.type}")
    x, other = promote_dtypes(caller, x, other)
    x, other = (convert(v, inexact_dtype(v.dtype)) for v in (x, other))
    place = canonical_axis(axis, x.ndim, caller)
    x, other = (move_axis(v, place, v.ndim - 1) for v in (x, other))
    broadcast_shapes(caller, x.shape[:-1], other.shape[:-1])
    length = max(x.shape[-1], other.shape[-1])
    how = _settings(caller, x, length, *settings)
    x, other = (
        pad(v, 0, [*[(0, 0, 0)] * (v.ndim - 1), (0, length - v.shape[-1], 0)]) for v in (x, other)
    )
    one = how.transforms(x)
    out = _power(one) if y is None else conj(one) * how.transforms(other)
    if scaling == "density":
        scale = fs * snp.sum(square(how.window))
    else:
        scale = square(snp.sum(how.window))
    out = out / convert(as_value(scale), out.dtype)
    if how.onesided:
        # Those frequencies that stand for two.
        twice = np.full((*(1,) * (out.ndim - 2), out.shape[-2], 1), 2, out.dtype)
        twice[..., 0, :] = 1
        if how.nfft % 2 == 0:
            twice[..., -1, :] = 1
        out = out * twice
    return how.frequencies(fs), move_axis(_average(out, average), out.ndim - 2, place)


def _power(x: Any) -> Any:
    return square(real(x)) + square(imag(x))


def _average(x: Any, kind: str) -> Any:
    """Over the last axis."""
    if kind == "mean" or x.shape[-1] == 1:
        return snp.mean(x, -1)
    # The median of n exponentially distributed numbers is this much of their mean.
    even = 2 * np.arange(1, (x.shape[-1] - 1) // 2 + 1)
    bias = float(1 + np.sum(1 / (even + 1) - 1 / even))
    if is_complex(x.dtype):
        return complex_(snp.median(real(x), -1), snp.median(imag(x), -1)) / bias
    return snp.median(x, -1) / bias
