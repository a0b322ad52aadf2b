"""The gamma function and its logarithm: laws, special values, derivatives, errors' words."""

import numpy as np
import pytest

from stretto import grad, jit, lax
from stretto._engine.core.config import enable_x64
from stretto._engine.ops.special import gamma as ops
from stretto.laws import bf16, check_special, f32, f64, law, special_values

LESS = {"derivative": False, "mapped": False}
LAWS = [
    law(ops.Lgamma, ops.lgamma, f32(2, 3).within(0.2, 9)),
    law(ops.Lgamma, ops.lgamma, f64(4).within(-3.9, -3.1)),
    law(ops.Lgamma, ops.lgamma, bf16(3).within(0.2, 9), **LESS),
    law(ops.Digamma, ops.digamma, f32(2, 3).within(0.2, 9)),
    law(ops.Digamma, ops.digamma, f64(4).within(-3.9, -3.1), mapped=False),
    law(ops.Gamma, ops.gamma, f32(2, 3).within(0.2, 5)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_special_values(name):
    functions = {"lgamma": ops.lgamma, "digamma": ops.digamma, "gamma": ops.gamma}
    check_special(functions, special_values(name))


def test_lgamma_keeps_its_digits_at_its_zeros():
    """Where SciPy's has lost three of them; values by mpmath."""
    with enable_x64():
        x = np.array([1.9959563787169148, 1.001178667927367])
        want = np.array([-0.00170430265939809812, -0.000679203628009646869])
        np.testing.assert_allclose(jit(ops.lgamma)(x), want, rtol=2e-15)


def test_digamma_keeps_its_digits_at_its_root():
    with enable_x64():
        got = ops.digamma(np.array([1.4616321449683622, 1.4616332599826674]))
        np.testing.assert_allclose(got, [-9.2412655217294275e-17, 1.07896784577026788e-06], 1e-13)


def test_poles():
    x = np.array([0.0, -0.0, -1.0, -np.inf], np.float32)
    np.testing.assert_array_equal(ops.lgamma(x), [np.inf] * 4)
    np.testing.assert_array_equal(ops.digamma(x), [-np.inf, np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(ops.gamma(x), [np.inf, -np.inf, np.nan, np.nan])


def test_third_derivative():
    with enable_x64():
        third = grad(grad(grad(ops.lgamma)))(2.0)
    np.testing.assert_allclose(third, -0.40411380631918857, rtol=1e-14)  # ψ''(2)


def test_refuses_complex_numbers():
    with pytest.raises(TypeError, match=r"lgamma: expected an array of kind float, got complex64"):
        lax.lgamma(1j)
