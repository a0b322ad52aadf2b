from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

A = np.arange(6, dtype=np.float32).reshape(2, 3)
V, W = np.array([1.0, 2.0, 3.0], np.float32), np.array([4.0, 5.0, 6.0], np.float32)
COMPLEX = np.array([1 + 2j, -3j, 0.5], np.complex64)


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        ("dot", V, W),
        ("dot", A, V),
        ("matmul", A, A.T.copy()),
        ("matmul", V, W),
        ("inner", A, A),
        ("outer", V, W),
        ("vdot", COMPLEX, COMPLEX[::-1].copy()),
        ("tensordot", np.ones((2, 3, 4), np.float32), np.ones((3, 4, 5), np.float32)),
        ("vecdot", A, V),
        ("vecdot", COMPLEX, COMPLEX),
    ],
)
def test_as_numpy(agree, name, x, y):
    agree(name, x, y, rtol=1e-5)


def test_vecdot_along_another_axis():
    got = snp.vecdot(snp.array(A), snp.array(A), axis=0)
    np.testing.assert_array_equal(got, (A * A).sum(0))
    with pytest.raises(ValueError, match="sizes along axis -1 differ"):
        snp.vecdot(snp.ones(2), snp.ones(3))


def test_the_operator():
    x, y = snp.array(A), snp.array(V)
    np.testing.assert_array_equal(x @ y, A @ V)
    np.testing.assert_array_equal(A @ y, A @ V)
    np.testing.assert_array_equal(st.vmap(lambda r: r @ y)(x), A @ V)
