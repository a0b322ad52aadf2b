"""Special functions: laws of the operations of this package, special values, derivatives by rules
of their own, errors' words. `tests/functions` has values and gradients of every function."""

import numpy as np
import pytest
from scipy import special as sp

import stretto as st
from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.ops.comparison import full_like
from stretto.laws import c64, check_special, f32, law, special_values
from stretto.special import bessel, errors, gammas, integrals

# tests/functions differentiates and maps each of these functions, eagerly and compiled.
ONCE = {"derivative": False, "mapped": False}
ONE, TWO, THREE = (
    (f32(3).within(0.3, 0.9),),
    (f32(3).within(1.3, 5), f32(3).within(0.3, 1.2)),
    (f32(3).within(0.5, 3), f32(3).within(0.5, 3), f32(3).within(-0.8, 0.8)),
)
WHOLE = np.array([0, 1, 3], np.float32)


def third_harmonic(theta):
    return bessel.LEGENDRE(full_like(theta, 3), full_like(theta, 1), theta)


LAWS = [
    law(errors.Erfcx, special.erfcx, *ONE, **ONCE),
    law(errors.ErfcxSlope, errors.ErfcxSlope(2), *ONE, **ONCE),
    law(errors.DawsnSlope, errors.DawsnSlope(3), *ONE, **ONCE),
    law(errors.Dawsn, special.dawsn, *ONE, **ONCE),
    law(errors.Ndtr, special.ndtr, *ONE, **ONCE),
    law(errors.LogNdtr, special.log_ndtr, *ONE, **ONCE),
    law(errors.Ndtri, special.ndtri, *ONE, **ONCE),
    law(errors.Wofz, special.wofz, c64(3), mapped=False),
    law(integrals.Exp1, special.exp1, *ONE, **ONCE),
    law(integrals.Expi, special.expi, *ONE, **ONCE),
    law(integrals.Expn, lambda x: special.expn(WHOLE, x), *ONE, mapped=False),
    law(integrals.SineIntegral, lambda x: special.sici(x)[0], *ONE, **ONCE),
    law(integrals.CosineIntegral, lambda x: special.sici(x)[1], *ONE, **ONCE),
    law(integrals.FresnelSine, lambda x: special.fresnel(x)[0], *ONE, **ONCE),
    law(integrals.FresnelCosine, lambda x: special.fresnel(x)[1], *ONE, **ONCE),
    law(integrals.Spence, special.spence, *ONE, **ONCE),
    law(gammas.Poch, special.poch, *TWO, **ONCE),
    law(gammas.RiemannZeta, special.zeta, *ONE, **ONCE),
    law(gammas.Beta, special.beta, *TWO, **ONCE),
    law(gammas.LogBeta, special.betaln, *TWO, **ONCE),
    law(gammas.Binomial, special.comb, *TWO, **ONCE),
    law(bessel.BesselJ, lambda x: special.bessel_jn(x, v=1), *ONE, **ONCE),
    law(errors.OwensT, special.owens_t, *TWO, mapped=False),
    law(bessel.NormalizedLegendre, third_harmonic, *ONE, mapped=False),
    law(bessel.Hyp1f1, special.hyp1f1, *THREE, **ONCE),
    law(bessel.Hyp1f1Slope, bessel.Hyp1f1Slope(1), *THREE, **ONCE),
    law(bessel.Hyp2f1, lambda a, b, x: special.hyp2f1(a, b, a + 0.7, x), *THREE, **ONCE),
    law(bessel.Hyp2f1Slope, lambda a, b, x: bessel.Hyp2f1Slope(2)(a, b, a + b, x),
        *THREE, **ONCE),
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_special_values(name):
    names = "erfcx dawsn ndtr log_ndtr ndtri exp1 spence entr gammasgn loggamma"
    functions = {f: getattr(special, f) for f in names.split()}
    for i in (0, 1):
        functions[f"sici{i}"] = lambda x, i=i: special.sici(x)[i]
    check_special(functions, special_values(name)[:-17])  # few that overflow a square


def test_derivatives_by_rules_of_their_own():
    with enable_x64():
        np.testing.assert_allclose(grad(special.entr)(0.5), np.log(2) - 1)
        np.testing.assert_array_equal(grad(special.xlogy, (0, 1))(0.0, 0.0), [-np.inf, 0])
        # d/dλ (x^λ - 1) / λ at λ = 0 is log(x)^2 / 2
        for f in (grad(special.boxcox, 1), jit(grad(special.boxcox, 1))):
            np.testing.assert_allclose(f(2.0, 0.0), np.log(2) ** 2 / 2)
        slopes = grad(special.hyp2f1, (0, 1, 2, 3))(1.0, 2.0, 3.0, 0.4)
        step = 1e-6
        for i, slope in enumerate(slopes):
            up, down = [1.0, 2, 3, 0.4], [1.0, 2, 3, 0.4]
            up[i], down[i] = up[i] + step, down[i] - step
            want = (sp.hyp2f1(*up) - sp.hyp2f1(*down)) / (2 * step)
            np.testing.assert_allclose(slope, want, rtol=1e-8)


def test_errors():
    with pytest.raises(NotImplementedError, match=r"factorial: exact=True needs integers of arb"):
        special.factorial(3, exact=True)
    with pytest.raises(ValueError, match=r"bernoulli: n must not be negative, got -1"):
        special.bernoulli(-1)
    with pytest.raises(ValueError, match=r"bessel_jn: v must not be negative, got -2"):
        special.bessel_jn(1.0, v=-2)
    with pytest.raises(ValueError, match=r"log_ndtr: series_order must be from 1 to 30, got 0"):
        special.log_ndtr(1.0, 0)
    with pytest.raises(TypeError, match=r"log_ndtr: series_order must be an integer, got 2.5"):
        special.log_ndtr(1.0, 2.5)
    with pytest.raises(NotImplementedError, match=r"sph_harm_y: diff_n must be None, got 1"):
        special.sph_harm_y(1, 0, 0.1, 0.2, diff_n=1)
    with pytest.raises(MissingRuleError, match="expn has no derivative in its order n"):
        grad(special.expn)(1.0, 2.0)
    with pytest.raises(TypeError, match=r"gammaln|lgamma"):
        special.gammaln([1.0])


def test_one_namespace_under_two_names():
    assert st.scipy.special.expit is st.special.expit
    with pytest.raises(AttributeError, match="module 'stretto' has no attribute 'specials'"):
        st.specials  # noqa: B018


def test_derivatives_at_zero():
    with enable_x64():
        # Si(x) = x - x^3 / 18 + x^5 / 600
        f = lambda x: special.sici(x)[0]
        for want in (0, 1, 0, -1 / 3, 0, 1 / 5):
            np.testing.assert_allclose(f(0.0), want, atol=1e-12)
            f = grad(f)
        # (x^c - 1) / c is -1 / c at x = 0 for c > 0
        for f, zero in ((special.boxcox, 0.0), (special.boxcox1p, -1.0)):
            np.testing.assert_allclose(grad(f, 1)(zero, 0.5), 4, rtol=1e-12)
            assert float(grad(f)(zero, 2.0)) == 0


@pytest.mark.parametrize("name", ["gamma", "digamma", "erf", "erfc", "erfcx"])
def test_functions_of_complex_numbers_are_scipys(name):
    rng = np.random.default_rng(0)
    z = rng.uniform(-5, 5, 100) + 1j * rng.uniform(-5, 5, 100)
    z = np.concatenate([z, [0, 1e-9j, 1e-3 + 1e-5j, 3e-5 - 2j, 7]])
    want, f = getattr(sp, name)(z), getattr(special, name)
    with enable_x64():
        for g in (f, jit(f)):
            np.testing.assert_allclose(g(z), want, rtol=1e-11)
    np.testing.assert_allclose(f(z.astype(np.complex64)), want, rtol=2e-5)
    step = 1e-6
    with enable_x64():
        slope = grad(f, holomorphic=True)(1.5 - 0.5j)
        near = (getattr(sp, name)(1.5 - 0.5j + step) - getattr(sp, name)(1.5 - 0.5j - step)) / step
        np.testing.assert_allclose(slope, near / 2, rtol=1e-8)
