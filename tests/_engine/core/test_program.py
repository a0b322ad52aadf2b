"""Programs: how they print, and what the checker refuses."""

import numpy as np
import pytest

import stretto as st
from stretto import jit
from stretto import numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.core.errors import ProgramError
from stretto._engine.core.program import (
    Equation,
    Literal,
    Program,
    Var,
    as_literal,
    check,
    is_number,
    literal,
)
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.cond import cond
from stretto._engine.ops.arithmetic import ADD, NEG
from stretto._engine.ops.trigonometric import SIN

F32 = array_type((2,), np.dtype(np.float32))
I32 = array_type((2,), np.dtype(np.int32))


def test_literals_of_a_number():
    for value in (0.0, -0.0):
        assert is_number(Literal(np.float32(value), F32), 0)
    assert is_number(Literal(np.True_, array_type((), np.dtype(bool))), 1)
    assert not is_number(Literal(np.float32("nan"), F32), 0)
    assert not is_number(Literal(np.float32(2), F32), 0) and not is_number(Var(F32), 0)


def test_printing():
    def f(x, n):
        y = snp.sin(x) * 2
        return y.sum(axis=0), y, n

    text = str(make_graph(f)(np.ones((2, 3), np.float32), 3))
    assert text == (
        "{ f(a:f32[2,3], b:i32*[])\n"
        "  c:f32[2,3] = sin a\n"
        "  d:f32[2,3] = mul c 2.0:f32[2,3]\n"
        "  e:f32[3] = reduce_sum d [axes=(0,)]\n"
        "  return e, d, b }"
    )


def test_printing_of_programs_within():
    @jit
    def inner(x):
        return snp.exp(x)

    text = str(make_graph(lambda x: inner(x) + 1)(1.5))
    assert text == (
        "{ function(a:f32*[])\n"
        "  b:f32*[] = call a\n"
        "    program:\n"
        "      { inner(a:f32*[])\n"
        "        b:f32*[] = exp a\n"
        "        return b }\n"
        "  c:f32*[] = add b 1.0\n"
        "  return c }"
    )
    branches = make_graph(lambda p, x: cond(p, snp.sin, snp.cos, x))(True, 1.5)
    assert "branches[0]:" in str(branches) and "branches[1]:" in str(branches)


def test_names_go_on_after_z():
    def f(x):
        for _ in range(30):
            x = snp.sin(x)
        return x

    text = str(make_graph(f)(1.5))
    assert "z:f32*[] = sin y" in text
    assert "aa:f32*[] = sin z" in text


def test_repr():
    assert repr(make_graph(snp.sin)(1.0)) == "<Program sin: 1 equations>"


def test_types():
    program = make_graph(lambda x: (snp.sum(x), x))(np.ones(2, np.float32))
    assert program.in_types == (F32,)
    assert program.out_types == (F32.with_shape(()), F32)


@pytest.mark.parametrize(
    "array, is_literal",
    [
        (np.array(3, np.int32), True),
        (np.array([[3]], np.int32), True),
        (np.broadcast_to(np.int32(3), (4, 5)), True),
        (np.full(4, 3, np.int32), False),  # to be told only by looking at all
        (np.broadcast_to(np.arange(3), (2, 3)), False),
        (np.zeros((0, 2), np.int32), True),
    ],
)
def test_what_is_a_literal(array, is_literal):
    found = as_literal(array, array_type(array.shape, array.dtype))
    assert (found is not None) == is_literal
    if found is not None:
        np.testing.assert_array_equal(found.array(), array)
        assert found.array().dtype == array.dtype


def test_literals_take_no_memory():
    x = literal(2.5, array_type((1000, 1000), np.dtype(np.float32)))
    assert x.value == np.float32(2.5)
    assert x.array().strides == (0, 0)


def program(equations, outputs, inputs):
    return Program(inputs, equations, outputs)


def test_a_program_that_is_well_formed():
    a, b, c = Var(F32), Var(F32), Var(F32)
    check(program([Equation(SIN, [a], [b]), Equation(ADD, [b, literal(1, F32)], [c])], [c, a], [a]))
    check(program([], [literal(1, F32)], []))


def test_malformed_programs_are_refused():
    a, b, c, n = Var(F32), Var(F32), Var(F32), Var(I32)
    sine = Equation(SIN, [a], [b])
    for equations, outputs, inputs, message in [
        ([], [a], [a, a], "main: a variable is assigned twice, in the inputs"),
        ([sine, sine], [b], [a], r"a variable is assigned twice, in equation 1 \(sin\)"),
        ([Equation(SIN, [a], [a])], [a], [a], r"assigned twice, in equation 0 \(sin\)"),
        ([sine], [b], [], r"equation 0 \(sin\) reads a variable not yet assigned"),
        ([Equation(NEG, [b], [c]), sine], [c], [a], r"equation 0 \(neg\) reads a variable not yet"),
        ([sine], [c], [a], "main: an output is never assigned"),
        (
            [Equation(SIN, [a], [n])],
            [n],
            [a],
            r"has outputs \(int32\[2\],\), inferred \(float32\[2",
        ),
        ([Equation(SIN, [a], [b, c])], [b], [a], r"equation 0 \(sin\) has outputs"),
    ]:
        with pytest.raises(ProgramError, match=message):
            check(program(equations, outputs, inputs))


def test_types_that_a_primitive_refuses():
    a, n = Var(F32), Var(I32)
    with pytest.raises(TypeError, match="add: operands must have one shape and dtype"):
        check(program([Equation(ADD, [a, n], [Var(F32)])], [], [a, n]))


def test_programs_within_are_checked():
    good = make_graph(lambda p, x: cond(p, snp.sin, snp.cos, x))(True, 1.5)
    check(good)
    (equation,) = [e for e in good.equations if e.primitive.holds_programs]
    for _, value in equation.primitive.parameters():
        for inner in value if isinstance(value, tuple) else ():
            inner.outputs = (Var(inner.out_types[0]),)
    with pytest.raises(ProgramError, match="an output is never assigned"):
        check(good)


def test_weakness_is_part_of_the_type():
    weak = array_type((2,), np.dtype(np.float32), True)
    a = Var(weak)
    with pytest.raises(ProgramError, match="has outputs"):
        check(program([Equation(SIN, [a], [Var(F32)])], [], [a]))


def test_a_literal_is_of_its_type():
    assert Literal(np.float32(1), F32).array().shape == (2,)


def test_an_equation_has_a_position_where_it_has_a_place():
    a, b = Var(F32), Var(F32)
    code = test_an_equation_has_a_position_where_it_has_a_place.__code__
    assert Equation(SIN, [a], [b]).position is None
    found = Equation(SIN, [a], [b], (code, 0, "layer")).position
    assert (found.file, found.line, found.scope) == (__file__, code.co_firstlineno, "layer")
    assert Equation(SIN, [a], [b], found).position == found


def test_effects_are_those_of_all_equations():
    def f(x):
        st.debug.print("{}", x)
        return x + 1

    program = make_graph(f)(1.0)
    assert program.effects and program.effects == program.effects  # found, then kept
    assert not make_graph(snp.sin)(1.0).effects
