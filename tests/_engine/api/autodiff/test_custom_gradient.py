"""A value with its derivative beside it: every order, trees, what does not fit."""

import functools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.autodiff.custom_gradient import custom_gradient
from stretto._engine.core.types import float0

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 3))


def plain(x, y):
    return snp.sin(x) * y


@custom_gradient
def custom(x, y):
    s = snp.sin(x)
    return s * y, lambda ct: (ct * snp.cos(x) * y, ct * s)


@custom_gradient
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
    @custom_gradient
    def f(x, scale=2.0):
        return x * scale, lambda ct: (ct * scale, None)

    assert float(f(scale=3.0, x=2.0)) == 6
    assert float(st.grad(f)(1.0)) == 2
    assert float(st.grad(lambda x: f(x, scale=5.0))(1.0)) == 5


def test_trees_integers_and_one_argument():
    @custom_gradient
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

    as_tuple = custom_gradient(lambda p: (p["x"] * 2.0, lambda ct: ({"x": ct * 7.0},)))
    assert float(st.grad(as_tuple)({"x": 1.0})["x"]) == 7


def test_what_is_captured_may_be_traced_but_not_differentiated():
    def f(x, scale):
        return custom_gradient(lambda x: (x * scale, lambda ct: ct * scale * 100.0))(x)

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
        st.grad(lambda x: custom_gradient(f)(x).sum())(snp.ones(2))


def test_forward_derivatives_are_refused():
    with pytest.raises(st.errors.MissingRuleError, match=r"scaled .* no forward derivative"):
        st.jvp(scaled, (1.0,), (1.0,))


def test_the_derivative_may_call_its_own_function():
    exp = custom_gradient(lambda x: (snp.exp(x), lambda ct: ct * exp(x)))
    triple = custom_gradient(lambda x: (3.0 * x, lambda ct: -triple(-ct)))
    for grad in (st.grad, lambda f: st.jit(st.grad(f)), lambda f: st.grad(st.jit(f))):
        np.testing.assert_allclose(grad(exp)(1.0), np.e, rtol=1e-6)
        np.testing.assert_allclose(grad(grad(exp))(1.0), np.e, rtol=1e-6)
        assert float(grad(triple)(1.0)) == 3.0


GRID = snp.linspace(0.0, 1.0, 5)
POINTS = [0.0, 0.25, 0.5, 0.75, 1.0]


def test_nothing_is_hoisted_at_rest():
    converted, consts = st.closure_convert(lambda x: {"out": [x * GRID, None]}, 1.0)
    assert consts == []
    np.testing.assert_allclose(converted(2.0)["out"][0], 2 * GRID)


def hoisted(f, *examples):
    """How many values, and the result with each doubled."""
    converted, consts = st.closure_convert(f, *examples)
    return len(consts), converted(*examples, *[2.0 * c for c in consts])


def test_traced_floating_values_are_hoisted():
    def outer(a, n):
        count, out = hoisted(lambda x: x * a * n + (n > 0) + GRID.sum(), 1.0)
        return out, count

    for wrap in (lambda g: g, lambda g: st.grad(g, has_aux=True)):
        out, count = wrap(outer)(3.0, 2)
        assert count == (0 if wrap(outer) is outer else 1)
    slope, count = st.grad(outer, has_aux=True)(3.0, 2)
    assert (float(slope), count) == (4, 1)
    out, count = st.jit(lambda a, n: (outer(a, n)[0], outer(a, n)[1]))(3.0, 2)
    assert (float(out), int(count)) == (2 * 6 + 1 + 2.5, 1)
    slopes = st.vmap(lambda a: st.grad(outer, has_aux=True)(a, 2)[0])(GRID)
    np.testing.assert_allclose(slopes, [4] * 5)


# What it is for: a function with rules of its own that is given a function.


@functools.partial(st.custom_vjp, nondiff_argnums=(0,))
def integrate(f, high, *consts):
    """The sum of f over a grid up to ``high``."""
    return sum(f(high * x, *consts) for x in POINTS) * high / 5


def integrate_fwd(f, high, *consts):
    return integrate(f, high, *consts), (high, consts)


def integrate_bwd(f, res, ct):
    high, consts = res
    _, pull = st.vjp(lambda *c: sum(f(high * x, *c) for x in POINTS) * high / 5, *consts)
    return ct * f(high, *consts), *pull(ct)


integrate.defvjp(integrate_fwd, integrate_bwd)


def integral(f, high):
    converted, consts = st.closure_convert(f, high)
    return integrate(converted, high, *consts)


def by_hand(f, high):
    return sum(f(high * x) for x in POINTS) * high / 5


CONVERTED_ORDERS = {
    "grad": st.grad,
    "jit(grad)": lambda g: st.jit(st.grad(g)),
    "grad(jit)": lambda g: st.grad(st.jit(g)),
    "vmap(grad)": lambda g: lambda a, n: st.vmap(st.grad(g), (0, None))(snp.stack([a, 2 * a]), n),
    "grad(vmap)": lambda g: st.grad(
        lambda a, n: st.vmap(g, (0, None))(snp.stack([a, 2 * a]), n).sum()
    ),
    "grad(scan)": lambda g: st.grad(
        lambda a, n: st.lax.scan(lambda c, x: (c * g(a * x, n), None), a, snp.array(POINTS))[0]
    ),
    "grad(grad)": lambda g: st.grad(st.grad(g)),
    "grad(grad(jit))": lambda g: st.grad(st.grad(st.jit(g))),
}


@pytest.mark.parametrize("order", CONVERTED_ORDERS)
def test_derivatives_by_what_was_captured(order):
    def loss(method):
        def of(a, n):
            b = snp.sin(a)
            return method(lambda x: snp.cos(x * b) * (a + n), 2.0)

        return of

    with st.enable_x64():
        got, want = (
            CONVERTED_ORDERS[order](loss(m))(snp.array(0.7), 3) for m in (integral, by_hand)
        )
        for a, b in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda c: c(1.0), r"converted for 1 arguments and 0 captured .* part .* at args\[0\]"),
        (lambda c: c([1.0, 2.0], 3.0), ".* at args: a tuple of length 1 and a tuple of length 2"),
        (
            lambda c: c([1.0, snp.ones(2)]),
            r"converted for x\[1\] of type float32\[\], got float32\[2\]",
        ),
        (lambda c: c([1.0, 2j]), r".*x\[1\] of type float32\[\], got complex64\[\]"),
    ],
)
def test_other_arguments_are_refused(call, message):
    def f(x):
        return x[0] * x[1]

    converted, _ = st.closure_convert(f, [1.0, st.ShapeDtypeStruct((), np.float32)])
    assert float(converted([2.0, 3])) == 6
    with pytest.raises(TypeError, match=f"closure_convert: f was {message}"):
        call(converted)
