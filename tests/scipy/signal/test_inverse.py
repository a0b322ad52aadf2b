"""Signals from their transforms: there and back, SciPy's values, axes, refusals."""

import numpy as np
import pytest
from scipy import signal

import stretto as st
from stretto.scipy.signal import istft, stft

X = np.random.default_rng(0).normal(size=(2, 64))


@pytest.mark.parametrize(
    "options", [{}, {"noverlap": 12}, {"nfft": 24}, {"window": "boxcar", "noverlap": 0},
                {"nperseg": 15}, {"nperseg": 16, "noverlap": 15}]
)  # fmt: skip
def test_there_and_back(options):
    options = {"nperseg": 16, **options}
    with st.enable_x64():
        *_, z = stft(X, 2.0, **options)
        times, x = istft(z, 2.0, **options)
        np.testing.assert_allclose(x[:, : X.shape[1]], X, atol=1e-13)
        want = signal.istft(np.asarray(z), 2.0, **options)[1]
        np.testing.assert_allclose(x, want, atol=1e-13)
        np.testing.assert_allclose(times, np.arange(x.shape[-1]) / 2)


@pytest.mark.filterwarnings("ignore:NOLA")
def test_both_sides_and_no_boundary():
    with st.enable_x64():
        settings = {"nperseg": 16}
        z = signal.stft(X, return_onesided=False, boundary=None, padded=False, **settings)[2]
        _, x = istft(z, input_onesided=False, boundary=False, **settings)
        want = signal.istft(z, input_onesided=False, boundary=False, **settings)[1]
        assert x.dtype == np.complex128
        # Where the windows add up to nothing the signal is not known.
        np.testing.assert_allclose(x[:, 1:-1], want[:, 1:-1], atol=1e-12)


def test_axes():
    with st.enable_x64():
        z = np.asarray(stft(X, nperseg=16)[2])
        want = istft(z, nperseg=16)[1]
        for time, frequency in ((0, 1), (1, 0), (0, 2), (-1, 0)):
            moved = np.moveaxis(z, (-1, -2), (time, frequency))
            _, x = istft(moved, nperseg=16, time_axis=time, freq_axis=frequency)
            at = signal.istft(moved, nperseg=16, time_axis=time, freq_axis=frequency)[1]
            np.testing.assert_allclose(x, at, atol=1e-13)
            assert sorted(x.shape) == sorted(want.shape)


def test_refusals():
    z = np.ones((9, 5), np.complex64)
    with pytest.raises(
        ValueError, match=r"istft: expected an array of rank 2 or more, got complex"
    ):
        istft(z[0])
    with pytest.raises(ValueError, match="time_axis and freq_axis must differ, got 0 twice"):
        istft(z, time_axis=0, freq_axis=0)
    with pytest.raises(ValueError, match="nfft must be at least nperseg, 16; got 8"):
        istft(z, nfft=8)
    with pytest.raises(ValueError, match="istft: noverlap must be"):
        istft(z, noverlap=16)
