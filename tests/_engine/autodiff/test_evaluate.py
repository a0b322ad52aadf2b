"""Evaluation: a program run operation by operation, under whatever interpreter is current."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import grad, jit, make_graph, vmap
from stretto._engine.autodiff.evaluate import evaluate, record_closed
from stretto._engine.core.errors import EscapedTracerError
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.program import Program, check
from stretto._engine.core.types import array_type


def f(x, y):
    return snp.sin(x) * y + 2.0, y, 3.0


X, Y = snp.array([1.0, 2.0]), snp.array([3.0, 4.0])
PROGRAM = make_graph(f)(X, Y)


def test_on_arrays():
    for got, want in zip(evaluate(PROGRAM, [X, Y]), f(X, Y), strict=True):
        np.testing.assert_array_equal(got, want)


def test_an_input_given_back_is_the_argument_itself():
    assert evaluate(PROGRAM, [X, Y])[1] is Y


def test_literals_keep_their_type():
    three = evaluate(PROGRAM, [X, Y])[2]
    assert three.type is PROGRAM.outputs[2].type
    assert three.weak_type


def test_recording_again_gives_the_same_program():
    again = make_graph(lambda x, y: evaluate(PROGRAM, [x, y]))(X, Y)
    assert str(again).splitlines()[1:] == str(PROGRAM).splitlines()[1:]


def test_under_transformations():
    first = lambda x, y: evaluate(PROGRAM, [x, y])[0]
    np.testing.assert_allclose(jit(first)(X, Y), first(X, Y), rtol=1e-6)
    total = lambda x: snp.sum(first(x, Y))
    np.testing.assert_allclose(grad(total)(X), np.cos(X) * np.asarray(Y), rtol=1e-6)
    many = snp.stack([X, X + 1])
    np.testing.assert_allclose(
        vmap(first, in_axes=(0, None))(many, Y), np.stack([first(x, Y) for x in many]), rtol=1e-6
    )


def test_operations_with_several_results():
    program = make_graph(jit(lambda y: (snp.sin(y), snp.cos(y))))(1.5)
    np.testing.assert_allclose(evaluate(program, [snp.array(1.5)]), [np.sin(1.5), np.cos(1.5)])


def test_the_number_of_arguments_must_fit():
    with pytest.raises(ValueError, match="zip"):
        evaluate(PROGRAM, [X])


F32 = array_type((3,), np.dtype(np.float32))
CLOSED_X = np.array([1, 2, 3], np.float32)


def closed(f, *types):
    program, extra = record_closed(lambda *args: ([f(*args)], "extra"), types, "rule")
    check(program)
    assert extra == "extra" and program.in_types == types and program.name == "rule"
    return program


def test_without_captured_arrays():
    program = closed(snp.sin, F32)
    assert [e.primitive.name for e in program.equations] == ["sin"]


def test_captured_arrays_are_constants_of_the_program():
    outside = snp.array([10.0, 20.0, 30.0])
    program = closed(lambda x: x * outside + outside, F32)
    assert [e.primitive.name for e in program.equations].count("constant") == 1
    np.testing.assert_array_equal(
        *evaluate(program, [as_value(CLOSED_X)]), CLOSED_X * [10, 20, 30] + [10, 20, 30]
    )


def test_only_what_outputs_need():
    unused = snp.array([10.0, 20.0, 30.0])

    def f(x):
        snp.exp(x) + unused
        return x + x

    assert [e.primitive.name for e in closed(f, F32).equations] == ["add"]


def test_traced_values_from_outside_are_refused():
    def f(y):
        record_closed(lambda x: ([x + y], None), [F32], "cosine's jvp")
        return y

    with pytest.raises(EscapedTracerError, match="cosine's jvp: a traced value from outside"):
        st.jit(f)(CLOSED_X)


def test_what_is_recorded_again_for_finding_faults_has_the_places_it_had():
    def scoped(x):
        with st.named_scope("inner"):
            y = snp.sin(x)
        return y * 2.0

    program = make_graph(scoped)(1.0)
    bare = Program(program.inputs, program.equations, program.outputs, "bare")
    bare.equations[1].place = None

    def outer(x):
        with st.named_scope("outer"):
            return evaluate(bare, [x])

    with st.config(debug_nans=True):
        first, second = make_graph(outer)(1.0).equations
    line = program.equations[0].position.line
    assert (first.position.line, first.place[2]) == (line, "outer/inner")
    assert second.place is None


def test_what_a_program_noted_is_noted_where_it_is_evaluated():
    program = Program(PROGRAM.inputs, PROGRAM.equations, PROGRAM.outputs, "noted")
    program.cache["noted"] = ("one", "other")
    outer = make_graph(lambda x, y: evaluate(program, [x, y]))(X, Y)
    assert outer.cache["noted"] == ("one", "other")
    assert "noted" not in make_graph(lambda x, y: evaluate(PROGRAM, [x, y]))(X, Y).cache
    for got, want in zip(evaluate(program, [X, Y]), f(X, Y), strict=True):
        np.testing.assert_array_equal(got, want)


def test_constants_of_a_program_are_nobodys_residuals_however_often_it_runs():
    """They are known from the first run on, and not taken for arrays from outside."""
    program = make_graph(lambda x: snp.sin(x) * 2.0 + snp.full(3, 4.0) * x)(snp.ones(3))
    f = lambda x: evaluate(program, [x])[0]
    kept = [len(st.tree.leaves(st.vjp(f, snp.ones(3))[1])) for _ in range(3)]
    assert kept == [1, 1, 1]
