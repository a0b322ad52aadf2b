"""What vjp and linearize give: functions that are trees of their residuals."""

import copy

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import float0

X = snp.array([0.5, -1.0, 2.0])
CT = snp.array([1.0, 2.0, 3.0])
SLOPES = CT * snp.cos(X)


def f(x):
    return snp.sin(x)


def same(got, want, rtol=1e-6):
    got, want = st.tree.leaves(got), st.tree.leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=rtol)


@st.custom_vjp
def with_rules(x):
    return x * 2


with_rules.defvjp(lambda x: (x * 2, x), lambda x, ct: (10 * ct * x,))


def looped(x):
    return st.lax.scan(lambda c, a: (c * a, c + a), x[0], x)[1]


FUNCTIONS = {
    "sine": f,
    "product": lambda x: x * x[0] + 1,
    "constant": lambda x: 0 * x + 1,
    "not at all": lambda x: snp.ones(3),
    "checkpoint": st.checkpoint(lambda x: snp.sin(snp.cos(x))),
    "own rules": with_rules,
    "a loop": looped,
    "a branch": lambda x: st.lax.cond(x[0] > 0, snp.sin, snp.cos, x),
    "jitted": st.jit(lambda x: snp.exp(x) * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_out_of_jit(name):
    g = FUNCTIONS[name]
    want, pull = st.vjp(g, X)
    out, pulled = st.jit(lambda x: st.vjp(g, x))(X)
    same(out, want)
    same(pulled(CT), pull(CT))
    same(st.jit(lambda p, ct: p(ct))(pulled, CT), pull(CT))
    same(st.jit(pulled)(CT), pull(CT))
    if name != "own rules":
        want, push = st.linearize(g, X)
        out, pushed = st.jit(lambda x: st.linearize(g, x))(X)
        same(out, want)
        same(pushed(CT), push(CT))
        same(st.jit(lambda p, t: p(t))(pushed, CT), push(CT))
        same(push(CT), st.jvp(g, (X,), (CT,))[1])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_through_vmap(name):
    g = FUNCTIONS[name]
    xs, cts = snp.stack([X, 2 * X, X + 1]), snp.stack([CT, CT, 2 * CT])
    _, pulls = st.vmap(lambda x: st.vjp(g, x))(xs)
    (got,) = st.vmap(lambda pull, ct: pull(ct))(pulls, cts)
    same(got, snp.stack([st.vjp(g, x)[1](ct)[0] for x, ct in zip(xs, cts, strict=True)]), 1e-5)


def test_a_tree_of_residuals():
    _, pull = st.vjp(f, X)
    leaves, structure = st.tree.flatten(pull)
    same(leaves, [snp.cos(X)])
    same(st.tree.unflatten(structure, leaves)(CT), [SLOPES])
    same(st.tree.map(lambda r: 2 * r, pull)(CT), [2 * SLOPES])
    same(st.tree.map(np.asarray, pull)(CT), [SLOPES])
    same(copy.deepcopy(pull)(CT), [SLOPES])
    assert repr(pull) == "<vjp of f at float32[3]>"
    assert repr(st.linearize(f, X)[1]) == "<jvp of f at float32[3]>"


def test_carried_by_a_loop():
    _, pull = st.vjp(f, X)

    def step(carry, _):
        pull, x = carry
        (x,) = pull(x)
        return (pull, x), None

    (again, got), _ = st.lax.scan(step, (pull, CT), None, length=2)
    same(got, SLOPES * snp.cos(X))
    same(again(CT), [SLOPES])
    _, pulls = st.lax.scan(lambda c, x: (c, st.vjp(f, x)[1]), 0.0, X)
    same(st.vmap(lambda pull, ct: pull(ct))(pulls, CT), [SLOPES])
    got = st.lax.fori_loop(0, 2, lambda i, c: (c[0], c[0](c[1])[0]), (pull, CT))[1]
    same(got, SLOPES * snp.cos(X))


def test_made_in_a_branch():
    """Programs that do the same are equal: the two results have one structure."""
    pull = st.lax.cond(
        X[0] > 0, lambda x: st.vjp(snp.sin, x)[1], lambda x: st.vjp(snp.sin, x + 1)[1], X
    )
    same(pull(CT), [SLOPES])


def test_one_trace_for_equal_ones():
    traced = []

    @st.jit
    def apply(pull, ct):
        traced.append(pull)
        return pull(ct)

    for scale in (1, 2, 3):
        same(apply(st.vjp(f, scale * X)[1], CT), [CT * snp.cos(scale * X)], 1e-5)
    assert len(traced) == 1
    apply(st.vjp(lambda x: x * snp.sin(x), X)[1], CT)
    assert len(traced) == 2


def test_rules_of_ones_own_are_told_apart():
    """Programs that differ in a rule alone look the same."""

    def ruled(factor):
        @st.custom_vjp
        def g(x):
            return 1 * x

        g.defvjp(lambda x: (1 * x, None), lambda _, ct: (factor * ct,))
        return g

    apply = st.jit(lambda pull, ct: pull(ct))
    for factor in (2, 3):
        same(apply(st.vjp(ruled(factor), X)[1], CT), [factor * CT])


def test_trees_integers_and_aux():
    def g(tree, n):
        return {"y": tree["a"] * tree["b"], "n": n + 1}, {"kept": tree["a"]}

    tree = {"a": X, "b": snp.float32(3)}
    make = st.jit(lambda tree, n: st.vjp(g, tree, n, has_aux=True))
    out, pull, aux = make(tree, 4)
    same(aux, {"kept": X})
    ct = {"y": CT, "n": np.zeros((), st.dtypes.float0)}
    got, of_n = pull(ct)
    same(got, {"a": 3 * CT, "b": (CT * X).sum()})
    assert of_n.dtype == st.dtypes.float0
    assert int(out["n"]) == 5


def test_derivatives_of_what_was_handed_on():
    def g(x):
        pull = st.jit(lambda x: st.vjp(f, x)[1])(x)
        return (pull(CT)[0] ** 2).sum()

    same(st.grad(g)(X), -2 * CT**2 * snp.cos(X) * snp.sin(X))
    same(st.jit(st.grad(g))(X), st.grad(g)(X))


def test_func_vjp():
    out, pull = st.jit(lambda x: st.func.vjp(f, x))(X)
    same(out, f(X))
    same(pull(CT), st.func.vjp(f, X)[1](CT))


def test_what_is_refused():
    pulls = st.vmap(lambda x: st.vjp(f, x)[1])(X)
    with pytest.raises(TypeError, match=r"vjp: .* of f has a residual float32\[3\].*inside vmap"):
        pulls(snp.float32(1))
    pushes = st.vmap(lambda x: st.linearize(f, x)[1])(X)
    with pytest.raises(TypeError, match=r"linearize: .* residual float32\[3\].*inside vmap"):
        pushes(snp.float32(1))
    _, pull = st.vjp(f, X)
    with pytest.raises(TypeError, match="residual must be an array or a number"):
        st.tree.map(lambda _: "no array", pull)(CT)


@pytest.mark.parametrize("transformation", [st.linearize, st.vjp])
@pytest.mark.parametrize("start", [lambda: snp.asarray(0.5), lambda: snp.zeros(()), lambda: 0.25])
@pytest.mark.parametrize("jitted", [False, True])
def test_loops_carry_maps_made_at_constants(transformation, start, jitted):
    """A map made at a constant is of the same form as one made at a traced value."""
    scale = snp.asarray(2.0)

    def run(x):
        made = lambda x: transformation(lambda x: snp.sin(x) * x * scale, x)[1]

        def body(_, carry):
            x, linear = carry
            x = x + 0.1 * st.tree.leaves(linear(snp.ones(())))[0] + 0.1
            return x, made(x)

        x = snp.asarray(x, "float32")
        return st.lax.fori_loop(0, 3, body, (x, made(x)))[0]

    x = float(start())
    for _ in range(3):
        x += 0.1 * 2 * (np.sin(x) + x * np.cos(x)) + 0.1
    found = st.jit(lambda: run(start()))() if jitted else run(start())
    assert float(found) == pytest.approx(x, rel=1e-5)


@pytest.mark.parametrize("count", [8, 11])
def test_eight_types_of_arguments_are_printed(count):
    _, slope = st.vjp(lambda *xs: sum(xs), *[snp.float32(k) for k in range(count)])
    text = repr(slope)
    assert text.count("float32[]") == 8
    assert ("and 3 more" in text) is (count == 11) and ("more" in text) is (count == 11)


@pytest.mark.parametrize("zeros", [np.zeros((), float0), np.int32(0)], ids=["float0", "integers"])
@pytest.mark.parametrize("first", [False, True])
def test_cotangents_of_integers_stand_in_their_places(zeros, first):
    """They are zeros, of float0 or of the integers' own dtype; those of floats come beside them."""
    order = (lambda a, b: (a, b)) if first else (lambda a, b: (b, a))
    _, pull = st.vjp(lambda x, n: order(n + 1, x * n), 3.0, 2)
    assert float(pull(order(zeros, 5.0))[0]) == 10
