"""Gamma functions and the zeta function: values, poles, infinities, recurrences, refusals."""

import numpy as np
import pytest
from scipy import special as sp

from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64
from tests.special.values import check_values

INF, NAN = np.inf, np.nan

VALUES = {
    "gammaln": [
        (1e-30, 69.0775527898213704), (-1e-09, 20.7232658375236268),
        (0.9999999, 5.77215746844419283e-8), (2.0000001, 4.22784366653249792e-8),
        (7.999, 8.52314578615891549), (8.0, 8.5251613610654143),
        (1000000.0, 12815504.5691476117), (1e+300, 6.89775527898213741e+302),
        (-0.5, 1.2655121234846454), (-3.0000001, 14.3263360577550921),
        (-100.5, -364.900968309427352),
    ],
    "gamma": [
        (1e-30, 9.99999999999999917e+29), (-1e-09, -1000000000.5772156),
        (1.4616321449683622, 0.8856031944108887), (7.999, 5029.851733202843), (8.0, 5040.0),
        (100.5, 9.32096310408271661e+156), (171.6, 1.58589690966725651e+308),
        (-0.5, -3.54490770181103205), (-3.0000001, 1666666.46004139159),
        (-20.5, -2.83465657439133487e-19),
    ],
    "digamma": [
        (1e-30, -9.99999999999999917e+29), (-1e-09, 999999999.422784271),
        (1.4616321, -4.35146369587697737e-8), (7.999, 2.01550833209034804),
        (8.0, 2.01564147795561), (1000000.0, 13.8155100579641908), (1e+300, 690.775527898213705),
        (-0.5, 0.0364899739785765206), (-3.0000001, 10000001.2724831566),
        (-100.3, 6.89564312486043503),
    ],
    "zeta": [
        (1.0000001, 10000000.5713770004), (1.5, 2.61237534868548834),
        (20.0, 1.00000095396203387), (60.0, 1.0), (0.0, -0.5), (0.5, -1.46035450880958681),
        (0.9999999, -9999999.42804790086), (-1e-09, -0.499999999081061468),
        (-0.5, -0.207886224977354566), (-1.0, -0.0833333333333333333),
        (-7.5, 0.00326903957260022002), (-20.3, -54.6333645279703754),
    ],
    "poch": [
        (0.5, 3.0, 1.875), (1e-08, 2.0, 1.00000001000000002e-8),
        (10.0, -2.5, 0.00515667522541277653), (100.5, 50.0, 5.00063413517403659e+104),
        (100000000.0, 2.0, 10000000100000000.0),
    ],
    "polygamma": [
        (1.0, 1e-08, 10000000000000001.2), (1.0, 0.3, 12.2453645461077313),
        (2.0, 5.0, -0.0487897322451144967), (3.0, 100.0, 2.03019999000133303e-6),
        (7.0, 2.5, 3.56523635252313135),
    ],
    "gammainc": [
        (1e-05, 1e-10, 0.999775538760296673), (0.5, 1e-30, 1.12837916709551262e-15),
        (0.5, 0.4, 0.628906630477302439), (3.0, 20.0, 0.999999544485049441),
        (200.0, 180.0, 0.0748580349841595819), (250.0, 251.0, 0.533566509898017324),
        (10000.0, 9900.0, 0.158651192193564657),
    ],
    "gammaincc": [
        (1e-05, 1e-10, 0.000224461239703327091), (0.5, 1e-12, 0.999998871620832905),
        (0.5, 30.0, 9.48573757107384839e-15), (3.0, 200.0, 2.79560937366088349e-83),
        (200.0, 260.0, 0.0000475001244430087564), (250.0, 251.0, 0.466433490101982676),
        (10000.0, 10200.0, 0.0232873221335988039),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    check_values(getattr(special, name), VALUES[name])


def test_poles_and_infinities():
    x = np.array([0.0, -0.0, -1.0, -2.0, INF, -INF, NAN])
    with enable_x64():
        for f in (lambda f: f, jit):
            np.testing.assert_array_equal(f(special.gammaln)(x), [*[INF] * 6, NAN])
            np.testing.assert_array_equal(f(special.gamma)(x), [INF, -INF, NAN, NAN, INF, NAN, NAN])
            np.testing.assert_array_equal(f(special.gammasgn)(x), sp.gammasgn(x))
            np.testing.assert_array_equal(f(special.zeta)(np.array([1.0, INF, NAN])), [INF, 1, NAN])
            np.testing.assert_array_equal(f(special.loggamma)(np.array([-0.5, 1.0])), [NAN, 0])


def test_recurrences():
    x = np.array([1e-3, 0.4, 3.7, 50.2, -2.6])
    with enable_x64():
        np.testing.assert_allclose(special.gamma(x + 1), x * special.gamma(x), rtol=1e-14)
        np.testing.assert_allclose(special.digamma(x + 1), special.digamma(x) + 1 / x, rtol=1e-12)
        np.testing.assert_allclose(special.polygamma(0, x), special.digamma(x), rtol=1e-13)
        np.testing.assert_allclose(special.poch(x, 3.0), x * (x + 1) * (x + 2), rtol=1e-12)
        np.testing.assert_allclose(special.poch(x, 0.0), 1)


def test_both_halves_of_the_incomplete_function():
    a, x = (
        v.ravel() for v in np.meshgrid([1e-3, 0.5, 1.0, 7.0, 300.0], [1e-8, 0.3, 1.0, 9.0, 290.0])
    )
    with enable_x64():
        p, q = special.gammainc(a, x), special.gammaincc(a, x)
        np.testing.assert_allclose(p + q, 1, rtol=1e-14)
        assert ((p >= 0) & (p <= 1) & (q >= 0) & (q <= 1)).all()
        np.testing.assert_allclose(special.gammaincc(1.0, x), np.exp(-x), rtol=1e-13)


def test_factorials():
    n = np.array([-1.0, -0.5, 0.0, 1.0, 5.0, 20.0])
    with enable_x64():
        got = np.asarray(special.factorial(n))
        np.testing.assert_allclose(got, sp.factorial(n), rtol=1e-15)
        whole = special.factorial(np.arange(5))
        assert whole.dtype == np.float64 and whole.tolist() == [1, 1, 2, 6, 24]


def test_the_multivariate_function():
    with enable_x64():
        for d in (1, 2, 5):
            np.testing.assert_allclose(
                special.multigammaln(7.3, d), sp.multigammaln(7.3, d), rtol=1e-14
            )
    with pytest.raises(TypeError, match="multigammaln: d must be an integer"):
        special.multigammaln(3.0, 1.5)


def test_derivatives():
    with enable_x64():
        for x in (0.3, 5.0, -1.5):
            np.testing.assert_allclose(grad(special.gammaln)(x), sp.digamma(x), rtol=1e-12)
            np.testing.assert_allclose(
                grad(special.gamma)(x), sp.gamma(x) * sp.digamma(x), rtol=1e-12
            )
            np.testing.assert_allclose(grad(special.digamma)(x), sp.polygamma(1, abs(x))
                                       if x > 0 else np.pi**2 / np.sin(np.pi * x) ** 2
                                       - sp.polygamma(1, 1 - x), rtol=1e-12)  # fmt: skip
        by_z, by_m = grad(special.poch, (0, 1))(2.5, 1.5)
        want = sp.poch(2.5, 1.5)
        np.testing.assert_allclose(by_z, want * (sp.digamma(4.0) - sp.digamma(2.5)), rtol=1e-13)
        np.testing.assert_allclose(by_m, want * sp.digamma(4.0), rtol=1e-13)


def test_bernoulli_numbers():
    with enable_x64():
        got = special.bernoulli(30)
    want = [1, -1 / 2, 1 / 6, 0, -1 / 30, 0, 1 / 42]
    np.testing.assert_allclose(got[:7], want, rtol=1e-15)
    np.testing.assert_allclose(got[30], 8615841276005 / 14322, rtol=1e-14)


def test_the_riemann_zeta_function_has_derivatives_everywhere_but_at_one():
    # ζ'(0) = -log(2π) / 2, ζ'(-1) = 1/12 - log A, ζ'(-2) = -ζ(3) / (4π^2)
    known = {0.0: -0.918938533204672742, -1.0: -0.165421143700450929, -2.0: -0.030448457058393271,
             2.0: -0.937548254315843754}  # fmt: skip
    with enable_x64():
        for f in (grad(special.zeta), jit(grad(special.zeta))):
            for s, want in known.items():
                np.testing.assert_allclose(f(s), want, rtol=1e-12)
            for s in (-1e-9, -1e-15):  # where 1 - s is next to the pole, too
                np.testing.assert_allclose(f(s), known[0.0], rtol=1e-8)
        for s in (-3.3, -0.5, 0.5, 1.5, 4.0):
            h = 1e-5
            between = (grad(special.zeta)(s + h) - grad(special.zeta)(s - h)) / (2 * h)
            np.testing.assert_allclose(grad(grad(special.zeta))(s), between, rtol=1e-7)
