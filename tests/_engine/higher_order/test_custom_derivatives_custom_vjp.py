"""Reverse derivatives of the user's own: every order, conventions, what does not fit, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import float0
from stretto._engine.higher_order.custom_derivatives import CustomVjp, CustomVjpForward
from stretto.laws import c64, f32, f64, law
from stretto.typing import SymbolicZero

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=3), RNG.normal(size=3)
XS, YS = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))


def plain(x, y):
    return snp.sin(x) * y + x * x


def with_rules(fun, fwd, bwd, symbolic_zeros=False, **options):
    made = st.custom_vjp(fun, **options)
    made.defvjp(fwd, bwd, symbolic_zeros)
    return made


def plain_fwd(x, y):
    return plain(x, y), (snp.cos(x) * y + 2.0 * x, snp.sin(x))


custom = with_rules(plain, plain_fwd, lambda res, ct: (ct * res[0], ct * res[1]))
twisted = with_rules(plain, plain_fwd, lambda res, ct: (3.0 * ct * res[0], None))

frugal = st.custom_vjp(plain)
frugal.defvjp(plain_fwd, lambda res, ct: (ct * res[0], ct * res[1]), optimize_remat=True)

LAWS = [
    # No forward derivatives: the reverse ones are held to account below.
    *[law(CustomVjp, custom, kind(3), kind(3), derivative=False) for kind in (f32, f64, c64)],
    law(CustomVjp, st.vmap(custom, (0, None)), f32(3), f32(), derivative=False),
    law(CustomVjp, st.jit(custom), f64(2), f64(2), derivative=False),
    law(None, lambda x, y: st.vjp(custom, x, y)[1](x * y), f64(3), f64(3)),
    law(CustomVjpForward, lambda x, y: st.vjp(frugal, x, y)[1](x * y), f64(3), f64(3)),
    law(None, st.grad(lambda x, y: st.vmap(custom, (0, None))(x, y).sum(), (0, 1)), f64(3), f64()),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def total(f):
    return lambda *args: f(*args).sum()


def scanned(f):
    def step(c, xy):
        return f(c, xy[1]) * 0.5, f(xy[0], c)

    return lambda x, y: sum(map(snp.sum, st.lax.scan(step, x, (XS, YS * y))))


def branching(f):
    def one(x, y):
        return st.lax.cond(x > 0, f, lambda x, y: snp.exp(x) * f(y, x), x, y)

    return lambda x, y: st.vmap(one)(x, y).sum()


def repeated(f):
    return lambda x, y: st.lax.fori_loop(0, 3, lambda i, c: f(c, y) * 0.3 + x, x).sum()


def mapped(f, axes=(0, None), out=0):
    return st.vmap(f, axes, out)


ORDERS = {
    "value": lambda f: f,
    "jit": st.jit,
    "vmap": lambda f: lambda x, y: mapped(f, (1, None), 1)(XS.T, y),
    "while": lambda f: (
        lambda x, y: st.lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1], y)), (0, x)
        )[1]
    ),
    "grad": lambda f: st.grad(total(f), (0, 1)),
    "jit(grad)": lambda f: st.jit(st.grad(total(f), 1)),
    "grad(jit)": lambda f: st.grad(total(st.jit(f)), (0, 1)),
    "jit(grad(jit(jit)))": lambda f: st.jit(st.grad(total(st.jit(st.jit(f))), (0, 1))),
    "vmap(grad)": lambda f: lambda x, y: mapped(st.grad(f, (0, 1)))(x, y[0]),
    "vmap(jit(grad))": lambda f: st.vmap(st.jit(st.grad(f, (0, 1)))),
    "grad(vmap)": lambda f: lambda x, y: st.grad(total(mapped(f)), (0, 1))(XS, y),
    "grad(vmap(jit))": lambda f: lambda x, y: st.grad(total(mapped(st.jit(f))), (0, 1))(XS, y),
    "grad(jit(vmap))": lambda f: (
        lambda x, y: st.grad(total(st.jit(mapped(f, (None, 1)))), (0, 1))(x, YS.T)
    ),
    "grad(vmap(vmap))": lambda f: st.grad(total(mapped(mapped(f), (None, 0))), (0, 1)),
    "vmap(grad(vmap))": lambda f: lambda x, y: mapped(st.grad(total(mapped(f)), (0, 1)))(XS, y[0]),
    "scan": lambda f: st.jit(scanned(f)),
    "grad(scan)": lambda f: st.grad(scanned(f), (0, 1)),
    "jit(grad(scan))": lambda f: st.jit(st.grad(scanned(f), (0, 1))),
    "grad(fori_loop)": lambda f: st.grad(repeated(f), (0, 1)),
    "cond": branching,
    "grad(cond)": lambda f: st.grad(branching(f), (0, 1)),
    "jit(grad(cond))": lambda f: st.jit(st.grad(branching(f), (0, 1))),
    "grad(checkpoint)": lambda f: st.grad(total(st.checkpoint(lambda x, y: f(f(x, y), y))), (0, 1)),
    "jacrev": lambda f: st.jacrev(f, (0, 1)),
    "grad(grad)": lambda f: lambda x, y: st.grad(lambda x: st.grad(f)(x, y[0]) ** 2)(x[0]),
    "jacrev(jacrev)": lambda f: st.jacrev(st.jacrev(f, (0, 1)), (0, 1)),
    "jvp(grad)": lambda f: lambda x, y: st.jvp(st.grad(total(f), (0, 1)), (x, y), (y, x)),
    "jit(jvp(grad(jit)))": lambda f: st.jit(
        lambda x, y: st.jvp(st.grad(total(st.jit(f)), (0, 1)), (x, y), (y, x))
    ),
    "hessian": lambda f: st.hessian(total(f), (0, 1)),
    "hvp": lambda f: lambda x, y: st.hvp(total(f), (x, y), (y, x)),
    "vmap(hessian)": lambda f: st.vmap(st.hessian(f, (0, 1))),
    "hessian(vmap)": lambda f: lambda x, y: st.hessian(total(mapped(f)), (0, 1))(x, y[0]),
    "hessian(scan)": lambda f: st.jit(st.hessian(scanned(f))),
    "grad(jvp(grad))": lambda f: st.grad(
        lambda x, y: st.jvp(st.grad(total(f)), (x, y), (y, x))[1].sum(), (0, 1)
    ),
    "grad(vmap(grad))": lambda f: st.grad(total(st.vmap(st.grad(f))), (0, 1)),
    "jvp(vmap(grad(jit)))": lambda f: (
        lambda x, y: st.jvp(st.vmap(st.grad(st.jit(f))), (x, y), (y, x))
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_is_that_of_the_function_without_rules(order):
    with st.enable_x64():
        got, want = (ORDERS[order](f)(snp.array(X), snp.array(Y)) for f in (custom, plain))
        assert st.tree.structure(got) == st.tree.structure(want)
        for a, b in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
            assert a.dtype == b.dtype == np.float64
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


TWISTED = {
    "grad": lambda f: st.grad(total(f), (0, 1)),
    "grad(jit)": lambda f: st.grad(total(st.jit(f)), (0, 1)),
    "grad(vmap)": lambda f: st.grad(total(st.vmap(f)), (0, 1)),
    "jit(vmap(grad))": lambda f: st.jit(st.vmap(st.grad(f, (0, 1)))),
    "grad(cond)": lambda f: st.grad(
        lambda x, y: st.lax.cond(x.sum() > -99, f, snp.add, x, y).sum(), (0, 1)
    ),
    "grad(scan)": lambda f: st.grad(
        lambda x, y: st.lax.scan(lambda c, xy: (c + f(*xy), None), 0.0, (x, y))[0], (0, 1)
    ),
    "jvp(grad)": lambda f: (
        lambda x, y: [st.jvp(st.grad(total(f), i), (x, y), (0 * x, 0 * y))[0] for i in (0, 1)]
    ),
}


@pytest.mark.parametrize("order", TWISTED)
def test_the_rule_is_what_counts(order):
    """Three times the slope by x, and none by y."""
    dx, dy = TWISTED[order](twisted)(snp.array(X), snp.array(Y))
    np.testing.assert_allclose(dx, 3 * (np.cos(X) * Y + 2 * X), rtol=1e-4)
    np.testing.assert_array_equal(dy, np.zeros(3))


def test_complex_cotangents_are_not_conjugated():
    f = with_rules(lambda z: z * z, lambda z: (z * z, z), lambda z, ct: (2 * z * ct,))
    z, ct = 0.3 - 0.8j, -0.4 + 1.1j
    np.testing.assert_allclose(st.vjp(f, z)[1](ct)[0], 2 * z * ct, rtol=1e-6)
    np.testing.assert_allclose(st.grad(f, holomorphic=True)(z), 2 * z, rtol=1e-6)


# When what runs


def test_rules_run_only_when_a_derivative_is_taken():
    ran = []

    @st.custom_vjp
    def f(x):
        ran.append("fun")
        return x * 2.0

    def fwd(x):
        ran.append("fwd")
        return x * 2.0, None

    def bwd(_, ct):
        ran.append("bwd")
        return (ct,)

    f.defvjp(fwd, bwd, optimize_remat=True)

    def during(call):
        ran.clear()
        call()
        return [*ran]

    assert during(lambda: f(1.0)) == ["fun"]
    assert during(lambda: st.jit(f)(1.0)) == ["fun"]
    assert during(lambda: st.vmap(f)(X)) == ["fun"]
    assert during(lambda: st.grad(lambda x: x * f(2.0))(1.0)) == ["fun"]
    _, pull = st.vjp(f, 1.0)
    assert ran == ["fun", "fun", "fwd"]
    assert during(lambda: pull(1.0)) == ["bwd"]
    assert during(lambda: st.vjp(st.checkpoint(f), 1.0)) == ["fun", "fwd"]


def test_python_may_branch_on_values():
    """At rest in the function; in the rules where their arguments are concrete."""

    def fwd(x):
        return (x if x > 0 else -x), x

    f = with_rules(snp.abs, fwd, lambda x, ct: (ct if x > 0 and ct > 0 else -100 * ct,))
    assert [float(st.grad(f)(x)) for x in (3.0, -3.0)] == [1, -100]
    branches = with_rules(lambda x: x if x > 0 else -x, fwd, None)
    assert [float(branches(x)) for x in (3.0, -3.0)] == [3, 3]
    with pytest.raises(st.errors.TracedValueError, match="the argument x"):
        st.jit(branches)(3.0)


# Trees, integers, residuals


def test_trees_go_in_and_out():
    def fun(p, x):
        return {"out": [p["w"][0] * x, None], "n": p["n"] + 1, "sum": x.sum()}

    def fwd(p, x):
        return fun(p, x), {"x": x, "w": p["w"], "none": None}

    def bwd(res, ct):
        assert ct["n"].dtype == float0 and ct["n"].shape == ()
        d = ct["out"][0]
        return {"w": (d * res["x"], None), "n": None, "unused": None}, d * res["w"][0] + ct["sum"]

    f = with_rules(fun, fwd, bwd)
    p = {"w": (snp.array([2.0, 3.0]), None), "n": 3, "unused": {"a": X, "b": [Y]}}
    x = snp.array([5.0, 7.0])
    loss = lambda p, x: (f(p, x)["out"][0] * 2).sum() + f(p, x)["sum"]
    for g in (st.grad(loss, (0, 1), allow_int=True), st.grad(st.jit(loss), (0, 1), allow_int=True)):
        dp, dx = g(p, x)
        np.testing.assert_allclose(dp["w"][0], 2 * x)
        np.testing.assert_allclose(dx, [5, 7])
        assert dp["w"][1] is None and dp["n"].dtype == float0
        np.testing.assert_array_equal(dp["unused"]["b"][0], np.zeros(3))


ZEROS = {
    "None": lambda n: None,
    "float0": lambda n: np.zeros(n.shape, float0),
    "vjp": lambda n: st.vjp(lambda n: n * 2.0, n)[1](snp.ones(n.shape))[0],
    "SymbolicZero": lambda n: SymbolicZero(n.shape, float0),
}


@pytest.mark.parametrize("zero", ZEROS)
def test_integers_and_booleans_have_no_cotangent(zero):
    def fwd(x, n, flag):
        return x * n, (n, flag)

    def bwd(res, ct):
        n, flag = res
        return ct * n, ZEROS[zero](n), ZEROS[zero](flag)

    f = with_rules(lambda x, n, flag: x * n, fwd, bwd)
    args = snp.ones(3), snp.arange(3), snp.array(True)
    for wrap in (lambda g: g, st.jit):
        dx, dn, dflag = wrap(st.grad(total(f), (0, 1, 2), allow_int=True))(*args)
        np.testing.assert_array_equal(dx, [0, 1, 2])
        assert (dn.shape, dn.dtype, dflag.shape, dflag.dtype) == ((3,), float0, (), float0)
    dx, dn = st.vmap(lambda x, n: st.vjp(f, x, n, True)[1](1.0)[:2])(*args[:2])
    np.testing.assert_array_equal(dx, [0, 1, 2])
    assert (dn.shape, dn.dtype) == ((3,), float0)


def test_integer_results():
    f = with_rules(
        lambda x: (x * 2.0, snp.array(3)),
        lambda x: ((x * 2.0, snp.array(3)), None),
        lambda _, ct: (ct[0] * 7.0,),
    )
    assert float(st.grad(lambda x: f(x)[0])(2.0)) == 7
    assert float(st.grad(lambda x: f(x)[0] * f(x)[1])(2.0)) == 21
    _, pull = st.vjp(f, 2.0)
    assert float(pull((1.0, np.zeros((), float0)))[0]) == 7
    only = with_rules(lambda x: x > 0, lambda x: (x > 0, None), None)
    assert float(st.grad(lambda x: x * only(x))(2.0)) == 1


def test_residuals_of_every_kind():
    seen = []

    def fwd(x):
        return x * 2.0, {
            "word": "s",
            "shape": x.shape,
            "on": x > 0,
            "n": (x * 3).astype(int),
            "f": len,
        }

    def bwd(res, ct):
        seen.append(res)
        return (ct * res["n"] * res["on"] * len(res["word"]),)

    f = with_rules(lambda x: x * 2.0, fwd, bwd)
    x = snp.array([1.0, -1.0])
    for g in (st.grad(total(f)), st.jit(st.grad(total(f))), st.grad(total(st.vmap(f)))):
        np.testing.assert_array_equal(g(x), [3, 0])
        res = seen.pop()
        assert res["word"] == "s" and res["f"] is len and res["shape"] in ((2,), ())
        assert res["on"].dtype == bool and res["n"].dtype == np.int32


# What does not fit


def test_without_rules():
    f = st.custom_vjp(lambda x: x)
    with pytest.raises(
        AttributeError, match="custom_vjp: function has no rules; give them with defvjp"
    ):
        f(1.0)


FORWARD = {
    "jvp": lambda f: st.jvp(f, (1.0,), (1.0,)),
    "jvp(jit)": lambda f: st.jvp(st.jit(f), (1.0,), (1.0,)),
    "jvp(vmap)": lambda f: st.jvp(st.vmap(f), (snp.ones(2),), (snp.ones(2),)),
    "jvp(scan)": lambda f: st.jvp(
        lambda x: st.lax.scan(lambda c, _: (f(c), None), x, length=2), (1.0,), (1.0,)
    ),
    "jacfwd": lambda f: st.jacfwd(f)(1.0),
    "linearize": lambda f: st.linearize(f, 1.0)[1](1.0),
    "jit(linearize)": lambda f: st.jit(lambda x: st.linearize(f, x)[1](x))(1.0),
    "vmap(linearize)": lambda f: st.vmap(st.linearize(f, 1.0)[1])(snp.ones(2)),
    "jvp(grad)": lambda f: st.hvp(lambda x: f(f(x)), (1.0,), (1.0,)),
}


@pytest.mark.parametrize("order", FORWARD)
def test_forward_derivatives_are_refused(order):
    again = st.custom_vjp(snp.sin)
    again.defvjp(lambda x: (again(x), x), lambda x, ct: (ct * snp.cos(x),))
    with pytest.raises(
        st.errors.ForwardModeError, match=r"sin is a custom_vjp function.*custom_jvp"
    ):
        FORWARD[order](again)


PAIR = lambda x: (x["a"] * 2.0, None)
A = snp.ones(2)
MISTAKES = {
    "fwd gives no pair": (lambda x: x["a"], None, r"fwd of f must return a pair .* got .*2"),
    "another structure": (
        lambda x: ((x["a"], x["a"]), None),
        None,
        "fwd of f must return an output like .* part at output: a leaf and a tuple of length 2",
    ),
    "another shape": (
        lambda x: (x["a"].sum(), None),
        None,
        r"fwd of f must return an output of type float32\[2\] at output, got float32\[\]",
    ),
    "another dtype": (
        lambda x: (x["a"].astype(snp.float16), None),
        None,
        r"an output of type float32\[2\] at output, got float16\[2\]",
    ),
    "no array": (lambda x: ("a", None), None, "must return an output: output must be an array"),
    "no tuple": (
        PAIR,
        lambda r, ct: ct,
        "bwd of f must return a tuple of 1 cotangents, for x; got",
    ),
    "too many": (PAIR, lambda r, ct: (ct, ct), "a tuple of 1 cotangents, for x; got 2"),
    "an array for all": (PAIR, lambda r, ct: (ct,), r"float32\[\] at x\['b'\]\[0\], got float32"),
    "a leaf missing": (
        PAIR,
        lambda r, ct: ({"a": ct},),
        r"they part at x: a dict with keys \['a', 'b', 'n'\] and a dict with keys \['a'\]",
    ),
    "an array for a part": (
        PAIR,
        lambda r, ct: ({"a": ct, "b": ct, "n": None},),
        r"a cotangent of type float32\[\] at x\['b'\]\[0\], got float32\[2\]",
    ),
    "a cotangent's shape": (
        PAIR,
        lambda r, ct: ({"a": ct, "b": (ct,), "n": None},),
        r"a cotangent of type float32\[\] at x\['b'\]\[0\], got float32\[2\]",
    ),
    "a cotangent's dtype": (
        PAIR,
        lambda r, ct: ({"a": ct.astype(snp.float16), "b": None, "n": None},),
        r"a cotangent of type float32\[2\] at x\['a'\], got float16\[2\]",
    ),
    "an integer's": (
        PAIR,
        lambda r, ct: ({"a": ct, "b": None, "n": 0},),
        r"float0 and shape \(\) for int32\[\] at x\['n'\], got 0",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_rules_that_do_not_fit_are_refused(mistake):
    fwd, bwd, message = MISTAKES[mistake]

    def f(x):
        return x["a"] * 2.0

    made = with_rules(f, fwd, bwd)
    for g in (st.grad(total(made), allow_int=True), st.jit(st.grad(total(made), allow_int=True))):
        with pytest.raises(TypeError, match=message):
            g({"a": A, "b": (1.0,), "n": 3})


def test_an_array_stands_for_a_part_of_a_tree():
    f = st.custom_vjp(lambda x: x["a"] * x["b"][0])
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct,))
    assert st.grad(f)({"a": 2.0, "b": (3.0,)}) == {"a": 1.0, "b": (1.0,)}


def test_integers_may_stand_for_the_cotangents_of_integers():
    f = st.custom_vjp(lambda x, n: x * n)
    f.defvjp(lambda x, n: (f(x, n), n), lambda n, ct: (ct * n, n))
    assert float(st.grad(f)(2.0, 3)) == 3.0
    again = st.custom_vjp(lambda x, n: x * n)
    again.defvjp(lambda x, n: (f(x, n), n), lambda n, ct: (ct * n, snp.zeros(2, int)))
    with pytest.raises(TypeError, match=r"of type int32\[\] at n, got int32\[2\]"):
        st.grad(again)(2.0, 3)


def test_rules_may_call_their_own_function():
    exp = st.custom_vjp(snp.exp)
    exp.defvjp(lambda x: (exp(x), x), lambda x, ct: (exp(x) * ct,))
    triple = st.custom_vjp(lambda x: 3.0 * x)
    triple.defvjp(lambda x: (triple(x), None), lambda _, ct: (triple(ct),))
    for f, slope in ((exp, np.e), (triple, 3.0)):
        for grad in (st.grad(f), st.grad(st.jit(f)), st.jit(st.grad(f))):
            np.testing.assert_allclose(grad(1.0), slope, rtol=1e-6)
        np.testing.assert_allclose(st.vmap(st.grad(f))(snp.ones(2)), [slope] * 2, rtol=1e-6)
        twice = st.grad(lambda x, f=f: x * st.grad(f)(x))
        np.testing.assert_allclose(twice(1.0), 2 * np.e if f is exp else 3.0, rtol=1e-6)


# With optimize_remat. The values of fun and fwd differ here, to tell which of them ran.


def squared(residual, optimize=True):
    f = st.custom_vjp(lambda x: x**2)
    f.defvjp(lambda x: (5 * x, residual(x)), lambda r, ct: (7 * r * ct,), optimize_remat=optimize)
    return f


def valued(f):
    return lambda x: [float(v) for v in st.value_and_grad(f)(x)]


WAYS = {
    "alone": lambda f: valued(f)(3.0),
    "jit outside": lambda f: [float(v) for v in st.jit(st.value_and_grad(f))(3.0)],
    "jit inside": lambda f: valued(st.jit(f))(3.0),
    "vmap inside": lambda f: valued(lambda x: st.vmap(f)(x[None])[0])(snp.float32(3)),
    "vmap outside": lambda f: [
        float(v[0]) for v in st.vmap(st.value_and_grad(f))(snp.array([3.0]))
    ],
    "scan": lambda f: valued(
        lambda x: st.lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]
    )(3.0),
    "cond": lambda f: valued(lambda x: st.lax.cond(x > 0, f, f, x))(3.0),
}
REMATERIALISED = {
    "checkpoint": lambda f: valued(st.checkpoint(f))(3.0),
    "checkpoint of jit": lambda f: valued(st.checkpoint(st.jit(f)))(3.0),
    "jit of checkpoint": lambda f: valued(st.jit(st.checkpoint(f)))(3.0),
    "checkpoint of vmap": lambda f: valued(lambda x: st.checkpoint(st.vmap(f))(x[None])[0])(
        snp.float32(3)
    ),
    "vmap of checkpoint": lambda f: [
        float(v[0]) for v in st.vmap(st.value_and_grad(st.checkpoint(f)))(snp.array([3.0]))
    ],
    "checkpoint of scan": lambda f: valued(
        st.checkpoint(lambda x: st.lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0])
    )(3.0),
    "checkpoint in scan": lambda f: valued(
        lambda x: st.lax.scan(st.checkpoint(lambda c, _: (f(c), None)), x, None, length=1)[0]
    )(3.0),
    "checkpoint of cond": lambda f: valued(st.checkpoint(lambda x: st.lax.cond(x > 0, f, f, x)))(
        3.0
    ),
    "second derivative": lambda f: [
        float(st.checkpoint(f)(3.0)),
        float(st.grad(lambda x: x * st.grad(st.checkpoint(f))(x))(3.0)) / 2,
    ],
}


@pytest.mark.parametrize("way", WAYS | REMATERIALISED)
def test_fun_runs_where_arguments_are_all_that_is_kept(way):
    assert (WAYS | REMATERIALISED)[way](squared(lambda x: x)) == [9.0, 21.0]


@pytest.mark.parametrize("way", WAYS)
def test_fwd_runs_where_residuals_are_kept(way):
    assert WAYS[way](squared(lambda x: x + 1 - 1)) == [15.0, 21.0]
    assert WAYS[way](squared(lambda x: x, optimize=False)) == [15.0, 21.0]


@pytest.mark.parametrize("way", REMATERIALISED)
def test_fun_runs_on_the_way_forward_through_a_checkpoint(way):
    assert REMATERIALISED[way](squared(lambda x: x + 1 - 1)) == [9.0, 21.0]


def test_fwd_of_a_checkpoint_runs_once_on_the_way_back():
    ran = []

    def host(x):
        ran.append("fwd")
        return np.sin(x)

    def residual(x):
        return st.pure_callback(host, st.ShapeDtypeStruct(x.shape, x.dtype), x)

    f = st.custom_vjp(snp.cos)
    f.defvjp(lambda x: (snp.cos(x), residual(x)), lambda r, ct: (-r * ct,), optimize_remat=True)
    y, back = st.vjp(st.jit(st.checkpoint(f)), snp.float32(0.5))
    assert ran == []
    np.testing.assert_allclose(back(y.dtype.type(1))[0], -np.sin(0.5), rtol=1e-6)
    assert ran == ["fwd"]


def test_values_from_outside_where_rematerialization_is_optimized():
    def outer(x, k):
        f = st.custom_vjp(lambda x: k * x)
        f.defvjp(lambda x: (k * x, (x, "note")), lambda r, ct: (k * ct,), optimize_remat=True)
        return st.checkpoint(f)(x)

    for g in (st.grad(outer), st.jit(st.grad(outer)), st.grad(st.jit(outer))):
        assert float(g(2.0, 3.0)) == 3.0
    np.testing.assert_array_equal(
        st.vmap(st.grad(outer))(snp.ones(2), snp.array([3.0, 4.0])), [3, 4]
    )


@pytest.mark.parametrize("around", [lambda f: f, st.jit])
def test_the_rule_runs_where_the_cotangent_is_zero(around):
    @st.custom_vjp
    def seen(x, largest):
        return x * 1.0

    seen.defvjp(lambda x, largest: (x, abs(x)), lambda largest, ct: (ct, largest))

    @st.custom_vjp
    def no_slope(x):
        return x * 2.0

    no_slope.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (None,))

    f = around(st.grad(lambda x, largest: no_slope(seen(x, largest)), (0, 1)))
    assert tuple(map(float, f(-3.0, 0.0))) == (0.0, 3.0)
    unused = around(st.grad(lambda x, largest: (seen(x, largest), x)[1], (0, 1)))
    assert tuple(map(float, unused(-3.0, 0.0))) == (1.0, 0.0)
