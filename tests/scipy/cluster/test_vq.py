"""Vector quantization: what the table of functions cannot say."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.scipy.cluster.vq import vq

BOOK = np.array([[0.0, 0.0], [3.0, 4.0]], np.float32)


def test_gradients_are_finite_on_a_code():
    x = snp.array([[0.0, 0.0], [0.0, 2.0]])
    g = st.jit(st.grad(lambda x: snp.sum(vq(x, BOOK)[1])))(x)
    np.testing.assert_array_equal(g, [[0, 0], [0, 1]])


def test_refuses():
    with pytest.raises(ValueError, match=r"expected obs \[m, d\].*float32\[2\] and float32\[2,2\]"):
        vq(BOOK[0], BOOK)
    with pytest.raises(TypeError, match="vq: code_book must be an array"):
        vq(np.ones((2, 2), np.float32), [[1.0, 2.0]])
    with pytest.raises(ValueError, match="at least one code"):
        vq(BOOK, BOOK[:0])
