"""Factorizations against NumPy's and SciPy's: results, names, derivatives composed."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.numpy import linalg

RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(3, 5)).astype(np.float32)
SQUARE = RNG.normal(size=(2, 4, 4)).astype(np.float32)
HERMITIAN = SQUARE + SQUARE.transpose(0, 2, 1)


def close(got, want, atol=1e-5):
    np.testing.assert_allclose(np.asarray(got), want, atol=atol, rtol=1e-4)


def test_results_have_names():
    assert linalg.eigh(HERMITIAN)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.eig(SQUARE)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.qr(WIDE)._fields == ("Q", "R")
    assert linalg.svd(WIDE)._fields == ("U", "S", "Vh")
    assert st.jit(linalg.svd)(WIDE).S.shape == (3,)


def test_integers_become_floats():
    x = np.array([[4, 2], [2, 5]])
    assert linalg.cholesky(x).dtype == np.float32
    close(linalg.eigvalsh(x), np.linalg.eigvalsh(x))
    with st.enable_x64(True):
        assert linalg.svdvals(x).dtype == np.float64


def test_cholesky_upper_reads_the_upper_triangle():
    x = np.array([[4, 2, 1], [2, 5, 3], [1, 3, 6]], np.float32)
    want = np.linalg.cholesky(x).T
    close(linalg.cholesky(x, upper=True), want)
    close(linalg.cholesky(np.triu(x), upper=True, symmetrize_input=False), want)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
def test_qr_modes(mode):
    got, want = linalg.qr(WIDE.T, mode), np.linalg.qr(WIDE.T, mode)
    for g, w in zip(st.tree.leaves(got), want if mode != "r" else [want], strict=True):
        close(g, w)


@pytest.mark.parametrize("triangle", ["L", "U"])
def test_eigh_reads_the_triangle_asked_for(triangle):
    got = linalg.eigh(SQUARE, triangle, symmetrize_input=False)
    close(got.eigenvalues, np.linalg.eigvalsh(SQUARE, triangle))
    close(linalg.eigvalsh(SQUARE, triangle, symmetrize_input=False), got.eigenvalues)
    close(linalg.eigvalsh(HERMITIAN), np.linalg.eigvalsh(HERMITIAN))


def test_eigenvalues_of_any_matrix():
    w, v = linalg.eig(SQUARE)
    close(SQUARE @ v, np.asarray(v) * np.asarray(w)[:, None])
    close(linalg.eigvals(SQUARE), w)


def test_svd_of_hermitian_matrices():
    for f in (linalg.svd, st.jit(linalg.svd, static_argnames=("hermitian", "compute_uv"))):
        u, s, vh = f(HERMITIAN, hermitian=True)
        close((u * s[:, None]) @ vh, HERMITIAN)
        close(s, np.linalg.svd(HERMITIAN, compute_uv=False))
        close(f(HERMITIAN, hermitian=True, compute_uv=False), s)


def test_svd_of_a_subset():
    whole = linalg.svd(WIDE, full_matrices=False)
    part = linalg.svd(WIDE, full_matrices=False, subset_by_index=(1, 3))
    close(part.U, whole.U[:, 1:3])
    close(part.S, whole.S[1:3])
    close(part.Vh, whole.Vh[1:3])
    with pytest.raises(NotImplementedError, match="subset_by_index cannot be given for hermitian"):
        linalg.svd(HERMITIAN, hermitian=True, subset_by_index=(0, 1))


def test_refusals():
    with pytest.raises(ValueError, match=r"qr: mode must be 'reduced', .* got 'full'"):
        linalg.qr(WIDE, "full")
    with pytest.raises(ValueError, match="eigh: UPLO must be 'L' or 'U', got 'X'"):
        linalg.eigh(HERMITIAN, "X")
    with pytest.raises(TypeError, match="cholesky: a must be an array or a number; got a list"):
        linalg.cholesky([[1.0]])


def loss_of(f):
    return lambda x: snp.sum(snp.sin(f(x)))


LOSSES = {
    "cholesky": loss_of(lambda x: linalg.cholesky(x @ x.T + snp.eye(3, dtype=x.dtype))),
    "qr": loss_of(lambda x: linalg.qr(x).R),
    "eigh": loss_of(lambda x: linalg.eigh(x).eigenvalues),
    "svd": loss_of(lambda x: snp.multiply(*linalg.svd(x, full_matrices=False)[:2])),
    "lu": loss_of(lambda x: st.linalg.lu(x, permute_l=True)[1]),
    "solve": loss_of(lambda x: linalg.solve(x, x[0] ** 2)),
    "slogdet": loss_of(lambda x: linalg.slogdet(x).logabsdet),
    "pinv": loss_of(linalg.pinv),
}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_compose(name):
    f = LOSSES[name]
    with st.enable_x64(True):
        start = np.random.default_rng(1).normal(size=(2, 3, 3))
        xs = snp.array(start + np.diag([2.0, 4.0, 7.0]))
        alone = snp.stack([st.grad(f)(x) for x in xs])
        close(st.jit(st.vmap(st.grad(f)))(xs), alone, 1e-9)
        close(st.grad(lambda xs: snp.sum(st.vmap(f)(xs)))(xs), alone, 1e-9)
        carried = st.jit(lambda xs: st.lax.scan(lambda c, x: (c, st.grad(f)(x)), 0.0, xs)[1])
        close(carried(xs), alone, 1e-9)
        chosen = st.grad(lambda x: st.lax.cond(x[0, 0] > 100, lambda x: 0 * f(x), f, x))
        close(chosen(xs[0]), alone[0], 1e-9)
        # The Hessian is the Jacobian of the gradient: forward over reverse, and reverse over it.
        h = st.hessian(f)(xs[0])
        close(st.jit(st.jacrev(st.grad(f)))(xs[0]), h, 1e-8)
        step = 1e-6 * np.random.default_rng(2).normal(size=(3, 3))
        up, down = st.grad(f)(xs[0] + step), st.grad(f)(xs[0] - step)
        close(snp.tensordot(h, snp.array(step)) / 1e-6, (up - down) / 2e-6, 1e-4)
