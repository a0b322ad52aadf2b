"""The gamma function and its logarithm: laws, special values, derivatives, errors' words."""

import decimal
import fractions
import math

import numpy as np
import pytest
from scipy import special
from scipy import special as sp

from stretto import grad, jit, lax, numpy
from stretto._engine.core.config import enable_x64
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.ops.special import gamma as formulas
from stretto._engine.ops.special import gamma as ops
from stretto.laws import bf16, c64, c128, check_special, f32, f64, law, special_values

LESS = {"derivative": False, "mapped": False}
LAWS = [
    law(ops.Lgamma, ops.lgamma, f32(2, 3).within(0.2, 9)),
    law(ops.Lgamma, ops.lgamma, f64(4).within(-3.9, -3.1)),
    law(ops.Lgamma, ops.lgamma, bf16(3).within(0.2, 9), **LESS),
    law(ops.Digamma, ops.digamma, f32(2, 3).within(0.2, 9)),
    law(ops.Digamma, ops.digamma, f64(4).within(-3.9, -3.1), mapped=False),
    law(ops.Gamma, ops.gamma, f32(2, 3).within(0.2, 5)),
]


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


POINTS = np.concatenate([
    np.linspace(-6.37, 12.1, 400),
    # About every border of a formula.
    *[np.array([b - 1e-9, b, b + 1e-9]) for b in (-0.5, 0.25, 0.5, 1.5, 2.5, 7.5, 8.0, 150.3)],
])  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_scipys():
    near_zero = np.abs(special.gammaln(POINTS)) < 0.05  # SciPy's own digits are lost there
    got = formulas.log_gamma_formula(POINTS)
    np.testing.assert_allclose(got, special.gammaln(POINTS), rtol=4e-14, atol=2e-15)
    np.testing.assert_allclose(got[near_zero], special.gammaln(POINTS)[near_zero], atol=1e-15)
    np.testing.assert_allclose(formulas.gamma_formula(POINTS), special.gamma(POINTS), rtol=3e-14)
    psi = special.digamma(POINTS)
    np.testing.assert_allclose(formulas.digamma_formula(POINTS), psi, rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore")
def test_poles_and_ends():
    x = np.array([0.0, -0.0, -1.0, -7.0, np.inf, np.nan])
    np.testing.assert_array_equal(formulas.log_gamma_formula(x), [*[np.inf] * 5, np.nan])
    np.testing.assert_array_equal(
        formulas.gamma_formula(x), [np.inf, -np.inf, np.nan, np.nan, np.inf, np.nan]
    )
    np.testing.assert_array_equal(
        formulas.digamma_formula(x), [-np.inf, np.inf, np.nan, np.nan, np.inf, np.nan]
    )


@pytest.mark.filterwarnings("ignore")
def test_to_the_end_of_the_range():
    assert np.isfinite(formulas.gamma_formula(np.array([171.6]))).all()
    assert np.isposinf(formulas.gamma_formula(np.array([171.7, 1e300]))).all()
    tiny = np.array([1e-308, 1e-300])
    np.testing.assert_allclose(formulas.gamma_formula(tiny), 1 / tiny, rtol=1e-15)
    np.testing.assert_allclose(formulas.log_gamma_formula(tiny), -np.log(tiny), rtol=1e-15)
    great = np.array([1e100, 1e305])
    want = great * (np.log(great) - 1)
    np.testing.assert_allclose(formulas.log_gamma_formula(great), want, rtol=1e-15)


def test_what_stirlings_series_adds():
    x = np.array([8.0, 20.0, 1e3])
    rest = special.gammaln(x) - ((x - 0.5) * np.log(x) - x + 0.5 * np.log(2 * np.pi))
    np.testing.assert_allclose(formulas.stirling_remainder(x), rest, rtol=1e-8, atol=1e-12)
    # log 7! with thirty digits, where what stands before it would lose them
    with decimal.localcontext(prec=30):
        x, pi = decimal.Decimal(8), decimal.Decimal("3.14159265358979323846264338328")
        rest = decimal.Decimal(5040).ln() - (x - x / 16) * x.ln() + x - (2 * pi).ln() / 2
    np.testing.assert_allclose(formulas.stirling_remainder(8.0), float(rest), rtol=3e-15)
    # 1 / 12x - 1 / 360x^3
    np.testing.assert_allclose(formulas.stirling_remainder(1e6), 1 / 12e6, rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [8, 9, 12, 100])
def test_digamma_of_whole_numbers(n):
    """ψ(n) = 1 + 1/2 + ... + 1/(n - 1) - γ."""
    want = float(sum(fractions.Fraction(1, k) for k in range(1, n))) - np.euler_gamma
    np.testing.assert_allclose(formulas.digamma_formula(float(n)), want, rtol=1e-15)


def bernoulli_numbers(count):
    """Return B_2, B_4, ..., by their recurrence (DLMF 24.5.3)."""
    rows = [fractions.Fraction(1)]
    for n in range(1, 2 * count + 1):
        rows.append(-sum(math.comb(n + 1, k) * rows[k] for k in range(n)) / (n + 1))
    return rows[2::2]


@pytest.mark.parametrize(
    ("table", "divisor"),
    [
        ("_STIRLING", lambda k: 2 * k * (2 * k - 1)),
        ("_DIGAMMA_FAR", lambda k: 2 * k),
        ("_BERNOULLI", lambda k: math.factorial(2 * k)),
        ("_EVEN_BERNOULLI", lambda k: 1),
    ],
)
def test_the_coefficients_of_series_are_bernoullis_numbers(table, divisor):
    """They show in the last digits alone, where tests by values see them no more."""
    numbers = enumerate(bernoulli_numbers(len(getattr(formulas, table))), 1)
    assert getattr(formulas, table) == tuple(float(b / divisor(k)) for k, b in numbers)


def test_where_the_slope_of_zeta_is_continued_to():
    """From s = -1/4 on, and for q > 0."""
    s = np.array([-0.2501, -0.25, -0.25, -0.25, 0.5])
    got = ops.ZetaSlope(1).formula(s, np.array([1.0, 1.0, 0.0, 1e-3, -0.5]))
    np.testing.assert_array_equal(np.isnan(got), [True, False, True, False, True])


def test_about_two():
    e = np.array([-0.5, -1e-20, 0.0, 1e-20, 0.5])
    got = formulas.log_gamma_two(e)
    np.testing.assert_allclose(got[[0, 4]], special.gammaln([1.5, 2.5]), rtol=1e-14)
    np.testing.assert_allclose(got[[1, 3]], e[[1, 3]] * (1 - np.euler_gamma), rtol=1e-14)
    assert got[2] == 0


ORDER = np.array([0.0, 1.0, 2.0, 5.0], np.float32)
LAWS += [
    law(ops.Zeta, lambda q: lax.zeta(np.array([1.5, 2, 3, 6], np.float32), q),
        f32(4).within(0.3, 5)),
    *(law(ops.Zeta, lax.zeta, kind(4).within(1.3, 6), kind(4).within(0.3, 5))
      for kind in (f32, f64)),
    *(law(ops.ZetaSlope, ops.ZetaSlope(n), f64(4).within(1.3, 6), f64(4).within(0.3, 5))
      for n in (1, 2, 3)),
    law(ops.Polygamma, lambda x: lax.polygamma(ORDER, x), f32(4).within(0.3, 5)),
    law(ops.Polygamma, lambda x: lax.polygamma(1.0, x), f64(3).within(-2.8, -2.2), mapped=False),
]  # fmt: skip


@pytest.mark.parametrize("name", ["float64"])
def test_special_values_of_zeta(name):
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


FUNCTIONS = {"gamma": ops.complex_gamma, "digamma": ops.complex_digamma}
LAWS += [law(ops.ComplexGamma, lambda z: ops.complex_gamma(z * 0.5 + 1.5), kind(3))
        for kind in (c64, c128)]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("wide", [False, True])
def test_equals_scipy(name, wide):
    rng = np.random.default_rng(0)
    z = rng.uniform(-6, 6, 100) + 1j * rng.uniform(-15, 15, 100)
    z = np.concatenate([z, [0.5 + 0.1j, -3.001 + 1e-3j, 1e-5j, 20 + 3j, -1.5 + 40j, 2, -2.5]])
    z = z.astype(np.complex128 if wide else np.complex64)
    want = getattr(sp, name)(z.astype(np.complex128))
    with enable_x64(wide):
        for f in (FUNCTIONS[name], jit(FUNCTIONS[name])):
            got = f(numpy.array(z))
            assert got.dtype == z.dtype
            np.testing.assert_allclose(got, want, rtol=1e-11 if wide else 1e-5, atol=1e-30)


def test_derivatives_and_the_real_line():
    with enable_x64():
        z, h = 0.5 - 1.5j, 1e-5
        slope = grad(ops.complex_digamma, holomorphic=True)
        near = (sp.digamma(z + h) - sp.digamma(z - h)) / (2 * h)
        np.testing.assert_allclose(slope(z), near, rtol=1e-9)
        x = np.array([-2.5, 0.3, 4.0])
        np.testing.assert_allclose(ops.complex_gamma(numpy.array(x + 0j)), sp.gamma(x), rtol=1e-13)
        np.testing.assert_allclose(
            ops.complex_digamma(numpy.array(x + 0j)), sp.digamma(x), rtol=1e-13
        )


@pytest.mark.filterwarnings("ignore")
def test_the_formulas_of_zeta_and_its_kin():
    s, q = (v.ravel() for v in np.meshgrid([1.01, 1.5, 2.0, 3.0, 7.0, 40.0], [1e-3, 0.3, 1, 5, 90]))
    np.testing.assert_allclose(formulas.zeta_formula(s, q), special.zeta(s, q), rtol=4e-15)
    # Below zero, ζ(s, q) = q^-s + ζ(s, q + 1) for whole s.
    s, q = (v.ravel() for v in np.meshgrid([2.0, 3.0, 4.0, 9.0], [-0.3, -0.75, -1.5, -3.1]))
    over, out = np.ceil(-q), np.zeros(q.shape)
    for k in range(4):
        out += np.where(k < over, 1 / (q + k) ** s, 0)
    out += special.zeta(s, q + over)
    np.testing.assert_allclose(formulas.zeta_formula(s, q), out, rtol=1e-13, atol=1e-12)
    m, x = (v.ravel() for v in np.meshgrid([0.0, 1.0, 2.0, 5.0], [0.1, 0.9, 1.0, 3.0, 30.0]))
    want = special.polygamma(m.astype(int), x)
    np.testing.assert_allclose(ops.Polygamma().formula(m, x), want, rtol=1e-14, atol=1e-15)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("s", "q", "want"),
    [
        (2.0, 0.0, np.inf), (2.0, -0.0, np.inf), (2.0, -3.0, np.inf), (2.0, 0.005, 40001.63298),
        (2.5, -0.5, np.nan), (2.5, 0.5, 6.2471106), (1.0, 0.5, np.inf), (1.005, 1.0, 200.57758),
        (0.99, 1.0, np.nan), (np.nan, 1.0, np.nan), (2.0, np.nan, np.nan), (np.inf, 2.0, 0),
        (2.0, np.inf, 0), (2.0, -0.005, 40001.65708), (1.0, -0.5, np.inf), (1.0, 0.005, np.inf),
    ],
)  # fmt: skip
def test_the_formula_of_zeta_on_its_borders(s, q, want):
    got = formulas.zeta_formula(np.array([s]), np.array([q]))
    np.testing.assert_allclose(got, [want], rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_which_orders_polygamma_has():
    orders = np.array([-1.0, -0.5, 0.0, 0.5, 1.0, np.inf, np.nan])
    got = ops.Polygamma().formula(orders, np.full(7, 2.0))
    np.testing.assert_array_equal(np.isnan(got), [True, True, False, True, False, True, True])


@pytest.mark.filterwarnings("ignore")
def test_the_formula_of_the_gamma_function_of_complex_numbers():
    x, y = np.meshgrid([-5.5, -3.25, -0.3, 0.2, 0.49, 0.51, 3.0, 9.9, 10.1, 14.0],
                       [-12.0, -9.9, -3.0, 0.0, 1e-3, 2.0, 9.9, 10.1, 30.0])  # fmt: skip
    z = (x + 1j * y).ravel()
    got = ops.ComplexGamma().formula(z)
    np.testing.assert_allclose(got, special.gamma(z), rtol=5e-13)
    got = ops.complex_digamma(numpy.array(z))
    np.testing.assert_allclose(got, special.digamma(z), rtol=1e-5)
    with enable_x64():
        got = ops.complex_digamma(numpy.array(z))
        np.testing.assert_allclose(got, special.digamma(z), rtol=1e-13)
    assert np.isnan(ops.ComplexGamma().formula(np.array([0j, -2 + 0j]))).all()


@pytest.mark.parametrize(("s", "q"), [(1, np.nan), (np.nan, 1), (0.5, np.nan), (3, np.nan)])
def test_zeta_of_nan_is_nan(s, q):
    """At its pole, too, where it is infinite otherwise."""
    at_rest = lambda s, q: formulas.zeta_formula(np.array([s]), np.array([q]))[0]
    with np.errstate(all="ignore"):
        assert np.isnan(at_rest(s, q)) and at_rest(1.0, 2.0) == np.inf
    for run in (lambda f: f, jit):
        assert np.isnan(run(lax.zeta)(np.float32(s), np.float32(q)))
