"""Inverse trigonometric and hyperbolic functions: the laws, special values, NumPy."""

import numpy as np
import pytest

from stretto import enable_x64, grad, jit, jvp
from stretto._engine.ops import inverse_trigonometric as ops
from stretto.laws import (
    FULLY,
    bf16,
    c64,
    check_special,
    f32,
    f64,
    law,
    special_pairs,
    special_values,
)

FUNCTIONS = {
    ops.Asin: (ops.asin, -0.9, 0.9),
    ops.Acos: (ops.acos, -0.9, 0.9),
    ops.Atan: (ops.atan, -2, 2),
    ops.Asinh: (ops.asinh, -2, 2),
    ops.Acosh: (ops.acosh, 1.2, 3),
    ops.Atanh: (ops.atanh, -0.9, 0.9),
}
NUMPY = {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
# Difference quotients are taken in 64 bits anyway, and vmap treats all dtypes alike.
LESS = {f64: {"derivative": False, "mapped": False}, **{t: {"mapped": False} for t in (bf16, c64)}}
LAWS = [
    *(
        law(p, f, t(2, 3).within(low, high), **LESS.get(t, {}))
        for p, (f, low, high) in FUNCTIONS.items()
        for t in (f32, f64, bf16, c64)
    ),
    *(
        law(ops.Atan2, ops.atan2, t(2, 3), t(2, 3).within(0.5, 2), **LESS.get(t, {}))
        for t in (f32, f64, bf16)
    ),
]
BY_NAME = {f.__name__: f for f, *_ in FUNCTIONS.values()}


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "float64"])
def test_special_floats(name):
    check_special(BY_NAME, special_values(name))
    check_special({"atan2": ops.atan2}, *special_pairs(name))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_special_complex(name):
    """Signs of zeros differ, and, where a part is infinite or NaN, what the other part is."""
    check_special(BY_NAME, special_values(name))


@pytest.mark.parametrize("name", BY_NAME)
def test_values_are_numpy_s(name):
    x = np.array([0.1, 0.5, 0.9], np.float32) + (1 if name == "acosh" else 0)
    np.testing.assert_allclose(BY_NAME[name](x), NUMPY[name](x), rtol=1e-6)


def test_quadrants():
    y, x = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, -1.0, -1.0, 1.0])
    np.testing.assert_allclose(ops.atan2(y, x), np.arctan2(y, x), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("moving", [(0,), (1,), (0, 1)])
def test_derivatives_of_halves_are_rounded_once(dtype, moving):
    """What one operand changes where the other stays; its square is beyond what a half holds."""
    given = [np.array([300.0, 1.5, -0.25], dtype), np.array([-400.0, 0.5, 2.0], dtype)]

    def derivative(operands):
        f = lambda *x: ops.atan2(
            *[x[moving.index(i)] if i in moving else operands[i] for i in (0, 1)]
        )
        x = tuple([operands[i] for i in moving])
        return jvp(f, x, tuple([np.full_like(v, 0.75) for v in x]))[1]

    got = derivative(given)
    expected = derivative([x.astype(np.float32) for x in given])
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got), np.asarray(expected).astype(dtype))


def test_derivative_outside_the_domain_is_nan():
    assert np.isnan(grad(ops.asin)(2.0))
    assert np.isinf(grad(ops.asin)(1.0))


def test_integers_become_floats():
    assert ops.asin(np.array([1])).dtype == np.float32
    assert ops.atan2(1, 2).dtype == np.float32


def test_refused():
    with pytest.raises(TypeError, match="atan2: expected an array of kind float, got complex64"):
        ops.atan2(1j, 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arctan_is_right_to_the_last_place(dtype):
    """In arrays that XLA cannot cut into equal parts its own kernel has errors of 3 to 5 units."""
    rng = np.random.default_rng(0)
    size = np.concatenate([rng.uniform(0, 3, 40_000), 2.0 ** rng.uniform(-100, 100, 25_537)])
    x = (size * rng.choice([-1, 1], size.size)).astype(dtype)
    want = np.arctan(x.astype(np.longdouble)).astype(dtype)
    with enable_x64():
        got = jit(ops.atan, compiler_options=FULLY)(x)
    np.testing.assert_array_max_ulp(np.asarray(got), want, 1)


@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_slopes_where_squares_leave_the_range(way):
    x = np.array([1e-30, 1e-3, 1.0, 3e3, 1e5, 1e18, 1e25, 1e37], np.float32)
    wide = x.astype(np.float64)
    slope = way(grad(lambda x: ops.asinh(x).sum()))
    np.testing.assert_allclose(slope(x), 1 / np.hypot(1, wide), rtol=3e-7)
    np.testing.assert_allclose(slope(-x), 1 / np.hypot(1, wide), rtol=3e-7)
    slopes = way(grad(lambda y, x: ops.atan2(y, x).sum(), (0, 1)))(x, 2 * x)
    np.testing.assert_allclose(slopes, [0.4 / wide, -0.2 / wide], rtol=1e-6)
