"""Cutting signals and putting them together: slices, adjoints, windows, refusals."""

import numpy as np
import pytest
from scipy.signal import windows

import stretto as st
from stretto._engine.core.interpreter import as_value
from stretto.scipy.signal.segments import overlap_of, overlapped, segments, window_of

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
    np.testing.assert_array_equal(overlapped(as_value(parts), step), want)


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
