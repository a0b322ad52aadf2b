"""Entries of `scipy/signal`."""

import scipy.signal

from tests.functions.table import call, entry, x

MODES = ("full", "same", "valid")
SHAPES = [((4, 5), (2, 3)), ((2, 3), (3, 4))]
PAIRS = [call(x(*n), x(*m), mode) for mode in MODES for n, m in SHAPES]
BY_FOURIER = [call(x(4, 3), x(2, 4), mode, "fft") for mode in MODES[:2]]
for name in ("convolve", "correlate"):
    calls = [*PAIRS, *BY_FOURIER, call(x(5), x(2), "same"), call(x(2, 3, 2), x(2, 1, 2))]
    entry(f"scipy.signal.{name}", getattr(scipy.signal, name), calls, "f32 c64 i32")

AROUND = [
    *PAIRS,
    call(x(3, 4), x(2, 3), "full", "wrap"),
    call(x(3, 4), x(3, 2), "same", "symm"),
    call(x(3, 4), x(2, 2), "same", "fill", 1.5),
]
for name in ("convolve2d", "correlate2d"):
    entry(f"scipy.signal.{name}", getattr(scipy.signal, name), AROUND, "f32 c64")

entry(
    "scipy.signal.fftconvolve",
    scipy.signal.fftconvolve,
    [*PAIRS, call(x(2, 5), x(1, 3), "same", axes=1), call(x(2, 3), x(2, 3), axes=[0])],
    "f32 c64 i32",
)

entry(
    "scipy.signal.detrend",
    scipy.signal.detrend,
    [call(x(2, 7)), call(x(3, 2), axis=0, type="constant"), call(x(7), bp=[2, 5])],
    "f32 i32 c64",
)

SEGMENTS = [
    call(x(2, 20), nperseg=6),
    call(x(20), fs=4.0, window="boxcar", nperseg=5, noverlap=3, nfft=9, detrend="linear"),
    call(x(9, 2), nperseg=4, axis=0, return_onesided=False),
]
entry(
    "scipy.signal.stft",
    scipy.signal.stft,
    [
        *SEGMENTS,
        call(x(13), nperseg=4, boundary=None, padded=False),
        call(x(13), nperseg=4, boundary="even"),
        call(x(13), nperseg=4, boundary="odd"),
        call(x(13), nperseg=5, boundary="constant"),
    ],
    "f32 c64",
)
entry(
    "scipy.signal.welch",
    scipy.signal.welch,
    [*SEGMENTS, call(x(30), nperseg=6, scaling="spectrum", average="median"), call(x(9))],
    "f32 c64",
)
entry(
    "scipy.signal.csd",
    scipy.signal.csd,
    [
        call(x(2, 20), x(2, 15), nperseg=6),
        call(x(20), x(20), scaling="spectrum", nperseg=7, noverlap=1, average="median"),
        call(x(9, 2), x(9, 1), axis=0, nperseg=4, return_onesided=False),
    ],
    "f32 c64",
)
# Along a last axis that is the only one, for SciPy's times are those of the first axis.
entry(
    "scipy.signal.istft",
    scipy.signal.istft,
    [
        call(x(4, 5)),
        call(x(4, 5), fs=2.0, nperseg=7, noverlap=5),
        call(x(6, 3), window="boxcar", noverlap=2, input_onesided=False),
        call(x(3, 5), nperseg=8, noverlap=6, time_axis=0, freq_axis=1),
        call(x(5, 4), boundary=False, noverlap=5, nfft=8),
    ],
    "c64",
)
