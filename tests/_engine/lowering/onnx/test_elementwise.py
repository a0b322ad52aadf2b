"""Operations of elements: at their edges, and by the formulas where there is no operator."""

import math

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import enable_x64, lax
from tests.export.running import agrees, exported, run

UNARY = [
    "abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "cos",
    "cosh", "exp", "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log1p", "negative",
    "rint", "sign", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip
EDGES = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1e-8, -1e-8, 30.0, -30.0, 2.5, 3.5, math.inf, -math.inf,
         math.nan]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_edges(name, dtype):
    with enable_x64(dtype == "float64"), np.errstate(all="ignore"):
        x = np.array(EDGES, dtype)
        f = getattr(snp, name)
        want = np.asarray(f(snp.array(x)))
        (got,) = run(exported(f, x), [x])
    np.testing.assert_allclose(got, want, rtol=1e-13 if dtype == "float64" else 2e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_angles_go_by_the_signs_of_zeros(dtype):
    with enable_x64(dtype == "float64"):
        values = np.array([0.0, -0.0, 1.0, -2.0, math.inf, -math.inf, math.nan], dtype)
        y, x = np.repeat(values, 7), np.tile(values, 7)
        (got,) = run(exported(snp.arctan2, y, x), [y, x])
    np.testing.assert_allclose(got, np.arctan2(y, x), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
def test_division_by_zero_and_of_the_least_integer(dtype):
    info = np.iinfo(dtype)
    values = np.array([0, 1, 2, 3, info.max, info.min, info.max - 1], dtype)
    x, y = np.repeat(values, 7), np.tile(values, 7)
    f = st.jit(lambda x, y: (lax.div(x, y), lax.rem(x, y)))
    for got, want in zip(run(exported(f, x, y), [x, y]), f(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
def test_shifts_by_the_width_and_more(dtype):
    info = np.iinfo(dtype)
    x = np.array([1, info.max, info.min, 77], dtype).repeat(5)
    y = np.tile(np.array([0, 1, 7, info.bits, info.bits + 3], dtype), 4)
    f = lambda x, y: (
        lax.shift_left(x, y),
        lax.shift_right_logical(x, y),
        lax.shift_right_arithmetic(x, y),
        lax.population_count(x),
        lax.clz(x),
    )
    for got, want in zip(run(exported(f, x, y), [x, y]), f(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


def test_error_functions():
    x = np.linspace(-6, 6, 101).astype("float32")
    p = np.linspace(-1, 1, 41).astype("float32")
    agrees(lambda x, p: (lax.erf(x), lax.erfc(x), lax.erf_inv(p)), x, p, rtol=3e-6)
    with enable_x64():
        x, p = x.astype("float64"), p.astype("float64")
        agrees(lambda x, p: (lax.erf(x), lax.erfc(x), lax.erf_inv(p * 0.99)), x, p, rtol=1e-13)


def test_the_next_number():
    x = np.array([0.0, -0.0, 1.0, -1.0, 1e-45, math.inf, math.nan, 5], "float32")
    y = np.array([1.0, -1.0, 2.0, 3.0, -1.0, 0.0, 1.0, 5], "float32")
    (got,) = run(exported(lax.nextafter, x, y), [x, y])
    np.testing.assert_array_equal(got, np.nextafter(x, y))


COMPLEX = ["arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cos", "cosh", "exp",
           "expm1", "log", "log1p", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "abs",
           "conj", "isfinite"]  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions(name):
    rng = np.random.default_rng(0)
    z = (rng.normal(size=40) + 1j * rng.normal(size=40)).astype("complex64")
    agrees(getattr(snp, name), z, rtol=3e-5)


def test_complex_arithmetic():
    rng = np.random.default_rng(0)
    z, w = (rng.normal(size=(2, 9)) + 1j * rng.normal(size=(2, 9))).astype("complex64")
    agrees(lambda z, w: (z + w, z * w, z / w, z**w, z == w, snp.where(z.real > 0, z, w)), z, w)


def test_coarse_tails_are_a_choice():
    x = np.array([-30.0, -18.5, 0.0, 3.0], "float32")
    want = np.asarray(lax.logistic(x))
    (got,) = run(exported(lax.logistic, x), [x])
    np.testing.assert_allclose(got, want, rtol=1e-6)
    (got,) = run(exported(lax.logistic, x, exact=False), [x])
    np.testing.assert_allclose(got, want, atol=1e-6)
