"""Calls of programs whose sizes vary: each rule, with sizes that examples share or have alone."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.sized import SizedCall
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


def test_what_is_shared_is_not_repeated():
    f = lambda w: st.vmap(one, (None, 0, 0))(w, LENGTHS, ALL).sum()
    graph = st.make_graph(lambda w: st.vjp(f, w)[1](1.0))(W)
    calls = [e for e in graph.equations if e.primitive.name == "sized_call"]
    assert any([not over[1] for e in calls for over in e.primitive.over])
