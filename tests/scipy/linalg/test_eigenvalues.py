"""SciPy's eigenvalue problems and forms: vectors, selections, derivatives, refusals."""

import numpy as np
import pytest
import scipy.linalg

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import MissingRuleError
from stretto.scipy import linalg

RNG = np.random.default_rng(0)


def hermitian(n):
    x = RNG.normal(size=(n, n)) + 1j * RNG.normal(size=(n, n))
    return (x + x.conj().T).astype(np.complex64)


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_vectors_of_the_three_problems(kind):
    a, b = hermitian(3), hermitian(3) + 8 * np.eye(3, dtype=np.complex64)
    w, v = map(np.asarray, linalg.eigh(a, b, type=kind))
    left, right = {1: (a @ v, b @ v), 2: (a @ b @ v, v), 3: (b @ a @ v, v)}[kind]
    np.testing.assert_allclose(left, right * w, atol=1e-4)
    scale = np.linalg.inv(b) if kind == 3 else b
    np.testing.assert_allclose(v.conj().T @ scale @ v, np.eye(3), atol=1e-4)


def test_leading_axes_of_both_broadcast_and_gradients_exist():
    a, b = np.stack([hermitian(2), hermitian(2)]), np.eye(2) * 2
    np.testing.assert_allclose(
        linalg.eigh(a, b, eigvals_only=True), np.linalg.eigvalsh(a) / 2, atol=1e-5
    )
    f = lambda b: linalg.eigh(np.diag([1.0, 4.0]), b, eigvals_only=True)[1]
    np.testing.assert_allclose(st.grad(f)(snp.eye(2) * 2), np.diag([0, -1.0]), atol=1e-6)
    assert np.isnan(linalg.eigh(a[0], -b, eigvals_only=True)).all()


def test_only_one_triangle_is_read():
    x = RNG.normal(size=(3, 3)).astype(np.float32)
    for lower in (True, False):
        want = scipy.linalg.eigh(x, lower=lower)[0]
        np.testing.assert_allclose(linalg.eigh(x, lower=lower)[0], want, atol=1e-5)


def test_tridiagonal_vectors_and_selections():
    d, e = RNG.normal(size=4).astype(np.float32), RNG.normal(size=3).astype(np.float32)
    whole = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    w, v = linalg.eigh_tridiagonal(d, e)
    np.testing.assert_allclose(whole @ v, v * w, atol=1e-5)
    low, high = float(w[0]) + 1e-3, float(w[2]) + 1e-3
    some, vectors = linalg.eigh_tridiagonal(d, e, select="v", select_range=(low, high))
    np.testing.assert_array_equal(some, w[1:3])
    np.testing.assert_array_equal(vectors, v[:, 1:3])
    batch = linalg.eigh_tridiagonal(np.stack([d, d]), e, eigvals_only=True)
    np.testing.assert_allclose(batch, np.stack([w, w]), atol=1e-6)
    assert linalg.eigh_tridiagonal(snp.zeros(0), snp.zeros(0), eigvals_only=True).shape == (0,)
    g = st.grad(lambda e: linalg.eigh_tridiagonal(d, e, eigvals_only=True)[0])(snp.array(e))
    # dw = 2 v_i v_i+1 de
    np.testing.assert_allclose(g, 2 * np.asarray(v)[:-1, 0] * np.asarray(v)[1:, 0], atol=1e-5)


def test_forms_turn_back():
    x = RNG.normal(size=(2, 4, 4)).astype(np.float32)
    h, q = map(np.asarray, linalg.hessenberg(x, calc_q=True))
    np.testing.assert_allclose(q @ h @ q.swapaxes(1, 2), x, atol=1e-5)
    np.testing.assert_allclose(q @ q.swapaxes(1, 2), np.stack([np.eye(4)] * 2), atol=1e-5)
    np.testing.assert_array_equal(h, np.triu(h, -1))
    for n in (0, 1):
        h, q = linalg.hessenberg(snp.ones((2, n, n)), calc_q=True)
        assert h.shape == q.shape == (2, n, n)
    t, z = linalg.rsf2csf(*linalg.schur(x))
    t, z = np.asarray(t), np.asarray(z)
    np.testing.assert_allclose(z @ t @ z.conj().swapaxes(1, 2), x, atol=1e-5)
    np.testing.assert_array_equal(t, np.triu(t))


def test_refusals():
    with pytest.raises(NotImplementedError, match=r"eigh: eigvals must be None"):
        linalg.eigh(np.eye(2), eigvals=(0, 1))
    with pytest.raises(ValueError, match="eigh: type must be 1, 2 or 3"):
        linalg.eigh(np.eye(2), type=4)
    with pytest.raises(ValueError, match="eigh: a and b must have the same size"):
        linalg.eigh(np.eye(2), np.eye(3))
    with pytest.raises(TypeError, match="eigh_tridiagonal: d and e must be real"):
        linalg.eigh_tridiagonal(np.ones(2) * 1j, np.ones(1))
    with pytest.raises(ValueError, match="eigh_tridiagonal: e must have one element fewer"):
        linalg.eigh_tridiagonal(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="eigh_tridiagonal: select='i' needs select_range"):
        linalg.eigh_tridiagonal(np.ones(2), np.ones(1), select="i")
    with pytest.raises(ValueError, match="select='v' is for one matrix"):
        linalg.eigh_tridiagonal(np.ones((2, 2)), np.ones(1), select="v", select_range=(0, 1))
    with pytest.raises(ValueError, match="schur: output must be 'real' or 'complex'"):
        linalg.schur(np.eye(2), "triangular")
    with pytest.raises(ValueError, match="rsf2csf: T and Z must have the same size"):
        linalg.rsf2csf(np.eye(2), np.eye(3))
    with pytest.raises(MissingRuleError, match="order of eigenvalues are LAPACK's choice"):
        st.grad(lambda x: snp.sum(snp.real(linalg.schur(x, "complex")[0])))(snp.eye(2))
