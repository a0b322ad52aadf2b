from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("k", [-4, -1, 0, 2, 5])
def test_triangles_and_diagonals(agree, k):
    agree("tri", 3, 4, k, dtype="float32")
    agree("tril", X, k, dtype="float32")
    agree("triu", X, k, dtype="float32")
    agree("eye", 3, 4, k, dtype="float32")
    agree("diag", X[0], k, dtype="float32")
    agree("diag", X[0, 0], k, dtype="float32")
    agree("diagflat", X[0], k, dtype="float32")


def test_small(agree):
    agree("identity", 3)
    agree("eye", 0)
    agree("diag", np.zeros(0, np.float32), 2)
    agree("diag", np.zeros((0, 3), np.float32))
    assert snp.eye(2, dtype=bool).tolist() == [[True, False], [False, True]]
    assert snp.diag(snp.array([1, 2])).dtype == snp.int32


def test_derivatives():
    assert st.grad(lambda v: (snp.diag(v, 1) * 3).sum())(snp.ones(2)).tolist() == [3, 3]
    assert st.grad(lambda m: snp.diag(m).sum())(snp.ones((2, 2))).tolist() == [[1, 0], [0, 1]]
    assert st.grad(lambda m: snp.tril(m).sum())(snp.ones((2, 2))).tolist() == [[1, 0], [1, 1]]
    assert st.vmap(snp.diag)(snp.ones((3, 2))).shape == (3, 2, 2)


def test_errors():
    with pytest.raises(ValueError, match="rank 2 or more"):
        snp.tril(snp.ones(3))
    with pytest.raises(ValueError, match="rank 1 or 2"):
        snp.diag(snp.array(X))
