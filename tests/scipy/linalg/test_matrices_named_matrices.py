"""Named matrices: exact integers, dtypes, refusals."""

import numpy as np
import pytest
import scipy.linalg

import stretto as st
from stretto.scipy import linalg


def test_integers_are_rounded_once():
    exact = scipy.linalg.pascal(40)
    with st.enable_x64(True):
        np.testing.assert_array_equal(linalg.pascal(40), exact.astype(np.float64))
        got = linalg.invhilbert(15)
        np.testing.assert_array_equal(got, scipy.linalg.invhilbert(15, True).astype(np.float64))
        assert linalg.hilbert(2).dtype == np.float64
    assert np.isinf(linalg.pascal(80)[-1, -1])
    assert linalg.hadamard(2, complex).dtype == np.complex64
    assert linalg.dft(3, dtype=np.complex64).dtype == np.complex64


def test_refusals():
    with pytest.raises(ValueError, match="hadamard: n must be a power of 2, got 6"):
        linalg.hadamard(6)
    with pytest.raises(ValueError, match="helmert: n must be 1 or more, got 0"):
        linalg.helmert(0)
    with pytest.raises(ValueError, match="pascal: kind must be 'symmetric', 'lower' or 'upper'"):
        linalg.pascal(2, "left")
    with pytest.raises(ValueError, match="dft: scale must be None, 'sqrtn' or 'n'"):
        linalg.dft(2, "unit")
