"""Zeros, arguments that are undefined, and shorthand for derivative rules."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.types import array_type, float0
from stretto.compat.jax.avals import ShapedArray
from stretto.compat.jax.jaxprs import own
from stretto.compat.jax.jaxprs.primitive import Primitive

VECTOR = ShapedArray((2,), "float32")


def test_zeros():
    zero = own.Zero(VECTOR)
    assert repr(zero) == "Zero(float32[2])"
    assert own.instantiate_zeros(zero).tolist() == [0.0, 0.0]
    assert own.instantiate_zeros(3) == 3
    assert own.zeros_like_aval(ShapedArray((2,), "int32")).dtype == np.int32
    assert own.zeros_like_aval(ShapedArray((2,), float0)).dtype == float0
    assert own.Zero.from_primal_value(snp.array([1, 2])).aval.dtype == float0
    assert st.tree.leaves([zero, 1.0]) == [1.0]
    assert own.add_tangents(zero, 2.0) == own.add_tangents(2.0, zero) == 2.0
    assert float(own.add_tangents(snp.array(1.0), 2.0)) == float(own.add_jaxvals(1.0, 2.0)) == 3.0


def test_zeros_of_rules_of_functions():
    zero = own.SymbolicZero(VECTOR)
    assert zero == st.typing.SymbolicZero((2,), np.dtype("float32"))
    assert isinstance(zero, own.SymbolicZero) and not isinstance(3, own.SymbolicZero)


def test_closed_over_values_that_a_rule_gives_no_derivative_by():
    def closed_over(w):
        f = st.custom_vjp(lambda x: w * x)
        f.defvjp(lambda x: (f(x), None), lambda _, g: (g,))
        return f(2.0)

    with pytest.raises(own.CustomVJPException, match="from outside"):
        st.grad(closed_over)(3.0)


def test_undefined_primals():
    undefined = own.as_operand(Linear(array_type((2,), np.dtype("float32"))))
    assert own.is_undefined_primal(undefined) and undefined.aval == VECTOR
    assert repr(undefined) == "UndefinedPrimal(float32[2])"
    assert not own.is_undefined_primal(own.as_operand(snp.ones(2)))
    assert own.from_cotangent(1.0, undefined) == 1.0
    assert own.from_cotangent(1.0, snp.ones(())) is None
    assert own.from_cotangent(own.Zero(VECTOR), undefined) is None


def product():
    p = Primitive("product")
    p.def_impl(lambda x, y: x * y)
    own.defbilinear(p, lambda ct, x, y: p.bind(ct, y), lambda ct, x, y: p.bind(x, ct))
    return p


def test_bilinear():
    p = product()
    assert [float(g) for g in st.grad(p.bind, (0, 1))(2.0, 3.0)] == [3.0, 2.0]
    assert float(st.grad(lambda x: p.bind(x, p.bind(x, x)))(2.0)) == 12.0


def test_linear():
    p = Primitive("tripled")
    p.def_impl(lambda x: 3 * x)
    own.deflinear(p, lambda ct: [p.bind(ct)])
    assert float(st.grad(lambda x: p.bind(x) * p.bind(x))(1.0)) == 18.0
    out, tangent = own.primitive_jvps[p]((1.0,), (own.Zero(VECTOR),))
    assert float(out) == 3.0 and type(tangent) is own.Zero


def test_rules_by_operand():
    p = Primitive("power")
    p.def_impl(lambda x, n: x**n)
    own.defjvp2(p, lambda dx, out, x, n: dx * n * out / x, None)
    assert float(st.grad(p.bind)(2.0, 3.0)) == pytest.approx(12.0)
    assert float(st.grad(p.bind, 1)(2.0, 3.0)) == 0.0


def test_tracers():
    seen = []
    st.jvp(lambda x: seen.append(isinstance(x, own.JVPTracer)) or x, (1.0,), (1.0,))
    assert seen == [True]
