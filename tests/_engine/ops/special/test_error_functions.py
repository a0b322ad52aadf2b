"""The error function, its complement and its inverse: laws, special values, SciPy."""

import numpy as np
import pytest
from scipy import special

import stretto
from stretto._engine.core.config import enable_x64
from stretto._engine.ops.special import error_functions as ops
from stretto._engine.ops.special.error_functions import _BLOCK, erf_inv_float32
from stretto.laws import bf16, check_special, f32, f64, law, special_values

FUNCTIONS = {
    ops.Erf: (ops.erf, -2, 2),
    ops.Erfc: (ops.erfc, -2, 2),
    ops.ErfInv: (ops.erf_inv, -0.9, 0.9),
}
# Difference quotients are taken in 64 bits anyway, and vmap treats all dtypes alike.
LESS = {f64: {"derivative": False, "mapped": False}, bf16: {"mapped": False}}
LAWS = [
    law(p, f, t(2, 3).within(low, high), **LESS.get(t, {}))
    for p, (f, low, high) in FUNCTIONS.items()
    for t in (f32, f64, bf16)
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", ["float8_e4m3fn", "bfloat16", "float16", "float32", "float64"])
def test_special_floats(name):
    check_special({f.__name__: f for f, *_ in FUNCTIONS.values()}, special_values(name))


def test_they_are_scipy_s():
    x = np.linspace(-3, 3, 25)
    with enable_x64():
        np.testing.assert_allclose(ops.erf(x), special.erf(x), rtol=1e-14)
        np.testing.assert_allclose(ops.erfc(x), special.erfc(x), rtol=1e-14)
        np.testing.assert_allclose(ops.erf_inv(x / 4), special.erfinv(x / 4), rtol=1e-14)
    np.testing.assert_allclose(ops.erf_inv(x / 4), special.erfinv(x / 4), rtol=1e-5)
    np.testing.assert_array_equal(
        ops.erf_inv(np.array([-1.0, 1.0, 2.0])), [-np.inf, np.inf, np.nan]
    )


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("value", [-np.inf, -2.0, -0.3, 0.0, 1e-30, 0.7, 5.0, np.inf, np.nan])
def test_literals_fold_to_scipys_values(name, value):
    with enable_x64():
        dtype = stretto.numpy.dtype(name)
        for function, expected in ((ops.erf, special.erf), (ops.erfc, special.erfc)):
            program = stretto.make_graph(
                lambda f=function: f(stretto.numpy.asarray(value, dtype))
            )()
            assert not program.equations
            target = expected(np.asarray(value, dtype).astype(np.float64))
            np.testing.assert_allclose(
                np.asarray(program.outputs[0].value, np.float64),
                target.astype(dtype).astype(np.float64),
                rtol=2 * float(stretto.numpy.finfo(dtype).eps),
            )


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # callers have them off


def test_close_to_the_inverse():
    x = np.linspace(-0.99999, 0.99999, 4001).astype(np.float32)
    got = erf_inv_float32(x)
    assert got.dtype == np.float32
    want, central = special.erfinv(x.astype(float)), abs(x) < 0.99
    np.testing.assert_allclose(got[central], want[central], rtol=4e-7)
    # Nearer to the ends the rounding of x^2 counts: by 2^-25 of a 1 - x^2 of at least 2e-5.
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_odd_to_the_bit():
    x = np.array([1e-30, 0.1, 0.6, 0.99, 0.9999999], np.float32)
    np.testing.assert_array_equal(erf_inv_float32(-x), -erf_inv_float32(x))
    assert np.signbit(erf_inv_float32(np.float32([-0.0])))[0]


def test_ends_and_beyond():
    x = np.array([1, -1, 1.5, -2, np.nan], np.float32)
    np.testing.assert_array_equal(erf_inv_float32(x), [np.inf, -np.inf, np.nan, np.nan, np.nan])


def test_the_last_numbers_before_one():
    """Where x² is exact in float32, and with it what the polynomial of the tail is taken of."""
    x = 1 - np.arange(1, 9, dtype=np.float32) * np.float32(2**-24)
    # One unit in the last place is up to 1.2e-7.
    np.testing.assert_allclose(erf_inv_float32(x), special.erfinv(x.astype(float)), rtol=1.6e-7)


def test_about_the_border_of_the_two_polynomials():
    """w = -log(1 - x^2) is 5 at x = sqrt(1 - e^-5)."""
    x = np.float32(np.sqrt(1 - np.exp(-5))) + np.arange(-8, 9) * np.float32(2**-24)
    got = erf_inv_float32(x.astype(np.float32))
    assert (np.diff(got) >= 0).all()
    np.testing.assert_allclose(got, special.erfinv(x.astype(np.float32).astype(float)), rtol=4e-7)


def test_blocks_are_the_same_as_all_at_once():
    x = np.random.default_rng(0).uniform(-1, 1, (3, _BLOCK)).astype(np.float32)
    got = erf_inv_float32(x)
    assert got.shape == x.shape
    np.testing.assert_array_equal(got[1], erf_inv_float32(x[1]))
    assert erf_inv_float32(x[:0]).shape == (0, _BLOCK)
