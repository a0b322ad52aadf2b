"""Recording: captures, literals, folding, and the words for where a value comes from."""

import numpy as np
import pytest

import stretto as st
from stretto import numpy as snp
from stretto.api.graph import make_graph
from stretto.core.errors import EscapedTracerError, TracedValueError
from stretto.core.interpreter import as_value, state
from stretto.core.program import Literal, check
from stretto.core.recorder import record
from stretto.core.types import array_type

F32 = array_type((2,), np.dtype(np.float32))
SCALAR = array_type((), np.dtype(np.float32))


def recorded(fun, *types, **options):
    program, extra, captured = record(lambda *xs: (fun(*xs), "extra"), types, **options)
    check(program)
    assert extra == "extra"
    assert len(program.inputs) == len(types) + len(captured)
    return program, captured


def names(program):
    return [e.primitive.name for e in program.equations]


def test_what_is_done_is_written_down():
    program, captured = recorded(lambda x, y: [snp.sin(x) + y], F32, F32, name="f")
    assert names(program) == ["sin", "add"]
    assert program.name == "f"
    assert captured == []


def test_outputs_may_be_inputs_and_constants():
    program, _ = recorded(lambda x: [x, x, as_value(2.5)], F32)
    assert program.outputs[:2] == (program.inputs[0],) * 2
    assert isinstance(program.outputs[2], Literal)


def test_captured_arrays_become_inputs_once():
    w = snp.array([1.0, 2.0])
    program, captured = recorded(lambda x: [x * w + w], F32)
    assert len(captured) == 1 and captured[0] is w
    assert [v.type for v in program.inputs] == [F32, F32]


def test_captured_values_of_an_enclosing_trace():
    def outer(y):
        program, captured = recorded(lambda x: [x * y], F32)
        assert captured[0] is y
        assert names(program) == ["mul"]
        return y

    make_graph(outer)(np.ones(2, np.float32))


def test_splats_become_literals():
    program, captured = recorded(lambda x: [x + snp.ones(2) * 3], F32)
    assert captured == []
    (equation,) = program.equations
    assert isinstance(equation.inputs[1], Literal)
    assert equation.inputs[1].value == 3


def test_operations_on_splats_fold():
    def f(x):
        y = snp.broadcast_to(as_value(2.0), (2,))
        z = snp.where(snp.exp(y) > 7, -y, y).astype(snp.int32)
        return [snp.reshape(z, (1, 2)), x]

    program, _ = recorded(f, F32)
    assert program.equations == ()
    folded = program.outputs[0]
    assert folded.value == -2
    assert folded.type is array_type((1, 2), np.dtype(np.int32))


def test_folding_overflows_without_remark():
    program, _ = recorded(lambda: [snp.exp(as_value(1e30)), snp.log(as_value(-1.0))])
    assert np.isinf(program.outputs[0].value)
    assert np.isnan(program.outputs[1].value)


def test_a_constant_is_concrete_to_python():
    def f(x):
        return [x * 2 if as_value(2.0) * 2 > 3 else x]

    assert names(recorded(f, F32)[0]) == ["mul"]


def test_sums_of_splats_are_not_folded_to_splats():
    program, _ = recorded(lambda: [snp.sum(snp.ones(3))])
    assert names(program) == ["reduce_sum"]


def test_recording_ends_with_an_error_too():
    kept = []

    def f(x):
        kept.append(x)
        raise ZeroDivisionError

    outer = state.interpreter
    with pytest.raises(ZeroDivisionError):
        recorded(f, F32)
    assert state.interpreter is outer
    with pytest.raises(EscapedTracerError):
        kept[0] + 1


def test_escaped_values_say_where_they_come_from():
    kept = []

    def leak(x):
        kept.append(x)
        kept.append(snp.sin(x))
        return x

    st.jit(leak)(1.5)
    argument, computed = kept
    check_escaped(argument, "the argument x")
    check_escaped(
        computed, r"computed by sin at .*test_recorder.py:\d+ \(leak\) from the argument x"
    )


def check_escaped(value, origin):
    message = (
        r"a traced value of type float32\[\] outlived the transformation that made it "
        rf"\({origin}, while leak was transformed for .*test_recorder.py:\d+ .*\): a function "
        r"being transformed stored it in an outer list, attribute or"
    )
    with pytest.raises(EscapedTracerError, match=message):
        value + 1
    with pytest.raises(EscapedTracerError, match=message):
        st.jit(lambda y: y + value)(2.0)


def test_origins_name_the_arguments_behind_a_value():
    def loss(params, scale, other):
        y = snp.sin(params["w"][0]) * scale
        return 1 if y > 0 else 2

    with pytest.raises(TracedValueError) as caught:
        st.jit(loss)({"w": [1.0, 2.0], "b": 1.0}, 3.0, 4.0)
    assert "computed by gt at" in str(caught.value)
    assert "from the argument params['w'][0], the argument scale." in str(caught.value)


def test_origin_of_captured_values_and_inputs_without_names():
    w = snp.array([1.0, 2.0])

    def f(x):
        assert x.origin() == "input 0"
        assert (x * 1.5).origin().endswith("from input 0")
        both = w * x
        assert both.origin().startswith("computed by mul at ")
        with pytest.raises(TracedValueError, match="input 0"):
            float(x)
        return [both]

    recorded(f, F32)


def test_positions_of_traced_values():
    def f(x):
        y = snp.sin(x)
        assert y.position.file == __file__
        assert x.position is None
        return [y]

    recorded(f, SCALAR)


def test_a_value_made_of_nothing_but_constants():
    def f(x):
        y = snp.sum(snp.ones(3))
        assert y.origin().startswith("computed by reduce_sum at ")
        assert y.origin().endswith("(f)")
        return [y]

    recorded(f, SCALAR)
