"""Constants that a function makes itself, told from those that it closes over."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.interpreter import state
from stretto._engine.core.recorder import closing_over


def _inputs(fun, *args):
    return len(closing_over(st.make_graph(fun), *args).inputs)


def test_what_is_closed_over_is_an_input():
    number, line, weak = snp.asarray(np.float32(2)), snp.zeros(3), snp.asarray(2.0)
    assert _inputs(lambda x: x * number + line, 1.0) == 3
    assert _inputs(lambda x: x * weak, 1.0) == 2
    assert len(st.make_graph(lambda x: x * number)(1.0).inputs) == 1


def test_what_is_made_inside_is_not():
    def f(x):
        made = snp.asarray(np.float32(2)), snp.zeros(3), snp.full((), 4.0), 7, np.float32(1)
        return sum(made, x)

    assert _inputs(f, 1.0) == 1
    assert _inputs(st.vmap(f), snp.ones(2)) == 1
    assert _inputs(st.jit(f), 1.0) == 1
    assert _inputs(st.grad(lambda x: f(x).sum()), 1.0) == 1


def test_what_a_program_has_that_it_runs_is_not():
    """Also where the program was run before."""
    inner = st.jit(lambda x: x * np.float32(2) + snp.zeros(3))
    program = st.make_graph(inner)(snp.ones(3))
    for _ in range(2):
        assert _inputs(lambda x: evaluate(program, [x + 1])[0], snp.ones(3)) == 1
        assert _inputs(st.vmap(inner), snp.ones((2, 3))) == 1


def test_one_inside_another():
    lengths = []

    def outer(x):
        own = snp.ones(3)
        lengths.append(_inputs(lambda y: y + own, x))
        return own * x

    assert _inputs(outer, 1.0) == 1
    assert lengths == [2]


@pytest.mark.parametrize("number", [2.0, np.float32(2), np.arange(3.0)])
def test_maps_over_what_is_closed_over(number):
    closed = snp.asarray(number)
    assert _inputs(st.vmap(lambda x: x * closed), snp.ones(3)) == 2


def test_it_ends_however_the_call_ends():
    with pytest.raises(ZeroDivisionError):
        closing_over(lambda: 1 // 0)
    assert state.maker is state.eager
