"""``make_jaxpr``, and functions of jaxprs."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.errors import ProgramError
from stretto.compat.jax.jaxprs.making import (
    check_jaxpr,
    eval_jaxpr,
    jaxpr_as_fun,
    jaxprs_in_params,
    make_jaxpr,
    subjaxprs,
)


def test_arrays_from_outside_are_constants_and_others_arguments():
    outer = snp.arange(3.0)
    closed = make_jaxpr(lambda x, y: {"out": outer * x["a"] + y})({"a": 1.0}, snp.ones(3))
    assert [v.aval.shape for v in closed.jaxpr.invars] == [(), (3,)]
    assert closed.consts[0] is outer
    assert jaxpr_as_fun(closed)(2.0, snp.ones(3))[0].tolist() == [1.0, 3.0, 5.0]


def test_traced_values_from_outside_are_constants():
    def f(x):
        closed = make_jaxpr(lambda y: snp.sin(y) * x)(1.0)
        return eval_jaxpr(closed.jaxpr, closed.consts, 2.0)[0]

    assert float(st.grad(f)(3.0)) == pytest.approx(float(snp.sin(2.0)))


@pytest.mark.parametrize("number", [2.0, np.float32(2), np.zeros(3), np.int32(2), True])
def test_single_numbers_from_outside_are_constants_too(number):
    """Closures that differ in their numbers alone have jaxprs of one form."""
    outer = snp.asarray(number)
    lengths = []

    def consts_of(x):
        closed = make_jaxpr(lambda y: snp.where(y > 0, y * x, 1) + snp.zeros(3) * 2)(snp.ones(3))
        lengths.append(len(closed.consts))
        return closed.consts

    assert consts_of(outer)[0] is outer
    st.jit(lambda x: consts_of(x + 1)[0])(outer)
    st.jit(lambda x: consts_of(snp.zeros(3))[0] + x)(outer)
    assert lengths == [1, 1, 1]
    inside = make_jaxpr(lambda y: st.jit(lambda z: z * outer)(y) + snp.asarray(3.0))(1.0)
    assert len(inside.consts) == 1
    assert inside.consts[0] is outer


def test_numbers_that_the_function_makes_are_no_constants():
    lengths = []

    def f(y):
        one = snp.ones(())
        lengths.append(len(make_jaxpr(lambda z: z + one)(y).consts))
        return snp.full(2, 3.0) * y + one + snp.asarray(np.float32(2)) + 5

    assert make_jaxpr(f)(1.0).consts == []
    assert lengths == [1]


def test_arguments():
    closed, shape = make_jaxpr(lambda n, x: x * n, static_argnums=0, return_shape=True)(2, 1.0)
    assert len(closed.in_avals) == 1
    assert shape == st.ShapeDtypeStruct((), "float32", weak_type=True)
    named = make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 4)])
    assert [str(e.primitive) for e in named(1.0).eqns] == ["psum"]
    assert make_jaxpr(snp.sin)(st.ShapeDtypeStruct((2,), "float32")).in_avals[0].shape == (2,)
    with pytest.raises(TypeError, match="make_jaxpr: expected a function, got int"):
        make_jaxpr(3)


def test_jaxprs_inside():
    closed = make_jaxpr(lambda x: lax.cond(x > 0, snp.sin, st.jit(snp.cos), x))(1.0)
    (cond,) = [e for e in closed.eqns if str(e.primitive) == "cond"]
    assert len(list(jaxprs_in_params(cond.params))) == 2
    assert list(subjaxprs(closed.jaxpr)) == list(jaxprs_in_params(cond.params))


def test_check():
    closed = make_jaxpr(lambda x: snp.cos(snp.sin(x)))(1.0)
    check_jaxpr(closed.jaxpr)
    with pytest.raises(ProgramError, match=r"equation 0 \(cos\) reads a variable"):
        check_jaxpr(closed.jaxpr.replace(eqns=closed.eqns[::-1]))
    with pytest.raises(ProgramError, match=r"equation 1 \(sin\) assigns a variable once more"):
        check_jaxpr(closed.jaxpr.replace(eqns=[closed.eqns[0]] * 2))
