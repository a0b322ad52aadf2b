"""Calls whose sizes vary, in place: the same values, and what makes programs faster sees them."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.passes.inline_sized_calls import inline_sized_calls
from stretto._engine.passes.prepare import prepare

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
