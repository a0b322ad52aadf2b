"""Recording: captures, literals, folding, and the words for where a value comes from."""

import gc
import inspect
import sys

import numpy as np
import pytest

import stretto as st
from stretto import numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.errors import EscapedTracerError, TracedValueError
from stretto._engine.core.interpreter import as_value, state
from stretto._engine.core.program import Literal, check
from stretto._engine.core.recorder import element_of, record, record_shared, standing
from stretto._engine.core.types import array_type
from stretto._engine.lowering.stablehlo import lower

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


def test_what_is_noted_inside_is_noted_outside_too():
    def inside(x):
        state.interpreter.recorder.noted.append("here")
        return [snp.sin(x)], None

    def outside(x):
        program, _, _ = record(inside, [F32])
        return evaluate(program, [x]), program

    program, held, _ = record(outside, [F32])
    assert held.cache["noted"] == ("here",)
    assert set(program.cache["noted"]) == {"here"}
    assert "noted" not in recorded(lambda x: [snp.sin(x)], F32)[0].cache
    noted = record(inside, [F32])[0].cache["noted"]
    assert noted == ("here",), "outside of a trace there is nobody else to tell"


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


@pytest.mark.parametrize("count", [1, 2, 3])
def test_operations_of_any_number_of_arguments(count):
    f = (snp.sin, snp.hypot, lambda x, y, z: snp.where(x > 0, y, z))[count - 1]
    program, captured = recorded(lambda *xs: [f(*xs)], *[F32] * count)
    assert program.equations[-1].outputs == program.outputs
    assert captured == []
    got = evaluate(program, [as_value(np.array([0.5, -1.5], np.float32))] * count)
    want = f(*[snp.array([0.5, -1.5])] * count)
    np.testing.assert_array_equal(got[0], want)


def here():
    return inspect.currentframe().f_back.f_lineno


def test_a_rule_stands_where_its_operation_does():
    def f(x):
        y = snp.sin(x) * x
        lines.append(here() - 1)
        return snp.sum(snp.cos(y))

    lines = []
    gradient = make_graph(st.grad(f))(np.ones(3, np.float32))
    lines.append(here() - 1)
    found = [(e.primitive.name, e.position.line - lines[0]) for e in gradient.equations]
    forward = [line for name, line in found if name in ("sin", "cos")]
    assert set(forward) == {0, 2}
    # What runs backwards stands where grad was called.
    assert found[-1][1] == lines[1] - lines[0]
    assert {line for _, line in found} == {0, 2, lines[1] - lines[0]}


def test_a_rule_of_the_users_stands_where_it_is_written():
    @st.custom_vjp
    def f(x):
        return snp.sin(x)

    def backwards(x, ct):
        lines.append(here() + 1)
        return (ct * snp.cos(x) * 3.0,)

    lines = []
    f.defvjp(lambda x: (f(x), x), backwards)
    gradient = make_graph(st.grad(lambda x: snp.sum(f(x) * 2.0)))(np.ones(3, "f4"))
    places = {e.primitive.name: e.position.line for e in gradient.equations}
    assert places["cos"] == lines[0]
    assert [e.position.line for e in gradient.equations].count(lines[0]) == 3


def test_standing_is_over_when_the_block_is():
    def f(x):
        recorder = state.interpreter
        with standing(recorder) as one:
            a, b = snp.sin(x), snp.cos(x)
            with standing(recorder, None):
                c = snp.exp(x)
            with one.apart():
                d = snp.tanh(x)
        return [a, b, c, d, snp.log(x)]

    program, _ = recorded(f, F32)
    sin, cos, exp, tanh, log = [e.position for e in program.equations]
    assert sin == cos
    assert exp is None
    assert tanh.line == sin.line + 4
    assert log.line == sin.line + 5


def test_standing_keeps_to_scopes():
    def f(x):
        with standing(state.interpreter):
            with st.named_scope("one"):
                y = snp.sin(x)
            return [snp.cos(y)]

    program, _ = recorded(f, F32)
    assert [e.position.scope for e in program.equations] == ["one", ""]


