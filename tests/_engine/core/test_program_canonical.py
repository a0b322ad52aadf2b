"""Canonical forms: one for all programs that do the same."""

import gc

import numpy as np

import stretto as st
from stretto import numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import form, literal, literal_key, operation_key
from stretto._engine.core.types import array_type

X = np.ones(3, np.float32)


def graph(fun, *args):
    return st.make_graph(fun)(*(args or (X,)))


def test_names_lines_and_objects_do_not_count():
    def one(x):
        y = snp.sin(x)
        return y * 2 + x

    other = lambda u: snp.sin(u) * 2 + u
    assert form(graph(one)) is form(graph(other))
    assert form(graph(one)) is form(graph(one))


def test_what_is_done_counts():
    base = form(graph(lambda x: snp.sin(x) * 2))
    for fun in (
        lambda x: snp.cos(x) * 2,
        lambda x: snp.sin(x) * 3,
        lambda x: 2 * snp.sin(x),
        lambda x: (snp.sin(x) * 2, x),
        snp.sin,
        lambda x: snp.sin(snp.sin(x) * 2),
    ):
        assert form(graph(fun)) is not base
    assert form(graph(lambda x: snp.sin(x) * 2, X[:2])) is not base
    assert form(graph(lambda x: snp.sin(x) * 2, 1.5)) is not form(
        graph(lambda x: snp.sin(x) * 2, np.float32(1.5))
    )


def test_which_operand_counts():
    two = (X, X)
    first, second = graph(lambda x, y: x - y, *two), graph(lambda x, y: y - x, *two)
    assert form(first) is not form(second)
    assert form(first) is not form(graph(lambda x, y: x - x, *two))


def test_programs_inside_are_compared_too():
    def looping(factor, length=4):
        step = lambda c, x: (c * factor + x, snp.sin(c))
        return lambda x: st.lax.scan(step, 0.0, x[:length])

    x = np.ones(4, np.float32)
    assert form(graph(looping(2.0), x)) is form(graph(looping(2.0), x))
    assert form(graph(looping(2.0), x)) is not form(graph(looping(3.0), x))
    assert form(graph(looping(2.0), x)) is not form(graph(looping(2.0, 3), x))

    def branching(last):
        return lambda x: st.lax.cond(x[0] > 0, lambda: snp.sin(x), lambda: last(x))

    assert form(graph(branching(snp.cos))) is form(graph(branching(snp.cos)))
    assert form(graph(branching(snp.cos))) is not form(graph(branching(snp.tanh)))


def test_rules_of_ones_own_do_not_count():
    def ruled(factor):
        @st.custom_jvp
        def fun(x):
            return snp.sin(x)

        fun.defjvp(lambda p, t: (snp.sin(p[0]), factor * t[0]))
        return fun

    one, other = graph(ruled(1.0)), graph(ruled(2.0))
    (first,), (second,) = one.equations, other.equations
    assert first.primitive is not second.primitive
    assert operation_key(first.primitive) == operation_key(second.primitive)


def test_a_recomputation_is_not_what_it_computes_again():
    def derivative(fun):
        return graph(st.grad(lambda x: snp.sum(fun(x))))

    plain = lambda x: snp.sin(snp.sin(x))
    kept, again = derivative(st.jit(plain)), derivative(st.checkpoint(plain))
    free = derivative(st.checkpoint(plain, prevent_cse=False))
    assert len({form(kept), form(again), form(free)}) == 3


def test_literals_are_compared_by_their_bits():
    type = array_type((2,), np.dtype(np.float32))
    keys = [literal_key(literal(v, type)) for v in (0.0, -0.0, 0.0, np.nan, np.nan)]
    assert keys[0] == keys[2] != keys[1]
    assert keys[3] == keys[4]
    whole = array_type((2,), np.dtype(np.int32))
    assert literal_key(literal(0, whole)) != keys[0]


def test_a_form_lives_as_long_as_its_programs():
    program = graph(lambda x: snp.sin(x) * 17.25)
    kept = id(form(program))
    again = graph(lambda x: snp.sin(x) * 17.25)
    assert id(form(again)) == kept
    del program
    gc.collect()
    assert id(form(again)) == kept


def test_time_is_linear_however_often_a_program_is_used():
    """Forty calls of calls of calls, each twice: a million million equations, were they written."""

    def doubled(depth):
        fun = snp.sin
        for _ in range(depth):
            fun = st.jit(lambda x, inner=fun: inner(inner(x)))
        return graph(fun)

    assert form(doubled(40)) is form(doubled(40))


def test_evaluated_again_it_is_the_same():
    program = graph(lambda x: st.lax.fori_loop(0, 3, lambda i, c: snp.sin(c) + i, x))
    again = graph(lambda x: evaluate(program, [x])[0])
    assert form(program) is form(again)
