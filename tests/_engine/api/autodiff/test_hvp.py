"""Hessian times vector: that of the Hessian, trees, every order, conventions."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import float0

RNG = np.random.default_rng(0)
X, V, W = RNG.normal(size=(3, 4))


def f(x):
    return (snp.sin(x) * snp.cumsum(x) ** 2).sum()


@pytest.mark.parametrize("wrap", [lambda g: g, st.jit], ids=["eager", "jit"])
def test_it_is_the_hessian_times_the_vector(wrap):
    with st.enable_x64():
        x, v = snp.array(X), snp.array(V)
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
    p, dp = {"w": [snp.array(X), None], "b": 2.0}, {"w": [snp.array(V), None], "b": 3.0}
    out = st.hvp(lambda p: g(p, W), (p,), (dp,))
    np.testing.assert_allclose(out["w"][0], 2 * W * (2 * V + 3 * X), rtol=1e-5)
    np.testing.assert_allclose(out["b"], 2 * (X * W * V).sum(), rtol=1e-5)
    assert out["w"][1] is None
    both = st.hvp(g, (p, W.astype("f4")), (dp, V.astype("f4")))
    assert isinstance(both, tuple)
    np.testing.assert_allclose(both[0]["w"][0], 2 * (W * (2 * V + 3 * X) + 2 * X * V), rtol=1e-4)
    np.testing.assert_allclose(both[1], 2 * 2 * X * V + 3 * X**2, rtol=1e-4)


def test_has_aux():
    out, aux = st.hvp(lambda x: (x**3, {"x": x, "note": "word"}), (2.0,), (1.0,), has_aux=True)
    assert (float(out), float(aux["x"]), aux["note"]) == (12, 2, "word")


def test_float0():
    with pytest.raises(TypeError, match="grad: n must be of a floating dtype"):
        st.hvp(lambda x, n: x**2 * n, (2.0, 3), (1.0, np.zeros((), float0)))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: st.hvp(f, X, V), TypeError, "hvp: primals of f must be a tuple"),
        (lambda: st.hvp(f, (X,), V), TypeError, "tangents must be tuples"),
        (lambda: st.hvp(f, (X,), (V, V)), TypeError, "part at primals: a tuple of length 1"),
        (lambda: st.hvp(f, (X,), (V[:2],)), ValueError, r"float32\[2\], float32\[4\]"),
        (lambda: st.hvp(snp.sin, (X,), (V,)), TypeError, r"real scalar, got float32\[4\]"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
