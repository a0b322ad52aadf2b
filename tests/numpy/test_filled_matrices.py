from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import TracedValueError

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
    for bad in (1.5, snp.array(1.0), [1]):
        with pytest.raises(TypeError, match="tril: k must be an integer, got"):
            snp.tril(snp.ones((2, 2)), bad)
    with pytest.raises(TypeError, match=r"eye: k must be an integer, got float32\[\]"):
        st.jit(lambda k: snp.eye(2, k=k))(1.0)
    with pytest.raises(TracedValueError, match="the argument k"):
        st.jit(snp.diag)(snp.ones(2), 1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_traced_diagonals(dtype):
    """Also where the diagonal, or one beside it, is past the dtype's range."""
    x = X[0]
    jitted = st.jit(lambda k: (snp.eye(3, 4, k), snp.tri(3, 4, k), snp.tril(x, k), snp.triu(x, k)))
    bounds = np.iinfo(dtype)
    for k in (bounds.min, -4, -1, 0, 2, 3, bounds.max):
        if k < bounds.min:
            continue
        want = np.eye(3, 4, k), np.tri(3, 4, k), np.tril(x, k), np.triu(x, k)
        for got, expected in zip(jitted(np.array(k, dtype)), want, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_diagonals_by_the_example():
    rows = st.vmap(lambda k: snp.eye(2, 3, k))(snp.arange(-1, 2))
    np.testing.assert_array_equal(rows, [np.eye(2, 3, k) for k in (-1, 0, 1)])
    g = st.grad(lambda x, k: (snp.tril(x, k) * 3).sum())(snp.ones((2, 2)), 0)
    assert g.tolist() == [[3, 0], [3, 3]]
