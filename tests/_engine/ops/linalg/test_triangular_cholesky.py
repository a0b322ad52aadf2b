"""The Cholesky factorization: the laws, NumPy, and what is not positive definite."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.linalg.triangular import Cholesky, CholeskyUpdate, hermitian_from_lower
from stretto.laws import c64, c128, f32, f64, law
from stretto.lax.linalg import cholesky, cholesky_update
from tests.any_size import holds


def of_triangle(x):
    return cholesky(x + 5 * snp.eye(x.shape[-1], dtype=x.dtype), symmetrize_input=False)


def updated(r, w):
    return cholesky_update(r + 5 * snp.eye(r.shape[-1], dtype=r.dtype), w)


LAWS = [
    *(law(CholeskyUpdate, updated, kind(3, 3), kind(3)) for kind in (f32, f64, c64)),
    law(CholeskyUpdate, updated, f32(2, 3, 3), f32(2, 3)),
    *(law(Cholesky, of_triangle, kind(3, 3).within(-1, 1)) for kind in (f32, f64, c64, c128)),
    law(Cholesky, lambda x: cholesky(x @ snp.matrix_transpose(x) + snp.eye(3)), f32(2, 3, 3)),
]


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


def test_the_lower_triangle_of_a_hermitian_matrix_says_all():
    x = np.array([[1, 7j], [2 + 3j, 4]], np.complex64)
    want = np.array([[1, 2 - 3j], [2 + 3j, 4]], np.complex64)
    np.testing.assert_array_equal(hermitian_from_lower(snp.array(x)), want)


def test_symmetrised_gradients_are_symmetric():
    # Of sum(cholesky(x)) at [[4, 2], [2, 5]]: l = [[a, 0], [b, c]] with a^2 = x11, a b = x21 and
    # b^2 + c^2 = x22, so da = dx11/4, db = dx21/2 - dx11/8, dc = (dx22 - 2 db)/4.
    g = st.grad(lambda x: snp.sum(cholesky(x)))(snp.array([[4.0, 2.0], [2.0, 5.0]]))
    np.testing.assert_allclose(g, [[0.1875, 0.125], [0.125, 0.25]], rtol=1e-6)
    lower = st.grad(lambda x: snp.sum(cholesky(x, symmetrize_input=False)))
    np.testing.assert_allclose(
        lower(snp.array([[4.0, 0.0], [2.0, 5.0]])), [[0.1875, 0], [0.25, 0.25]], rtol=1e-6
    )


def test_what_is_not_positive_definite_is_nan_for_its_matrix_alone():
    x = snp.array([[[4.0, 2.0], [2.0, 5.0]], [[1.0, 2.0], [2.0, 1.0]]])
    for f in (cholesky, st.jit(cholesky), st.vmap(cholesky)):
        got = np.asarray(f(x))
        np.testing.assert_allclose(got[0], [[2, 0], [1, 2]], rtol=1e-6)
        np.testing.assert_array_equal(got[1], [[np.nan, 0], [np.nan, np.nan]])


@pytest.mark.parametrize("kind", ["float32", "complex64"])
def test_an_update_is_the_factor_of_the_sum(kind):
    rng = np.random.default_rng(0)
    r, w = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in ((4, 4), (2, 4)))
    r, w = (x.astype(kind) if kind[0] == "c" else x.real.astype(kind) for x in (r, w))
    u = np.asarray(cholesky_update(r, w))  # only the triangle is read; one triangle, two vectors
    t = np.triu(r)
    want = t.conj().T @ t + w[:, :, None] * w.conj()[:, None, :]
    np.testing.assert_allclose(u.conj().swapaxes(1, 2) @ u, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(u, np.triu(u))
    assert (np.diagonal(u, 0, 1, 2).real > 0).all()


@pytest.mark.parametrize("corner", [0.0, 0.6])
def test_an_update_of_a_matrix_that_is_not_definite(corner):
    """The first row stays where it and the vector begin with 0, and is turned elsewhere."""
    r = np.array([[corner, 3.0], [0.0, 2.0]], np.float32)
    w = np.array([corner and 0.8, 1.0], np.float32)
    for f in (cholesky_update, st.jit(cholesky_update)):
        u = np.asarray(f(r, w))
        np.testing.assert_allclose(u.T @ u, r.T @ r + np.outer(w, w), rtol=1e-6)
        if not corner:
            np.testing.assert_allclose(u[0], [0, 3])


def test_an_update_of_nothing():
    for f in (cholesky_update, st.jit(cholesky_update)):
        np.testing.assert_array_equal(f(snp.zeros((2, 2)), snp.zeros(2)), np.zeros((2, 2)))
        assert f(snp.zeros((0, 0)), snp.zeros(0)).shape == (0, 0)
    with pytest.raises(ValueError, match="w_vector must have 2 elements, as r_matrix has rows"):
        cholesky_update(snp.eye(2), snp.ones(3))
    with pytest.raises(ValueError, match="cholesky_update: expected square matrices"):
        cholesky_update(snp.ones((2, 3)), snp.ones(3))
    with pytest.raises(ValueError, match="cholesky_update: expected an array of rank 2 or more"):
        cholesky_update(snp.ones(3), snp.ones(3))


def test_updates_of_any_size():
    r, w = (np.random.default_rng(0).normal(size=s).astype(np.float32) for s in ((4, 4), (4,)))
    holds(updated, [np.triu(r), w], {(0, 0): 0, (0, 1): 0, (1, 0): 0}, tolerance=30)
