"""Traces of a library's own: one that writes down what is done."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import state
from stretto.compat.jax.avals import Tracer, get_aval
from stretto.compat.jax.core import Trace, TraceTag, set_current_trace, take_current_trace


class Noted(Tracer):
    """A value, and the trace that notes what is done to it."""

    def __init__(self, trace, value):
        super().__init__(trace, get_aval(value))
        self.value = value


class Notes(Trace):
    """Computes by the trace around it, and notes the names of operations."""

    def __init__(self, outer):
        super().__init__()
        self.outer = outer
        self.names = []

    def process_primitive(self, primitive, tracers, params):
        self.names.append(primitive.name)
        values = [t.value if isinstance(t, Noted) else t for t in tracers]
        avals = [get_aval(v) for v in values]
        out = primitive.bind_with_trace(self.outer, values, avals, params)
        if primitive.multiple_results:
            return [Noted(self, o) for o in out]
        return Noted(self, out)


def noted(fun, *args):
    with take_current_trace() as outer:
        trace = Notes(outer)
        with set_current_trace(trace):
            out = fun(*[Noted(trace, a) for a in args])
    return out.value, trace.names


def test_every_operation_is_handed_on():
    value, names = noted(lambda x: snp.where(x > 0, snp.sin(x), x) * 2, snp.zeros(2))
    assert value.tolist() == [0.0, 0.0]
    assert names == ["gt", "sin", "select_n", "mul"]
    assert state.interpreter.at_rest


def test_calls_and_functions_with_rules():
    own = st.custom_jvp(snp.sin)
    own.defjvp(lambda p, t: (own(*p), t[0]))
    assert noted(st.jit(own), snp.zeros(2))[1] == ["jit"]
    assert noted(own, snp.zeros(2))[1] == ["custom_jvp_call"]

    class Inside(Notes):
        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            with set_current_trace(self):
                return fun.call_wrapped(*tracers)

    trace = Inside(state.eager)
    with set_current_trace(trace):
        own(Noted(trace, snp.zeros(2)))
    assert trace.names == ["sin"]


def test_under_another_transformation():
    slope = st.grad(lambda x: noted(snp.sin, x)[0])(0.0)
    assert float(slope) == 1.0


def test_classes():
    with take_current_trace() as outer:
        value = Noted(Notes(outer), snp.ones(2))
    assert isinstance(value, Tracer) and isinstance(value, Noted)
    assert not isinstance(snp.ones(2), Tracer)
    assert not isinstance(snp.ones(2), Noted)
    assert issubclass(Noted, Tracer)
    assert TraceTag() == TraceTag() and len({TraceTag(), TraceTag()}) == 1
    with pytest.raises(NotImplementedError, match="Trace has to give process_primitive"):
        Trace().process_primitive(None, (), {})
