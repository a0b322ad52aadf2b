"""Frequencies and their order: NumPy's values, even and odd sizes, inverses, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_numpys(name, n):
    with st.enable_x64():
        for d in (1.0, 0.1):
            got = getattr(snp.fft, name)(n, d)
            np.testing.assert_allclose(got, getattr(np.fft, name)(n, d), rtol=1e-15)


@pytest.mark.parametrize("axes", [None, 0, -1, (0, 1)])
def test_shifts_undo_each_other(axes):
    for shape in ((4, 5), (3, 2)):
        x = np.arange(np.prod(shape)).reshape(shape)
        shifted = snp.fft.fftshift(x, axes)
        np.testing.assert_array_equal(shifted, np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(snp.fft.ifftshift(shifted, axes), x)


def test_the_spacing_may_be_traced():
    slope = st.grad(lambda d: snp.fft.fftfreq(4, d)[1])(2.0)
    np.testing.assert_allclose(slope, -1 / 16)


def test_refusals():
    for f in (snp.fft.fftfreq, snp.fft.rfftfreq):
        with pytest.raises((TypeError, ValueError), match=f.__name__):
            f(2.5)
        with pytest.raises((TypeError, ValueError), match=f.__name__):
            f(0)
    with pytest.raises(ValueError, match="fftshift"):
        snp.fft.fftshift(np.ones(3), 1)
