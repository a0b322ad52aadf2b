"""Cosine transforms: what the table of functions cannot say."""

import numpy as np
import pytest

import stretto as st
from stretto.scipy.fft import dct, dctn, idct


def test_ortho_is_orthogonal_in_every_type():
    matrices = {type: np.asarray(dct(np.eye(6, dtype=np.float32), type, norm="ortho"))
                for type in (1, 2, 3, 4)}  # fmt: skip
    for type, matrix in matrices.items():
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(6), atol=1e-6)
        np.testing.assert_allclose(idct(matrix, type, norm="ortho"), np.eye(6), atol=1e-6)


def test_refuses():
    x = st.numpy.ones((2, 1))
    with pytest.raises(ValueError, match="dct: type must be 1, 2, 3 or 4; got 5"):
        dct(x, 5)
    with pytest.raises(ValueError, match=r"dct: norm must be None, 'backward'.*got 'unit'"):
        dct(x, norm="unit")
    with pytest.raises(ValueError, match=r"idct: type 1 needs at least 2 points.*float32\[2,1\]"):
        idct(x, 1)
    with pytest.raises(ValueError, match=r"dct: type 2 needs at least 1 point,.*float32\[0\]"):
        dct(st.numpy.ones(0))
    with pytest.raises(ValueError, match="the number of points must be at least 1, got 0"):
        dct(x, n=0)
    with pytest.raises(
        ValueError,
        match=r"dctn: s and axes must have the same length, got s \(2, 2\) and axes \(0,\)",
    ):
        dctn(x, s=(2, 2), axes=(0,))
