"""Transforms of real signals: NumPy's values, odd sizes, inverses, the other half, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.random.default_rng(0).normal(size=(3, 4, 5))
Z = X + 1j * np.random.default_rng(1).normal(size=X.shape)
NORMS = [None, "ortho", "forward"]


@pytest.mark.parametrize("name", ["rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", NORMS)
def test_along_an_axis(name, norm):
    x = X if name in ("rfft", "ihfft") else Z
    with st.enable_x64():
        for n, axis in ((None, -1), (None, 0), (2, 1), (9, 1), (6, 0)):
            got = getattr(snp.fft, name)(x, n, axis, norm)
            np.testing.assert_allclose(got, getattr(np.fft, name)(x, n, axis, norm), atol=1e-13)


@pytest.mark.parametrize("name", ["rfftn", "irfftn", "rfft2", "irfft2"])
@pytest.mark.parametrize("norm", NORMS)
def test_along_axes(name, norm):
    x = X if name.startswith("r") else Z
    with st.enable_x64():
        for s, axes in ((None, (0, 2)), ((2, 7), (1, 2)), ((4, 4), (-1, 0))):
            got = getattr(snp.fft, name)(x, s, axes, norm)
            np.testing.assert_allclose(got, getattr(np.fft, name)(x, s, axes, norm), atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_there_and_back(n):
    x = X.ravel()[:n]
    with st.enable_x64():
        np.testing.assert_allclose(snp.fft.irfft(snp.fft.rfft(x), n), x, atol=1e-14)
        np.testing.assert_allclose(snp.fft.hfft(snp.fft.ihfft(x), n), x, atol=1e-14)


def test_the_half_that_is_left_out():
    """The slope of a sum over all frequencies counts those of the other half."""
    x = X[0, 0]
    with st.enable_x64():
        half = lambda x: snp.sum(abs(snp.fft.rfft(x)) ** 2)
        matrix = np.fft.fft(np.eye(5))[:3]
        want = 2 * (matrix.conj().T @ matrix @ x).real
        np.testing.assert_allclose(st.grad(half)(x), want, atol=1e-12)


def test_refusals():
    for f in (snp.fft.rfft, snp.fft.rfftn, snp.fft.ihfft):
        with pytest.raises(TypeError, match=f.__name__):
            f(Z)
    for f in (snp.fft.rfft, snp.fft.irfft, snp.fft.hfft, snp.fft.ihfft):
        with pytest.raises(ValueError, match=f"{f.__name__}: norm"):
            f(X, norm="unitary")
