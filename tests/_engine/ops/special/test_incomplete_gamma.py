"""Incomplete gamma functions: laws, special values, large parameters, how variates move."""

import numpy as np
import pytest
from scipy import special

from stretto import grad, jit, lax
from stretto._engine.core.config import enable_x64
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.ops.special import incomplete as ops
from stretto.laws import check_special, f32, law

PAIR = (f32(3).within(0.5, 5), f32(3).within(0.5, 9))
# They take seconds to compile; tests/functions maps and differentiates them eagerly.
ONCE = {"derivative": False, "mapped": False}
LAWS = [
    law(ops.Igamma, lax.igamma, *PAIR, mapped=False, second=False),
    law(ops.Igammac, lax.igammac, *PAIR, **ONCE),
    law(ops.IgammaGradA, lax.igamma_grad_a, *PAIR, **ONCE),
    law(ops.RandomGammaGrad, lax.random_gamma_grad, *PAIR, **ONCE),
    law(ops.GammaDensity, ops.GAMMA_DENSITY, *PAIR, mapped=False),
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", ["float64"])
def test_special_values(name):
    inf, nan = np.inf, np.nan
    values = np.array([0, -0.0, 1, -1, 2, 30, 250, 1e6, inf, -inf, nan])
    a, x = (v.ravel().astype(name) for v in np.meshgrid(values, values))
    names = ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad")
    check_special({n: getattr(lax, n) for n in names}, a, x)


def test_large_parameters():
    """Temme's expansion, where SciPy stops its series before it is right: values by the normal
    distribution with the correction of the third moment, good to 1e-10 here."""
    with enable_x64():
        a = np.array([9.0e8, 2.5e9])
        z = np.array([-4.7, 5.1])
        x = a + z * np.sqrt(a)
        # P = Φ(z) - φ(z) (z² - 1) γ / 6, γ = 2 / √a; the next term is O(1 / a)
        normal = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        want = special.ndtr(z) - normal * (z * z - 1) / (3 * np.sqrt(a))
        for f in (lax.igamma, jit(lax.igamma)):
            np.testing.assert_allclose(f(a, x), want, rtol=1e-6)


def test_values_of_the_derivatives():
    """By differences with forty digits."""
    with enable_x64():
        a, x = np.array([1.0, 2.5, 245.5, 300]), np.array([1.0, 0.5, 474.25, 310])
        moved = [1.1735630272247269, 0.42684249818525007, 1.3660028226441093, 1.0170493918351245]
        for f in (lax.random_gamma_grad, jit(lax.random_gamma_grad)):
            np.testing.assert_allclose(f(a, x), moved, rtol=1e-14)


def test_a_variate_moves_so_that_its_probability_stays():
    a, x = 3.3, 2.2
    with enable_x64():
        by_a, by_x = grad(lax.igamma, (0, 1))(a, x)
        np.testing.assert_allclose(lax.random_gamma_grad(a, x), -by_a / by_x, rtol=1e-14)
        np.testing.assert_allclose(grad(lax.igammac)(a, x), -by_a, rtol=1e-14)


@pytest.mark.parametrize("f", [lax.igamma_grad_a, lax.random_gamma_grad])
@pytest.mark.parametrize(("a", "x"), [(0.7, 0.3), (3.3, 2.2), (3.3, 9.0)])
def test_slopes_in_x_of_what_is_by_the_parameter(f, a, x):
    h = 1e-5
    with enable_x64():
        want = (f(a, x + h) - f(a, x - h)) / (2 * h)
        np.testing.assert_allclose(grad(f, 1)(a, x), want, rtol=1e-7)


def test_refusals():
    for f in (lax.igamma_grad_a, lax.random_gamma_grad):
        with pytest.raises(MissingRuleError, match=f"{f.__name__} has no derivative in a"):
            grad(f)(2.0, 1.0)
