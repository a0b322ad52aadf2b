"""A value with its derivative beside it: every order, trees, what does not fit."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import float0

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 3))


def plain(x, y):
    return snp.sin(x) * y


@st.custom_gradient
def custom(x, y):
    s = snp.sin(x)
    return s * y, lambda ct: (ct * snp.cos(x) * y, ct * s)


@st.custom_gradient
def scaled(x):
    """Ten times the slope."""
    return x**2, lambda ct: 20.0 * ct * x


def total(f):
    return lambda *args: f(*args).sum()


def scanned(f):
    return lambda x, y: st.lax.scan(lambda c, v: (c + f(*v), None), 0.0, (x, y))[0]


ORDERS = {
    "value": lambda f: f,
    "jit": st.jit,
    "grad": lambda f: st.grad(total(f), (0, 1)),
    "jit(grad(jit))": lambda f: st.jit(st.grad(total(st.jit(f)), (0, 1))),
    "vmap(grad)": lambda f: st.vmap(st.grad(f, (0, 1))),
    "grad(vmap)": lambda f: lambda x, y: st.grad(total(st.vmap(f, (0, None))), (0, 1))(x, y[0]),
    "grad(scan)": lambda f: st.jit(st.grad(scanned(f), (0, 1))),
    "jvp(grad)": lambda f: lambda x, y: st.jvp(st.grad(total(f)), (x, y), (y, x)),
    "hessian": lambda f: st.hessian(total(f), (0, 1)),
    "jacrev(jacrev(jit))": lambda f: st.jacrev(st.jacrev(st.jit(f), (0, 1)), (0, 1)),
}


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_is_that_of_the_function_without_it(order):
    with st.enable_x64():
        got, want = (ORDERS[order](f)(snp.array(X), snp.array(Y)) for f in (custom, plain))
        assert st.tree.structure(got) == st.tree.structure(want)
        for a, b in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_it_need_not_be_the_derivative():
    for g in (st.grad(scaled), st.jit(st.grad(scaled)), st.grad(st.jit(scaled))):
        assert float(g(3.0)) == 60
    np.testing.assert_array_equal(st.vmap(st.grad(scaled))(snp.arange(3.0)), [0, 20, 40])
    assert float(st.grad(st.grad(scaled))(3.0)) == 20
    assert scaled.__name__ == "scaled" and scaled.__doc__ == "Ten times the slope."


def test_arguments_by_name():
    @st.custom_gradient
    def f(x, scale=2.0):
        return x * scale, lambda ct: (ct * scale, None)

    assert float(f(scale=3.0, x=2.0)) == 6
    assert float(st.grad(f)(1.0)) == 2
    assert float(st.grad(lambda x: f(x, scale=5.0))(1.0)) == 5


def test_trees_integers_and_one_argument():
    @st.custom_gradient
    def f(p):
        def back(ct):
            assert ct[1]["n"].dtype == float0
            return {"w": [ct[0] * 7.0, None], "n": np.zeros((), float0), "left": None}

        return (p["w"][0] * 2.0, {"n": p["n"]}), back

    p = {"w": [snp.array([1.0, 2.0]), None], "n": 3, "left": {"a": 1.0}}
    for wrap in (lambda g: g, st.jit):
        g = wrap(st.grad(lambda p: f(p)[0].sum(), allow_int=True))(p)
        np.testing.assert_array_equal(g["w"][0], [7, 7])
        assert g["n"].dtype == float0 and float(g["left"]["a"]) == 0

    as_tuple = st.custom_gradient(lambda p: (p["x"] * 2.0, lambda ct: ({"x": ct * 7.0},)))
    assert float(st.grad(as_tuple)({"x": 1.0})["x"]) == 7


def test_what_is_captured_may_be_traced_but_not_differentiated():
    def f(x, scale):
        return st.custom_gradient(lambda x: (x * scale, lambda ct: ct * scale * 100.0))(x)

    scales = snp.array([2.0, 3.0])
    want = 100 * scales
    x = snp.ones(2)
    np.testing.assert_allclose(st.vmap(st.grad(f))(x, scales), want)
    np.testing.assert_allclose(st.grad(lambda x: st.vmap(f)(x, scales).sum())(x), want)
    np.testing.assert_allclose(st.grad(lambda x, s: st.jit(f)(x, s).sum())(x, scales), want)
    for g in (st.grad(f, 1), st.grad(st.jit(f), (0, 1))):
        with pytest.raises(TypeError, match=r"differentiated by a value .* from outside"):
            g(1.0, 2.0)


@pytest.mark.parametrize(
    "result, message",
    [
        (lambda x: x, r"custom_gradient: f must return a pair \(output, function"),
        (lambda x: (x, x), "must return a pair"),
        (lambda x: (x, lambda ct: (ct, ct)), "bwd of f must return a tuple of 1 cotangents, for x"),
        (lambda x: (x, lambda ct: ct.sum()), r"type float32\[2\] at x, got float32\[\]"),
        (lambda x: (x, lambda ct: "word"), "the cotangent must be an array or a number"),
    ],
)
def test_mistakes_are_named(result, message):
    def f(x):
        return result(x)

    with pytest.raises(TypeError, match=message):
        st.grad(lambda x: st.custom_gradient(f)(x).sum())(snp.ones(2))


def test_forward_derivatives_are_refused():
    with pytest.raises(st.errors.MissingRuleError, match=r"scaled .* no forward derivative"):
        st.jvp(scaled, (1.0,), (1.0,))


def test_the_derivative_may_call_its_own_function():
    exp = st.custom_gradient(lambda x: (snp.exp(x), lambda ct: ct * exp(x)))
    triple = st.custom_gradient(lambda x: (3.0 * x, lambda ct: -triple(-ct)))
    for grad in (st.grad, lambda f: st.jit(st.grad(f)), lambda f: st.grad(st.jit(f))):
        np.testing.assert_allclose(grad(exp)(1.0), np.e, rtol=1e-6)
        np.testing.assert_allclose(grad(grad(exp))(1.0), np.e, rtol=1e-6)
        assert float(grad(triple)(1.0)) == 3.0
