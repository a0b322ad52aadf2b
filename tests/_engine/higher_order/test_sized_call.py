"""Calls of programs whose sizes vary: each rule, with sizes that examples share or have alone."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax, nn
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.sized_call import SizedCall, inline_sized_calls
from stretto._engine.passes.prepare import prepare
from stretto.laws import law

N = size_variable("n")
(V,) = N.variables()
F32 = np.dtype(np.float32)
RNG = np.random.default_rng(0)
W = RNG.normal(size=(4, 4)).astype(F32)
LENGTHS = np.array([3, 5, 1], np.int32)
X = RNG.normal(size=(3, 5, 4)).astype(F32)


def attend(w, x):
    q = x @ w
    return (nn.functional.softmax(q @ q.T / 2, -1) @ x).mean(0), snp.cumsum(x, 0)


PROGRAM = record(
    lambda w, x: (attend(w, x), None), [array_type((4, 4), F32), array_type((N, 4), F32)]
)[0]
CALL = SizedCall(PROGRAM, (V,), (5,))

LAWS = [law(SizedCall, st.jit(attend, dynamic_axes=(None, {0: "n"})), W, X[0])]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def padded(i):
    x = np.full((5, 4), np.nan, F32)
    x[: LENGTHS[i]] = X[i, : LENGTHS[i]]
    return x


ALL = np.stack([padded(i) for i in range(3)])


def one(w, n, x):
    return CALL(n, w, x)[0]


def loop(w):
    return snp.stack([attend(w, snp.asarray(X[i, :n]))[0] for i, n in enumerate(LENGTHS)])


def test_values():
    for i, n in enumerate(LENGTHS):
        mean, sums = CALL(snp.asarray(n), snp.asarray(W), snp.asarray(padded(i)))
        expected = attend(snp.asarray(W), snp.asarray(X[i, :n]))
        np.testing.assert_allclose(mean, expected[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(sums[:n], expected[1], rtol=1e-5, atol=1e-6)
    assert str(CALL).startswith("sized_call[program=")


def test_examples_with_sizes_of_their_own():
    every = st.vmap(one, (None, 0, 0))
    for run in (every, st.jit(every)):
        np.testing.assert_allclose(run(W, LENGTHS, ALL), loop(W), rtol=1e-5, atol=1e-6)
    twice = st.vmap(every, (0, None, None))(np.stack([W, -W]), LENGTHS, ALL)
    np.testing.assert_allclose(twice, snp.stack([loop(W), loop(-W)]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit])
def test_derivatives_by_what_they_share(wrap):
    total = lambda w: (st.vmap(one, (None, 0, 0))(w, LENGTHS, ALL) ** 2).sum()
    expected = lambda w: (loop(w) ** 2).sum()
    np.testing.assert_allclose(wrap(st.grad(total))(W), st.grad(expected)(W), rtol=1e-4, atol=1e-5)
    out, slope = wrap(lambda w: st.jvp(total, (w,), (w * 0.1,)))(W)
    wanted, wanted_slope = st.jvp(expected, (W,), (W * 0.1,))
    np.testing.assert_allclose([out, slope], [wanted, wanted_slope], rtol=1e-4)
    curve, wanted_curve = st.hessian(total)(W), st.hessian(expected)(W)
    np.testing.assert_allclose(wrap(st.hessian(total))(W), wanted_curve, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(curve, wanted_curve, rtol=1e-3, atol=1e-4)


def test_derivatives_by_the_examples():
    total = lambda x: (st.vmap(one, (None, 0, 0))(W, LENGTHS, x) ** 2).sum()
    slope = st.grad(total)(ALL)
    for i, n in enumerate(LENGTHS):
        of_one = st.grad(lambda x: (attend(W, x)[0] ** 2).sum())(X[i, :n])
        np.testing.assert_allclose(slope[i, :n], of_one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("inner", "outer"), [(0, None), (None, 0), (0, 0), (None, None)])
def test_derivatives_by_what_groups_of_examples_share(inner, outer):
    """The groups have sizes of their own; what is mapped in neither is shared by all."""
    lengths = np.stack([LENGTHS, [1, 2, 4]]).astype(np.int32)
    x = np.nan_to_num(ALL if inner == 0 else ALL[0])
    x = np.stack([x, -2 * x]) if outer == 0 else x
    every = st.vmap(st.vmap(one, (None, 0, inner)), (None, 0, outer))
    group = lambda w, k, x: st.vmap(one, (None, 0, inner))(
        w, lengths[k], x if outer is None else x[k]
    )
    total = lambda w, x: (every(w, lengths, x) ** 2).sum()
    alone = lambda w, x: sum([(group(w, k, x) ** 2).sum() for k in range(2)])
    slopes, wanted = [st.grad(f, (0, 1))(W, x) for f in (total, alone)]
    for got, want in zip(slopes, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_what_is_shared_is_not_repeated():
    f = lambda w: st.vmap(one, (None, 0, 0))(w, LENGTHS, ALL).sum()
    graph = st.make_graph(lambda w: st.vjp(f, w)[1](1.0))(W)
    calls = [e for e in graph.equations if e.primitive.name == "sized_call"]
    assert any([not over[1] for e in calls for over in e.primitive.over])


# Calls whose sizes vary, in place: the same values, and what makes programs faster sees them.


WORDS = st.ragged([np.arange(n, dtype=np.float32) for n in (3, 1, 6)])


def names(program):
    return [e.primitive.name for e in program.equations]


def same(f, *args):
    program = st.make_graph(f)(*args)
    leaves = [snp.asarray(x) for x in st.tree.leaves(args)]
    for changed in (inline_sized_calls(program), prepare(program)):
        assert "sized_call" not in names(changed)
        for a, b in zip(evaluate(changed, leaves), evaluate(program, leaves), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    return program, prepare(program)


def test_values_and_results_that_are_passed_on():
    f = st.vmap(lambda x: (x.sum(), x, (x * 2).max()))
    program, _ = same(f, WORDS)
    assert "sized_call" in names(program) and inline_sized_calls(
        inline_sized_calls(program)
    ) is inline_sized_calls(program)


def test_derivatives_and_calls_in_calls():
    others = st.ragged([np.ones(2, np.float32), np.ones(4, np.float32)])

    def f(w, x, others):
        of_one = lambda x: (st.vmap(snp.sum)(others).sum() * w * x).sum()
        return st.vmap(of_one)(x).sum()

    same(st.grad(f), 2.0, WORDS, others)


@pytest.mark.parametrize("axes", [(0, None), (None, 0)])
def test_derivatives_by_ragged_values_and_by_what_they_share(axes):
    """In either order; each example's part of what they share is added up."""
    words = [np.arange(n, dtype=np.float32) for n in (3, 1, 6)]
    one = lambda *pair: snp.sin(pair[axes.index(0)] * pair[axes.index(None)]).sum()
    pair = lambda x, w: (x, w) if axes == (0, None) else (w, x)
    total = lambda x, w: (st.vmap(one, axes)(*pair(x, w)) ** 2).sum()
    x = st.ragged(words)
    by_words, by_w = st.grad(total, (0, 1))(x, 2.0)
    each = lambda x, w: snp.sin(x * w).sum() ** 2
    expected = [st.grad(each, (0, 1))(x, 2.0) for x in words]
    np.testing.assert_allclose(by_w, sum(w for _, w in expected), rtol=1e-5)
    for got, (want, _) in zip(by_words.like(x), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_second_derivatives_by_what_ragged_values_share():
    """Those of a sum over examples, in each order of the two ways."""
    words = [np.arange(n, dtype=np.float32) / 4 for n in (3, 1, 6)]
    x, start = st.ragged(words), snp.array([2.0, -0.5])
    one = lambda x, w: (snp.sin(w[0] * x) * w[1]).sum() ** 2
    total = lambda w: (st.vmap(one, (0, None))(x, w) * snp.arange(1.0, 4.0)).sum()
    loop = lambda w: sum(k * one(snp.asarray(x), w) for k, x in enumerate(words, 1))
    slope, want = st.grad(total), st.hessian(loop)(start)
    along = snp.array([1.0, -2.0])
    got = [
        st.jvp(slope, (start,), (along,))[1],
        st.linearize(slope, start)[1](along),
        st.vjp(slope, start)[1](along)[0],
        st.grad(lambda w: st.jvp(total, (w,), (along,))[1])(start),
    ]
    np.testing.assert_allclose(got, [want @ along] * 4, rtol=1e-4, atol=1e-4)


def test_the_transpose_of_a_sum_over_ragged_examples():
    """It gives each example the cotangent of what they share, as the derivative forward does."""
    f = st.vmap(lambda x, w: (snp.sin(w[0] * x) * w[1]).sum(), (0, None))
    w, along = snp.array([2.0, -0.5]), snp.array([1.0, -2.0])
    pull = st.vjp(lambda w: f(WORDS, w), w)[1]
    (got,) = st.linear_transpose(pull, snp.ones(3))((along,))
    want = st.jvp(lambda w: f(WORDS, w), (w,), (along,))[1]
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_residuals_of_what_examples_share_are_made_once():
    f = lambda x, w: (snp.sin(w) * x).sum()
    every = lambda w: st.vmap(f, (0, None))(WORDS, w).sum()
    assert "cos" in names(st.make_graph(st.grad(every))(2.0))
    one = st.jit(f, dynamic_axes=({0: "n"}, None))  # there is nobody to share with
    assert "cos" not in names(st.make_graph(st.grad(one, 1))(np.ones(3, np.float32), 2.0))


def test_results_that_do_not_depend_on_what_is_differentiated():
    f = st.vmap(lambda x, w: (lax.stop_gradient(w) * x).sum(), (0, None))
    out, move = st.linearize(lambda w: f(WORDS, w), 2.0)
    np.testing.assert_array_equal(out, [6, 0, 30])
    np.testing.assert_array_equal(move(1.0), [0, 0, 0])


def test_equal_work_of_two_calls_is_done_once():
    f = lambda x: st.vmap(lambda x: snp.sin(x).sum())(x) + st.vmap(lambda x: snp.sin(x).max())(x)
    _, prepared = same(f, WORDS)
    assert names(prepared).count("sin") == 1


def test_inside_of_loops():
    f = lambda x: lax.scan(lambda c, _: (c + st.vmap(snp.sum)(x).sum(), None), 0.0, None, 3)[0]
    _, prepared = same(f, WORDS)
    assert "sized_call" not in str(prepared)


def test_programs_without_any_stay_the_same():
    program = st.make_graph(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x))(1.0)
    assert inline_sized_calls(program) is program
