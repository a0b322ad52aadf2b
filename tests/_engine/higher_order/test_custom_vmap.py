"""Rules for vmap of the user's own: when they are used, what they see, derivatives, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.program import Program
from stretto._engine.higher_order.custom_vmap import CustomVmap, sequential_vmap
from stretto.laws import f32, f64, i32, law

RNG = np.random.default_rng(3)
A = RNG.normal(size=(4, 3, 3)).astype(np.float32)
X = RNG.normal(size=(4, 3)).astype(np.float32)


@st.custom_vmap
def product(a, x):
    return {"out": a @ snp.sin(x), "a": a * 2}


@product.def_vmap
def _(axis_size, in_batched, a, x):
    """With what is shared left shared."""
    a_mapped, x_mapped = in_batched
    if a_mapped:
        out = snp.sum(a * snp.sin(x)[..., None, :], -1)
    else:
        out = snp.sin(x) @ a.T
    return {"out": out, "a": a * 2}, {"out": a_mapped or x_mapped, "a": a_mapped}


@st.custom_vmap
def marked(x):
    return snp.sin(x)


SEEN = []


@marked.def_vmap
def _(axis_size, in_batched, x):
    """A hundred times too much, so that one sees where it was used."""
    SEEN.append((axis_size, in_batched, x.shape))
    return 100 * snp.sin(x), in_batched[0]


@sequential_vmap
def looped(a, x):
    return a @ snp.sin(x), snp.sum(x)


@sequential_vmap
def counted(n, x):
    return {"n": n + 1, "x": x * x}


LAWS = [
    law(CustomVmap, product, f32(2, 2), f32(2)),
    law(CustomVmap, product, f64(2, 2), f64(2)),
    law(CustomVmap, looped, f32(2, 2), f32(2)),
    law(CustomVmap, looped, f64(2, 2), f64(2)),
    law(CustomVmap, counted, i32(2), f32(2)),
    law(CustomVmap, marked, f32(3), mapped=False),  # its rule gives another value
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_the_rule_is_used_wherever_an_argument_is_mapped():
    x = np.array([0.5, 1.0], np.float32)
    for run, scale in (
        (marked, 1),
        (st.jit(marked), 1),
        (st.vmap(marked), 100),
        (st.vmap(marked, -1), 100),
        (st.jit(st.vmap(marked)), 100),
        (st.vmap(st.jit(marked)), 100),
        (lambda x: lax.map(marked, x), 1),
        (lambda x: st.vmap(lambda y: marked(x), axis_size=3, in_axes=None)(0.0)[0], 1),
        (st.vmap(lambda x: lax.scan(lambda c, _: (marked(c), None), x, length=1)[0]), 100),
        (st.vmap(lambda x: lax.cond(True, marked, snp.cos, x)), 100),
    ):  # fmt: skip
        np.testing.assert_allclose(run(x), scale * np.sin(x), rtol=1e-6)


def test_what_the_rule_sees():
    SEEN.clear()
    st.vmap(marked, 1)(np.ones((2, 5, 3), np.float32))
    assert SEEN == [(5, [True], (5, 2, 3))]
    seen = []
    f = st.custom_vmap(lambda t, b, scale=2.0: t["a"] * scale)
    f.def_vmap(
        lambda n, batched, t, *rest: (
            (seen.append((type(n), batched, len(rest))), t["a"] * 7.0)[1],
            batched[0]["a"],
        )
    )
    got = st.vmap(lambda a, b: f({"a": a, "b": b}, b=b), (0, None), axis_name="i")(X, 1.0)
    np.testing.assert_allclose(got, X * 7)
    assert seen == [(int, [{"a": True, "b": False}, False, False], 2)]


def test_nested_vmaps_meet_it_one_by_one():
    SEEN.clear()
    x = np.ones((2, 3, 5), np.float32)
    got = st.vmap(st.vmap(marked, 1), 1)(x)
    assert SEEN == [(5, [True], (5, 2))]
    np.testing.assert_allclose(got, 100 * np.sin(np.transpose(x, (1, 2, 0))), rtol=1e-6)

    @st.custom_vmap
    def again(x):
        return x

    @again.def_vmap
    def rule(axis_size, in_batched, x):
        return 10 * again(x[0]) + snp.zeros_like(x), True

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(st.vmap(st.vmap(again))(x), np.full((2, 3), 100 * x[0, 0]))
    once = st.vmap(st.vmap(again))(x[:1])
    np.testing.assert_allclose(once, np.zeros((1, 3)))


def test_results_may_stay_unmapped():
    out = st.vmap(product, (None, 0), {"out": 0, "a": None})(A[0], X)
    np.testing.assert_allclose(out["a"], 2 * A[0])
    np.testing.assert_allclose(out["out"], np.sin(X) @ A[0].T, rtol=1e-5, atol=1e-6)


def test_captured_values():
    def f(c, x):
        g = st.custom_vmap(lambda x: x * c)
        g.def_vmap(lambda n, batched, x: (x * c * 10, True))
        return g(x)

    for run in (
        st.vmap(f, (None, 0)),
        st.jit(st.vmap(f, (None, 0))),
        st.vmap(st.jit(f), (None, 0)),
    ):
        np.testing.assert_allclose(run(2.0, X), 20 * X, rtol=1e-6)
    with pytest.raises(
        TypeError,
        match=r"takes a value of type float32\[\] from outside that is mapped \(one of 4.*pass it",
    ):
        st.vmap(f)(X[:, 0], X)


# Derivatives


def test_forward_derivatives_under_vmap_are_those_of_the_rule():
    x, dx = X, np.ones_like(X)
    want = 100 * np.sin(x), 100 * np.cos(x)
    of = lambda x, dx: st.jvp(marked, (x,), (dx,))
    for run in (
        lambda x, dx: st.jvp(st.vmap(marked), (x,), (dx,)),
        st.vmap(of),
        st.jit(st.vmap(of)),
        lambda x, dx: st.vmap(of, (0, None))(x, dx[0]),
    ):
        for a, b in zip(run(x, dx), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
    out, dout = st.vmap(of, (None, 0))(x[0], 2 * dx)
    np.testing.assert_allclose(out, 100 * np.sin([x[0]] * 4), rtol=1e-5)
    np.testing.assert_allclose(dout, 200 * np.cos([x[0]] * 4), rtol=1e-5)
    slope = lambda x: st.jvp(marked, (x,), (snp.ones_like(x),))[1]
    for run in (st.vmap(lambda x: st.jvp(slope, (x,), (snp.ones_like(x),))[1]),
                lambda x: st.jvp(st.vmap(slope), (x,), (snp.ones_like(x),))[1]):  # fmt: skip
        np.testing.assert_allclose(run(x), -100 * np.sin(x), rtol=1e-5)


def test_reverse_derivatives():
    """Of a vmap: of the rule. Of the function: of the function, which no rule is asked for."""
    score = lambda x: marked(x).sum()
    slopes = {
        100: [
            st.grad(lambda x: st.vmap(score)(x).sum()),
            st.jit(st.grad(lambda x: st.vmap(st.jit(score))(x).sum())),
        ],
        1: [st.grad(score), st.vmap(st.grad(score)), st.jit(st.vmap(st.grad(score)))],
    }
    for scale, runs in slopes.items():
        for run in runs:
            np.testing.assert_allclose(run(X), scale * np.cos(X), rtol=1e-5)
    assert float(st.grad(st.grad(marked))(0.5)) == pytest.approx(-np.sin(0.5))
    hessian = st.vmap(st.hessian(marked))(X[:, 0])
    np.testing.assert_allclose(hessian, -np.sin(X[:, 0]), rtol=1e-5)


def test_derivatives_of_integers_and_constants():
    f = lambda n, x: counted(n, x)["x"] * 2.0
    n = np.arange(4)
    np.testing.assert_allclose(
        st.vmap(lambda n, x: st.jvp(lambda x: f(n, x), (x,), (x,))[1])(n, X), 4 * X * X, rtol=1e-6
    )
    out = st.vmap(lambda n, x: st.jvp(lambda x: counted(n, x)["n"], (x,), (x,))[1])(n, X)
    assert out.dtype == st.grad(lambda n: 1.0, allow_int=True)(3).dtype


def test_transposed():
    linear = st.custom_vmap(lambda x: x * 3.0)
    linear.def_vmap(lambda n, batched, x: (x * 3.0, batched[0]))
    back = st.linear_transpose(linear, X[0])
    np.testing.assert_allclose(back(X[0])[0], 3 * X[0])
    np.testing.assert_allclose(st.vmap(lambda ct: back(ct)[0])(X), 3 * X)


# One at a time


def loops(program):
    for e in program.equations:
        if e.primitive.name == "scan":
            yield e.primitive
        for _, value in e.primitive.parameters():
            if isinstance(value, Program):
                yield from loops(value)


def test_sequential_is_a_loop():
    mapped = st.vmap(looped, (0, None))
    for run in (mapped, st.jit(mapped), st.vmap(st.jit(looped), (0, None))):
        out, total = run(A, X[0])
        np.testing.assert_allclose(out, A @ np.sin(X[0]), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(total, [X[0].sum()] * 4, rtol=1e-6)
    (loop,) = loops(st.make_graph(mapped)(A, X[0]))
    assert loop.length == 4
    both = st.vmap(st.vmap(looped, (None, 0)), (0, None))
    np.testing.assert_allclose(
        both(A, X)[0], np.einsum("kij,lj->kli", A, np.sin(X)), rtol=1e-5, atol=1e-6
    )
    assert [loop.length for loop in loops(st.make_graph(both)(A, X))] == [4, 4]
    slope = st.grad(lambda a: st.vmap(looped, (0, None))(a, X[0])[0].sum())(A)
    np.testing.assert_allclose(slope, np.broadcast_to(np.sin(X[0]), A.shape), rtol=1e-5)


# Refusals


def with_rule(rule):
    f = st.custom_vmap(lambda x: {"a": snp.sum(x), "b": x})
    f.def_vmap(rule)
    return lambda: st.vmap(f)(X)


YES = {"a": True, "b": True}
GOOD = lambda x: {"a": x[:, 0], "b": x}


@pytest.mark.parametrize(
    "rule, message",
    [
        (lambda n, m, x: GOOD(x), "must return a pair"),
        (lambda n, m, x: (GOOD(x), True), r"must return, second, a boolean.*they part at output"),
        (lambda n, m, x: (GOOD(x), {"a": True, "b": [True]}), r"they part at output\['b'\]"),
        (lambda n, m, x: (GOOD(x), {"a": 0, "b": True}), "second, booleans; got 0"),
        (lambda n, m, x: (x, YES), "must return an output like the function's output"),
        (
            lambda n, m, x: ({"a": x[0, 0], "b": x}, YES),
            r"an output of type float32\[4\] at output\['a'\], got float32\[\]",
        ),
        (
            lambda n, m, x: (GOOD(x), {"a": True, "b": False}),
            r"an output of type float32\[3\] at output\['b'\], got float32\[4,3\]",
        ),
        (
            lambda n, m, x: ({"a": x[:, 0] > 0, "b": x}, YES),
            r"an output of type float32\[4\] at output\['a'\], got bool\[4\]",
        ),
    ],
    ids=range(8),
)
def test_rules_that_do_not_fit(rule, message):
    with pytest.raises(TypeError, match=f"(?s)custom_vmap: the rule of function.*{message}"):
        with_rule(rule)()


def test_mistakes_in_calls():
    f = st.custom_vmap(lambda x: x)
    with pytest.raises(
        AttributeError, match="custom_vmap: function has no rule; give one with def"
    ):
        f(1.0)
    with pytest.raises(TypeError, match="custom_vmap: expected a function, got int"):
        st.custom_vmap(3)
    with pytest.raises(TypeError, match="sequential_vmap: expected a function, got int"):
        sequential_vmap(3)
    assert f.def_vmap(rule := lambda *_: None) is rule


def test_the_rule_may_call_its_own_function():
    f = st.custom_vmap(lambda x: 3.0 * x)
    f.def_vmap(lambda size, mapped, x: (f(x), mapped[0]))
    x = snp.ones(2)
    total = lambda x: st.vmap(f)(x).sum()
    for found in (st.vmap(f)(x), st.jit(st.vmap(f))(x), st.vmap(st.jit(f))(x)):
        np.testing.assert_array_equal(found, [3.0, 3.0])
    for grad in (st.grad(total), st.vmap(st.grad(f)), st.jit(st.vmap(st.grad(f)))):
        np.testing.assert_array_equal(grad(x), [3.0, 3.0])
    np.testing.assert_array_equal(st.vmap(st.vmap(f))(x[None]), [[3.0, 3.0]])
