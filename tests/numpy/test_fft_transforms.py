"""Complex transforms: NumPy's values for every size, axis and norm; inverses; their transposes."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.random.default_rng(0).normal(size=(3, 4, 5)) + 1j * np.random.default_rng(1).normal(
    size=(3, 4, 5)
)
NORMS = [None, "backward", "ortho", "forward"]


@pytest.mark.parametrize("name", ["fft", "ifft"])
@pytest.mark.parametrize("norm", NORMS)
def test_along_an_axis(name, norm):
    with st.enable_x64():
        for n, axis in ((None, -1), (None, 0), (2, 1), (9, 1)):
            got = getattr(snp.fft, name)(X, n, axis, norm)
            np.testing.assert_allclose(got, getattr(np.fft, name)(X, n, axis, norm), atol=1e-13)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "fft2", "ifft2"])
@pytest.mark.parametrize("norm", NORMS)
def test_along_axes(name, norm):
    with st.enable_x64():
        for s, axes in ((None, (0, 2)), ((2, 7), (1, 2)), ((4, 4), (-1, 0))):
            got = getattr(snp.fft, name)(X, s, axes, norm)
            np.testing.assert_allclose(got, getattr(np.fft, name)(X, s, axes, norm), atol=1e-13)


def test_there_and_back_and_lengths_kept():
    with st.enable_x64():
        np.testing.assert_allclose(snp.fft.ifftn(snp.fft.fftn(X)), X, atol=1e-14)
        size = np.linalg.norm(snp.fft.fftn(X, norm="ortho"))
        np.testing.assert_allclose(size, np.linalg.norm(X), rtol=1e-14)


def test_the_transpose_is_the_transform_itself():
    x = X[0, 0]
    with st.enable_x64():
        (back,) = st.linear_transpose(snp.fft.fft, x)(x)
        np.testing.assert_allclose(back, np.fft.fft(x), atol=1e-13)


@pytest.mark.parametrize("f", [snp.fft.fft, snp.fft.ifft, snp.fft.fftn, snp.fft.fft2])
def test_refusals(f):
    with pytest.raises(ValueError, match=f"{f.__name__}: norm"):
        f(X, norm="unitary")
    with pytest.raises(ValueError, match=f"{f.__name__}"):
        f(X, 0) if f in (snp.fft.fft, snp.fft.ifft) else f(X, (0, 0))
    with pytest.raises(ValueError, match=f"{f.__name__}"):
        f(X, None, 3 if f in (snp.fft.fft, snp.fft.ifft) else (0, 3))