def calls(f):
    """How many functions it calls, in Python and in C."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # what a collection calls would count, too
    sys.setprofile(note)
    try:
        f()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def chain(n):
    def f(x):
        y = x
        for _ in range(n):
            y = y * x
        return snp.sum(y)

    return f


def lowered(n):
    program = make_graph(chain(n))(x3)
    return lambda: lower(program)


x3 = np.ones(3, np.float32)
GROWING = {
    "trace": lambda n: lambda: make_graph(chain(n))(x3),
    "grad": lambda n: lambda: st.grad(chain(n))(x3),
    "trace grad": lambda n: lambda: make_graph(st.grad(chain(n)))(x3),
    "vmap": lambda n: lambda: st.vmap(chain(n))(np.ones((2, 3), np.float32)),
    "lower": lowered,
}


@pytest.mark.parametrize("what", GROWING)
def test_the_cost_of_an_operation_does_not_grow_with_their_number(what):
    GROWING[what](10)()
    few, many = calls(GROWING[what](200)), calls(GROWING[what](400))
    assert many < 2.1 * few


def test_tracing_and_lowering_call_little():
    """What they cost, in calls for each operation; more is a step back (decision 11)."""
    per = {}
    for what in ("trace", "lower", "trace grad"):
        GROWING[what](10)()
        per[what] = (calls(GROWING[what](400)) - calls(GROWING[what](200))) / 200
    assert per["trace"] <= 18
    assert per["lower"] <= 10
    assert per["trace grad"] <= 195  # six ask whether cotangents add up in place (decision 65)


def test_a_shared_program_has_no_positions():
    x = snp.ones(3)
    program = record_shared(lambda x: [x * x + x], (x.type,), "square")
    assert program.name == "square"
    assert len(program.equations) == 2
    assert all(e.position is None for e in program.equations)
    with pytest.raises(AssertionError, match="captured"):
        record_shared(lambda x: [x + snp.arange(3.0)], (x.type,), "sum")


def test_the_number_that_all_elements_of_a_constant_are():
    repeat = lambda *shape: np.broadcast_to(np.float32(7), shape)
    constant = lambda host: state.eager.constant(host, array_type(host.shape, host.dtype))
    for array in (repeat(), repeat(3), repeat(2, 3), np.full((1, 1), 7, np.float32)):
        assert element_of(constant(array)) == 7
    for array in (np.zeros(0, np.float32), np.full(2, 7, np.float32), np.arange(2.0, dtype="f4")):
        assert element_of(constant(array)) is None
    on_the_device = st.jit(lambda: snp.ones(1))()
    on_the_device.to_buffer()
    on_the_device._host = None
    assert element_of(on_the_device) is None

    def f(x):
        found.append((element_of(x), element_of(x * 2), element_of(as_value(2.0) * 3)))
        return [x]

    found = []
    recorded(f, SCALAR)
    st.vmap(lambda x: (found.append(element_of(x)), x)[1])(snp.ones(2))
    assert found == [(None, None, 6), None]


@pytest.mark.parametrize("setting", ["debug_nans", "debug_infs"])
def test_faults_are_not_folded_while_they_are_looked_for(setting):
    """So that they are found where they are computed; what is finite is folded as ever."""

    def f():
        return [snp.log(as_value(-1.0)), snp.exp(as_value(1e30)), snp.exp(as_value(0.0))]

    with st.config(**{setting: True}):
        program, _ = recorded(f)
        assert names(program) == ["log", "exp"]
        assert program.outputs[2].value == 1
    assert names(recorded(f)[0]) == []


def test_what_computes_a_value():
    def f(x):
        recorder = state.interpreter
        y = snp.sin(x)
        assert recorder.maker(y.atom) is recorder.equations[0]
        z = snp.cos(y)
        assert recorder.maker(z.atom) is recorder.equations[1]
        assert recorder.maker(y.atom) is recorder.equations[0]
        assert recorder.maker(x.atom) is None is recorder.maker((as_value(2.0) * 3).atom)
        return [z]

    recorded(f, F32)


def test_origins_of_several_arguments_and_of_none():
    w = snp.array([1.0, 2.0])

    def f(x, y, z):
        both = snp.sin(x) * z + x
        assert both.origin().endswith(" from the argument a, the argument c")
        assert y.origin() == "the argument b" and (y + w).origin().endswith("from the argument b")
        own = snp.cos(snp.exp(w))
        assert "computed by cos at" in own.origin() and " from " not in own.origin()
        return [both]

    recorded(f, F32, F32, F32, names=["a", "b", "c"])
