"""SciPy's systems: factored ones, assumptions about the matrix, refusals."""

import numpy as np
import pytest
import scipy.linalg

import stretto as st
import stretto.numpy as snp
from stretto.scipy import linalg

RNG = np.random.default_rng(0)
A = (RNG.normal(size=(3, 3)) + 3 * np.eye(3)).astype(np.float32)
STACK = (RNG.normal(size=(2, 1, 3, 3)) + 3 * np.eye(3)).astype(np.float32)
B = RNG.normal(size=(3, 2)).astype(np.float32)


def close(got, want, atol=1e-5):
    np.testing.assert_allclose(np.asarray(got), want, atol=atol, rtol=1e-4)


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_factored_systems_equal_scipy(trans):
    a = (A + 1j * A.T).astype(np.complex64)
    want = scipy.linalg.solve({0: a, 1: a.T, 2: a.conj().T}[trans], B)
    for f in (linalg.lu_solve, st.jit(linalg.lu_solve, static_argnames="trans")):
        close(f(linalg.lu_factor(a), B, trans=trans), want)
        close(f(linalg.lu_factor(a), B[:, 0], trans=trans), want[:, 0])
    stack = linalg.lu_factor(STACK)
    close(linalg.lu_solve(stack, B), np.linalg.solve(STACK, B))
    for lower in (True, False):
        got = linalg.solve_triangular(a, B, trans, lower)
        close(got, scipy.linalg.solve_triangular(a, B, trans, lower))


@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_systems(lower):
    a = (A @ A.T + 1j * (A - A.T)).astype(np.complex64) + 5 * np.eye(3, dtype=np.complex64)
    factor = linalg.cho_factor(a, lower)
    close(linalg.cho_solve(factor, B), np.linalg.solve(a, B))
    close(linalg.cho_solve(factor, B[:, 0]), np.linalg.solve(a, B[:, 0]))


def test_the_derivatives_of_lu_solve_go_through_the_factors():
    f = lambda a: snp.sum(linalg.lu_solve(linalg.lu_factor(a), B) ** 2)
    g = lambda a: snp.sum(st.linalg.solve(a, B) ** 2)
    close(st.grad(f)(snp.array(A)), st.grad(g)(snp.array(A)))


def test_solve_reads_one_triangle_of_what_is_assumed_symmetric():
    a = (A + 1j * A).astype(np.complex64)
    for lower in (False, True):
        triangle = np.tril(a) if lower else np.triu(a)
        other = np.triu(triangle.T, 1) if lower else np.tril(triangle.T, -1)
        close(linalg.solve(a, B, lower, assume_a="sym"), np.linalg.solve(triangle + other, B))
        hermitian = triangle + other.conj()
        np.fill_diagonal(hermitian, hermitian.diagonal().real)
        close(linalg.solve(a, B, lower, assume_a="her"), np.linalg.solve(hermitian, B))
    assert np.isnan(linalg.solve(-np.eye(2, dtype=np.float32), np.ones(2), assume_a="pos")).all()


def test_refusals():
    with pytest.raises(ValueError, match="lu_solve: trans must be 0, 1, 2"):
        linalg.lu_solve(linalg.lu_factor(A), B, 3)
    with pytest.raises(ValueError, match="solve: assume_a must be one of gen, general, sym"):
        linalg.solve(A, B, assume_a="banded")
    with pytest.raises(ValueError, match="solve_triangular: b must have 3 rows"):
        linalg.solve_triangular(A, np.ones(2))


@pytest.mark.parametrize("a_shape", [(3, 3), (4, 3, 3), (4, 1, 3, 3)], ids=str)
@pytest.mark.parametrize("b_shape", [(3,), (3, 2), (4, 3, 2)], ids=str)
def test_leading_axes_of_all_solvers_broadcast(a_shape, b_shape):
    rng = np.random.default_rng(0)
    a = rng.normal(size=a_shape).astype(np.float32) + 4 * np.eye(3, dtype=np.float32)
    b = rng.normal(size=b_shape).astype(np.float32)
    positive = a @ np.swapaxes(a, -1, -2)
    columns = b[:, None] if b.ndim == 1 else b
    want = lambda m: np.linalg.solve(m, columns)[..., 0] if b.ndim == 1 else np.linalg.solve(m, b)
    for lower, part in ((False, np.triu), (True, np.tril)):
        close(linalg.solve_triangular(a, b, lower=lower), want(part(a)))
        close(linalg.solve_triangular(a, b, 1, lower), want(np.swapaxes(part(a), -1, -2)))
        close(linalg.cho_solve(linalg.cho_factor(positive, lower), b), want(positive))
        close(linalg.solve(positive, b, lower, assume_a="pos"), want(positive))
    close(linalg.solve(a, b), want(a))
    close(linalg.lu_solve(linalg.lu_factor(a), b), want(a))


def test_leading_axes_that_do_not_broadcast_are_named():
    for solver in (
        linalg.solve_triangular,
        lambda a, b: linalg.cho_solve((a, True), b),
        lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b),
    ):
        with pytest.raises(ValueError, match=r"shapes \(4,\) and \(5,\) do not broadcast"):
            solver(np.ones((4, 3, 3), np.float32), np.ones((5, 3, 2), np.float32))
