"""Derivatives of the user's own, and none at all: the laws, every order, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.control.custom import CustomJvp, StopGradient, stop_gradient
from stretto.laws import bf16, c64, f32, f64, i32, law


@st.custom_jvp
def product(x, y):
    return snp.sin(x) * y


@product.defjvp
def _(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return product(x, y), snp.cos(x) * y * dx + snp.sin(x) * dy


@st.custom_jvp
def tripled(tree):
    """Claims three times its slope; an integer goes along."""
    return {"out": tree["x"] * 1.0, "n": tree["n"] + 1}


@tripled.defjvp
def _(primals, tangents):
    (tree,), (dtree,) = primals, tangents
    return tripled(tree), {"out": 3.0 * dtree["x"], "n": dtree["n"]}


@st.custom_jvp
def log1pexp(x):
    return snp.log(1.0 + snp.exp(x))


@log1pexp.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + snp.exp(x))) * dx


LAWS = [
    law(CustomJvp, product, f32(3), f32(3)),
    law(CustomJvp, product, f64(3), f64(3)),
    law(CustomJvp, product, c64(2), c64(2)),
    law(CustomJvp, st.vmap(product, (0, None)), f32(3), f32()),
    law(StopGradient, stop_gradient, f32(2, 3), derivative=False),
    law(StopGradient, stop_gradient, f64(2), derivative=False),
    law(StopGradient, stop_gradient, i32(2)),
    law(StopGradient, stop_gradient, c64(2), derivative=False),
    law(StopGradient, stop_gradient, bf16(2), derivative=False),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


X = np.array([0.0, 1.0, 100.0], np.float32)
SLOPE = [0.5, 1 - 1 / (1 + np.e), 1.0]
ORDERS = {
    "vmap(grad)": st.vmap(st.grad(log1pexp)),
    "vmap(jit(grad))": st.vmap(st.jit(st.grad(log1pexp))),
    "jit(grad(vmap))": st.jit(st.grad(lambda x: st.vmap(log1pexp)(x).sum())),
    "grad(jit(vmap(jit)))": st.grad(lambda x: st.jit(st.vmap(st.jit(log1pexp)))(x).sum()),
    "vmap(jacfwd)": st.vmap(st.jacfwd(log1pexp)),
    "jvp": lambda x: st.jvp(log1pexp, (x,), (snp.ones_like(x),))[1],
    "grad(scan)": st.grad(lambda x: st.lax.scan(lambda c, x: (c + log1pexp(x), None), 0.0, x)[0]),
    "vmap(grad(cond))": st.vmap(st.grad(lambda x: st.lax.cond(x >= 0, log1pexp, snp.log, x))),
    "grad(while)": st.jacfwd(
        lambda x: st.lax.fori_loop(0, 3, lambda i, s: s + log1pexp(x[i]), 0.0)
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_rule_is_used_in_every_order(order):
    np.testing.assert_allclose(ORDERS[order](snp.array(X)), SLOPE, rtol=1e-6)


def test_second_derivatives_differentiate_the_rule():
    want = np.exp(-0.5) / (1 + np.exp(-0.5)) ** 2
    for f in (
        st.grad(st.grad(log1pexp)),
        st.jit(st.hessian(log1pexp)),
        st.jacfwd(st.grad(log1pexp)),
    ):
        np.testing.assert_allclose(f(0.5), want, rtol=1e-5)


def test_a_rule_need_not_be_the_derivative():
    f = lambda x: tripled({"x": x, "n": 1})["out"]
    assert float(st.grad(f)(2.0)) == 3.0
    np.testing.assert_array_equal(st.vmap(st.grad(f))(X), [3, 3, 3])
    out = st.jit(tripled)({"x": 2.0, "n": 1})
    assert (float(out["out"]), int(out["n"])) == (2.0, 2)


def test_keywords_and_static_arguments():
    def power(x, n=2):
        return x**n

    scaled = st.custom_jvp(power, nondiff_argnums=(1,))
    scaled.defjvp(lambda n, primals, tangents: (power(*primals, n), 10.0 * n * tangents[0]))
    assert float(scaled(3.0, n=3)) == 27
    assert float(st.grad(lambda x: scaled(x, n=3))(3.0)) == 30
    assert float(st.grad(lambda x: scaled(x, 2))(3.0)) == 20
    assert scaled.__name__ == "power"
    by_name = st.custom_jvp(lambda x, *, n: x)
    by_name.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    with pytest.raises(TypeError, match="takes n by name only"):
        by_name(1.0, n=2)


def test_closures_under_jit_and_vmap():
    def f(x, scale):
        @st.custom_jvp
        def g(x):
            return x * scale

        g.defjvp(lambda primals, tangents: (g(*primals), tangents[0] * scale * 100.0))
        return g(x)

    np.testing.assert_allclose(st.vmap(st.grad(f))(X, 2 * X), 200 * X)
    np.testing.assert_allclose(st.jit(st.vmap(st.grad(f), (0, None)))(X, 2.0), [200] * 3)


def test_without_a_rule():
    f = st.custom_jvp(lambda x: x)
    with pytest.raises(AttributeError, match="has no rule; give one by defjvp"):
        f(1.0)


@pytest.mark.parametrize(
    "rule, message",
    [
        (lambda p, t: p[0], "must return a pair"),
        (lambda p, t: ((p[0], p[0]), t[0]), "an output like.* part at output: a leaf and a tuple"),
        (lambda p, t: (p[0], (t[0], t[0])), "a tangent like.*output: a leaf and a tuple"),
        (lambda p, t: (p[0], t[0].sum()), r"a tangent of type float32\[2\], got float32\[\]"),
        (lambda p, t: (p[0].astype(snp.int32), t[0]), r"output of type float32\[2\], got int32"),
    ],
)
def test_rules_that_do_not_fit_are_refused(rule, message):
    f = st.custom_jvp(lambda x: x * 2.0)
    f.defjvp(rule)
    with pytest.raises(TypeError, match=message):
        st.jvp(f, (snp.ones(2),), (snp.ones(2),))


def test_stop_gradient():
    f = lambda x: x * stop_gradient(x)
    for g in (st.grad(f), st.jit(st.grad(f)), st.grad(st.jit(f)), st.jacfwd(f)):
        assert float(g(3.0)) == 3.0
    np.testing.assert_array_equal(st.vmap(st.grad(f))(X), X)
    assert float(st.grad(st.grad(f))(3.0)) == 0.0
    tree = {"a": X, "n": [1, None]}
    held = stop_gradient(tree)
    assert st.tree.structure(held) == st.tree.structure(tree)
    np.testing.assert_array_equal(held["a"], X)


# Rules that do more than arithmetic: they apply loops, branches and jitted functions to values and
# tangents together, which a gradient has to take apart.


def iterated(x):
    c = x
    for _ in range(3):
        c = snp.sin(c) * x
    return c


def scanned(x):
    return st.lax.scan(lambda c, _: (snp.sin(c) * x, c), x, None, length=3)[0]


def both_carried(primals, tangents):
    """One loop that carries value and tangent."""
    (x,), (dx,) = primals, tangents

    def step(carry, _):
        (c,), (dc,) = carry
        out = st.jvp(lambda c, x: snp.sin(c) * x, (c, x), (dc, dx))
        return ((out[0],), (out[1],)), None

    ((c,), (dc,)), _ = st.lax.scan(step, ((x,), (dx,)), None, length=3)
    return c, dc


RULES = {
    "jitted": st.jit(lambda p, t: st.jvp(iterated, p, t)),
    "jvp": lambda p, t: st.jvp(iterated, p, t),
    "jvp of jit": lambda p, t: st.jvp(st.jit(iterated), p, t),
    "jvp of scan": lambda p, t: st.jvp(scanned, p, t),
    "jvp of jitted scan": lambda p, t: st.jvp(st.jit(scanned), p, t),
    "jvp of cond": lambda p, t: st.jvp(
        lambda x: st.lax.cond(x > 0, scanned, lambda x: snp.log(-x), x), p, t
    ),
    "jvp of mapped cond": lambda p, t: [
        a[0]
        for a in st.jvp(
            st.vmap(lambda x: st.lax.cond(x > 0, scanned, snp.exp, x)),
            (p[0][None],),
            (t[0][None],),
        )
    ],
    "jvp of another rule": lambda p, t: st.jvp(with_rule(lambda p, t: st.jvp(scanned, p, t)), p, t),
    "scan": both_carried,
}


def with_rule(rule):
    f = st.custom_jvp(scanned)
    f.defjvp(rule)
    return f


@pytest.mark.parametrize("name", RULES)
def test_rules_of_values_and_tangents_together(name):
    f = with_rule(RULES[name])
    y, slope, curve = iterated(0.7), st.grad(iterated)(0.7), st.grad(st.grad(iterated))(0.7)
    np.testing.assert_allclose(st.jvp(f, (0.7,), (1.0,)), (y, slope), rtol=1e-5)
    np.testing.assert_allclose(st.value_and_grad(f)(0.7), (y, slope), rtol=1e-5)
    np.testing.assert_allclose(st.jit(st.value_and_grad(f))(0.7), (y, slope), rtol=1e-5)
    np.testing.assert_allclose(st.vmap(st.grad(f))(snp.array([0.7, 0.7])), [slope] * 2, rtol=1e-5)
    np.testing.assert_allclose(st.grad(st.grad(f))(0.7), curve, rtol=1e-5)


def test_a_rule_that_loops_until_has_a_forward_derivative():
    def rule(primals, tangents):
        def step(carry):
            n, c, dc = carry
            return (n + 1, *st.jvp(snp.sin, (c,), (dc,)))

        return st.lax.while_loop(lambda s: s[0] < 3, step, (0, primals[0], tangents[0]))[1:]

    f = st.custom_jvp(lambda x: snp.sin(snp.sin(snp.sin(x))))
    f.defjvp(rule)
    y, move = st.linearize(f, 0.7)
    want = st.jvp(f._fun, (0.7,), (1.0,))
    np.testing.assert_allclose((y, move(1.0)), want, rtol=1e-6)
    with pytest.raises(st.errors.MissingRuleError, match=r"while.*lax.scan"):
        st.grad(f)(0.7)
