"""Signals from their short-time Fourier transforms.

Source: Griffin and Lim, Signal estimation from modified short-time Fourier transform (1984).
"""

from __future__ import annotations

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import square
from stretto._engine.ops.broadcast import broadcast_to, of_rank
from stretto._engine.ops.comparison import gt, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.fft import complex_dtype
from stretto._engine.ops.layout import canonical_axis, move_axis
from stretto._engine.ops.shape import slice_in_dim
from stretto.scipy.signal.segments import Window, overlap_of, overlapped, rate_of, window_of

__all__ = ["istft"]

_SMALLEST_NORM = 1e-10


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Find the signal with a given short-time Fourier transform.

    Args:
        Zxx: the transforms; for those of no signal, the signal with the nearest ones is computed.
        fs: the number of samples in a unit of time.
        window: a name or a tuple for SciPy's ``get_window``, or weights.
        nperseg: how many points a segment has; by default as many as the number of
            frequencies implies.
        noverlap: how many points neighbours share; by default half of them.
        nfft: how many points are transformed; by default ``nperseg``.
        input_onesided: whether negative frequencies are left out.
        boundary: whether ``stft`` added half a segment at each end, which is removed.
        time_axis: the axis of the segments.
        freq_axis: the axis of the frequencies.

    Returns:
        ``(times, signal)``; where the squares of the windows add up to zero, the signal is
            undetermined.

    Raises:
        TypeError: ``nfft`` is not an integer.
        ValueError: the settings contradict each other or the transforms.

    As SciPy's ``istft``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, 2.0, 3.0, 2.0, 1.0, 0.0, 1.0, 2.0])
    >>> _, _, z = st.scipy.signal.stft(x, nperseg=4)
    >>> st.scipy.signal.istft(z)[1].round(3)
    Array([1., 2., 3., 2., 1., 0., 1., 2.], dtype=float32)
    """
    caller = "istft"
    z = as_value(Zxx, caller, "Zxx")
    z = convert(z, complex_dtype(z.dtype))
    if z.ndim < 2:
        raise ValueError(f"{caller}: expected an array of rank 2 or more, got {z.type}")
    time, frequency = (canonical_axis(a, z.ndim, caller) for a in (time_axis, freq_axis))
    if time == frequency:
        raise ValueError(f"{caller}: time_axis and freq_axis must differ, got {time_axis} twice")
    outer = [d for d in range(z.ndim) if d not in (time, frequency)]
    z = z.transpose(*outer, time, frequency)
    count = z.shape[-1]
    default = 2 * (count - 1) if input_onesided else count
    dtype = real_dtype(z.dtype)
    weights, size = window_of(caller, window, nperseg, None, default, dtype)
    if nfft is None:
        # An odd number of points has as many frequencies as the even one below it.
        points = size if input_onesided and size == default + 1 else default
    else:
        points = integer(nfft, "istft", "nfft")
    if points < size:
        raise ValueError(f"{caller}: nfft must be at least nperseg, {size}; got {nfft or points}")
    step = size - overlap_of(caller, noverlap, size)
    parts = (snp.fft.irfft if input_onesided else snp.fft.ifft)(z, points)
    parts = slice_in_dim(parts, 0, size, axis=-1) * convert(snp.sum(weights), parts.dtype)
    x = overlapped(parts * convert(of_rank(weights, parts.ndim), parts.dtype), step)
    norm = overlapped(broadcast_to(square(weights), parts.shape[-2:]), step)
    if boundary:
        x, norm = (slice_in_dim(v, size // 2, v.shape[-1] - size // 2, axis=-1) for v in (x, norm))
    x = x / convert(select(gt(norm, _SMALLEST_NORM), norm, norm * 0 + 1), x.dtype)
    times = as_value(np.arange(x.shape[-1], dtype=dtype)) / rate_of(caller, fs)
    return times, move_axis(x, x.ndim - 1, time - (frequency < time))
