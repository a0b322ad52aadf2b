"""From programs to jaxprs and back. And how parameters are spelled."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.program import Equation
from stretto._engine.ops.layout import Reshape
from stretto.compat.jax.jaxprs import jaxpr
from stretto.compat.jax.jaxprs.jaxpr import (
    NONE,
    ClosedJaxpr,
    Field,
    Fixed,
    Literal,
    closed_jaxpr_of,
    eval_jaxpr,
    open_jaxpr_of,
    program_of,
    spell,
    spell_as_it_is,
    spell_by_hand,
)
from stretto.compat.jax.jaxprs.making import jaxpr_as_fun, make_jaxpr
from stretto.compat.jax.jaxprs.operations import primitive_of
from stretto.compat.jax.jaxprs.primitive import find_primitive


def test_a_program_has_one_view_while_anybody_has_it():
    program = st.make_graph(snp.sin)(1.0)
    view = closed_jaxpr_of(program)
    assert closed_jaxpr_of(program) is view
    assert program_of(view) is program
    gone = weakref.ref(view)
    del view
    gc.collect()
    assert gone() is None


def test_programs_are_freed_with_their_views():
    program = st.make_graph(snp.sin)(1.0)
    closed_jaxpr_of(program)
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None


def test_arrays_that_a_program_holds_become_constants():
    slope = st.custom_jvp(snp.sin)
    slope.defjvp(lambda p, t: (slope(*p), t[0] * snp.array([1.0, 2.0])))
    program = st.make_graph(lambda x: st.jvp(st.jit(slope), (x,), (x,))[1])(snp.ones(2))
    (inner,) = [e.primitive.program for e in program.equations if e.primitive.name == "call"]
    view = closed_jaxpr_of(inner)
    assert [c.tolist() for c in view.consts] == [[1.0, 2.0]]
    assert not open_jaxpr_of(inner).constvars
    (out,) = eval_jaxpr(view.jaxpr, view.consts, snp.ones(2), snp.ones(2))[1:]
    assert out.tolist() == [1.0, 2.0]
    built = program_of(view.replace(consts=[snp.array([5.0, 6.0])]))
    assert not built.inputs[2:]
    assert jaxpr_as_fun(closed_jaxpr_of(built))(snp.ones(2), snp.ones(2))[1].tolist() == [5.0, 6.0]


@pytest.mark.parametrize(("fun", "values"), [
    (lambda x: x * 2, [2.0]),
    (lambda x: x * np.float32(2), [np.float32(2)]),
    (lambda x: (x.astype(int) + 1), [1]),
])  # fmt: skip
def test_literals_are_numbers_where_operands_are_elements(fun, values):
    eqns = make_jaxpr(fun)(snp.ones(2)).eqns
    literals = [a for e in eqns for a in e.invars if isinstance(a, Literal)]
    assert [a.val for a in literals] == values
    assert all(a.aval.shape == () for a in literals)


def test_literals_of_other_operations_are_whole():
    e = make_jaxpr(lambda x: snp.concatenate([x, snp.zeros(2)]))(snp.ones(3)).eqns[0]
    assert e.invars[1].val.tolist() == [0.0, 0.0]


def test_jaxprs_made_anew_can_be_applied_by_jit():
    inner = make_jaxpr(snp.sin)(1.0)
    e = inner.eqns[0].replace(primitive=primitive_of("cos"))
    changed = ClosedJaxpr(inner.jaxpr.replace(eqns=[e]))
    assert float(primitive_of("jit").bind(0.0, jaxpr=changed, name="f")[0]) == 1.0
    fun = lambda x: primitive_of("jit").bind(x, jaxpr=changed, name="f")[0]
    assert float(st.grad(st.jit(fun))(1.0)) == pytest.approx(-np.sin(1.0))


def test_numbers_of_arguments_are_checked():
    view = make_jaxpr(snp.add)(1.0, 2.0)
    with pytest.raises(TypeError, match="takes 2 arguments and 0 constants, got 1 and 0"):
        eval_jaxpr(view.jaxpr, (), 1.0)
    with_constant = make_jaxpr(lambda x: x + snp.arange(2.0))(snp.ones(2)).jaxpr
    with pytest.raises(TypeError, match="a jaxpr with 1 constants stands where"):
        program_of(with_constant)


def test_arguments_of_other_types_are_evaluated_equation_by_equation():
    view = make_jaxpr(lambda x: snp.sin(x) * 2)(snp.ones(2))
    assert eval_jaxpr(view.jaxpr, (), 0.0)[0].shape == ()


def test_operations_of_users():
    own = st.primitive(lambda x, *, n: x**n, derive="jvp")
    view = make_jaxpr(lambda x: own(x, n=2))(3.0)
    (e,) = view.eqns
    assert (str(e.primitive), e.params["n"]) == ("power" if own.name == "power" else own.name, 2)
    assert float(e.primitive.bind(3.0, **e.params)[0]) == 9.0
    assert make_jaxpr(lambda x: own(x, n=5))(1.0).eqns[0].primitive is e.primitive


@pytest.fixture
def own_spellings(monkeypatch):
    monkeypatch.setattr("stretto.compat.jax.jaxprs.primitive._KNOWN", {})
    monkeypatch.setattr(jaxpr, "SPELLINGS", dict(jaxpr.SPELLINGS))


def params_of(cls: Any, operation: Any) -> dict:
    return jaxpr.SPELLINGS[cls].params(operation, Equation(operation, (), ()))


@pytest.mark.usefixtures("own_spellings")
def test_entries():
    entries = {"sizes": Field("shape", list, tuple), "sharding": NONE, "kept": Fixed(3)}
    spell(Reshape, "reshaped", entries)
    assert params_of(Reshape, Reshape((2, 3))) == {"sizes": [2, 3], "sharding": None, "kept": 3}
    p: Any = find_primitive("reshaped")
    assert p.build({"sizes": [6], "sharding": None}, ()) is Reshape((6,))
    assert p.bind(1.0, sizes=[1, 1]).shape == (1, 1)


@pytest.mark.usefixtures("own_spellings")
def test_by_hand():
    build = lambda params, types: Reshape((params["n"],))
    spell_by_hand(Reshape, "flat", lambda p, e: {"n": p.shape[0]}, build)
    assert params_of(Reshape, Reshape((2,))) == {"n": 2}
    assert find_primitive("flat").bind(1.0, n=1).shape == (1,)


@pytest.mark.usefixtures("own_spellings")
def test_as_it_is():
    spell_as_it_is(Reshape)
    assert params_of(Reshape, Reshape((2,))) == {"shape": (2,)}
    assert find_primitive("reshape").bind(1.0, shape=(1, 1)).shape == (1, 1)
