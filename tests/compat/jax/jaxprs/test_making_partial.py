"""Partial evaluation: what is known is computed, the rest recorded."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto.compat.jax.avals import ShapedArray
from stretto.compat.jax.jaxprs.making import (
    DynamicJaxprTracer,
    PartialVal,
    dce_jaxpr,
    eval_jaxpr,
    make_jaxpr,
    trace_to_jaxpr_dynamic,
    trace_to_jaxpr_nounits,
)

UNKNOWN = PartialVal.unknown(ShapedArray((2,), "float32"))


def test_what_is_known_is_computed():
    def f(x, y):
        assert not isinstance(x, DynamicJaxprTracer) and isinstance(y, DynamicJaxprTracer)
        return [snp.sin(x), snp.cos(y) * x, 3.0]

    jaxpr, outs, consts = trace_to_jaxpr_nounits(f, [PartialVal.known(snp.zeros(2)), UNKNOWN])
    assert [o.is_known() for o in outs] == [True, False, True]
    assert outs[0].get_known().tolist() == [0.0, 0.0] and outs[2].get_known() == 3.0
    assert outs[1].get_aval().shape == (2,)
    assert [str(e.primitive) for e in jaxpr.eqns] == ["cos", "mul"]
    (out,) = eval_jaxpr(jaxpr, consts, snp.zeros(2))
    assert out.tolist() == [0.0, 0.0]


def test_calls_are_looked_into():
    inner = st.jit(lambda x, y: (snp.sin(x), x + y))
    _, outs, _ = trace_to_jaxpr_nounits(inner, [PartialVal.known(1.0), UNKNOWN])
    assert [o.is_known() for o in outs] == [True, False]


def test_loops_are_recorded_whole():
    def f(x, y):
        return [lax.scan(lambda c, _: (c + y, None), x, None, 2)[0]]

    jaxpr, outs, consts = trace_to_jaxpr_nounits(f, [PartialVal.known(snp.ones(2)), UNKNOWN])
    assert not outs[0].is_known()
    assert eval_jaxpr(jaxpr, consts, snp.ones(2))[0].tolist() == [3.0, 3.0]


def test_known_results_may_be_asked_for():
    jaxpr, outs, consts = trace_to_jaxpr_nounits(lambda x: [x, 2.0], [UNKNOWN], instantiate=True)
    assert not any(o.is_known() for o in outs)
    assert float(eval_jaxpr(jaxpr, consts, snp.ones(2))[1]) == 2.0


def test_partial_values_are_pairs():
    aval, value = PartialVal.known(1.0)
    assert aval is None and value == 1.0
    assert PartialVal.known(1.0).get_aval().shape == ()
    assert UNKNOWN.get_known() is None


def test_tracing_all():
    jaxpr, avals, consts = trace_to_jaxpr_dynamic(lambda x: [x + snp.arange(2.0)], [UNKNOWN.aval])
    assert avals[0].shape == (2,)
    assert [c.tolist() for c in consts] == [[0.0, 1.0]]
    assert len(jaxpr.eqns) == 1


def test_dead_work():
    closed = make_jaxpr(lambda x, y: (snp.sin(x), snp.cos(y)))(1.0, 2.0)
    jaxpr, kept = dce_jaxpr(closed.jaxpr, [True, False])
    assert kept == [True, False]
    assert [str(e.primitive) for e in jaxpr.eqns] == ["sin"]
    assert dce_jaxpr(closed.jaxpr, [True, False], instantiate=True)[1] == [True, True]
    with pytest.raises(ValueError, match="zip"):
        dce_jaxpr(closed.jaxpr, [True])
