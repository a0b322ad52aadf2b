"""Norms, condition numbers and ranks against NumPy."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.numpy import linalg

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)
COMPLEX = (X + 1j * X[::-1]).astype(np.complex64)
VECTOR_ORDERS = [None, 2, 1, 0, 3, 0.5, np.inf, -np.inf, -1]
MATRIX_ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]


def close(got, want):
    assert np.asarray(got).dtype == np.float32
    np.testing.assert_allclose(np.asarray(got), want, rtol=2e-5)


@pytest.mark.parametrize("x", [X, COMPLEX], ids=["real", "complex"])
@pytest.mark.parametrize("ord", VECTOR_ORDERS, ids=str)
@pytest.mark.parametrize("axis, keepdims", [(0, False), (-1, True)])
def test_norms_of_vectors(x, ord, axis, keepdims):
    want = np.linalg.norm(x, ord, axis, keepdims)
    close(linalg.norm(x, ord, axis, keepdims), want)
    close(st.jit(lambda x: linalg.norm(x, ord, axis, keepdims))(x), want)
    if ord is not None:
        close(linalg.vector_norm(x, ord=ord), np.linalg.vector_norm(x, ord=ord))
        want = np.linalg.vector_norm(x, axis=(0, 2), ord=ord)
        close(linalg.vector_norm(x, axis=(0, 2), ord=ord), want)


@pytest.mark.parametrize("x", [X, COMPLEX], ids=["real", "complex"])
@pytest.mark.parametrize("ord", MATRIX_ORDERS, ids=str)
@pytest.mark.parametrize("axis, keepdims", [((1, 2), False), ((2, 0), True)])
def test_norms_of_matrices(x, ord, axis, keepdims):
    want = np.linalg.norm(x, ord, axis, keepdims)
    close(linalg.norm(x, ord, axis, keepdims), want)
    close(st.jit(lambda x: linalg.norm(x, ord, axis, keepdims))(x), want)
    if ord is not None:
        want = np.linalg.matrix_norm(x, ord=ord, keepdims=True)
        close(linalg.matrix_norm(x, ord=ord, keepdims=True), want)


def test_norm_of_all_elements():
    close(linalg.norm(X), np.linalg.norm(X))
    close(linalg.norm(np.array([3, 4])), 5)
    close(linalg.norm(X, keepdims=True), np.linalg.norm(X, keepdims=True))
    np.testing.assert_allclose(st.grad(linalg.norm)(snp.array([3.0, 4.0])), [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("p", [None, 2, -2, "fro", 1, -1, np.inf, -np.inf, "nuc"], ids=str)
def test_condition_numbers(p):
    a = X[:, :, :3] + 3 * np.eye(3, dtype=np.float32)
    np.testing.assert_allclose(linalg.cond(a, p), np.linalg.cond(a, p), rtol=1e-4)
    np.testing.assert_allclose(linalg.cond(X), np.linalg.cond(X), rtol=1e-4)


def test_ranks():
    a = np.stack([np.eye(3), np.ones((3, 3)), np.zeros((3, 3)), np.diag([1, 1, 0.01])])
    a = a.astype(np.float32)
    for f in (linalg.matrix_rank, st.jit(linalg.matrix_rank, static_argnames="hermitian")):
        np.testing.assert_array_equal(f(a), [3, 1, 0, 3])
        np.testing.assert_array_equal(f(a, hermitian=True), [3, 1, 0, 3])
        np.testing.assert_array_equal(f(a, 0.1), [3, 1, 0, 2])
        np.testing.assert_array_equal(f(a, np.array([0.0, 0.1, 0.1, 0.001])), [3, 1, 0, 3])
    assert int(linalg.matrix_rank(snp.zeros(3))) == 0
    assert int(linalg.matrix_rank(snp.ones(3))) == 1
    assert linalg.matrix_rank(a).dtype == np.int32


def test_refusals():
    with pytest.raises(ValueError, match=r"norm: expected one axis .* or two"):
        linalg.norm(X, 2)
    with pytest.raises(ValueError, match=r"norm: ord must be 'fro', .* got 3"):
        linalg.norm(X[0], 3)
    with pytest.raises(ValueError, match="norm: ord='fro' is for matrices"):
        linalg.norm(X[0, 0], "fro")
    with pytest.raises(ValueError, match="matrix_norm: expected an array of rank 2"):
        linalg.matrix_norm(X[0, 0])
    with pytest.raises(ValueError, match="cond: expected square matrices"):
        linalg.cond(X, 1)


@pytest.mark.parametrize("ord", [None, 1, 1.5, 2, 3, 0.5, np.inf, -1], ids=str)
def test_the_derivative_of_a_norm_at_zero_is_zero(ord):
    f = lambda x: linalg.norm(x, ord)
    for x in (snp.zeros(3), snp.zeros(3, snp.complex64)):
        for g in (st.grad(f), st.jit(st.grad(f))):
            np.testing.assert_array_equal(g(x), np.zeros(3))
    one = st.grad(f)(snp.array([0.0, -2.0]))  # of the others it is what it is
    np.testing.assert_allclose(one, [0, 0 if ord == -1 else -1], rtol=1e-6)


def test_the_derivative_of_a_matrix_norm_at_zero_is_zero():
    for x in (snp.zeros((2, 3)), snp.zeros((4, 2, 3))):
        g = st.grad(lambda x: snp.sum(linalg.matrix_norm(x)))(x)
        np.testing.assert_array_equal(g, np.zeros(x.shape))
