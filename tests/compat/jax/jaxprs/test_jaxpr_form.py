"""What jaxprs consist of: fields, copies, print. And their text."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.avals import ShapedArray
from stretto.compat.jax.jaxprs.jaxpr import (
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    _letters,
    new_jaxpr_eqn,
)
from stretto.compat.jax.jaxprs.making import eval_jaxpr, make_jaxpr
from stretto.compat.jax.jaxprs.operations import primitive_of

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
    assert "test_jaxpr_form" in str(source.traceback)
    assert source.replace(name_stack="").name_stack == ""
    with make_jaxpr(f)(1.0).eqns[0].ctx.manager:
        assert make_jaxpr(f)(1.0).jaxpr.debug_info.func_name == "f"


def test_what_fits_is_on_one_line():
    closed = make_jaxpr(lambda x: snp.sin(x) * x)(2.0)
    assert str(closed) == "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b a in (c,) }"
    assert str(closed) == repr(closed) == closed.pretty_print() == str(closed.jaxpr)
    assert str(closed.eqns[0]) == "a:f32[] = sin b"


def test_calls_and_constants():
    closed = make_jaxpr(lambda x: st.jit(snp.sin)(x) + snp.arange(2.0))(snp.ones(2))
    assert str(closed).splitlines() == [
        "{ lambda a:f32[2]; b:f32[2]. let",
        "    c:f32[2] = jit[",
        "      name=sin",
        "      jaxpr={ lambda ; d:f32[2]. let e:f32[2] = sin d in (e,) }",
        "    ] b",
        "    f:f32[2] = add c a",
        "  in (f,) }",
    ]


def test_loops_and_branches():
    def f(xs):
        total, _ = st.lax.scan(lambda c, x: (c * x + snp.sin(x), None), 0.0, xs)
        return st.lax.cond(total > 0, lambda y: y, lambda y: -y, total)

    assert (
        str(make_jaxpr(f)(snp.arange(5.0)))
        == """\
{ lambda ; a:f32[5]. let
    b:f32[] = scan[
      jaxpr={ lambda ; c:f32[] d:f32[]. let
          e:f32[] = mul c d
          f:f32[] = sin d
          g:f32[] = add e f
        in (g,) }
      length=5
      num_carry=1
      num_consts=0
      reverse=False
      unroll=1
    ] 0.0:f32[] a
    h:bool[] = gt b 0.0:f32[]
    i:i32[] = convert_element_type[new_dtype=int32 weak_type=False] h
    j:f32[] = cond[
      branches=(
        { lambda ; k:f32[]. let l:f32[] = neg k in (l,) }
        { lambda ; m:f32[]. let  in (m,) }
      )
    ] i b
  in (j,) }"""
    )


def test_letters():
    letters = _letters()
    first = [next(letters) for _ in range(28)]
    assert first[0] == "a" and first[25:] == ["z", "ba", "bb"]
