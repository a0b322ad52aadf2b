"""Systems, inverses, determinants and least squares against NumPy."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.numpy import linalg

RNG = np.random.default_rng(0)
A = (RNG.normal(size=(3, 3)) + 3 * np.eye(3)).astype(np.float32)
STACK = (RNG.normal(size=(2, 1, 3, 3)) + 3 * np.eye(3)).astype(np.float32)
B = RNG.normal(size=(3, 2)).astype(np.float32)


def close(got, want, atol=1e-5):
    np.testing.assert_allclose(np.asarray(got), want, atol=atol, rtol=1e-4)


@pytest.mark.parametrize("f", [linalg.solve, st.jit(linalg.solve)], ids=["eager", "jit"])
def test_solve_equals_numpy(f):
    close(f(A, B), np.linalg.solve(A, B))
    close(f(A, B[:, 0]), np.linalg.solve(A, B[:, 0]))
    # As in NumPy 2, only an array of rank 1 is a vector.
    many = RNG.normal(size=(5, 3, 2)).astype(np.float32)
    close(f(STACK, many), np.linalg.solve(STACK, many))
    close(f(STACK, B[:, 0]), np.linalg.solve(STACK, B[:, 0]))
    assert f(A.astype(int), B.astype(np.complex64)).dtype == np.complex64


def test_inverse_and_determinants():
    close(linalg.inv(STACK), np.linalg.inv(STACK))
    close(linalg.det(STACK), np.linalg.det(STACK))
    sign, logarithm = linalg.slogdet(STACK)
    close(sign, np.linalg.slogdet(STACK).sign)
    close(logarithm, np.linalg.slogdet(STACK).logabsdet)
    # d log|det a| = tr(a^-1 da)
    close(st.grad(lambda a: linalg.slogdet(a).logabsdet)(snp.array(A)), np.linalg.inv(A).T)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)], ids=str)
def test_pinv_and_least_squares(shape):
    a = RNG.normal(size=shape).astype(np.float32)
    b = RNG.normal(size=(shape[0], 2)).astype(np.float32)
    close(linalg.pinv(a), np.linalg.pinv(a))
    for f in (linalg.lstsq, st.jit(linalg.lstsq)):
        x, residuals, rank, s = f(a, b)
        want = np.linalg.lstsq(a, b, rcond=None)
        close(x, want[0])
        close(residuals, ((b - a @ want[0]) ** 2).sum(0))
        assert int(rank) == want[2]
        close(s, want[3])
        assert f(a, b[:, 0])[0].shape == shape[1:]
    np.testing.assert_allclose(linalg.lstsq(a, b, numpy_resid=True)[1], want[1], atol=1e-5)


def test_pinv_of_rank_one_and_of_each_its_own_rtol():
    a = np.stack([np.diag([1.0, 0.1]), np.diag([1.0, 0.1])]).astype(np.float32)
    close(linalg.pinv(a, np.array([0.5, 0.01])), [np.diag([1, 0]), np.diag([1, 10])])
    close(linalg.pinv(a, hermitian=True), np.linalg.pinv(a, hermitian=True))
    close(linalg.lstsq(np.ones((3, 2), np.float32), np.ones(3, np.float32))[0], [0.5, 0.5])
    assert int(linalg.lstsq(np.ones((3, 2), np.float32), np.ones(3, np.float32))[2]) == 1


def test_the_gradient_of_least_squares_exists_for_orthonormal_columns():
    a, b = snp.eye(4, 2), snp.arange(4.0)
    g = st.grad(lambda a: snp.sum(linalg.lstsq(a, b)[0] ** 2))(a)
    assert np.isfinite(g).all()
    d = np.zeros((4, 2), np.float32)
    d[2, 1] = d[1, 0] = 1e-2
    f = lambda a: np.sum(np.linalg.lstsq(a, np.arange(4.0), rcond=None)[0] ** 2)
    difference = (f(np.eye(4, 2) + d) - f(np.eye(4, 2) - d)) / 2e-2
    np.testing.assert_allclose(np.sum(np.asarray(g) * d) / 1e-2, difference, rtol=1e-3)


def test_tensor_systems():
    a = RNG.normal(size=(2, 3, 6)).astype(np.float32)
    b = RNG.normal(size=(2, 3)).astype(np.float32)
    close(linalg.tensorsolve(a, b), np.linalg.tensorsolve(a, b), 1e-4)
    turned = a.transpose(2, 0, 1)
    want = np.linalg.tensorsolve(turned, b, axes=(0,))
    close(linalg.tensorsolve(turned, b, axes=(0,)), want, 1e-4)
    close(linalg.tensorinv(a), np.linalg.tensorinv(a), 1e-4)


def test_refusals():
    with pytest.raises(ValueError, match=r"solve: b must have 3 rows, .* b: float32\[2\]"):
        linalg.solve(A, np.ones(2, np.float32))
    with pytest.raises(ValueError, match="lstsq: expected a of rank 2"):
        linalg.lstsq(STACK, B)
    with pytest.raises(ValueError, match="tensorsolve: the axes of a after the first 1"):
        linalg.tensorsolve(np.ones((3, 2), np.float32), np.ones(3, np.float32))
    with pytest.raises(ValueError, match="tensorinv: the first ind=1 axes"):
        linalg.tensorinv(np.ones((3, 2), np.float32), 1)
    with pytest.raises(ValueError, match="pinv: give rtol or rcond, not both"):
        linalg.pinv(A, 0.1, rcond=0.1)
    with pytest.raises(ValueError, match="slogdet: method must be None, 'lu' or 'qr'"):
        linalg.slogdet(A, method="cholesky")


def test_least_squares_by_rcond():
    a = np.diag([1.0, 1e-3]).astype(np.float32)
    b = np.ones(2, np.float32)
    for rcond in (None, -1, 1e-6, 1e-2):
        got, want = linalg.lstsq(a, b, rcond), np.linalg.lstsq(a, b, rcond)
        close(got[0], want[0], 1e-2)
        assert int(got[2]) == want[2]
    assert linalg.lstsq(np.zeros((0, 2), np.float32), np.zeros(0, np.float32))[0].shape == (2,)
    assert linalg.lstsq(np.zeros((2, 0), np.float32), np.ones((2, 3), np.float32))[0].shape == (
        0,
        3,
    )


def test_singular_matrices_give_infinities_or_nan_eagerly_and_compiled():
    a = snp.array([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]])
    for f in (linalg.inv, st.jit(linalg.inv)):
        got = np.asarray(f(a))
        assert not np.isfinite(got[0]).any()
        np.testing.assert_array_equal(got[1], [[1, 0], [0, 0.5]])
    for f in (linalg.solve, st.jit(linalg.solve)):
        assert not np.isfinite(f(a, snp.ones((2, 2, 1)))[0]).any()
    sign, logarithm = st.jit(linalg.slogdet)(snp.zeros((2, 2)))
    assert (float(sign), float(logarithm)) == (0, -np.inf)


def test_the_namespace_is_numpys():
    public = {n for n in dir(linalg) if not n.startswith("_")}
    modules = {"floats", "factorizations", "norms", "matrix_products", "systems"}
    assert public - modules == set(np.linalg.__all__)
    assert linalg.LinAlgError is np.linalg.LinAlgError
