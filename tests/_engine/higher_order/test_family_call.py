"""Nested jit: the laws, one program however often it is called, residuals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.program import check
from stretto._engine.higher_order.family import Call, call
from stretto.laws import c64, f32, f64, i32, law


@st.jit
def wave(x, y):
    return snp.sin(x * y) + x, y * 2.0


@st.jit
def first(x, n):
    return x * 2.0, n + 1


LAWS = [
    law(Call, wave, f32(3), f32(3)),
    law(Call, wave, f64(2, 2), f64(2, 2)),
    law(Call, wave, c64(2), c64(2)),
    law(Call, first, f32(2), i32(2)),
    law(Call, lambda x: wave(*wave(x, x))[0], f32(2)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_called_twice_written_once():
    text = st.jit(lambda x, y: wave(*wave(x, y))).lower(1.0, 2.0).as_text()
    assert text.count("func.func private @wave") == 1
    assert text.count("func.call @wave") == 2


def test_a_graph_shows_the_call():
    program = st.make_graph(lambda x: wave(x, x)[0])(1.0)
    check(program)
    (equation,) = program.equations
    assert isinstance(equation.primitive, Call)
    assert equation.primitive.program.name == "wave"


def test_what_is_not_mapped_stays_unmapped():
    program = st.make_graph(st.vmap(wave, in_axes=(0, None)))(snp.ones(4), 1.0)
    assert [v.type.shape for v in program.outputs] == [(4,), (4,)]
    equation = program.equations[0]
    assert isinstance(equation.primitive, Call)
    assert [v.type.shape for v in equation.outputs] == [(4,), ()]  # y * 2 is done once


def test_gradient_keeps_no_call_without_need():
    scale = st.jit(lambda x: 3.0 * x)
    np.testing.assert_allclose(st.grad(scale)(2.0), 3.0)
    constant = st.jit(lambda x: snp.float32(4.0))
    assert float(st.grad(lambda x: constant(x) * x)(2.0)) == 4.0


def test_closed_over_tracers_become_operands():
    def f(x):
        inner = st.jit(lambda y: y * x)
        return inner(inner(x))

    for g in (st.grad(f), st.jit(st.grad(f)), st.grad(st.jit(f))):
        np.testing.assert_allclose(g(2.0), 12.0)
    np.testing.assert_allclose(st.vmap(st.grad(f))(snp.arange(3.0)), [0.0, 3.0, 12.0])
    np.testing.assert_allclose(st.grad(st.grad(f))(2.0), 12.0)


def test_a_wrong_operand_is_named():
    program = st.make_graph(lambda x: x + 1)(snp.ones(3))
    with pytest.raises(TypeError, match=r"input 0 is float32\[2\], expected float32\[3\]"):
        call(program, [snp.ones(2)])


def test_interpreted_where_jit_is_off():
    seen = []

    @st.jit
    def f(x):
        seen.append(isinstance(x, st.Array))
        return x + 1

    with st.config(disable_jit=True):
        assert float(f(1.0)) == 2
    assert seen == [False]  # the Python number itself
