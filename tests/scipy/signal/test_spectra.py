"""Spectra over time and back: what the table of functions cannot say."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.scipy.signal import csd, detrend, istft, stft, welch
from stretto.scipy.signal.segments import overlapped, segments

X = np.random.default_rng(0).normal(size=(2, 17)).astype(np.float32)


@pytest.mark.parametrize(("size", "step"), [(1, 1), (5, 1), (5, 2), (6, 3), (7, 7), (17, 4)])
def test_segments_are_slices_and_overlap_is_their_transpose(size, step):
    starts = range(0, X.shape[-1] - size + 1, step)
    want = np.stack([X[:, i : i + size] for i in starts], 1)
    np.testing.assert_array_equal(segments(snp.array(X), size, step), want)
    summed = np.zeros((2, (len(starts) - 1) * step + size), np.float32)
    for k, i in enumerate(starts):
        summed[:, i : i + size] += want[:, k]
    np.testing.assert_allclose(overlapped(snp.array(want), step), summed, rtol=1e-6)


def test_there_and_back_with_gradients():
    def there_and_back(x):
        _, _, z = stft(x, fs=10.0, nperseg=6)
        return istft(z, fs=10.0, nperseg=6)

    times, x = st.jit(there_and_back)(X)
    np.testing.assert_allclose(times, np.arange(18) / 10, rtol=1e-6)
    np.testing.assert_allclose(x[:, :17], X, atol=1e-5)
    g = st.grad(lambda x: snp.sum(there_and_back(x)[1][:, :17] ** 2) / 2)(snp.array(X))
    np.testing.assert_allclose(g, X, atol=1e-5)


def test_windows_may_be_weights_and_traced():
    weights = np.hanning(6).astype(np.float32)
    got = st.jit(lambda x, w: welch(x, window=w)[1])(X, weights)
    np.testing.assert_allclose(got, welch(X, window=weights)[1], rtol=1e-4)


def test_detrend_may_be_a_function():
    less_mean = lambda x: x - snp.mean(x, -1, keepdims=True)
    named = stft(X, nperseg=4, detrend="constant")[2]
    np.testing.assert_allclose(stft(X, nperseg=4, detrend=less_mean)[2], named, atol=1e-6)


def test_what_is_shorter_than_a_segment_warns():
    with pytest.warns(UserWarning, match="welch: nperseg is 256, but the signal has 17 points"):
        assert welch(X, nperseg=256)[1].shape == (2, 9)
    assert welch(X)[1].shape == (2, 9)


def test_one_or_two_points_have_no_trend_left():
    np.testing.assert_allclose(detrend(X[:, :1]), np.zeros((2, 1)), atol=1e-7)
    np.testing.assert_allclose(detrend(X[:, :2]), np.zeros((2, 2)), atol=1e-6)


def test_refuses():
    with pytest.raises(ValueError, match="stft: noverlap must be from 0 to nperseg - 1, got 4"):
        stft(X, nperseg=4, noverlap=4)
    with pytest.raises(ValueError, match="stft: nfft must be at least nperseg, 4; got 3"):
        stft(X, nperseg=4, nfft=3)
    with pytest.raises(ValueError, match=r"stft: boundary must be None, 'zeros'.*got 'periodic'"):
        stft(X, nperseg=4, boundary="periodic")
    with pytest.raises(ValueError, match=r"welch: detrend must be False, 'constant'.*got 'cubic'"):
        welch(X, detrend="cubic")
    with pytest.raises(ValueError, match="welch: scaling must be 'density' or 'spectrum'"):
        welch(X, scaling="power")
    with pytest.raises(ValueError, match="csd: average must be 'mean' or 'median'"):
        csd(X, X, average="mode")
    with pytest.raises(ValueError, match="csd: x and y must have the same rank"):
        csd(X, X[0])
    with pytest.raises(ValueError, match="welch: window must be a name, a tuple"):
        welch(X, window=3.0)
    with pytest.raises(ValueError, match="welch: nperseg 5 is not the window's size 4"):
        welch(X, window=np.ones(4), nperseg=5)
    with pytest.raises(ValueError, match="welch: the window has 40 elements, more than the signal"):
        welch(X, window=np.ones(40))
    with pytest.raises(ValueError, match="istft: time_axis and freq_axis must differ"):
        istft(X, time_axis=0, freq_axis=0)
    with pytest.raises(ValueError, match="detrend: type must be 'linear' or 'constant'"):
        detrend(X, type="quadratic")
    with pytest.raises(ValueError, match=r"detrend: bp must be positions along the axis, 0 to 17"):
        detrend(X, bp=18)
    with pytest.raises(NotImplementedError, match="there is no overwrite_data"):
        detrend(X, overwrite_data=True)
