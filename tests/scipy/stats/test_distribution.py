import inspect

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.scipy import stats


def test_signatures_name_the_parameters():
    assert str(inspect.signature(stats.beta.logpdf)) == "(x, a, b, loc=0, scale=1)"
    assert str(inspect.signature(stats.norm.ppf)) == "(q, loc=0, scale=1)"
    assert str(inspect.signature(stats.poisson.pmf)) == "(k, mu, loc=0)"
    assert float(stats.gamma.logpdf(x=2.0, a=1.0, scale=1.0)) == -2


def test_calls_that_do_not_fit_say_what_fits():
    with pytest.raises(TypeError, match=r"beta.cdf: missing.*'b'; it takes \(x, a, b, loc=0"):
        stats.beta.cdf(0.5, 1.0)
    with pytest.raises(TypeError, match=r"norm.cdf: got an unexpected.*; it takes \(x, loc=0"):
        stats.norm.cdf(0.5, mean=1.0)
    with pytest.raises(TypeError, match="array"):
        stats.norm.cdf([0.5])
    with pytest.raises(AttributeError):
        _ = stats.vonmises.cdf


@pytest.mark.parametrize(
    "call",
    [
        lambda: stats.norm.logpdf(0.5, 0, -1),
        lambda: stats.gamma.cdf(0.5, -1.0),
        lambda: stats.beta.sf(0.5, 1.0, 0.0),
        lambda: stats.truncnorm.logpdf(0.0, 1.0, -1.0),
        lambda: stats.binom.pmf(1, 2.5, 0.5),
        lambda: stats.poisson.cdf(1, -1.0),
        lambda: stats.norm.ppf(1.5),
        lambda: stats.poisson.entropy(-1.0),
    ],
)
def test_parameters_not_allowed_give_nan(call):
    assert np.isnan(call())


@pytest.mark.parametrize(
    ("name", "shapes", "outside"),
    [
        ("expon", (), -1.0),
        ("gamma", (2.0,), -1.0),
        ("beta", (2.0, 3.0), 1.5),
        ("pareto", (2.0,), 0.5),
    ],
)
def test_derivatives_outside_the_support_are_zero(name, shapes, outside):
    distribution = getattr(stats, name)
    for method in ("pdf", "cdf"):
        fun = getattr(distribution, method)
        slopes = st.grad(lambda x, *s, fun=fun: fun(x, *s))(outside, *shapes)
        assert float(slopes) == 0


def test_tails_are_exact():
    # scipy.stats 1.17, in 64 bits
    with st.enable_x64():
        np.testing.assert_allclose(stats.cauchy.cdf(-1e20), 3.1830988618379067e-21, rtol=1e-14)
        np.testing.assert_allclose(stats.norm.logsf(40.0), -804.6084420137538, rtol=1e-14)
        np.testing.assert_allclose(
            stats.truncnorm.logcdf(10.5, 10.0, 12.0), -0.0056842210068923805, rtol=1e-9
        )
        np.testing.assert_allclose(stats.logistic.logsf(800.0), -800.0, rtol=1e-14)


def test_densities_at_infinity_are_zero():
    for distribution, shapes in ((stats.gumbel_r, ()), (stats.gumbel_l, ()), (stats.gamma, (1.5,))):
        for end in (-np.inf, np.inf):
            assert float(distribution.pdf(end, *shapes)) == 0


def test_low_precision_stays():
    assert stats.norm.cdf(snp.ones(2, snp.bfloat16)).dtype == snp.bfloat16


def test_vectors_that_do_not_fit():
    with pytest.raises(ValueError, match=r"alpha of shape \(k,\)"):
        stats.dirichlet.logpdf(snp.ones(4), snp.ones(2))
    with pytest.raises(ValueError, match=r"x \[..., n\]"):
        stats.multivariate_normal.logpdf(snp.ones(3), snp.zeros(3), snp.eye(2))
    for f in (stats.multivariate_normal.logpdf, stats.multivariate_normal.pdf):
        caller = f"multivariate_normal.{f.__name__}"
        with pytest.raises(NotImplementedError, match=f"{caller}: allow_singular"):
            f(snp.ones(2), snp.zeros(2), snp.eye(2), True)
        with pytest.raises(TypeError, match=f"{caller}: mean must be an array"):
            f(snp.ones(2), [0.0, 0.0])
    for f in (stats.multinomial.logpmf, stats.multinomial.pmf):
        with pytest.raises(TypeError, match=f"multinomial.{f.__name__}: n must be an array"):
            f(snp.ones(2), [2], snp.ones(2) / 2)
    assert float(stats.dirichlet.logpdf(snp.array([0.5, 0.6]), snp.ones(2))) == -np.inf
    assert float(stats.dirichlet.pdf(snp.array([0.5]), snp.ones(2))) == 1
    batch = stats.multivariate_normal.logpdf(snp.zeros((4, 2)), snp.zeros(2), 2.0)
    one = stats.multivariate_normal.logpdf(snp.zeros(2), snp.zeros(2), 2 * snp.eye(2))
    np.testing.assert_allclose(batch, np.full(4, one), rtol=1e-6)


def test_statistics_refuse():
    with pytest.raises(NotImplementedError, match="nan_policy"):
        stats.rankdata(snp.ones(3), nan_policy="omit")
    with pytest.raises(ValueError, match="method must be"):
        stats.rankdata(snp.ones(3), "mean")
    with pytest.raises(ValueError, match="no elements"):
        stats.mode(snp.ones((0, 3)))


def test_the_widest_argument_gives_the_dtype():
    with st.enable_x64():
        x = snp.array([0.1, 0.2])
        mixed = stats.multivariate_normal.logpdf(x, snp.zeros(2), snp.eye(2, dtype=snp.float32))
        wide = stats.multivariate_normal.logpdf(x, snp.zeros(2), snp.eye(2))
        assert mixed.dtype == snp.float64
        np.testing.assert_array_equal(mixed, wide)


@pytest.mark.parametrize(
    "name, shapes", [("laplace", ()), ("logistic", ()), ("t", (1.0,)), ("t", (5.0,)),
                     ("gennorm", (1.0,)), ("gennorm", (2.0,))], ids=str,
)  # fmt: skip
def test_derivatives_at_the_middle_of_symmetric_distributions(name, shapes):
    d = getattr(stats, name)
    density = float(d.pdf(0.0, *shapes))
    for f, want in ((d.cdf, 1), (d.sf, -1), (d.logcdf, 2), (d.logsf, -2)):
        slope = st.grad(lambda y, f=f: f(y, *shapes))
        for g in (slope, st.jit(slope)):
            np.testing.assert_allclose(g(0.0), want * density, rtol=1e-5)
    if shapes:
        assert float(st.grad(lambda a: d.cdf(0.0, a))(shapes[0])) == 0
    if name == "logistic":  # log density -x - 2 log(1 + e^-x)
        np.testing.assert_allclose(st.grad(st.grad(d.logpdf))(0.0), -0.5, rtol=1e-5)
