"""Spectra over time and back: what the table of functions cannot say."""

import numpy as np
import pytest
from scipy import signal
from scipy.signal import windows

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto.scipy.signal import (
    csd,
    detrend,
    istft,
    overlap_add,
    overlap_of,
    segments,
    stft,
    welch,
    window_of,
)

X = np.random.default_rng(0).normal(size=(2, 17)).astype(np.float32)


@pytest.mark.parametrize(("size", "step"), [(1, 1), (5, 1), (5, 2), (6, 3), (7, 7), (17, 4)])
def test_segments_are_slices_and_overlap_is_their_transpose(size, step):
    starts = range(0, X.shape[-1] - size + 1, step)
    want = np.stack([X[:, i : i + size] for i in starts], 1)
    np.testing.assert_array_equal(segments(snp.array(X), size, step), want)
    summed = np.zeros((2, (len(starts) - 1) * step + size), np.float32)
    for k, i in enumerate(starts):
        summed[:, i : i + size] += want[:, k]
    np.testing.assert_allclose(overlap_add(snp.array(want), step), summed, rtol=1e-6)


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


CASES = [
    (11, 4, 2),
    (11, 4, 3),
    (11, 4, 4),
    (11, 3, 5),
    (8, 8, 1),
    (7, 1, 1),
    (10, 5, 1),
    (9, 2, 7),
]


@pytest.mark.parametrize("n, size, step", CASES)
def test_each_begins_a_step_after_the_one_before(n, size, step):
    x = np.arange(2.0 * n, dtype=np.float32).reshape(2, n)
    starts = range(0, n - size + 1, step)
    want = np.stack([x[:, s : s + size] for s in starts], 1)
    np.testing.assert_array_equal(segments(as_value(x), size, step), want)
    np.testing.assert_array_equal(st.jit(lambda x: segments(x, size, step))(x), want)


@pytest.mark.parametrize("n, size, step", CASES)
def test_they_are_added_where_they_were_cut(n, size, step):
    count = (n - size) // step + 1
    parts = np.random.default_rng(0).integers(-5, 6, (2, count, size)).astype(np.float32)
    want = np.zeros((2, (count - 1) * step + size), np.float32)
    for k in range(count):
        want[:, k * step : k * step + size] += parts[:, k]
    np.testing.assert_array_equal(overlap_add(as_value(parts), step), want)


def test_windows():
    float32 = np.dtype(np.float32)
    weights, size = window_of("stft", "hann", None, 100, 8, float32)
    assert size == 8 and weights.dtype == np.float32
    np.testing.assert_allclose(weights, windows.get_window("hann", 8), rtol=1e-6)
    weights, size = window_of("stft", ("kaiser", 3.0), 5, 100, 8, float32)
    np.testing.assert_allclose(weights, windows.get_window(("kaiser", 3.0), 5), rtol=1e-6)
    weights, size = window_of("stft", np.ones(6), None, 100, 8, float32)
    assert size == 6 and weights.dtype == np.float32
    assert window_of("stft", "hann", None, 5, 8, float32)[1] == 5  # silently, as a default
    with pytest.warns(
        UserWarning, match="stft: nperseg is 8, but the signal has 5 points; using 5"
    ):
        assert window_of("stft", "hann", 8, 5, 8, float32)[1] == 5


@pytest.mark.parametrize(
    "window, nperseg, message",
    [
        ("hann", 0, "nperseg must be positive, got 0"),
        (np.ones((2, 2)), None, "window must be a name, a tuple, or an array of rank 1"),
        (np.ones(0), None, "window must be a name"),
        (3.0, None, "window must be a name"),
        (np.ones(9), None, "the window has 9 elements, more than the signal's 8"),
        (np.ones(4), 5, "nperseg 5 is not the window's size 4"),
    ],
)
def test_windows_that_are_refused(window, nperseg, message):
    with pytest.raises(ValueError, match=f"stft: {message}"):
        window_of("stft", window, nperseg, 8, 8, np.dtype(np.float32))


def test_overlaps():
    assert [overlap_of("stft", None, n) for n in (8, 5, 1)] == [4, 2, 0]
    assert overlap_of("stft", 4, 5) == 4
    for bad in (-1, 5):
        with pytest.raises(ValueError, match=f"noverlap must be from 0 to nperseg - 1, got {bad}"):
            overlap_of("stft", bad, 5)


X_DETRENDING = np.random.default_rng(0).normal(size=(3, 12)).cumsum(1)


@pytest.mark.parametrize("kind", ["linear", "constant"])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_scipys(kind, axis):
    with st.enable_x64():
        got = detrend(X_DETRENDING, axis, kind)
        np.testing.assert_allclose(got, signal.detrend(X_DETRENDING, axis, kind), atol=1e-13)


