"""Named axes under every transformation: who is bound, and that each example sees all."""

import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.autodiff.vmap import AxisSize
from stretto._engine.core.config import settings
from stretto._engine.core.program import Program
from stretto._engine.ops.collective.functions import Axes, groups_of
from stretto.laws import FULLY

RNG = np.random.default_rng(2)
X, W = RNG.normal(size=(4, 3)).astype(np.float32), RNG.normal(size=3).astype(np.float32)


def along(f, in_axes=0):
    return st.vmap(f, in_axes, axis_name="i")


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


# Which axis


def test_the_names_that_are_bound():
    seen = []

    def f(x):
        seen.append((dict(settings.axes), Axes(("j", "i"), "f").size))
        return x

    st.vmap(st.vmap(f, axis_name="j"), axis_name="i")(X)
    assert seen == [({"i": 4, "j": 3}, 12)]
    assert settings.axes == {}
    with pytest.raises(NameError):
        Axes("i", "f")


def test_any_hashable_value_is_a_name():
    for name in (0, "i", ("a", "b"), frozenset((1,)), int):
        got = st.vmap(lambda x, name=name: lax.psum(x, name), axis_name=name)(X)
        close(got, [X.sum(0)] * 4)
    # A tuple that is a name, before a tuple of names.
    both = st.vmap(st.vmap(lambda x: lax.psum(x, ("a", "b")), axis_name=("a", "b")), axis_name="a")
    close(both(X), np.repeat(X.sum(1)[:, None], 3, 1))


def test_each_name_its_own_axis():
    f = lambda x: (lax.psum(x, "i"), lax.psum(x, "j"), lax.axis_index("i") - lax.axis_index("j"))
    both = st.vmap(st.vmap(f, axis_name="j"), axis_name="i")
    for run in (both, st.jit(both)):
        rows, columns, places = run(X)
        close(rows, np.stack([X.sum(0)] * 4))
        close(columns, np.stack([X.sum(1)] * 3, 1))
        np.testing.assert_array_equal(places, np.subtract.outer(np.arange(4), np.arange(3)))


def test_of_equal_names_the_inner_counts():
    inner = st.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")
    both = along(lambda x: inner(x) + lax.psum(x, "i"))
    want = X - X.mean(1, keepdims=True) + X.sum(0)
    for run in (both, st.jit(both), along(st.jit(lambda x: inner(x) + lax.psum(x, "i")))):
        close(run(X), want)


def test_a_name_ends_with_its_vmap():
    with pytest.raises(NameError, match="bound here are: none"):
        along(lambda x: x)(X), lax.axis_size("i")

    def fails(x):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        along(fails)(X)
    assert settings.axes == {}


def test_names_are_of_the_thread():
    errors = []

    def other():
        try:
            lax.axis_size("i")
        except NameError as error:
            errors.append(error)

    def f(x):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return x

    along(f)(X)
    assert len(errors) == 1


def test_jit_traces_once_for_each_axis():
    traced = []

    @st.jit
    def share(x):
        traced.append(1)
        return x / lax.psum(1, "i")

    close(along(share)(X), X / 4)
    close(along(share)(X.T[:2]), X.T[:2] / 2)
    close(along(share)(X), X / 4)
    with pytest.raises(NameError, match="unbound axis name 'i'"):
        share(X[0])
    traced.clear()
    along(share)(X), st.jit(along(share))(X)
    assert not traced


def test_sizes_of_types_are_plain():
    """The named size stays out of shapes, which outlive the name."""

    def f(p, x):
        def body(c, y):
            return c + lax.psum(x, "i") * y, lax.cond(p, snp.sin, snp.cos, c)

        c, ys = lax.scan(body, W, W)
        n = lax.while_loop(lambda n: n < x[0], lambda n: n + 1.0, 0.0)
        return c + lax.switch(lax.axis_index("i"), [snp.sin, snp.cos], x) + n, ys

    program = st.make_graph(along(f))(X[:, 0] > 0, X)

    def types(program):
        yield from (*program.in_types, *program.out_types)
        for e in program.equations:
            yield from (v.type for v in e.outputs)
            for _, value in e.primitive.parameters():
                for inner in value if isinstance(value, tuple) else (value,):
                    if isinstance(inner, Program):
                        yield from types(inner)
                    assert not isinstance(inner, AxisSize), e.primitive

    all_types = list(types(program))
    assert len(all_types) > 40
    assert all(type(n) is int for t in all_types for n in t.shape)


