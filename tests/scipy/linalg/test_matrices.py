"""Structured matrices: made from two vectors, leading axes, refusals."""

import numpy as np
import pytest
import scipy.linalg

import stretto as st
import stretto.numpy as snp
from stretto.scipy import linalg


@pytest.mark.parametrize("name", ["toeplitz", "hankel"])
def test_of_a_column_and_a_row(name):
    c, r = np.arange(1, 4), np.arange(7, 12)
    ours, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
    for got in (ours(c, r), st.jit(ours)(c, r)):
        np.testing.assert_array_equal(got, theirs(c, r))
    both = ours(np.stack([c, c + 1]), r)
    np.testing.assert_array_equal(both, np.stack([theirs(c, r), theirs(c + 1, r)]))
    np.testing.assert_array_equal(ours(3), [[3]])
    assert ours(snp.zeros(0)).shape == (0, 0)


def test_blocks_broadcast():
    got = linalg.block_diag(snp.ones((2, 1, 2)), snp.array([[3.0]]))
    np.testing.assert_array_equal(got, np.stack([[[1, 1, 0], [0, 0, 3]]] * 2))
    assert linalg.block_diag().shape == (1, 0)
    assert linalg.block_diag(snp.zeros(0), 1).shape == (2, 1)


def test_refusals():
    with pytest.raises(ValueError, match="leslie: expected f of two or more elements"):
        linalg.leslie(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="companion: expected two coefficients or more, got 1"):
        linalg.companion(np.ones(1))
    with pytest.raises(ValueError, match="fiedler_companion: expected one coefficient or more"):
        linalg.fiedler_companion(np.ones(0))
    with pytest.raises(ValueError, match="convolution_matrix: expected elements in a and n > 0"):
        linalg.convolution_matrix(np.ones(2), 0)
    with pytest.raises(ValueError, match="convolution_matrix: mode must be 'full'"):
        linalg.convolution_matrix(np.ones(2), 2, "half")
    with pytest.raises(TypeError, match="toeplitz: c must be an array or a number; got a list"):
        linalg.toeplitz([1, 2])
