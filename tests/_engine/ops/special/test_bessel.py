"""Modified Bessel functions: laws and special values."""

import numpy as np
import pytest
from scipy import special

from stretto import grad
from stretto._engine.core.config import enable_x64
from stretto._engine.ops.special import bessel as ops
from stretto.laws import bf16, check_special, f32, law, special_values

LESS = {"derivative": False, "mapped": False}
FUNCTIONS = {
    ops.BesselI0e: ops.bessel_i0e,
    ops.BesselI1e: ops.bessel_i1e,
    ops.BesselI0: ops.bessel_i0,
    ops.BesselI1: ops.bessel_i1,
}
LAWS = [
    *(law(p, f, f32(2, 3).within(-3, 3)) for p, f in FUNCTIONS.items()),
    law(ops.BesselI0e, ops.bessel_i0e, bf16(3), **LESS),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_special_values(name):
    check_special({f.__name__: f for f in FUNCTIONS.values()}, special_values(name))


def test_derivatives_at_zero():
    for f, want in ((ops.bessel_i0, 0), (ops.bessel_i1, 0.5), (ops.bessel_i1e, 0.5)):
        np.testing.assert_allclose(grad(f)(0.0), want)
    np.testing.assert_allclose(grad(grad(ops.bessel_i0))(0.0), 0.5)


def test_derivatives_of_order_one_at_zero():
    # I_1(x) = x / 2 + x^3 / 16 + ...
    with enable_x64():
        f = ops.bessel_i1
        for want in (0, 1 / 2, 0, 3 / 8, 0, 5 / 16):
            np.testing.assert_allclose(f(0.0), want, atol=1e-14)
            f = grad(f)
        # e^-x I_1(x) on the right
        second = grad(grad(ops.bessel_i1e))
        np.testing.assert_allclose(second(1e-12), -1, rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["i0e", "i1e", "i0", "i1"])
def test_the_formulas_are_scipy_s(name):
    x = np.concatenate([np.linspace(-30, 30, 601), [7.95, 8.0, 8.05, 1e-9, 200.0, 700.0]])
    formula = getattr(ops, f"Bessel{name.upper().replace('E', 'e')}").formula
    want = getattr(special, name)(x)
    np.testing.assert_allclose(formula(x), want, rtol=4e-15)
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    far = 0 if name.endswith("e") else np.inf
    odd = name[1] == "1"
    want = [0, -0.0, far, -far, np.nan] if odd else [1, 1, far, far, np.nan]
    np.testing.assert_allclose(formula(ends), want, rtol=2e-16)
    assert np.signbit(formula(ends)[1]) == odd
