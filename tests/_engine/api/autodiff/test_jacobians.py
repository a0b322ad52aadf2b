"""Jacobians and Hessians: known matrices, both ways, batches, trees."""

import itertools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.array([0.3, -0.7, 1.2], np.float32)


def close(got, want, rtol=1e-5):
    assert st.tree.structure(got) == st.tree.structure(want)
    for a, b in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def h(x):
    return {"a": snp.stack([x[0] * x[1], snp.exp(x[2])]), "s": snp.sum(x**2)}


JACOBIAN = {
    "a": np.array([[X[1], X[0], 0], [0, 0, np.exp(X[2])]]),
    "s": 2 * X,
}


@pytest.mark.parametrize("jac", [st.jacfwd, st.jacrev], ids=["jacfwd", "jacrev"])
@pytest.mark.parametrize("jit", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_jacobians(jac, jit):
    close(jit(jac(h))(X), JACOBIAN)
    f = lambda p, y: p["w"] @ y
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    dw, dy = jit(jac(f, argnums=(0, 1)))({"w": w}, X)
    np.testing.assert_allclose(dw["w"], np.einsum("ij,k->ijk", np.eye(2), X))
    np.testing.assert_allclose(dy, w)
    batch = np.stack([X, 2 * X])
    close(jit(st.vmap(jac(h)))(batch)["s"], 2 * batch)
    assert jit(jac(lambda x: snp.zeros(2)))(X).shape == (2, 3)  # no output depends on x
    assert jit(jac(lambda x: x))(snp.zeros((0,))).shape == (0, 0)


@pytest.mark.parametrize("jac", [st.jacfwd, st.jacrev], ids=["jacfwd", "jacrev"])
@pytest.mark.parametrize("jit", [lambda f: f, st.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("chunk_size", [1, 2, 9])
def test_in_chunks(jac, jit, chunk_size):
    close(jit(jac(h, chunk_size=chunk_size))(X), JACOBIAN)
    assert jit(jac(lambda x: x, chunk_size=chunk_size))(snp.zeros((0,))).shape == (0, 0)


def test_hessian():
    f = lambda x: snp.sum(x**3) + x[0] * x[1]
    want = np.diag(6 * X) + np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    inner = [st.jacfwd, st.jacrev]
    for g in (st.hessian(f), *(a(b(f)) for a, b in itertools.product(inner, inner))):
        np.testing.assert_allclose(g(X), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        st.jit(st.vmap(st.hessian(f)))(np.stack([X, X])), [want, want], rtol=1e-5, atol=1e-6
    )
    tree = st.hessian(lambda p: p["x"] ** 2 * p["y"])({"x": 2.0, "y": 3.0})
    close(tree, {"x": {"x": 6.0, "y": 4.0}, "y": {"x": 4.0, "y": 0.0}})


def test_jacobians_of_numbers_are_weak():
    found = [st.jacfwd(lambda x: x * x)(2.0), st.jacrev(lambda x: x * x)(2.0)]
    found.append(st.hessian(lambda x: x**3)(2.0))
    assert all(x.weak_type for x in found)
    assert not st.jacfwd(lambda x: x * snp.ones(2))(2.0).weak_type
    assert not st.jacrev(lambda x: x * x)(snp.float32(2)).weak_type


def test_jacobian_is_jacrev():
    assert st.jacobian is st.jacrev
