"""Arithmetic: the laws, special values, NumPy, and what is refused."""

import numpy as np
import pytest

import stretto as st
from stretto import grad, jit, vjp
from stretto import numpy as snp
from stretto._engine.ops import arithmetic as ops
from stretto.laws import (
    b1,
    bf16,
    c64,
    c128,
    check_special,
    f16,
    f32,
    f64,
    i8,
    i32,
    law,
    special_pairs,
    special_values,
    u32,
)

BINARY = {
    ops.Add: (ops.add, (f32, f64, bf16, f16, i32, i8, u32, b1, c64, c128)),
    ops.Sub: (ops.subtract, (f32, f64, bf16, i32, u32, c64)),
    ops.Mul: (ops.multiply, (f32, f64, bf16, i32, i8, u32, b1, c64, c128)),
}
UNARY = {
    ops.Neg: (ops.negative, (f32, f64, bf16, i32, u32, c64)),
    ops.Abs: (ops.absolute, (f32, f64, bf16, i32, c64, c128)),
    ops.Sign: (ops.sign, (f32, f64, bf16, i8, u32, c64, c128)),
    ops.Square: (ops.square, (f32, f64, bf16, i32, c64)),
}

# Difference quotients are taken in 64 bits anyway, and vmap treats all dtypes alike.
LESS = {
    f64: {"derivative": False, "mapped": False},
    **{t: {"mapped": False} for t in (bf16, f16, i8, u32, c128)},
}
LAWS = [
    *(
        law(p, f, t(2, 3), t(2, 3), **LESS.get(t, {}))
        for p, (f, types) in BINARY.items()
        for t in types
    ),
    *(law(p, f, t(2, 3), **LESS.get(t, {})) for p, (f, types) in UNARY.items() for t in types),
    law(ops.Add, ops.add, f64(2, 3), f64(2, 3)),
    law(ops.Square, ops.square, u32(2, 3)),
    law(ops.Mul, ops.multiply, f64(2, 3), bf16(2, 3)),
    *(
        law(ops.Div, ops.divide, t(2, 3), t(2, 3).within(1, 2), **LESS.get(t, {}))
        for t in (f32, f64, bf16, i32, u32, i8, c64, c128)
    ),
    law(ops.Div, ops.divide, i32(20), i32(20).within(-3, 0)),  # by zero too
    # inside one period, where the remainder is smooth
    *(
        law(ops.Rem, ops.remainder, t(9).within(4.1, 4.4), t(9).within(1.5, 1.9), **LESS.get(t, {}))
        for t in (f32, f64, bf16)
    ),
    *(law(ops.Rem, ops.remainder, t(20), t(20).within(-3, 0)) for t in (i32, u32)),
    law(ops.Add, ops.add, f32(), f32()),
    law(ops.Mul, ops.multiply, f32(2, 0), f32(2, 0)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


ONE = {"negative": ops.negative, "absolute": ops.absolute, "sign": ops.sign, "square": ops.square}
TWO = {
    "add": ops.add,
    "subtract": ops.subtract,
    "multiply": ops.multiply,
    "divide": ops.divide,
    "remainder": ops.remainder,
}
SMALL = ["float8_e4m3fn", "bfloat16", "float16"]
INTEGERS = ["int4", "uint8", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("name", [*SMALL, "float32", "float64"])
def test_special_floats(name):
    check_special(ONE, special_values(name))
    check_special(TWO, *special_pairs(name))


@pytest.mark.parametrize("name", INTEGERS)
def test_special_integers(name):
    check_special(ONE, special_values(name))
    check_special(TWO, *special_pairs(name))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_special_complex(name):
    check_special(ONE, special_values(name))
    names = ("add", "subtract", "multiply", "divide")
    check_special({k: TWO[k] for k in names}, *(x[::7] for x in special_pairs(name)))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_shapes(shape):
    x = np.ones(shape, np.float32)
    for f in ONE.values():
        check_special({"f": f}, x)
        assert f(x).shape == shape


def test_integer_division_truncates_and_wraps():
    least = np.iinfo(np.int32).min
    x, y = np.array([7, -7, 7, -7, 5, least], np.int32), np.array([2, 2, -2, -2, 0, -1], np.int32)
    np.testing.assert_array_equal(ops.divide(x, y), [3, -3, -3, 3, -1, least])
    np.testing.assert_array_equal(ops.remainder(x, y), [1, -1, 1, -1, 5, 0])
    unsigned = np.array([5], np.uint32)
    np.testing.assert_array_equal(ops.divide(unsigned, np.uint32(0)), [2**32 - 1])


def test_absolute_is_flat_at_zero():
    assert float(grad(ops.absolute)(0.0)) == 0.0
    # the gradient of a real function of a complex number: conj(z) / |z|
    (ct,) = vjp(ops.absolute, np.complex64(3 + 4j))[1](np.float32(1))
    np.testing.assert_allclose(ct, 0.6 - 0.8j, rtol=1e-6)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ops.add([1], 2), r"add: x must be an array or a number; got a list. Wrap it"),
        (lambda: ops.subtract(True, False), r"sub: expected an array of kind complex or float or"),
        (lambda: ops.remainder(1j, 2), r"rem: expected an array of kind float or int or uint, got"),
    ],
)
def test_refused_types(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_refused_shapes():
    with pytest.raises(
        ValueError, match=r"mul: shapes \(2,\) and \(3,\) do not broadcast: axis -1"
    ):
        ops.multiply(np.ones(2), np.ones(3))


def test_large_numbers_become_infinite_without_remark():
    # pytest turns warnings to errors
    assert np.isinf(ops.add(1e300, 1.0))
    assert np.isinf(ops.multiply(np.ones(1, np.float16), 1e5))[0]
    assert np.isinf(ops.negative(np.array([1e300])))[0]
    assert np.isinf(jit(lambda x: ops.multiply(x, 1e300))(np.float32(1)))


@pytest.mark.parametrize("dtype, number", [("int32", 2**40), ("uint8", -1), ("int4", 9)])
def test_integers_that_do_not_fit(dtype, number):
    with pytest.raises(OverflowError, match=f"the Python integer {number} does not fit in {dtype}"):
        ops.add(snp.ones(2, dtype), number)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_of_quotients_do_not_overflow_between(dtype):
    with st.enable_x64():
        large = np.full(5000, np.sqrt(np.finfo(dtype).max) * 1e5, dtype)
        small = 1 / large
        for fun, x, want in (
            (lambda x: x / (x + 1) / x, large, small),
            (lambda x: x / (x + x) / x, small, large / 2),
            (lambda x: x / (x / (x + 1)), large, large),
            (lambda x: x / (x + 1) / (x / (x + 1)), large, np.ones_like(large)),
        ):
            np.testing.assert_allclose(st.jit(fun)(x), want, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-15, 1.0, 1e30])
def test_the_slope_of_a_quotient_has_its_range(size):
    x = np.full(5000, size, np.float32)
    for way in (lambda f: f, st.jit):
        slopes = way(st.grad(lambda x, y: (x / y).sum(), (0, 1)))(x, x)
        np.testing.assert_allclose(slopes, [1 / x, -1 / x], rtol=1e-6)
        _, tangent = way(lambda x, v: st.jvp(lambda x, y: x / y, (x, x), (v, v * 0.5)))(x, x)
        np.testing.assert_allclose(tangent, np.full(5000, 0.5), rtol=1e-6)

    def share(x):
        return snp.sum(snp.exp(x) / (snp.exp(x) + 0.125))

    got = st.jit(st.grad(share))(np.linspace(40, 87, 5000, dtype=np.float32))
    assert np.all(np.abs(np.asarray(got)) < 1e-6)
