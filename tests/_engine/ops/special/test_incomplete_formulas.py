"""The formulas of the incomplete gamma function in NumPy: each where it meets the next."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from stretto._engine.ops.special import incomplete as formulas

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

GRID = [v.ravel() for v in np.meshgrid(
    [1e-6, 0.1, 0.45, 1.0, 3.0, 50.0, 199.0, 201.0, 5e3],
    [1e-9, 0.3, 0.499, 0.501, 1.09, 1.11, 3.5, 60.0, 139.0, 141.0, 261.0, 6e3],
)]  # fmt: skip


def test_both_halves():
    a, x = GRID
    p, q = formulas.incomplete_gamma_formula(a, x)
    np.testing.assert_allclose(p + q, 1, rtol=1e-14)
    some = special.gammainc(a, x) > 1e-290
    np.testing.assert_allclose(p[some], special.gammainc(a, x)[some], rtol=3e-12)
    some = special.gammaincc(a, x) > 1e-290
    np.testing.assert_allclose(q[some], special.gammaincc(a, x)[some], rtol=3e-12)


def test_on_the_border():
    inf, nan = np.inf, np.nan
    a = np.array([0.0, 2.0, inf, 2.0, 0.0, -1.0, 2.0, inf, nan])
    x = np.array([3.0, 0.0, 3.0, inf, 0.0, 3.0, -1.0, inf, 1.0])
    p, q = formulas.incomplete_gamma_formula(a, x)
    np.testing.assert_array_equal(p, [1, 0, 0, 1, nan, nan, nan, nan, nan])
    np.testing.assert_array_equal(q, [0, 1, 1, 0, nan, nan, nan, nan, nan])


def test_the_density():
    a, x = GRID
    with np.errstate(all="ignore"):
        want = np.exp(special.xlogy(a - 1, x) - x - special.gammaln(a))
    some = (want > 1e-290) & (a < 100)
    got = formulas.gamma_density_formula(a, x)
    np.testing.assert_allclose(got[some], want[some], rtol=1e-12)
    ends = formulas.gamma_density_formula(
        np.array([0.5, 1.0, 2.0, 2.0]), np.array([0.0, 0, 0, np.inf])
    )
    np.testing.assert_array_equal(ends, [np.inf, 1, 0, 0])


def test_logarithms_that_cancel():
    x = np.array([1e-12, -1e-5, 0.3, 0.349, 0.351, 2.0, -0.9])
    got = formulas.log_excess(x, 1 + x)
    near = np.abs(x) < 1e-4
    series = -x * x / 2 + x**3 / 3
    np.testing.assert_allclose(got[near], series[near], rtol=1e-9)
    np.testing.assert_allclose(got[~near], (np.log1p(x) - x)[~near], rtol=1e-13)


def test_the_scale_on_both_sides_of_eight():
    a = np.array([1e-8, 1.0, 7.999, 8.0, 8.001, 100.0])
    want = np.exp(special.xlogy(a, a) - a - special.gammaln(a))
    np.testing.assert_allclose(formulas.gamma_scale(a), want, rtol=1e-13)
    np.testing.assert_allclose(formulas.gamma_scale(1e10), np.sqrt(1e10 / (2 * np.pi)), rtol=1e-10)


@pytest.mark.parametrize(
    "a, x", [(0.7, 0.2), (3.0, 1.0), (3.0, 9.0), (250.0, 240.0), (250.0, 400.0)]
)
def test_how_a_variate_moves(a, x):
    """-(dP/da) / (dP/dx), by differences of P itself."""
    moved, slope = (float(v) for v in formulas.random_gamma_grad_formula(np.array(a), np.array(x)))
    step = 1e-4 * a
    half = [special.gammainc(a + s * step, x) for s in (1, -1)]
    by_a = (half[0] - half[1]) / (2 * step)
    assert slope == pytest.approx(-by_a, rel=1e-5)
    density = float(formulas.gamma_density_formula(np.array(a), np.array(x)))
    assert moved * density == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize(
    ("a", "x", "lower", "density", "moved"),
    [
        (0.005, 0.0, 0, np.inf, 0),
        (1.0, 0.0, 0, 1, 0),
        (1.005, 0.0, 0, 0, 0),
        (0.0, 0.005, 1, np.nan, np.nan),
        (0.0, np.inf, 1, 0, np.nan),
        (0.005, np.inf, 1, 0, np.inf),
        (np.inf, 0.0, 0, 0, np.nan),
        (np.inf, 0.005, 0, 0, np.nan),
        (0.0, 0.0, np.nan, np.nan, np.nan),
        (np.inf, np.inf, np.nan, 0, np.nan),
        (-0.005, 0.0, np.nan, np.nan, np.nan),
        (-0.005, 1.0, np.nan, np.nan, np.nan),
        (0.005, -0.005, np.nan, np.nan, np.nan),
        (np.inf, -0.005, np.nan, np.nan, np.nan),
        (-0.005, np.inf, np.nan, np.nan, np.nan),
    ],
)
def test_at_zero_at_infinity_and_close_to_them(a, x, lower, density, moved):
    a, x = np.array([a]), np.array([x])
    p, q = formulas.incomplete_gamma_formula(a, x)
    np.testing.assert_array_equal(p, lower)
    np.testing.assert_array_equal(q, 1 - lower)
    np.testing.assert_array_equal(formulas.gamma_density_formula(a, x), density)
    step, slope = formulas.random_gamma_grad_formula(a, x)
    np.testing.assert_array_equal(step, moved)
    np.testing.assert_array_equal(slope, moved if np.isnan(moved) else 0)


def test_a_variate_at_its_parameter_moves_as_those_beside_it():
    """There η is 0, by which Temme's expansion divides."""
    a = np.full(3, 250.0)
    moved, slope = formulas.random_gamma_grad_formula(a, a + [-1e-3, 0, 1e-3])
    np.testing.assert_allclose(moved[1], (moved[0] + moved[2]) / 2, rtol=1e-9)
    np.testing.assert_allclose(slope[1], (slope[0] + slope[2]) / 2, rtol=1e-8)
    p, _ = formulas.incomplete_gamma_formula(a[1], a[1])
    np.testing.assert_allclose(p, special.gammainc(250.0, 250.0), rtol=1e-13)


