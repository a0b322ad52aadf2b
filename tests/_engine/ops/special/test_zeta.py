"""The Hurwitz zeta function and polygamma: laws, special values, negative arguments, refusals."""

import numpy as np
import pytest

from stretto import grad, jit, lax, numpy
from stretto._engine.core.config import enable_x64
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.ops.special import zeta as ops
from stretto.laws import check_special, f32, f64, law

ORDER = np.array([0.0, 1.0, 2.0, 5.0], np.float32)
LAWS = [
    law(ops.Zeta, lambda q: lax.zeta(np.array([1.5, 2, 3, 6], np.float32), q),
        f32(4).within(0.3, 5)),
    *(law(ops.Zeta, lax.zeta, kind(4).within(1.3, 6), kind(4).within(0.3, 5))
      for kind in (f32, f64)),
    *(law(ops.ZetaSlope, ops.ZetaSlope(n), f64(4).within(1.3, 6), f64(4).within(0.3, 5))
      for n in (1, 2, 3)),
    law(ops.Polygamma, lambda x: lax.polygamma(ORDER, x), f32(4).within(0.3, 5)),
    law(ops.Polygamma, lambda x: lax.polygamma(1.0, x), f64(3).within(-2.8, -2.2), mapped=False),
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", ["float64"])
def test_special_values(name):
    inf, nan = np.inf, np.nan
    s, q = np.meshgrid(
        [0, 1, -1, 2, 3, 2.5, 7, inf, nan, 1.0001], [0, -0.0, -1, 1, 0.5, -2.25, inf, nan]
    )
    check_special({"zeta": lax.zeta, "polygamma": lax.polygamma},
                  s.ravel().astype(name), q.ravel().astype(name))  # fmt: skip


def test_far_below_zero_it_takes_no_sum_of_as_many_terms():
    """ψ'(x) + ψ'(1 - x) = π² / sin²(πx)."""
    with enable_x64():
        for f in (lax.polygamma, jit(lax.polygamma)):
            got = f(1.0, np.array([-1e9 - 0.5]))
            np.testing.assert_allclose(got, np.pi**2, rtol=1e-8)


def test_derivatives_in_the_first_argument():
    # ζ'(2), ζ''(2), ζ'''(2), the last by adding up; and ζ'(0, q) = log Γ(q) - log(2π) / 2
    known = (-0.937548254315843754, 1.989280234298901023, -6.000145802843044)
    with enable_x64():
        f = lax.zeta
        for want in known:
            f = grad(f)
            for g in (f, jit(f)):
                np.testing.assert_allclose(g(2.0, 1.0), want, rtol=1e-13)
        slope = ops.ZetaSlope(1)
        q = numpy.array([0.25, 1.0, 7.5])
        log_gamma = lax.lgamma(q)
        got = slope(numpy.zeros(3), q)
        np.testing.assert_allclose(got, log_gamma - np.log(2 * np.pi) / 2, rtol=1e-13)
        mixed = [grad(grad(lax.zeta, i), 1 - i)(3.0, 1.5) for i in (0, 1)]
        np.testing.assert_allclose(mixed[0], mixed[1], rtol=1e-13)
        assert float(grad(lax.zeta)(2.0, np.inf)) == 0
        outside = [(0.5, 1.0), (1.0, 1.0), (2.0, 0.0), (2.0, -1.5)]
        assert np.isnan([float(grad(lax.zeta)(s, q)) for s, q in outside]).all()


def test_refusals():
    with pytest.raises(MissingRuleError, match="polygamma has no derivative in its order"):
        grad(lax.polygamma)(1.0, 1.0)
