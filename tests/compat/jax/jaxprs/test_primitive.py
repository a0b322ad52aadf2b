"""The objects that equations name."""

import pytest

import stretto.numpy as snp
from stretto._engine.core.interpreter import state
from stretto.compat.jax.avals import ShapedArray
from stretto.compat.jax.jaxprs.operations import primitive_of
from stretto.compat.jax.jaxprs.primitive import KnownPrimitive, Primitive, find_primitive, known


def test_of_a_library():
    p = Primitive("mine")
    assert (repr(p), p.multiple_results, p.call_primitive) == ("mine", False, False)
    assert p.def_impl(snp.sin) is snp.sin
    assert float(p.impl(0.0)) == float(p.bind(0.0)) == 0.0
    assert p.get_bind_params({"a": 1}) == {"a": 1}
    assert float(p.bind_with_trace(state.interpreter, (0.0,), {})) == 0.0
    assert len({p, Primitive("mine"), p}) == 2


def test_of_stretto():
    sin = primitive_of("sin")
    assert isinstance(sin, KnownPrimitive)
    assert float(sin.impl(0.0, accuracy=None)) == 0.0
    assert primitive_of("sort").multiple_results
    vector = ShapedArray((2,), "float32")
    assert sin.abstract_eval(vector, accuracy=None) == (vector, frozenset())
    condition = ShapedArray((2,), "bool")
    assert primitive_of("select_n").abstract_eval(condition, vector, vector)[0] == vector
    with pytest.raises(TypeError, match="sin: operand 0 must be an array or a number"):
        sin.bind("a")


def test_names_are_one():
    assert find_primitive("sin") is primitive_of("sin")
    assert known("sin", lambda: Primitive("another")) is primitive_of("sin")
    assert find_primitive("nonsense") is None


def test_numbers_stand_for_arrays_of_elements():
    assert primitive_of("mul").bind(snp.ones(2), 3.0).tolist() == [3.0, 3.0]
