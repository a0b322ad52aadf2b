"""Entropies and transformations: values, zero factors, borders, inverses."""

import numpy as np
import pytest
from scipy import special as sp

from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64
from tests.special.values import check_values

INF, NAN = np.inf, np.nan

VALUES = {
    "xlogy": [
        (3.0, 1e-30, -207.232658369464111), (-2.0, 1e+300, -1381.55105579642741),
        (1e-30, 5.0, 1.60943791243410051e-30),
    ],
    "xlog1py": [
        (3.0, 1e-18, 3.00000000000000021e-18), (2.0, -0.999999, -27.6310211158710369),
        (1.0, 1e+300, 690.775527898213705),
    ],
    "entr": [
        (1e-30, 6.90775527898213762e-29), (0.3, 0.361191841297780796),
        (0.99999999, 1.00000000002475921e-8), (50.0, -195.601150271407303),
    ],
    "rel_entr": [
        (1e-30, 0.5, -6.83844056092614308e-29), (0.3, 0.7, -0.254189358116161067),
        (2.0, 1e-100, 461.903312959929027),
    ],
    "kl_div": [
        (1.0, 1.00000001, 4.999999905891958e-17), (0.3, 0.44999, 0.0283571343082925284),
        (0.3, 0.45001, 0.028363800974957007), (2.0, 1e-100, 459.903312959929027),
        (1e-30, 0.5, 0.5),
    ],
    "logit": [
        (1e-30, -69.0775527898213704), (0.5000000001, 4.000000330961484e-10),
        (0.4999999999, -4.000000330961484e-10), (0.25, -1.09861228866810969),
        (0.7501, 1.09914569313468386), (0.999, 6.90675477864855263),
    ],
    "boxcox": [
        (2.0, 1e-12, 0.693147180560185536), (1.0000001, 3.0, 1.00000010058387063e-7),
        (0.1, -4.0, -2499.74999999999944), (10000000000.0, 0.5, 199998.0),
        (5.0, 0.0, 1.60943791243410037),
    ],
    "boxcox1p": [
        (1e-18, 2.5, 1.00000000000000007e-18), (1e-09, 0.0, 9.99999999500000063e-10),
        (-0.999, 0.5, -1.93675444679663239), (3.0, -1e-13, 1.38629436111979453),
    ],
    "expit": [
        (-700.0, 9.85967654375977086e-305), (-40.0, 4.24835425529158898e-18),
        (1e-10, 0.500000000025), (3.0, 0.952574126822433219), (36.0, 0.999999999999999768),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    check_values(getattr(special, name), VALUES[name])


def test_a_factor_of_zero_wins_but_over_nan():
    zero = np.zeros(5)
    y = np.array([0.0, -1.0, INF, 2.0, NAN])
    with enable_x64():
        for f in (lambda f: f, jit):
            np.testing.assert_array_equal(f(special.xlogy)(zero, y), [0, 0, 0, 0, NAN])
            np.testing.assert_array_equal(f(special.xlog1py)(zero, y - 1), [0, 0, 0, 0, NAN])
            np.testing.assert_array_equal(f(special.entr)(y), [0, -INF, -INF, -2 * np.log(2), NAN])


@pytest.mark.parametrize("name", ["rel_entr", "kl_div"])
def test_borders_are_scipys(name):
    values = [0.0, -0.0, 1.0, -1.0, 1e-300, INF, NAN]
    p, q = (v.ravel() for v in np.meshgrid(values, values))
    finite = ~(np.isinf(p) | np.isinf(q))
    p, q = p[finite], q[finite]
    with enable_x64():
        for f in (getattr(special, name), jit(getattr(special, name))):
            np.testing.assert_allclose(f(p, q), getattr(sp, name)(p, q), rtol=1e-14)


def test_infinite_arguments_of_transformations():
    x = np.array([0.0, INF, NAN, -1.0, 1.0])
    with enable_x64():
        for c in (-1.5, 0.0, 2.0):
            for f in (special.boxcox, jit(special.boxcox)):
                np.testing.assert_allclose(f(x, c), sp.boxcox(x, c), rtol=1e-14)
            np.testing.assert_allclose(
                special.boxcox1p(x - 1, c), sp.boxcox1p(x - 1, c), rtol=1e-14
            )
        np.testing.assert_array_equal(special.logit(x), [-INF, NAN, NAN, NAN, INF])
        np.testing.assert_array_equal(special.expit(np.array([-INF, INF, NAN])), [0, 1, NAN])


def test_inverses():
    x = np.array([-30.0, -1.0, 1e-10, 0.0, 1.0, 15.0])
    with enable_x64():
        np.testing.assert_allclose(special.logit(special.expit(x)), x, rtol=1e-9, atol=1e-15)
        y = special.boxcox(np.array([0.1, 1.0, 7.0]), 0.3)
        np.testing.assert_allclose((0.3 * y + 1) ** (1 / 0.3), [0.1, 1.0, 7.0], rtol=1e-14)


def test_derivatives():
    with enable_x64():
        np.testing.assert_allclose(grad(special.logit)(0.5), 4)
        np.testing.assert_allclose(grad(special.expit)(0.0), 0.25)
        np.testing.assert_allclose(grad(special.kl_div, (0, 1))(2.0, 0.5), [np.log(4), -3])
        np.testing.assert_allclose(grad(special.rel_entr, (0, 1))(2.0, 0.5), [np.log(4) + 1, -4])
        np.testing.assert_allclose(grad(special.boxcox, (0, 1))(2.0, 3.0),
                                   [4, (3 * 8 * np.log(2) - 7) / 9], rtol=1e-14)  # fmt: skip
        assert float(grad(special.kl_div, 1)(0.0, 2.0)) == 1
        for name in ("xlogy", "xlog1py"):
            assert float(grad(getattr(special, name), 1)(0.0, 3.0)) == 0


def test_accurate_where_scipy_s_is_not():
    """A divergence of two close numbers, and a beta function of one small number: by mpmath."""
    with enable_x64():
        for f in (special.kl_div, jit(special.kl_div)):
            np.testing.assert_allclose(f(1.0, 1.00001), 4.99996666698217605e-11, rtol=1e-14)
        for f in (special.betaln, jit(special.betaln)):
            got = f(0.16533044770396832, 32256.59968019291)
            np.testing.assert_allclose(got, 0.00885577610464367549, rtol=1e-13)


def test_a_factor_of_zero_has_mixed_derivatives():
    # d^2/dx dy of x log y is 1 / y, and of x log(1 + y) it is 1 / (1 + y), at x = 0 too.
    for f, want in ((special.xlogy, 1 / 2), (special.xlog1py, 1 / 3)):
        for first, second in ((0, 1), (1, 0)):
            mixed = grad(grad(f, first), second)
            for g in (mixed, jit(mixed)):
                np.testing.assert_allclose(g(0.0, 2.0), want, rtol=1e-6)
        assert [float(d) for d in grad(f, (0, 1))(0.0, 2.0)][1] == 0
    for f in (special.rel_entr, special.kl_div):  # d/dq is -p / q, and 1 - p / q
        np.testing.assert_allclose(grad(grad(f, 1), 0)(0.0, 2.0), -1 / 2)