@pytest.mark.parametrize("bp", [0, 5, [3, 7], [0, 12], np.array([4, 4])])
def test_pieces(bp):
    with st.enable_x64():
        got = detrend(X_DETRENDING, bp=bp)
        np.testing.assert_allclose(got, signal.detrend(X_DETRENDING, bp=bp), atol=1e-13)


def test_lines_become_nothing_and_what_is_left_stays():
    line = 3 + 0.5 * np.arange(20.0)
    with st.enable_x64():
        np.testing.assert_allclose(detrend(line), 0, atol=1e-13)
        once = detrend(X_DETRENDING)
        np.testing.assert_allclose(detrend(once), once, atol=1e-13)
        np.testing.assert_allclose(detrend(np.ones(1)), 0)  # one point is its own line


def test_dtypes_and_slopes():
    assert detrend(np.arange(4)).dtype == np.float32
    with st.enable_x64():
        # It is a projection: its transpose is itself.
        matrix = np.asarray(st.jacrev(detrend)(X_DETRENDING[0]))
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-14)
        np.testing.assert_allclose(matrix @ matrix, matrix, atol=1e-13)


def test_refusals():
    with pytest.raises(
        ValueError, match=r"detrend: bp must be positions along the axis, 0 to 12; got"
    ):
        detrend(X_DETRENDING, bp=13)
    with pytest.raises(ValueError, match="detrend: bp must be positions"):
        detrend(X_DETRENDING, bp=-1)
    with pytest.raises(ValueError, match="type must be 'linear' or 'constant'; got 'cubic'"):
        detrend(X_DETRENDING, type="cubic")
    with pytest.raises(NotImplementedError, match="detrend: arrays are immutable"):
        detrend(X_DETRENDING, overwrite_data=True)
    with pytest.raises(ValueError, match="detrend: axis"):
        detrend(X_DETRENDING, 2)


@pytest.mark.parametrize("kind", ["constant", "linear"])
def test_constants_leave_nothing(kind):
    x = st.numpy.full((2, 7), 1e10)
    with st.config(interpret_small=False):
        compiled = st.jit(lambda x: detrend(x, type=kind))(x)
    for out in (detrend(x, type=kind), compiled):
        np.testing.assert_array_equal(out, 0)


X_INVERSE = np.random.default_rng(0).normal(size=(2, 64))


@pytest.mark.parametrize(
    "options", [{}, {"noverlap": 12}, {"nfft": 24}, {"window": "boxcar", "noverlap": 0},
                {"nperseg": 15}, {"nperseg": 16, "noverlap": 15}]
)  # fmt: skip
def test_there_and_back(options):
    options = {"nperseg": 16, **options}
    with st.enable_x64():
        *_, z = stft(X_INVERSE, 2.0, **options)
        times, x = istft(z, 2.0, **options)
        np.testing.assert_allclose(x[:, : X_INVERSE.shape[1]], X_INVERSE, atol=1e-13)
        want = signal.istft(np.asarray(z), 2.0, **options)[1]
        np.testing.assert_allclose(x, want, atol=1e-13)
        np.testing.assert_allclose(times, np.arange(x.shape[-1]) / 2)


@pytest.mark.filterwarnings("ignore:NOLA")
def test_both_sides_and_no_boundary():
    with st.enable_x64():
        settings = {"nperseg": 16}
        z = signal.stft(X_INVERSE, return_onesided=False, boundary=None, padded=False, **settings)[
            2
        ]
        _, x = istft(z, input_onesided=False, boundary=False, **settings)
        want = signal.istft(z, input_onesided=False, boundary=False, **settings)[1]
        assert x.dtype == np.complex128
        # Where the windows add up to nothing the signal is not known.
        np.testing.assert_allclose(x[:, 1:-1], want[:, 1:-1], atol=1e-12)


def test_axes():
    with st.enable_x64():
        z = np.asarray(stft(X_INVERSE, nperseg=16)[2])
        want = istft(z, nperseg=16)[1]
        for time, frequency in ((0, 1), (1, 0), (0, 2), (-1, 0)):
            moved = np.moveaxis(z, (-1, -2), (time, frequency))
            _, x = istft(moved, nperseg=16, time_axis=time, freq_axis=frequency)
            at = signal.istft(moved, nperseg=16, time_axis=time, freq_axis=frequency)[1]
            np.testing.assert_allclose(x, at, atol=1e-13)
            assert sorted(x.shape) == sorted(want.shape)


def test_refusals_of_inverse():
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
