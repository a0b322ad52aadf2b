"""What jaxprs consist of: fields, copies, print."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.avals import ShapedArray
from stretto.compat.jax.jaxprs.form import (
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    new_jaxpr_eqn,
)
from stretto.compat.jax.jaxprs.making import eval_jaxpr, make_jaxpr
from stretto.compat.jax.jaxprs.tables.named import primitive_of

VECTOR = ShapedArray((2,), "float32")


def test_results_that_nothing_reads():
    closed = make_jaxpr(lambda x: st.lax.top_k(x, 1)[0])(snp.ones(2))
    values, places = closed.eqns[0].outvars
    assert type(values) is Var and type(places) is DropVar
    assert "_:i32[1] = top_k" in str(closed)


def test_jaxprs_made_by_hand():
    x, y = Var(VECTOR), Var(VECTOR)
    sin = new_jaxpr_eqn([x], [y], primitive_of("sin"), {"accuracy": None})
    jaxpr = Jaxpr([], [x], [y, Literal(2.0, ShapedArray((), "float32"))], [sin])
    out, two = eval_jaxpr(jaxpr, (), snp.zeros(2))
    assert out.tolist() == [0.0, 0.0] and two == 2.0
    assert jaxpr.in_avals == [VECTOR] and jaxpr.out_avals[0] == VECTOR


def test_copies():
    closed = make_jaxpr(snp.sin)(1.0)
    e = closed.eqns[0]
    changed = e.replace(primitive=primitive_of("cos"))
    assert isinstance(changed, JaxprEqn)
    assert (changed.primitive.name, changed.invars, e.primitive.name) == ("cos", e.invars, "sin")
    jaxpr = closed.jaxpr.replace(eqns=[changed])
    assert float(eval_jaxpr(jaxpr, (), 0.0)[0]) == 1.0
    assert closed.replace(jaxpr=jaxpr).eqns == [changed]
    assert closed.map_jaxpr(lambda _: jaxpr).jaxpr is jaxpr
    with pytest.raises(ValueError, match="a jaxpr has no equations"):
        jaxpr.replace(equations=[])


def test_constants_are_counted():
    closed = make_jaxpr(lambda x: x + snp.arange(2.0))(snp.ones(2))
    assert closed.consts is closed.literals
    assert closed.consts[0].tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="the jaxpr has 1 constants, got 0 values"):
        ClosedJaxpr(closed.jaxpr, [])


def test_where_equations_come_from():
    def f(x):
        with st.named_scope("inner"):
            return snp.sin(x)

    source = make_jaxpr(f)(1.0).eqns[0].source_info
    assert source.name_stack == "inner"
    assert "test_form" in str(source.traceback)
    assert source.replace(name_stack="").name_stack == ""
    with make_jaxpr(f)(1.0).eqns[0].ctx.manager:
        assert make_jaxpr(f)(1.0).jaxpr.debug_info.func_name == "f"
