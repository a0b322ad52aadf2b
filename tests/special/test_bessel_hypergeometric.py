"""Hypergeometric functions: values, polynomials, poles, derivatives."""

import numpy as np
import pytest
from scipy import special as sp

from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64
from stretto._engine.core.errors import MissingRuleError
from tests.special.values import check_values

INF, NAN = np.inf, np.nan

VALUES = {
    "hyp1f1": [
        (0.5, 1.5, -30.0, 0.16180215937964007), (2.0, 0.3, 40.0, 3.88379543973905728e+20),
        (-3.0, 2.5, 7.0, 0.688888888888888889), (1e-08, 1.0, 5.0, 1.0000003799862237),
        (3.0, 3.0, -10.0, 0.0000453999297624848515), (1.5, 20.0, 100.0, 3.32983816562116092e+23),
    ],
    "hyp2f1": [
        (0.5, 1.5, 2.3, 0.9, 1.79529888214214527), (1.0, 1.0, 2.0, 0.5, 1.38629436111989062),
        (0.3, 0.6, 1.9, -40.0, 0.549514592240248515),
        (-4.0, 2.5, 0.7, 0.95, 0.0542152249413279146),
        (0.25, 0.5, 1.75, 1.0, 1.14413964525271978), (2.0, 0.3, 3.1, 0.999, 1.59217575967868526),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    check_values(getattr(special, name), VALUES[name])


def test_elementary_cases():
    x = np.array([-3.0, -0.5, 0.0, 0.3, 0.9])
    with enable_x64():
        for f in (lambda f: f, jit):
            np.testing.assert_allclose(f(special.hyp1f1)(1.7, 1.7, x), np.exp(x), rtol=1e-14)
            np.testing.assert_allclose(f(special.hyp1f1)(0.0, 1.7, x), 1)
            np.testing.assert_allclose(
                f(special.hyp2f1)(0.4, 1.3, 1.3, x), (1 - x) ** -0.4, rtol=1e-13
            )
            np.testing.assert_allclose(f(special.hyp2f1)(0.0, 1.3, 1.1, x), 1)
            # F(-2, b; c; x) = 1 - 2 b x / c + b (b + 1) x^2 / (c (c + 1))
            b, c = 1.5, 0.4
            want = 1 - 2 * b * x / c + b * (b + 1) * x * x / (c * (c + 1))
            np.testing.assert_allclose(
                f(special.hyp2f1)(-2.0, b, c, x), want, rtol=1e-13, atol=1e-14
            )


def test_symmetric_in_the_upper_parameters():
    x = np.array([-20.0, -0.9, 0.5, 0.97])
    with enable_x64():
        np.testing.assert_allclose(
            special.hyp2f1(0.3, 1.6, 2.2, x), special.hyp2f1(1.6, 0.3, 2.2, x), rtol=1e-13
        )


def test_not_numbers():
    with enable_x64():
        for f in (lambda f: f, jit):
            assert np.isnan(float(f(special.hyp1f1)(NAN, 1.0, 0.5)))
            assert np.isnan(float(f(special.hyp1f1)(1.0, 2.0, NAN)))
            assert np.isnan(float(f(special.hyp2f1)(1.0, 2.0, 3.5, NAN)))
            assert float(f(special.hyp2f1)(1.0, 2.0, 2.5, 1.0)) == INF
            np.testing.assert_array_equal(f(special.hyp1f1)(1.0, np.array([0.0, -2.0]), 0.5), INF)


def test_derivatives():
    with enable_x64():
        by_x = grad(special.hyp1f1, 2)(0.7, 1.9, 0.4)
        np.testing.assert_allclose(by_x, 0.7 / 1.9 * sp.hyp1f1(1.7, 2.9, 0.4), rtol=1e-13)
        by_x = grad(special.hyp2f1, 3)(0.7, 0.2, 1.9, 0.4)
        want = 0.7 * 0.2 / 1.9 * sp.hyp2f1(1.7, 1.2, 2.9, 0.4)
        np.testing.assert_allclose(by_x, want, rtol=1e-13)
        step = 1e-6
        for i in range(2):
            args = np.array([0.7, 1.9, 0.4])
            ends = [sp.hyp1f1(*(args + s * step * (np.arange(3) == i))) for s in (1, -1)]
            slope = grad(special.hyp1f1, i)(*args)
            np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-8)


def test_derivatives_in_parameters_have_none_themselves():
    with pytest.raises(MissingRuleError, match="derivatives of hyp1f1 in a and b have no deriv"):
        grad(grad(special.hyp1f1))(0.7, 1.9, 0.4)
    with pytest.raises(MissingRuleError, match="derivatives of hyp2f1 in a, b and c have no deriv"):
        grad(grad(special.hyp2f1, 2))(0.7, 0.2, 1.9, 0.4)