# Under other transformations


def normalized(x, w):
    """Needs all examples: its own part of a softmax over them, weighted."""
    e = snp.exp(x * w)
    return snp.sum(e / lax.psum(e, "i")) + lax.pmean(snp.sin(x), "i")[0]


def reference(x, w):
    e = snp.exp(x * w)
    return snp.sum(e / snp.sum(e, 0), 1) + snp.mean(snp.sin(x), 0)[0]


ORDERS = {
    "vmap": along(normalized, (0, None)),
    "jit(vmap)": st.jit(along(normalized, (0, None))),
    "vmap(jit)": along(st.jit(normalized), (0, None)),
    "jit(vmap(jit))": st.jit(along(st.jit(normalized), (0, None))),
    "vmap(checkpoint)": along(st.checkpoint(normalized), (0, None)),
}


@pytest.mark.parametrize("order", ORDERS)
def test_values_and_derivatives_outside(order):
    run = ORDERS[order]
    close(run(X, W), reference(X, W))
    for derive in (
        lambda f: st.grad(lambda x, w: (f(x, w) ** 2).sum(), (0, 1)),
        lambda f: st.jacfwd(f, 1),
        lambda f: lambda x, w: st.hessian(lambda w: (f(x, w) ** 2).sum())(w),
        lambda f: lambda x, w: st.jvp(f, (x, w), (x, w)),
        lambda f: st.jit(st.jacrev(f)),
    ):
        for a, b in zip(
            st.tree.leaves(derive(run)(X, W)), st.tree.leaves(derive(reference)(X, W)), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_derivatives_within_add_up_over_examples():
    """grad within is by the example's own argument of the sum of all results, as psum's is psum."""
    one = along(st.grad(normalized, (0, 1)), (0, None))
    by_x, by_w = st.grad(lambda x, w: reference(x, w).sum(), (0, 1))(X, W)
    for run in (one, st.jit(one), along(st.jit(st.grad(normalized, (0, 1))), (0, None))):
        got_x, got_w = run(X, W)
        close(got_x, by_x)
        close(got_w.sum(0), by_w)
    twice = st.jit(along(lambda x, w: st.grad(lambda x: (st.grad(normalized)(x, w) ** 2).sum())(x),
                         (0, None)))  # fmt: skip
    outside = st.grad(lambda x: (st.grad(lambda x: reference(x, W).sum())(x) ** 2).sum())
    np.testing.assert_allclose(twice(X, W), outside(X), rtol=1e-4, atol=1e-4)


def test_mean_gradient_of_a_batch():
    """The step of data-parallel training, written for one example."""
    loss = lambda w, x: snp.tanh(w @ x) ** 2
    step = along(lambda w, x: lax.pmean(st.grad(loss)(w, x), "i"), (None, 0))
    want = st.grad(lambda w: st.vmap(loss, (None, 0))(w, X).mean())(W)
    for run in (step, st.jit(step)):
        close(run(W, X), [want] * 4)


def steps(x):
    """A scan whose state sees the other examples at each step, and a jitted call in it."""

    @st.jit
    def share(c, y):
        return c - lax.pmean(c, "i") * y

    def body(c, y):
        c = snp.sin(share(c, y)) + lax.all_gather(c, "i")[0]
        return c, lax.pmax(c, "i")

    return lax.scan(body, x, W)


def steps_of_all(x):
    def body(c, y):
        c = snp.sin(c - snp.mean(c, 0) * y) + c[0]
        return c, snp.max(c, 0)

    c, ys = lax.scan(body, x, W)
    return c, snp.broadcast_to(ys, (4, *ys.shape))


def test_scan():
    score = lambda f: lambda x: sum((o**2).sum() for o in f(x))
    want = steps_of_all(X)
    for run in (along(steps), st.jit(along(steps))):
        for got, w in zip(run(X), want, strict=True):
            close(got, w)
    slope = st.grad(score(steps_of_all))(X)
    # Fully, since the derivative looks for the maximum, which must be rounded alike everywhere.
    for run in (
        st.grad(score(along(steps))),
        st.jit(st.grad(score(along(steps))), compiler_options=FULLY),
        along(st.grad(score(steps))),
        st.jit(along(st.grad(score(steps))), compiler_options=FULLY),
    ):
        np.testing.assert_allclose(run(X), slope, rtol=1e-4, atol=1e-4)
    stays = st.make_graph(along(lambda x: lax.scan(lambda c, y: (c + y, c), lax.psum(x, "i"), W)))
    (loop,) = [e for e in stays(X).equations if e.primitive.name == "scan"]
    assert [v.type.shape for v in loop.outputs] == [(3,), (3, 3)]


def test_fori_loop():
    f = lambda x: lax.fori_loop(0, 3, lambda i, c: c / lax.psum(snp.abs(c), "i") * (i + 1), x)
    want = X
    for i in range(3):
        want = want / np.abs(want).sum(0) * (i + 1)
    close(along(f)(X), want)
    close(st.jit(along(f))(X), want)


def test_while_until_all_agree():
    """The condition asks all: it is not mapped, and the loop stays as it is."""
    f = lambda x: lax.while_loop(lambda c: lax.pmax(c, "i") < 10, lambda c: c * 2, x)
    x = np.array([1.0, 3.0, 0.5], np.float32)
    for run in (along(f), st.jit(along(f))):
        np.testing.assert_array_equal(run(x), [4, 12, 2])
    program = st.make_graph(along(f))(x)
    (loop,) = [e.primitive for e in program.equations if e.primitive.name == "while"]
    assert loop.cond.out_types[0].shape == ()
    assert "select" not in [e.primitive.name for e in loop.body.equations]


def test_while_of_their_own():
    """A step is taken by all examples; one that has stopped keeps its carry, and is still seen."""
    f = lambda x: lax.while_loop(lambda c: c < 10, lambda c: c + lax.pmax(c, "i"), x)
    x = np.array([1.0, 6.0, 9.0], np.float32)
    want = x.copy()
    while (want < 10).any():
        want = np.where(want < 10, want + want.max(), want)
    for run in (along(f), st.jit(along(f))):
        np.testing.assert_array_equal(run(x), want)


IN_PARTS = {
    "map": lambda f: lambda x: lax.map(f, x),
    "map in batches": lambda f: lambda x: lax.map(f, x, batch_size=2),
    "vmap in chunks": lambda f: st.vmap(f, chunk_size=2),
    "vmap": lambda f: st.vmap(f, axis_name="j"),
}


@pytest.mark.parametrize("way", IN_PARTS)
def test_maps_within(way):
    f = IN_PARTS[way](lambda y: y * lax.psum(y, "i"))
    for run in (along(f), st.jit(along(f))):
        close(run(X), X * X.sum(0))
    slope = along(st.grad(lambda x: f(x).sum()))
    for run in (slope, st.jit(slope)):
        close(run(X), np.stack([2 * X.sum(0)] * 4))


def test_transposed_within():
    back = lambda x: st.linear_transpose(lambda x: lax.psum(x, "i"), x)(x)[0]
    close(along(back)(X), [X.sum(0)] * 4)


# Branches


def branched(p, x):
    return lax.cond(p, lambda x: lax.psum(x * x, "i"), snp.sin, x)


def branched_of_all(p, x):
    return snp.where(p[:, None], snp.sum(x * x, 0), snp.sin(x))


P = np.array([True, False, False, True])


def test_a_branch_that_not_all_take_sees_all():
    for run in (along(branched), st.jit(along(branched)), along(st.jit(branched))):
        close(run(P, X), branched_of_all(P, X))
    score = lambda f: lambda x: (snp.arange(4.0)[:, None] * f(P, x)).sum()
    slope = st.grad(score(branched_of_all))
    close(st.grad(score(along(branched)))(X), slope(X))
    close(st.jit(st.grad(score(along(branched))))(X), slope(X))
    close(st.hessian(score(along(branched)))(X), st.hessian(score(branched_of_all))(X))
    # Derivatives within choose by their own example, as those of jax do.
    x = np.arange(4, dtype=np.float32)
    linear = lambda x, p: lax.cond(p, lambda x: lax.psum(x, "i"), lambda x: x, x)
    np.testing.assert_array_equal(along(st.grad(linear))(x, x > 1), [1, 1, 4, 4])


def test_a_branch_that_all_take_stays_a_branch():
    one = along(branched, (None, 0))
    for p in (True, False):
        close(one(p, X), branched_of_all(np.full(4, p), X))
        close(st.jit(one)(p, X), branched_of_all(np.full(4, p), X))
    (axis,) = [
        e.primitive for e in st.make_graph(one)(True, X).equations if e.primitive.name == "cond"
    ]
    assert axis.size is None
    alone = st.vmap(branched, None, axis_name="i", axis_size=3)
    close(alone(True, W), [3 * W * W] * 3)


def test_a_branch_mapped_by_another_axis_sees_the_named_one():
    """The index differs along both axes, or along the inner one alone."""
    both = along(st.vmap(branched))
    p = RNG.random((4, 5)) < 0.5
    x = RNG.normal(size=(4, 5, 3)).astype(np.float32)
    of_all = lambda p, x: snp.where(p[:, :, None], snp.sum(x * x, 0), snp.sin(x))
    for run in (both, st.jit(both)):
        close(run(p, x), of_all(p, x))
    score = lambda f, p: lambda x: (snp.sin(f(p, x)) * snp.arange(5.0)[:, None]).sum()
    close(st.grad(score(both, p))(x), st.grad(score(of_all, p))(x))
    shared = along(st.vmap(branched), (None, 0))
    close(shared(p[0], x), of_all(np.stack([p[0]] * 4), x))
    within = along(lambda p, x: st.grad(score(st.vmap(branched), p))(x))
    close(within(p, x), st.grad(score(of_all, p))(x))


# Functions with rules


@st.custom_jvp
def centered(x):
    return x - lax.pmean(x, "i")


@centered.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return centered(x), 3.0 * (dx - lax.pmean(dx, "i"))


@st.custom_vjp
def halved(x):
    return x - lax.pmean(x, "i")


halved.defvjp(lambda x: (halved(x), None), lambda _, ct: (3.0 * (ct - lax.pmean(ct, "i")),))


@pytest.mark.parametrize("f", [centered, halved], ids=["custom_jvp", "custom_vjp"])
def test_rules_know_the_name_whenever_they_run(f):
    value = lambda x: (f(x) ** 2).sum()
    want = 6 * (X - X.mean(0))
    for run in (
        st.grad(lambda x: st.vmap(value, axis_name="i")(x).sum()),
        st.grad(lambda x: st.jit(st.vmap(value, axis_name="i"))(x).sum()),
        st.jit(st.grad(lambda x: st.jit(st.vmap(st.jit(value), axis_name="i"))(x).sum())),
        along(st.grad(value)),
        st.jit(along(st.jit(st.grad(value)))),
    ):
        close(run(X), want)


def test_groups():
    axes = Axes((), "f")
    assert groups_of(axes, None) is None
    groups = groups_of(axes, [[0]])
    assert groups.equal and groups.size == 1
    with pytest.raises(ValueError, match=r"f: axis_index_groups must have each of the 1 indices"):
        groups_of(axes, [[0], [1]])
