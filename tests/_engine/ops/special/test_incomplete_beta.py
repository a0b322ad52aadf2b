"""The incomplete beta function: laws, special values, all three derivatives."""

import numpy as np
import pytest

import stretto as st
from stretto import grad, lax
from stretto._engine.core.config import enable_x64
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.special import incomplete as ops
from stretto.laws import check_special, f32, law

RANGES = (f32(3).within(0.4, 4), f32(3).within(0.4, 4), f32(3).within(0.1, 0.9))
# They take seconds to compile; tests/functions maps and differentiates them eagerly.
ONCE = {"derivative": False, "mapped": False}
LAWS = [
    law(ops.RegularizedIncompleteBeta, lax.betainc, *RANGES, **ONCE),
    law(ops.BetaincGradA, ops.BETAINC_GRAD_A, *RANGES, **ONCE),
    law(ops.BetaDensity, lambda x: ops.BETA_DENSITY(full_like(x, 1.5), full_like(x, 3), x),
        f32(3).within(0.2, 0.8), mapped=False),
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", ["float64"])
def test_special_values(name):
    inf, nan = np.inf, np.nan
    a, b, x = np.meshgrid([0, 1, -1, 0.5, 40, inf, nan], [0, 1, -1, 3, 50, inf, nan],
                          [0, 1, 0.5, -0.005, 1.005, nan])  # fmt: skip
    check_special({"betainc": lax.betainc}, *[v.ravel().astype(name) for v in (a, b, x)])


def test_derivatives_in_the_parameters():
    """Of I_x(a, 1) = x^a and I_x(1, b) = 1 - (1 - x)^b, on both sides of the mirror."""
    with enable_x64():
        for x in (0.2, 0.9):
            by_a = grad(lax.betainc, 0)(2.5, 1.0, x)
            by_b = grad(lax.betainc, 1)(1.0, 2.5, x)
            np.testing.assert_allclose(by_a, x**2.5 * np.log(x), rtol=1e-13)
            np.testing.assert_allclose(by_b, -((1 - x) ** 2.5) * np.log(1 - x), rtol=1e-12)


def test_the_density_at_its_ends():
    """It is 0, finite or infinite by the exponent there, and NaN where there is no distribution."""
    inf, nan = np.inf, np.nan
    cases = [
        (2.0, 3.0, 0.0, 0.0), (1.0, 3.0, 0.0, 3.0), (0.5, 3.0, 0.0, inf), (2.0, 1.0, 1.0, 2.0),
        (2.0, 0.5, 1.0, inf), (0.0, 3.0, 0.0, nan), (2.0, 0.0, 0.0, nan), (2.0, 0.0, 1.0, nan),
        (2.0, 3.0, -0.005, nan), (2.0, 3.0, 1.005, nan),
    ]  # fmt: skip
    a, b, x, want = np.array(cases).T
    with enable_x64():
        for f in (ops.BETA_DENSITY, st.jit(ops.BETA_DENSITY)):
            got = f(*(as_value(v) for v in (a, b, x)))
            np.testing.assert_allclose(got, want, rtol=1e-14)


def test_second_derivative_in_x():
    with enable_x64():
        got = grad(grad(lax.betainc, 2), 2)(2.0, 3.0, 0.25)  # 12 x (1 - x)^2
    np.testing.assert_allclose(got, 12 * (1 - 4 * 0.25 + 3 * 0.25**2), rtol=1e-13)


def test_integers_are_taken_as_floats():
    got = lax.betainc(2, 1, np.array([0, 1], np.int32))  # x^2
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, [0, 1])


def test_refusals():
    with pytest.raises(TypeError, match=r"betainc: .*complex"):
        lax.betainc(2.0, 3.0, 0.5j)
    with pytest.raises(MissingRuleError, match="derivative of betainc in a has itself no"):
        grad(grad(lax.betainc))(2.0, 3.0, 0.25)


def test_the_slope_in_a_at_its_ends():
    """The distribution function is constant there; NaN where there is none."""
    nan = np.nan
    cases = [
        (2.0, 3.0, 0.0, 0.0), (2.0, 3.0, 1.0, 0.0), (0.5, 0.5, 0.0, 0.0), (0.5, 0.5, 1.0, 0.0),
        (2.0, 3.0, -0.005, nan), (2.0, 3.0, 1.005, nan), (0.0, 3.0, 0.5, nan), (2.0, 0.0, 0.5, nan),
        (0.0, 3.0, 0.0, nan), (2.0, 0.0, 1.0, nan), (-1.0, 3.0, 0.0, nan), (2.0, -1.0, 1.0, nan),
        (np.inf, 3.0, 0.5, nan), (2.0, np.inf, 0.5, nan), (2.0, 3.0, nan, nan),
    ]  # fmt: skip
    a, b, x, want = np.array(cases).T
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ops.BetaincGradA.formula(a, b, x), want)


def test_the_formula_at_its_ends():
    inf, nan = np.inf, np.nan
    cases = [
        (2.0, 3.0, 0.0, 0.0), (2.0, 3.0, 1.0, 1.0), (0.0, 3.0, 0.5, 1.0), (2.0, 0.0, 0.5, 0.0),
        (0.0, 0.0, 0.5, nan), (inf, 3.0, 0.5, 0.0), (2.0, inf, 0.5, 1.0), (inf, inf, 0.5, nan),
        (0.0, inf, 0.5, 1.0), (inf, 0.0, 0.5, 0.0), (0.0, 3.0, 0.0, 0.0), (2.0, 0.0, 1.0, 1.0),
        (-1.0, 3.0, 0.5, nan), (2.0, -1.0, 0.5, nan), (2.0, 3.0, -0.005, nan),
        (2.0, 3.0, 1.005, nan), (2.0, 3.0, nan, nan),
    ]  # fmt: skip
    a, b, x, want = np.array(cases).T
    with np.errstate(all="ignore"):
        got = ops.RegularizedIncompleteBeta.formula(a, b, x)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["at rest", "compiled"])
@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (0, 2, 1), (2, np.inf, 1), (0, np.inf, 1),  # all lies at 0
        (2, 0, 0), (np.inf, 2, 0), (np.inf, 0, 0),  # all lies at 1
        (0, 0, np.nan), (np.inf, np.inf, np.nan), (-1, 2, np.nan), (2, -1, np.nan),
    ],
)  # fmt: skip
def test_where_all_lies_at_an_end(a, b, want, run):
    f = run(lambda a, b, x: ops.BETAINC(as_value(a), as_value(b), as_value(x)))
    for x in (0.25, 0.75):
        arguments = [np.full(2, v, np.float32) for v in (a, b, x)]
        np.testing.assert_array_equal(f(*arguments), [want] * 2)


def test_parameters_whose_sum_overflows_have_no_value():
    wide = np.array([1e308])
    with np.errstate(all="ignore"):
        assert np.isnan(ops._betainc_formula(wide, wide, np.array([0.5]))).all()
