"""Trigonometric and hyperbolic functions: the laws, special values, NumPy."""

import numpy as np
import pytest

from stretto import enable_x64, jit
from stretto._engine.ops import trigonometric as ops
from stretto.laws import FULLY, bf16, c64, c128, check_special, f32, f64, law, special_values

FUNCTIONS = {
    ops.Sin: (ops.sin, -3, 3),
    ops.Cos: (ops.cos, -3, 3),
    ops.Tan: (ops.tan, -1, 1),
    ops.Sinh: (ops.sinh, -2, 2),
    ops.Cosh: (ops.cosh, -2, 2),
    ops.Tanh: (ops.tanh, -2, 2),
}
# Difference quotients are taken in 64 bits anyway, and vmap treats all dtypes alike.
LESS = {f64: {"derivative": False, "mapped": False}, **{t: {"mapped": False} for t in (bf16, c64)}}
LAWS = [
    *(
        law(p, f, t(2, 3).within(low, high), **LESS.get(t, {}))
        for p, (f, low, high) in FUNCTIONS.items()
        for t in (f32, f64, bf16, c64)
    ),
    law(ops.Sin, ops.sin, f64(2, 3)),
    *[law(ops.SechSquared, ops.sech_squared, t(2, 3).within(-2, 2)) for t in (f32, f64, bf16)],
    law(ops.Sinh, ops.sinh, c128(2, 3)),
    law(ops.Sin, ops.sin, f32()),
    law(ops.Sinh, ops.sinh, c64(2, 0)),
]
BY_NAME = {f.__name__: f for f, *_ in FUNCTIONS.values()}


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "float64"])
def test_special_floats(name):
    check_special(BY_NAME, special_values(name))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_special_complex(name):
    """Signs of zeros differ, and, where a part is infinite or NaN, what the other part is."""
    check_special(BY_NAME, special_values(name))


@pytest.mark.parametrize("name", BY_NAME)
def test_values_are_numpy_s(name):
    x = np.array([0.1, 0.5, 0.9], np.float32)
    np.testing.assert_allclose(BY_NAME[name](x), getattr(np, name)(x), rtol=1e-6)


def test_sech_squared_is_exact_in_its_tails():
    x = np.array([0.0, 1e-4, 3.0, -40.0, 43.0, 60.0, np.inf, -np.inf], np.float32)
    with np.errstate(over="ignore"):
        want = np.cosh(x.astype(np.float64)) ** -2.0
    for f in (ops.sech_squared, jit(ops.sech_squared)):
        np.testing.assert_allclose(f(x), want, rtol=2e-6, atol=2e-38)
        assert np.isnan(f(np.float32(np.nan)))


@pytest.mark.parametrize("f", [ops.sin, ops.sinh, ops.tan, ops.tanh])
def test_small_complex_numbers_keep_their_digits(f):
    z = np.array([5e-7 - 1.7e-6j, 1e-6, 1e-6j], np.complex64)
    np.testing.assert_allclose(jit(f)(z), z, rtol=1e-6)


def test_large_imaginary_part_of_sine_on_the_axis():
    z = np.array([100j, -100j], np.complex64)
    np.testing.assert_array_equal(np.real(jit(ops.sin)(z)), [0, 0])
    np.testing.assert_array_equal(np.imag(jit(ops.sinh)(z * -1j)), [0, 0])


@pytest.mark.parametrize("name", ["sinh", "cosh"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_hyperbolic_functions_keep_their_digits(dtype, name):
    """To their largest results; as log(1/2) is not added, some ulps, and not hundreds."""
    most = np.log(np.finfo(dtype).max) + 0.69
    x = np.linspace(-most, most, 20_001).astype(dtype)
    want = getattr(np, name)(x.astype(np.longdouble)).astype(dtype)
    with enable_x64():
        got = jit(BY_NAME[name], compiler_options=FULLY)(x)
    np.testing.assert_array_max_ulp(np.asarray(got), want, 6)  # exp's are 5


def test_integers_become_floats():
    assert ops.sin(np.array([1])).dtype == np.float32
    assert ops.sin(True).dtype == np.float32


def test_refused():
    with pytest.raises(TypeError, match="sin: x must be an array or a number; got a list"):
        ops.sin([1.0])
