"""Forward derivatives of the user's own: the laws, every order, what does not fit."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import float0
from stretto._engine.higher_order.custom_derivatives import CustomJvp
from stretto.laws import c64, f32, f64, law


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


def test_static_arguments_come_first():
    def power(x, n=2):
        return x**n

    scaled = st.custom_jvp(power, nondiff_argnums=(1,))
    scaled.defjvp(lambda n, primals, tangents: (power(*primals, n), 10.0 * n * tangents[0]))
    assert float(scaled(3.0, n=3)) == 27
    assert float(st.grad(lambda x: scaled(x, n=3))(3.0)) == 30
    assert float(st.grad(scaled)(3.0)) == 20
    assert scaled.__name__ == "power" and repr(scaled) == "<custom_jvp power>"


def test_the_function_just_runs_at_rest():
    f = with_rule(lambda p, t: (f(*p), t[0]), lambda x: x if x > 0 else -x)
    assert [float(f(x)) for x in (3.0, -3.0)] == [3, 3]
    with pytest.raises(st.errors.TracedValueError, match="the argument x"):
        st.jit(f)(3.0)


def test_integers_have_float0_tangents():
    seen = []

    def rule(primals, tangents):
        (x, n, _), (dx, dn, dflag) = primals, tangents
        seen.append([(t.shape, t.dtype) for t in (dn, dflag)])
        return (x * n, n + 1), (dx * n, dn)

    f = with_rule(rule, lambda x, n, flag: (x * n, n + 1))
    n, z = snp.arange(3), np.zeros(3, float0)
    tangent = lambda x: st.jvp(lambda x: f(x, n, True), (x,), (x,))[1]
    for wrap in (lambda g: g, st.jit):
        dx, dn = wrap(tangent)(snp.ones(3))
        np.testing.assert_array_equal(dx, [0, 1, 2])
        assert (dn.shape, dn.dtype) == ((3,), float0)
        assert seen.pop() == [((3,), float0), ((), float0)]
    _, (dx, dn) = st.jvp(lambda x, n: f(x, n, True), (snp.ones(3), n), (snp.ones(3), z))
    assert dn.dtype == float0
    grads = st.grad(lambda *a: f(*a)[0].sum(), (0, 1, 2), allow_int=True)(snp.ones(3), n, True)
    assert [g.dtype for g in grads] == [np.float32, float0, float0]
    dx, dn = st.vmap(lambda x, n: st.jvp(lambda x: f(x, n, n > 0), (x,), (1.0,))[1])(X, n)
    np.testing.assert_array_equal(dx, [0, 1, 2])
    assert (dn.shape, dn.dtype) == ((3,), float0)


def test_a_rule_for_each_argument():
    f = st.custom_jvp(lambda x, y, n: {"xy": x * y["y"], "n": n})
    f.defjvps(
        lambda dx, out, x, y, n: {"xy": 10.0 * dx * y["y"], "n": np.zeros((), float0)},
        lambda dy, out, x, y, n: {"xy": x * dy["y"], "n": np.zeros((), float0)},
        None,
    )
    loss = lambda x, y, n: f(x, {"y": y}, n)["xy"]
    for wrap in (lambda g: g, st.jit):
        assert [float(g) for g in wrap(st.grad(loss, (0, 1)))(2.0, 3.0, 4)] == [30, 2]
        assert float(wrap(st.grad(loss, 1))(2.0, 3.0, 4)) == 2
        assert float(wrap(st.grad(lambda x: loss(2.0, 3.0, x) * x))(5.0)) == 6
    np.testing.assert_array_equal(st.vmap(st.grad(loss), (0, 0, None))(X, X, 1), 10 * X)
    _, tangent = st.jvp(f, (2.0, {"y": 3.0}, 4), (1.0, {"y": 1.0}, np.zeros((), float0)))
    assert float(tangent["xy"]) == 32 and tangent["n"].dtype == float0
    assert float(st.grad(st.grad(loss), 1)(2.0, 3.0, 4)) == 10
    f.defjvps(None, None)
    with pytest.raises(TypeError, match="has 3 arguments, but defjvps was given 2 rules"):
        st.grad(loss)(2.0, 3.0, 4)
    static = st.custom_jvp(lambda n, x: x, nondiff_argnums=(0,))
    with pytest.raises(TypeError, match="cannot be used with nondiff_argnums; use defjvp"):
        static.defjvps(None)


def test_defjvps_gives_arrays_for_what_stays_in_a_tree_that_moves():
    f = st.custom_jvp(lambda p, n: p["x"] * p["y"] * n)
    kinds = []

    def by_tree(dp, out, p, n):
        kinds.append([isinstance(t, st.Array) for t in st.tree.leaves(dp)])
        return (dp["x"] * p["y"] + p["x"] * dp["y"]) * n

    f.defjvps(by_tree, None)
    x, y = snp.array([1.0, 2.0]), snp.array([3.0, 5.0])
    one = lambda x: f({"x": x, "y": y}, 2.0).sum()
    np.testing.assert_array_equal(st.grad(one)(x), [6, 10])
    other = lambda y: f({"x": x, "y": y}, 2.0)
    np.testing.assert_array_equal(st.jvp(other, (y,), (y,))[1], [6, 20])
    assert kinds == [[True, True]] * 2


def test_defjvps_computes_nothing_for_a_zero_tangent():
    f = st.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda dx, out, x, y: dx * y, lambda dy, out, x, y: 1 / 0)
    assert float(st.grad(f)(2.0, 3.0)) == 3
    with pytest.raises(ZeroDivisionError):
        st.grad(f, 1)(2.0, 3.0)


def test_without_a_rule():
    f = st.custom_jvp(lambda x: x)
    with pytest.raises(AttributeError, match="has no rule; give one with defjvp"):
        f(1.0)


MISTAKES = {
    "no pair": (lambda p, t: p[0], "must return a pair"),
    "another structure": (
        lambda p, t: ((p[0], p[0]), t[0]),
        "an output like.* part at output: a leaf and a tuple",
    ),
    "a tangent's structure": (
        lambda p, t: (f_out(p), (t[0], t[0], t[0])),
        "a tangent like.*output: a tuple of length 2 and a tuple of length 3",
    ),
    "a tangent's shape": (
        lambda p, t: (f_out(p), (t[0].sum(), NONE)),
        r"a tangent of type float32\[2\] at output\[0\], got float32\[\]",
    ),
    "a tangent's dtype": (
        lambda p, t: (f_out(p), (t[0].astype(snp.float16), NONE)),
        r"a tangent of type float32\[2\] at output\[0\], got float16\[2\]",
    ),
    "an output's dtype": (
        lambda p, t: ((p[0].astype(snp.int32), p[1]), (t[0], NONE)),
        r"output of type float32\[2\] at output\[0\], got int32",
    ),
    "an integer's tangent": (
        lambda p, t: (f_out(p), (t[0], snp.array(0))),
        r"dtype float0 and shape \(\) for int32\[\] at output\[1\], got int32\[\]",
    ),
}
NONE = np.zeros((), float0)


def f_out(primals):
    return primals[0] * 2.0, primals[1]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_rules_that_do_not_fit_are_refused(mistake):
    rule, message = MISTAKES[mistake]
    if mistake == "another structure":
        f = with_rule(rule, lambda x, n: x * 2.0)
    else:
        f = with_rule(rule, lambda x, n: (x * 2.0, n))
    for wrap in (lambda g: g, st.jit):
        with pytest.raises(TypeError, match=message):
            wrap(lambda x: st.jvp(lambda x: f(x, 3), (x,), (x,)))(snp.ones(2))


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
            st.vmap(lambda x: st.lax.cond(x > 0, scanned, snp.exp, x)), (p[0][None],), (t[0][None],)
        )
    ],
    "jvp of another rule": lambda p, t: st.jvp(with_rule(lambda p, t: st.jvp(scanned, p, t)), p, t),
    "scan": both_carried,
}


def with_rule(rule, fun=scanned):
    f = st.custom_jvp(fun)
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
    want = st.jvp(f.fun, (0.7,), (1.0,))
    np.testing.assert_allclose((y, move(1.0)), want, rtol=1e-6)
    with pytest.raises(st.errors.MissingRuleError, match=r"while.*lax.scan"):
        st.grad(f)(0.7)


# Rules that apply their own function to tangents, as one may where it is linear.


def tripling(apply=lambda f, dx: f(dx)):
    """3 x, whose rule applies it to the tangent, through ``apply``."""
    f = st.custom_jvp(lambda x: 3.0 * x)
    f.defjvp(lambda primals, tangents: (f(*primals), apply(f, *tangents)))
    return f


THROUGH = {
    "call": lambda f, dx: f(dx),
    "jit": lambda f, dx: st.jit(f)(dx),
    "vmap": lambda f, dx: st.vmap(f)(dx[None])[0],
    "cond": lambda f, dx: st.lax.cond(snp.ones(()) > 0, f, f, dx),
    "scan": lambda f, dx: st.lax.scan(lambda c, _: (c, f(c)), dx, None, length=2)[1][1],
    "checkpoint": lambda f, dx: st.checkpoint(f)(dx),
}
TRANSFORMED = {
    "grad": st.grad,
    "linearize": lambda f: lambda x: st.linearize(f, x)[1](1.0),
    "jit(grad)": lambda f: st.jit(st.grad(f)),
    "grad(jit)": lambda f: st.grad(st.jit(f)),
    "grad of x grad": lambda f: st.grad(lambda x: x * st.grad(f)(x)),
    "hessian": lambda f: lambda x: st.hessian(lambda x: x * f(x))(x) / 2,
    "vmap(grad)": lambda f: lambda x: st.vmap(st.grad(f))(snp.stack([x, x]))[1],
    "grad(vmap)": lambda f: st.grad(lambda x: st.vmap(f)(x[None])[0]),
    "grad(checkpoint)": lambda f: st.grad(st.checkpoint(f)),
    "grad(scan)": lambda f: st.grad(
        lambda x: st.lax.scan(lambda c, _: (c, f(c)), x, None, length=2)[1][1]
    ),
    "grad(cond)": lambda f: st.grad(lambda x: st.lax.cond(x > 0, f, f, x)),
    "grad by the tangent": lambda f: st.grad(lambda t: st.jvp(f, (t * 0.0,), (t,))[1]),
    "linear_transpose": lambda f: lambda x: st.linear_transpose(f, x)(snp.ones(()))[0],
}


@pytest.mark.parametrize("through", THROUGH)
def test_a_rule_may_apply_its_own_function_to_tangents(through):
    f = tripling(THROUGH[through])
    found = {name: float(of(f)(snp.ones(()))) for name, of in TRANSFORMED.items()}
    assert found == dict.fromkeys(TRANSFORMED, 3.0)


def test_a_rule_may_apply_its_own_function_to_values_and_tangents():
    f = st.custom_jvp(lambda x, y: x * y)
    f.defjvp(lambda p, t: (f(*p), f(t[0], p[1]) + f(p[0], t[1])))
    assert [float(d) for d in st.grad(f, (0, 1))(2.0, 3.0)] == [3.0, 2.0]
    np.testing.assert_array_equal(
        st.hessian(lambda v: f(v[0], v[1]))(snp.ones(2)), [[0.0, 1.0], [1.0, 0.0]]
    )
    g = st.custom_jvp(lambda x, y: (snp.sin(x), snp.cos(x) * y))
    g.defjvp(lambda p, t: (g(*p), (st.jit(g)(p[0], t[0])[1], g(p[0], t[1])[1] - p[1] * t[0])))
    value, move = st.linearize(g, 0.0, 2.0)
    assert [float(v) for v in value] == [0.0, 2.0]
    assert [float(v) for v in move(1.0, 5.0)] == [1.0, 3.0]


def test_linear_parts_keep_the_rules_of_what_they_know():
    # Within what the rule jits, h is applied to a value that is known: its second derivative is
    # still that of its own rule, which claims seven.
    h = st.custom_jvp(lambda x: x * 1.0)
    h.defjvp(lambda p, t: (h(*p), 7.0 * t[0]))
    f = st.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (f(*p), st.jit(lambda x, dx: h(x) * dx)(p[0], t[0])))
    assert float(st.grad(st.grad(f))(1.0)) == 7.0
    assert float(st.jit(st.grad(st.grad(f)))(1.0)) == 7.0


def test_what_a_rule_applies_to_tangents_keeps_its_rule_at_higher_orders():
    # The derivative of the linear map by x is that of f's rule, which says x y has slope 10 y.
    f = st.custom_jvp(lambda x, y: x * y)
    f.defjvp(lambda p, t: (f(*p), 10.0 * f(t[0], p[1]) + f(p[0], t[1])))
    along = lambda x: st.linearize(lambda y: f(x, y), 1.0)[1](1.0)
    assert [float(v) for v in st.jvp(along, (2.0,), (1.0,))] == [2.0, 10.0]


def test_a_derivative_of_zero_is_known_to_be_zero():
    """What comes behind the function is not differentiated."""
    f = st.custom_jvp(snp.floor)
    f.defjvps(None)
    graph = st.make_graph(lambda x: st.jvp(lambda x: snp.sin(f(x)), (x,), (x,)))(1.5)
    assert "cos" not in [e.primitive.name for e in graph.equations]
    assert float(st.grad(lambda x: snp.sin(f(x)))(1.5)) == 0


def test_linear_parts_hold_what_does_not_depend_on_what_moves():
    """In a rule that maps tangents by another function, an output of constants keeps its value."""
    g = st.custom_jvp(lambda x, y: (x * y, snp.cos(x)))
    g.defjvp(lambda p, t: (g(*p), (t[0] * p[1] + p[0] * t[1], -snp.sin(p[0]) * t[0])))

    @st.custom_jvp
    def f(x):
        return 2 * x

    @f.defjvp
    def _(primals, tangents):
        product, beside = st.jit(g)(primals[0], tangents[0])
        return f(*primals), product * beside

    value, move = st.linearize(f, 0.5)
    assert float(value) == 1 and float(move(3.0)) == pytest.approx(0.5 * 3 * np.cos(0.5))
