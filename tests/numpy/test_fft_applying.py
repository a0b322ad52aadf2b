"""Transforms: what the table of functions cannot say; dtypes, errors."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def test_dtypes_follow_the_operand():
    narrow, ints = np.ones(4, np.float16), np.arange(4)
    assert snp.fft.fft(narrow).dtype == np.complex64
    assert snp.fft.rfft(narrow.astype(ml_dtypes.bfloat16)).dtype == np.complex64
    assert snp.fft.rfft(ints).dtype == np.complex64
    assert snp.fft.irfft(ints).dtype == np.float32
    with st.enable_x64():
        assert snp.fft.fft(ints).dtype == np.complex128
        assert snp.fft.hfft(narrow).dtype == np.float32
        assert snp.fft.fftfreq(3).dtype == np.float64
    assert snp.fft.fftfreq(3, dtype=snp.float16).dtype == np.float16


def test_no_axes_leave_complex_numbers():
    x = np.arange(3.0, dtype=np.float32)
    out = snp.fft.fftn(x, axes=())
    assert out.dtype == np.complex64
    np.testing.assert_array_equal(out, x)


def test_parseval_holds_for_gradients():
    # The unitary transform keeps lengths, so the gradient of half the squared length is x itself.
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    lengths = st.grad(lambda x: snp.sum(abs(snp.fft.fftn(x, norm="ortho")) ** 2) / 2)
    np.testing.assert_allclose(st.jit(lengths)(x), x, atol=1e-5)


def test_refuses():
    x = snp.ones((2, 3))
    with pytest.raises(ValueError, match=r"fft: norm must be None, 'backward'.*got 'unit'"):
        snp.fft.fft(x, norm="unit")
    with pytest.raises(ValueError, match="hfft: norm must be"):
        snp.fft.hfft(x, norm="unit")
    with pytest.raises(ValueError, match="rfft: n must be at least 1, got 0"):
        snp.fft.rfft(x, 0)
    with pytest.raises(
        ValueError, match=r"irfft: a transform needs at least one point, got \(0,\)"
    ):
        snp.fft.irfft(snp.ones((2, 1)))
    with pytest.raises(TypeError, match=r"rfftn: expected real numbers, got complex64\[2,3\]"):
        snp.fft.rfftn(x + 1j)
    with pytest.raises(TypeError, match=r"fft: axis must be an integer.*use fftn"):
        snp.fft.fft(x, axis=(0, 1))
    with pytest.raises(ValueError, match=r"fftn: axis \(0, 0\) names an axis twice"):
        snp.fft.fftn(x, axes=(0, 0))
    with pytest.raises(
        ValueError, match=r"fftn: s \(2,\) and axes \(0, 1\) must have equal lengths"
    ):
        snp.fft.fftn(x, (2,), (0, 1))
    with pytest.raises(ValueError, match=r"fftn: s \(2, 2, 2\) has more sizes than float32\[2,3\]"):
        snp.fft.fftn(x, (2, 2, 2))
    with pytest.raises(ValueError, match="rfftn: expected at least one axis"):
        snp.fft.rfftn(x, axes=())
    with pytest.raises(ValueError, match="fftfreq: n must be positive, got 0"):
        snp.fft.fftfreq(0)
    with pytest.raises(NotImplementedError, match="there is no out="):
        snp.fft.fft(x, out=x)
    with pytest.raises(TypeError, match=r"fft: a must be an array or a number; got a list"):
        snp.fft.fft([1.0, 2.0])
