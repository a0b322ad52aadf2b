"""Routing gives what selecting gives, and a loop over examples, whoever takes which branch."""

import types

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.primitive import ORDERED
from stretto._engine.higher_order import cond
from stretto._engine.higher_order.cond import Cond, worth_routing
from stretto.laws import f32, f64, law

BRANCHES = [
    lambda x, w: (snp.sin(w @ x), snp.sum(x > 0)),
    lambda x, w: (x * x, snp.sum(x > 1)),
    lambda x, w: (snp.log(x), snp.sum(w > 0)),
]


def chosen(i, x, w):
    return st.lax.switch(i, BRANCHES, x, w)


def many(i, x, w):
    return st.vmap(chosen, (0, 0, None))(i, x, w)


@pytest.fixture
def routed(monkeypatch):
    monkeypatch.setattr(cond, "_WORTH", -1.0)


INDEX = np.array([2, 0, 1, 2, 0, 0, 1, 2, 2], np.int32)
LAWS = [
    law(Cond, many, INDEX, f64(9, 2).within(0.1, 2), f64(2, 2)),
    law(Cond, many, INDEX[:3], f32(3, 2).within(0.1, 2), f32(2, 2)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws_hold_routed(case, routed):
    case.check()


@pytest.mark.parametrize(
    ("work", "size", "worth"),
    [
        ([1.0, 1.0], 8, False),  # it saves 7 of 16, as much as it costs
        ([1.0, 1.0], 9, True),
        ([2.0, 0.0], 8, False),
        ([1.0, 1.0, 1.0], 3, False),
        ([1.0, 1.0, 1.0], 4, True),
        ([8.5], 100, False),
    ],
)
def test_what_routing_has_to_save(monkeypatch, work, size, worth):
    """All branches, less one and an eighth of middling work for each example."""
    monkeypatch.setattr(cond, "_WORTH", 7.0)
    branches = [types.SimpleNamespace(effects=(), work=own) for own in work]
    assert worth_routing(branches, size) is worth


def test_branches_with_an_effect_are_routed_for_any_work():
    quiet = types.SimpleNamespace(effects=frozenset(), work=0.0)
    loud = types.SimpleNamespace(effects=frozenset({ORDERED}), work=0.0)
    assert not worth_routing([quiet, quiet], 2)
    assert worth_routing([quiet, loud], 2) and worth_routing([loud, quiet], 2)


def indices(size):
    yield np.zeros(size, np.int32)
    yield np.full(size, 2, np.int32)
    yield np.arange(size, dtype=np.int32) % 3
    yield (np.arange(size, dtype=np.int32)[::-1] * 2) % 3


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 21])
def test_any_counts_give_what_the_branches_give(size, routed):
    rng = np.random.default_rng(size)
    w = rng.normal(size=(3, 3)).astype(np.float32)
    x = rng.uniform(0.1, 2, (size, 3)).astype(np.float32)
    run = st.jit(many)
    for index in indices(size):
        want = [BRANCHES[i](snp.array(row), snp.array(w)) for i, row in zip(index, x, strict=True)]
        for outs in (run(index, x, w), many(index, x, w)):
            np.testing.assert_allclose(outs[0], np.stack([a for a, _ in want]), rtol=1e-5)
            np.testing.assert_array_equal(outs[1], np.stack([b for _, b in want]))


def test_two_axes_of_examples_are_routed_as_one(routed):
    i = np.array([[0, 1, 2], [2, 2, 2]], np.int32)
    x = np.arange(1.0, 13.0, dtype=np.float32).reshape(2, 3, 2)
    w = np.eye(2, dtype=np.float32)
    both = st.vmap(st.vmap(chosen, (0, 0, None)), (0, 0, None))
    for f in (both, st.jit(both)):
        outs, _ = f(i, x, w)
        for a in range(2):
            for b in range(3):
                np.testing.assert_allclose(outs[a, b], chosen(i[a, b], x[a, b], w)[0], rtol=1e-6)


def test_what_an_untaken_branch_computes_stays_out_of_derivatives(routed):
    def f(x):
        return st.lax.cond(x > 0, lambda x: snp.log(x) * x, lambda x: snp.sqrt(1 - x) * 0 + x, x)

    slope = st.vmap(st.grad(f))
    x = snp.array([2.0, 0.0, -3.0, 1.0])
    want = [1 + np.log(2.0), 1.0, 1.0, 1.0]
    for g in (slope, st.jit(slope)):
        np.testing.assert_allclose(g(x), want, rtol=1e-6)


def test_cheap_branches_are_selected_and_dear_ones_routed():
    def dear(x):
        return st.lax.fori_loop(0, 100, lambda i, x: snp.sin(x), x)

    def index(branch):
        graph = st.make_graph(st.vmap(lambda p, x: st.lax.cond(p, branch, lambda x: x, x)))
        program = graph(snp.ones(64, bool), snp.ones((64, 1000)))
        (cond,) = [e.primitive for e in program.equations if isinstance(e.primitive, Cond)]
        return worth_routing(cond.branches, cond.size)

    assert index(dear)
    assert not index(snp.sin)


def test_routing_one_dear_branch_runs_it_on_those_that_take_it():
    """Two of 64 examples take the branch: its loop runs over eight, not 64."""

    def dear(x):
        return st.lax.fori_loop(0, 200, lambda i, x: snp.sin(x), x)

    f = st.jit(st.vmap(lambda p, x: st.lax.cond(p, dear, lambda x: x, x)))
    text = f.lower(np.zeros(64, bool), np.zeros((64, 512), np.float32)).as_text()
    sines = [line for line in text.splitlines() if "stablehlo.sine" in line]
    assert sines
    assert all("tensor<8x512xf32>" in line for line in sines)


@pytest.mark.parametrize(
    ("size", "work", "worth"),
    [
        # 4,096 units each: an example saves 7/8 of that, and 2^22 units must be saved in all
        (1170, (4096, 4096), False),
        (1171, (4096, 4096), True),
        (585, (4096, 4096, 4096, 4096), True),
        (2, (4096, 4096), False),
        (10**6, (4096,), False),
    ],
)
def test_examples_are_moved_where_that_saves_enough(size, work, worth):
    branches = [types.SimpleNamespace(work=w, effects=frozenset()) for w in work]
    assert worth_routing(branches, size) is worth
