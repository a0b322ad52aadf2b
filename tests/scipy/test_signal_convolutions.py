"""Convolutions of any rank: what the table of functions cannot say."""

import numpy as np
import pytest

import stretto as st
from stretto.scipy.signal import convolve, convolve2d, fftconvolve

X = np.ones((3, 4), np.float32)


def test_long_ones_go_by_fourier_transforms():
    x = np.random.default_rng(0).normal(size=3000).astype(np.float32)
    program = str(st.make_graph(lambda x: convolve(x, x))(x))
    assert " = fft " in program
    assert "conv_general" in str(st.make_graph(lambda x: convolve(x, x[:9]))(x))
    want = np.convolve(x.astype(np.float64), x)
    np.testing.assert_allclose(convolve(x, x), want, atol=1e-6 * np.abs(want).max())


def test_integers_by_fourier_transforms_are_rounded():
    x = np.arange(20)
    out = convolve(x, x, method="fft")
    assert out.dtype == np.int32
    np.testing.assert_array_equal(out, np.convolve(x, x))


def test_refuses():
    with pytest.raises(ValueError, match=r"convolve: in1 and in2 must have the same rank, got"):
        convolve(X, X[0])
    with pytest.raises(ValueError, match="convolve: method must be 'auto', 'direct' or 'fft'"):
        convolve(X, X, method="fast")
    with pytest.raises(ValueError, match="mode 'valid' needs one input that is at least as large"):
        fftconvolve(X, X.T, "valid")
    with pytest.raises(ValueError, match="fftconvolve: sizes along axis 0, which is not convolved"):
        fftconvolve(X, X[:2], axes=1)
    with pytest.raises(ValueError, match="convolve2d: boundary must be 'fill', 'wrap' or 'symm'"):
        convolve2d(X, X, boundary="reflect")
    with pytest.raises(ValueError, match=r"convolve2d: expected arrays of rank 2"):
        convolve2d(X[0], X[0])
    for f in (convolve, convolve2d, fftconvolve):
        with pytest.raises(ValueError, match=f"{f.__name__}: expected arrays that are not empty"):
            f(X, X[:0])
