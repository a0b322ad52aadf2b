"""Eigenvalues of any square matrix: the laws, NumPy, and the derivatives that must be enabled."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.ops.linalg.eigenvalues import Eig
from stretto._engine.ops.linalg.matrix_parts import diagonal_matrix
from stretto.laws import c64, f32, f64, law
from stretto.lax import linalg
from stretto.lax.linalg import eig


def turned(x):
    """With eigenvalues far from each other, two of them conjugate if x is real and small."""
    turn = np.array([[0, 5, 0], [-5, 0, 0], [0, 0, 9]])
    return x + snp.array(turn.astype(x.dtype))


def vectors(left, right):
    return lambda x: eig(
        turned(x), compute_left_eigenvectors=left, compute_right_eigenvectors=right,
        enable_eigvec_derivs=True,
    )  # fmt: skip


LAWS = [
    *(law(Eig, vectors(False, False), kind(3, 3)) for kind in (f32, f64, c64)),
    *(law(Eig, vectors(True, True), kind(3, 3)) for kind in (f64, c64)),
    law(Eig, vectors(False, True), f32(3, 3)),
    law(Eig, vectors(True, False), f32(3, 3)),
]


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_definitions_hold(dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 4, 4)) + 1j * rng.normal(size=(2, 4, 4))
    x = (x if dtype == "complex64" else x.real).astype(dtype)
    for f in (eig, st.jit(eig)):
        w, vl, vr = map(np.asarray, f(snp.array(x)))
        assert w.dtype == vl.dtype == vr.dtype == np.complex64
        np.testing.assert_allclose(x @ vr, vr * w[:, None, :], atol=1e-5)
        vlh = vl.conj().transpose(0, 2, 1)
        np.testing.assert_allclose(vlh @ x, w[:, :, None] * vlh, atol=1e-5)
        for v in (vl, vr):
            np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, rtol=1e-5)
        want = np.linalg.eigvals(x)
        np.testing.assert_allclose(np.sort_complex(w[0]), np.sort_complex(want[0]), rtol=1e-4)


def test_derivatives_of_vectors_must_be_enabled():
    x = diagonal_matrix(snp.array([1.0, 2.0]))
    for which in ((True, True), (True, False), (False, True)):
        total = lambda x, which=which: sum([snp.abs(v).sum() for v in Eig(*which)(x)])
        with pytest.raises(MissingRuleError, match=r"use linalg.eigvals; .* enable_eigvec_derivs="):
            st.grad(total)(x)
    with pytest.raises(MissingRuleError, match=r"eig has no jvp rule"):
        st.grad(lambda x: snp.sum(snp.abs(eig(x)[2])))(x)
    g = st.grad(lambda x: snp.real(Eig(False, False)(x)[0]).sum())(x)
    np.testing.assert_allclose(g, np.eye(2))


def test_vectors_of_nothing_have_a_derivative():
    def total(x):
        return snp.sum(snp.abs(eig(x, enable_eigvec_derivs=True)[2]))

    assert st.grad(total)(snp.zeros((2, 0, 0))).shape == (2, 0, 0)


def test_other_libraries_are_refused():
    kinds = linalg.EigImplementation
    assert len(linalg.eig(snp.eye(2), implementation=kinds.LAPACK, use_magma=True)) == 3
    with pytest.raises(NotImplementedError, match=r"eig: implementation must be .*LAPACK or None"):
        linalg.eig(snp.eye(2), implementation=kinds.MAGMA)
