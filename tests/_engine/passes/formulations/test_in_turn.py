"""Loops over members, and what of a member's program comes behind them."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.kernels import WITHOUT
from stretto._engine.passes.formulations.in_turn import by_kernels, halves, in_turns

W, M, X = snp.ones((32, 32)), snp.full((32, 32), 0.5), snp.ones((8, 32))


def gradient(w, x):
    return x.T @ snp.tanh(x @ w)


def adam(w, m, v, x):
    g = gradient(w, x)
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 0.1 * m / (snp.sqrt(v) + 1e-8), m, v


def momentum(w, m, x):
    m = 0.9 * m + gradient(w, x)
    return w - 0.1 * m, m


def parts(step, *args, over=None):
    program = st.make_graph(step)(*args)
    found = halves(program, over or (True,) * len(program.inputs))
    if found is not None:
        check(found.loop)
        check(found.behind)
        given = evaluate(found.loop, args)
        for got, want in zip(
            evaluate(found.behind, [*args, *given]), evaluate(program, args), strict=True
        ):
            np.testing.assert_array_equal(got, want)
    return found


def names(program):
    return [e.primitive.name for e in program.equations]


@pytest.mark.parametrize(("step", "args"), [(adam, (W, M, M, X)), (momentum, (W, M, X))])
def test_updates_come_behind_the_loop_which_gives_the_gradient(step, args):
    found = parts(step, *args)
    assert [t.shape for t in found.loop.out_types] == [W.shape]
    assert "dot_general" in names(found.loop) and "dot_general" not in names(found.behind)
    assert found.loop.outputs[0] is found.loop.equations[-1].outputs[0]
    assert names(found.loop)[-1] == "dot_general"


def clipped(w, m, v, x):
    """The gradient's factor needs all of it, so is computed in the loop; the product is behind."""
    g = gradient(w, x)
    g = g * snp.minimum(1.0, 1 / snp.sqrt((g * g).sum()))
    return w - g / snp.sqrt(0.9 * v + g * g), 0.9 * m + g, 0.9 * v + g * g


def decayed(w, m, v, x):
    new, m, v = adam(w, m, v, x)
    return new - 0.01 * w, m, v


def called(w, m, v, x):
    return st.jit(st.jit(adam))(w, m, v, x)


@pytest.mark.parametrize("step", [clipped, decayed, called])
def test_what_is_computed_first_stays_in_the_loop(step):
    found = parts(step, W, M, M, X)
    assert "dot_general" not in names(found.behind)
    assert sum(t.size for t in found.loop.out_types) <= W.size + 1


def test_hyperparameters_of_each_member_are_read_behind():
    def step(rate, w, m, x):
        m = rate * m + gradient(w, x)
        return w - rate * m, m

    found = parts(step, snp.float32(0.5), W, M, X)
    assert [t.shape for t in found.loop.out_types] == [W.shape]
    assert "dot_general" not in names(found.behind)


def test_inputs_given_back_need_no_loop():
    found = parts(lambda w, m, v, x: (*adam(w, m, v, x), x, 2.0), W, M, M, X)
    assert len(found.loop.outputs) == 1
    assert found.behind.outputs[3] is found.behind.inputs[3]


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda w, x: snp.tanh(x @ w), (W, X)),
        (lambda w, b, x: x @ w + b, (W, snp.ones(32), X)),  # belongs to the product
        (lambda w, x: w - 0.1 * gradient(w, x), (W, X)),  # as much is given either way
        (lambda w, x: x + snp.tanh(x @ w), (W, X)),
        (lambda w, m: (w @ m).sum(), (W, M)),
    ],
)
def test_where_nothing_is_saved_all_belongs_into_the_loop(f, args):
    assert parts(f, *args) is None


def test_what_is_shared_is_no_reason_to_split():
    read = lambda w, m, x: gradient(w, x) + m
    assert parts(read, W, M, X, over=(True, True, False)) is not None
    assert parts(read, W, M, X, over=(True, False, False)) is None


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_so_many_members_in_each_turn_are_all_of_them(count):
    w, x = snp.asarray(np.random.default_rng(0).normal(size=(6, 4, 3))), snp.ones((3, 2))
    turn = w[:count] if count > 1 else w[0]
    body = st.make_graph(lambda w, x, unread: (w @ x, 2 * w))(turn, x, x)
    types = [w.type, x.type, x.type]
    program = in_turns(body, 6, count, (True, False, False), types)
    product, twice = evaluate(program, [w, x, x])
    np.testing.assert_allclose(product, w @ x, rtol=1e-6)
    np.testing.assert_array_equal(twice, 2 * w)
    assert program.name == f"vmap_{body.name}"
    behind = in_turns(body, 6, count, (True, False, False), types, lambda *xs: [xs[-1], xs[0]])
    twice, first = evaluate(behind, [w, x, x])
    np.testing.assert_array_equal(twice, 2 * w)
    np.testing.assert_array_equal(first, w)


@pytest.mark.parametrize("plan", ["auto", "in turn", "written out", "batched"])
@pytest.mark.parametrize("step", [adam, clipped, decayed, called])
def test_a_step_of_all_members_is_that_of_each(plan, step):
    random = np.random.default_rng(1)
    state = [snp.asarray(abs(random.normal(size=(3, 32, 32))), dtype=snp.float32) for _ in range(3)]
    x = snp.asarray(random.normal(size=(8, 32)), dtype=snp.float32)
    want = [step(*[s[i] for s in state], x) for i in range(3)]
    with st.config(plan=plan):
        run = st.jit(st.vmap(step, (0, 0, 0, None)), donate_argnums=(0, 1, 2))
        text = run.lower(*state, x).as_text()
        got = run(*state, x)
    assert ("stablehlo.while" in text) == (plan == "in turn")
    for i, member in enumerate(want):
        for one, all_members in zip(member, got, strict=True):
            np.testing.assert_allclose(all_members[i], one, rtol=2e-4, atol=1e-5)


@pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")
def test_members_in_turn_need_little_memory_for_updates():
    w = snp.ones((8, 512, 512))
    x = snp.ones((4, 512))
    with st.config(plan="in turn"):
        run = st.jit(st.vmap(adam, (0, 0, 0, None)), donate_argnums=(0, 1, 2))
        used = run.lower(w, w, w, x).compile().memory_analysis().temp_size_in_bytes
    assert used < 2 * w.nbytes  # the gradients, and what is XLA's


@pytest.mark.skipif(bool(WITHOUT), reason="there are no kernels here")
@pytest.mark.parametrize(
    ("step", "kept"),
    [
        (lambda x: (x, x), True),
        (lambda x: (x.astype(float), x.size), True),
        (lambda x: (x, x.ravel()[:53] > 0), True),  # a twentieth of the bytes may be of others
        (lambda x: (x, x.ravel()[:54] > 0), False),
        (lambda x: x.astype("bfloat16"), False),
    ],
)
def test_updates_stay_in_the_loop_where_kernels_write_them(step, kept):
    program = st.make_graph(step)(snp.ones((8, 32)))
    assert by_kernels(program) is kept
    with st.config(kernels=False):
        assert not by_kernels(program)
