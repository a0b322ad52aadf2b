"""Jacobians and Hessians: known matrices, both ways, batches, trees."""

import itertools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import float0

X = np.array([0.3, -0.7, 1.2], np.float32)


def close(got, want, rtol=1e-5):
    assert st.tree.structure(got) == st.tree.structure(want)
    for a, b in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def h(x):
    return {"a": snp.stack([x[0] * x[1], snp.exp(x[2])]), "s": snp.sum(x**2)}


JACOBIAN = {"a": np.array([[X[1], X[0], 0], [0, 0, np.exp(X[2])]]), "s": 2 * X}


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
    assert st.jacrev is st.jacrev


RNG = np.random.default_rng(0)
POINT, V, W = RNG.normal(size=(3, 4))


def f(x):
    return (snp.sin(x) * snp.cumsum(x) ** 2).sum()


@pytest.mark.parametrize("wrap", [lambda g: g, st.jit], ids=["eager", "jit"])
def test_it_is_the_hessian_times_the_vector(wrap):
    with st.enable_x64():
        x, v = snp.array(POINT), snp.array(V)
        want = st.hessian(f)(x) @ v
        np.testing.assert_allclose(wrap(lambda x, v: st.hvp(f, (x,), (v,)))(x, v), want, rtol=1e-12)
        np.testing.assert_allclose(st.hvp(wrap(f), [x], [v]), want, rtol=1e-12)
        columns = wrap(st.vmap(lambda v: st.hvp(f, (x,), (v,))))(np.eye(4))
        np.testing.assert_allclose(columns, st.hessian(f)(x), rtol=1e-12, atol=1e-14)
        again = wrap(st.grad(lambda x: st.hvp(f, (x,), (v,)) @ v))(x)
        third = np.einsum("ijk,i,j->k", st.jacfwd(st.hessian(f))(x), V, V)
        np.testing.assert_allclose(again, third, rtol=1e-10)


def test_trees_and_several_arguments():
    g = lambda p, y: (p["w"][0] ** 2 * y).sum() * p["b"]
    p, dp = {"w": [snp.array(POINT), None], "b": 2.0}, {"w": [snp.array(V), None], "b": 3.0}
    out = st.hvp(lambda p: g(p, W), (p,), (dp,))
    np.testing.assert_allclose(out["w"][0], 2 * W * (2 * V + 3 * POINT), rtol=1e-5)
    np.testing.assert_allclose(out["b"], 2 * (POINT * W * V).sum(), rtol=1e-5)
    assert out["w"][1] is None
    both = st.hvp(g, (p, W.astype("f4")), (dp, V.astype("f4")))
    assert isinstance(both, tuple)
    np.testing.assert_allclose(
        both[0]["w"][0], 2 * (W * (2 * V + 3 * POINT) + 2 * POINT * V), rtol=1e-4
    )
    np.testing.assert_allclose(both[1], 2 * 2 * POINT * V + 3 * POINT**2, rtol=1e-4)


def test_has_aux():
    out, aux = st.hvp(lambda x: (x**3, {"x": x, "note": "word"}), (2.0,), (1.0,), has_aux=True)
    assert (float(out), float(aux["x"]), aux["note"]) == (12, 2, "word")


def test_float0():
    with pytest.raises(TypeError, match="grad: n must be of a floating dtype"):
        st.hvp(lambda x, n: x**2 * n, (2.0, 3), (1.0, np.zeros((), float0)))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: st.hvp(f, POINT, V), TypeError, "hvp: primals of f must be a tuple"),
        (lambda: st.hvp(f, (POINT,), V), TypeError, "tangents must be tuples"),
        (lambda: st.hvp(f, (POINT,), (V, V)), TypeError, "part at primals: a tuple of length 1"),
        (lambda: st.hvp(f, (POINT,), (V[:2],)), ValueError, r"float32\[2\], float32\[4\]"),
        (lambda: st.hvp(snp.sin, (POINT,), (V,)), TypeError, r"real scalar, got float32\[4\]"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("holomorphic", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int32])
def test_results_are_of_the_kind_that_is_said(holomorphic, dtype):
    x = snp.ones(2, np.complex64 if holomorphic else np.float32)
    f = lambda x: [x.real.astype(np.float32), (x.real * 2).astype(dtype)]
    if dtype is np.float32 and not holomorphic:
        assert [a.shape for a in st.jacrev(f, holomorphic=False)(x)] == [(2, 2), (2, 2)]
        return
    with pytest.raises(TypeError, match=f"real.*holomorphic=False|complex.*={holomorphic}"):
        st.jacrev(f, holomorphic=holomorphic)(x)


@pytest.mark.parametrize("transform", [st.jacfwd, st.jacrev, st.grad, st.value_and_grad])
def test_integers_have_no_derivative_unless_it_is_said(transform):
    f = lambda n: 2.0 * n
    with pytest.raises(TypeError, match="allow_int"):
        transform(f)(3)
    found = transform(f, allow_int=True)(3)
    assert (found[1] if transform is st.value_and_grad else found).dtype == float0
    matrix = st.jacfwd(lambda tree: tree["x"] * tree["n"], allow_int=True)({"n": 3, "x": X})
    assert matrix["n"].dtype == float0 and matrix["n"].shape == (3,)
    np.testing.assert_array_equal(matrix["x"], 3 * np.eye(3))