def test_how_variates_move_over_the_borders_of_the_formulas():
    """By differences of P, on both sides of x = 1.1, of x = a, and of where Temme's is taken."""
    parameters = [0.3, 1.09, 5.0, 150.0, 199.0, 201.0, 300.0]
    points = [0.4, 1.08, 1.12, 4.9, 5.1, 149.0, 152.0, 201.0, 290.0]
    a, x = (v.ravel() for v in np.meshgrid(parameters, points))
    step = 1e-4 * a
    with np.errstate(all="ignore"):
        by_a = (special.gammainc(a + step, x) - special.gammainc(a - step, x)) / (2 * step)
    moved, slope = formulas.random_gamma_grad_formula(a, x)
    some = np.abs(by_a) > 1e-6
    assert some.sum() > 20
    np.testing.assert_allclose(slope[some], -by_a[some], rtol=1e-5)
    density = formulas.gamma_density_formula(a, x)
    np.testing.assert_allclose(moved[some] * density[some], slope[some], rtol=1e-10)


def temme_rows(count, length):
    """Return the series of C_0, C_1, ... in η, exactly (DLMF 8.12.11, 8.12.12)."""
    # μ = λ - 1 with μ - log(1 + μ) = η² / 2, so that μ μ' = η (1 + μ); and η / μ.
    mu = [Fraction(0), Fraction(1)]
    for m in range(2, length + 2 * count + 2):
        inner = sum((m + 1 - i) * mu[i] * mu[m + 1 - i] for i in range(2, m))
        mu.append((mu[m - 1] - inner) / (m + 1))
    ratio = [Fraction(1)]
    for m in range(1, len(mu) - 1):
        ratio.append(-sum(mu[i + 1] * ratio[m - i] for i in range(1, m + 1)))
    # C_0 = 1 / μ - 1 / η; then η C_k is C_{k-1}' and a multiple of η / μ without what has no η.
    rows = [ratio[1:]]
    while len(rows) < count:
        slope = [n * c for n, c in enumerate(rows[-1])][1:]
        terms = [s - slope[0] * r for s, r in zip(slope, ratio, strict=False)]
        rows.append(terms[1:])
    return rows


def test_the_coefficients_of_temmes_expansion():
    """They show in the last digits alone, where tests by values see them no more."""
    table = formulas._TEMME
    rows = temme_rows(len(table), len(table[0]))
    for own, row in zip(table, rows, strict=True):
        assert own == tuple(map(float, row[: len(own)]))
