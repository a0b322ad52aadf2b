"""Hermitian eigenvalues and eigenvectors: the laws, NumPy, equal eigenvalues."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.linalg.eigenvalues import Eigh
from stretto._engine.ops.linalg.matrix_parts import adjoint, diagonal_matrix
from stretto.laws import c64, c128, f32, f64, law
from stretto.lax import linalg
from stretto.lax.linalg import eigh
from tests.any_size import holds


def apart(x):
    """With eigenvalues far from each other."""
    return x + diagonal_matrix(4 * snp.arange(x.shape[-1])).astype(x.dtype)


def both(x):
    return eigh(apart(x), symmetrize_input=False)


def without_phases(x):
    """A function of the matrix: the vectors' phases are LAPACK's choice."""
    v, w = both(x)
    return (v * snp.sin(w)[..., None, :]) @ adjoint(v), w


def values(x):
    return Eigh(False)(apart(x))


LAWS = [
    *(law(Eigh, both, kind(3, 3)) for kind in (f32, f64)),
    *(law(Eigh, without_phases, kind(3, 3)) for kind in (c64, c128)),
    law(Eigh, both, f32(2, 3, 3)),
    *(law(Eigh, values, kind(3, 3)) for kind in (f32, c64)),
]


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("lower", [True, False])
def test_equals_numpy(dtype, lower):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 4, 4)) + 1j * rng.normal(size=(2, 4, 4))
    x = (x if dtype == "complex64" else x.real).astype(dtype)
    f = lambda x: eigh(x, lower=lower, symmetrize_input=False)
    want = np.linalg.eigvalsh(x, "L" if lower else "U")
    h = np.tril(x, -1) if lower else np.triu(x, 1)
    h = h + h.conj().transpose(0, 2, 1) + np.real(x * np.eye(4))
    for g in (f, st.jit(f)):
        v, w = map(np.asarray, g(snp.array(x)))
        np.testing.assert_allclose(w, want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(h @ v, v * w[:, None], atol=1e-5)


def test_equal_eigenvalues_have_gradients_and_their_vectors_none():
    x = snp.eye(3) * 2
    np.testing.assert_allclose(st.grad(lambda x: snp.sum(eigh(x)[1]))(x), np.eye(3), atol=1e-6)
    assert np.isnan(np.asarray(st.grad(lambda x: snp.sum(eigh(x)[0]))(x))).any()


def test_a_subset_by_index():
    x = snp.diag(snp.array([3.0, 1.0, 2.0]))
    v, w = linalg.eigh(x, subset_by_index=(1, 3), sort_eigenvalues=False)
    np.testing.assert_array_equal(w, [2, 3])
    np.testing.assert_array_equal(np.abs(v), np.eye(3)[:, [2, 0]])
    g = st.grad(lambda x: linalg.eigh(x, subset_by_index=(2, 3))[1][0])(x)
    np.testing.assert_allclose(g, np.diag([1.0, 0, 0]), atol=1e-6)
    with pytest.raises(ValueError, match=r"eigh: subset_by_index must be .* <= 3, got \(2, 4\)"):
        linalg.eigh(x, subset_by_index=(2, 4))
    kinds = linalg.EighImplementation
    assert linalg.eigh(x, implementation=kinds.QR)[1].shape == (3,)
    with pytest.raises(NotImplementedError, match=r"eigh: implementation must be .*QR or None"):
        linalg.eigh(x, implementation=kinds.JACOBI)


SIZED = {(0, 0): 0, (0, 1): 0}


def symmetric(*diagonal):
    q, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(len(diagonal),) * 2))
    return ((q * np.array(diagonal)) @ q.T).astype(np.float32)


@pytest.mark.parametrize(
    "x",
    [symmetric(-3, -1, 2, 5), symmetric(-2, -2, -2, 1), np.zeros((3, 3), np.float32), -np.eye(3)],
    ids=["apart", "repeated", "zero", "negative"],
)
def test_matrices_of_any_size(x):
    x = x.astype(np.float32)
    holds(lambda x: eigh(x)[1], [x], SIZED, tolerance=10)

    def again(x):
        v, w = eigh(x)
        return (v * w) @ v.T, v.T @ v

    holds(again, [x], SIZED, ("values", "vmap", "ragged"), 30)


def test_vectors_and_derivatives_of_any_size():
    x = symmetric(-3, -1, 2, 5)
    holds(lambda x: eigh(x)[0] ** 2, [x], SIZED, tolerance=30)
    holds(lambda x: eigh(x)[1], [x + 1j * np.triu(x, 1) - 1j * np.tril(x, -1)], SIZED, tolerance=30)
    # the upper triangle is not read, and may hold anything
    lower = np.where(np.tri(4, dtype=bool), x, np.float32(np.inf))
    holds(lambda x: eigh(x, symmetrize_input=False)[1], [lower], SIZED, ("values",), 10)


@pytest.mark.parametrize("op", [Eigh(), Eigh(False)], ids=["vectors", "values"])
def test_the_plain_rule_is_the_derivative_of_each_factor(op):
    """By which series are expanded; vectors keep their signs."""
    rng, step = np.random.default_rng(0), 1e-6
    x, dx = rng.normal(size=(2, 3, 3))
    x, dx = x + x.T, dx + dx.T
    with st.enable_x64():
        outs, douts = op.jvp((snp.asarray(x),), (snp.asarray(dx),))
        ends = [op(snp.asarray(x + sign * step * dx)) for sign in (1, -1)]
    assert len(outs) == len(douts) == len(ends[0])
    for dout, high, low in zip(douts, *ends, strict=True):
        want = (np.asarray(high) - np.asarray(low)) / (2 * step)
        np.testing.assert_allclose(dout, want, atol=1e-7)
