"""Extrema and clamping: the laws, special values, NumPy's order of complex numbers, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import grad
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops import extrema as ops
from stretto.laws import (
    b1,
    bf16,
    check_special,
    f32,
    f64,
    i32,
    law,
    special_pairs,
    special_values,
    u32,
)

BINARY = {
    ops.Max: (ops.maximum, (f32, f64, bf16, i32, u32, b1)),
    ops.Min: (ops.minimum, (f32, f64, bf16, i32, u32, b1)),
}

# Difference quotients are taken in 64 bits anyway, and vmap treats all dtypes alike.
LESS = {f64: {"derivative": False, "mapped": False}, **{t: {"mapped": False} for t in (bf16, u32)}}
LAWS = [
    *(
        law(p, f, t(2, 3), t(2, 3), **LESS.get(t, {}))
        for p, (f, types) in BINARY.items()
        for t in types
    ),
    *(
        law(ops.Clamp, ops.clamp, t(5).within(-2, -1), t(5), t(5).within(1, 2), **LESS.get(t, {}))
        for t in (f32, f64, bf16, i32, u32)
    ),
]
NAN = np.nan
X = np.array([1 + 2j, 1 - 1j, 3, complex(NAN, 1), complex(1, NAN), 1 + 1j, -np.inf], np.complex64)
Y = np.array([1 + 1j, 2, 3 + 1j, 1, 1 + 1j, complex(0, NAN), 5j], np.complex64)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


TWO = {"maximum": ops.maximum, "minimum": ops.minimum}
FLOATS = ["float8_e4m3fn", "bfloat16", "float16", "float32", "float64"]
INTEGERS = ["int4", "uint8", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_special_values(name):
    check_special(TWO, *special_pairs(name))


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int32"])
def test_clamp_special(name):
    values = special_values(name)[:: 3 if name == "int32" else 4]
    grid = [x.ravel() for x in np.meshgrid(values, values, values)]
    check_special({"clamp": ops.clamp}, *grid)


def test_extrema_order_zeros_and_pass_on_nan():
    zeros = np.array([0.0, -0.0, -0.0], np.float32), np.array([-0.0, 0.0, -0.0], np.float32)
    assert np.signbit(ops.maximum(*zeros)).tolist() == [False, False, True]
    assert np.signbit(ops.minimum(*zeros)).tolist() == [True, True, True]
    assert np.isnan(ops.maximum(np.float32(np.nan), 1.0))


def test_extrema_share_the_derivative_at_ties():
    assert float(grad(ops.maximum)(1.0, 1.0)) == 0.5
    assert float(grad(ops.maximum)(2.0, 1.0)) == 1.0
    assert float(grad(ops.minimum, 1)(1.0, 1.0)) == 0.5


def test_clamp_has_no_derivative_outside():
    f = lambda x: ops.clamp(-1.0, x, 1.0)
    assert [float(grad(f)(x)) for x in (-2.0, 0.5, 2.0)] == [0.0, 1.0, 0.0]
    bounds = grad(lambda low, high: ops.clamp(low, 5.0, high), (0, 1))(0.0, 1.0)
    assert [float(b) for b in bounds] == [0.0, 1.0]


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_extrema_of_complex_numbers_are_numpys(name):
    f = getattr(snp, name)
    for g in (f, st.jit(f), st.vmap(f)):
        np.testing.assert_array_equal(g(X, Y), getattr(np, name)(X, Y))
    np.testing.assert_array_equal(f(X[:3], 2.0), getattr(np, name)(X[:3], 2))


def test_lax_orders_complex_numbers_too():
    np.testing.assert_array_equal(st.lax.max(X, Y), np.maximum(X, Y))
    np.testing.assert_array_equal(st.lax.min(X, Y), np.minimum(X, Y))
    assert ops.complex_greater(snp.array(X), snp.array(Y)).tolist()[:3] == [True, False, False]
    np.testing.assert_array_equal(ops.complex_extremum(snp.array(X), snp.array(Y), True)[0], X[0])


def test_complex_derivatives_go_to_the_one_chosen_and_half_at_ties():
    slope = st.grad(lambda x: snp.maximum(x, 2 + 0j).real)
    assert [complex(slope(z)) for z in (3 + 1j, 1 + 1j, 2 + 0j)] == [1, 0, 0.5]


def test_refused():
    with pytest.raises(TypeError, match=r"max: x must be an array or a number; got builtins.str"):
        ops.maximum("a", 1)


@pytest.mark.parametrize("greatest", [True, False])
def test_of_equal_complex_numbers_it_is_either(greatest):
    x = np.array([3 - 4j, 0, -1.5 + 2j, 1e30j], np.complex64)
    got = ops.complex_extremum(as_value(x), as_value(x.copy()), greatest)
    np.testing.assert_array_equal(np.asarray(got), x)
    a, b = (
        np.array([1 + 2j, 2, 1 + 2j], np.complex64),
        np.array([1 + 3j, 1 + 9j, 1 + 2j], np.complex64),
    )
    want = [1 + 3j, 2, 1 + 2j] if greatest else [1 + 2j, 1 + 9j, 1 + 2j]
    np.testing.assert_array_equal(ops.complex_extremum(as_value(a), as_value(b), greatest), want)
