"""The error function's relatives: values at both ends of each formula, edges, inverses."""

import numpy as np
import pytest
from scipy import special as sp

import stretto as st
from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64
from tests.special.values import check_values

INF, NAN = np.inf, np.nan

VALUES = {
    "erfcx": [
        (-26.5, 1.92455316241856881e+305), (-9.3, 7.29725857375279433e+37),
        (-1e-09, 1.00000000112837917), (1e-30, 1.0), (0.47, 0.631400516660034318),
        (3.9, 0.140314181600689736), (25.0, 0.0225495724326413589),
        (120.0, 0.00470141663059935793), (100000000.0, 5.64189583547756287e-9),
    ],
    "dawsn": [
        (1e-30, 1.00000000000000008e-30), (1e-08, 9.99999999999999954e-9),
        (0.92413887, 0.541044224635181694), (1.99999, 0.301342442550287212),
        (2.0, 0.301340388923791966), (4.9999, 0.10213620854439858), (5.0, 0.102134074424276835),
        (-30.0, -0.0166759414010591758),
    ],
    "log_ndtr": [
        (-300.0, -45006.6227321186634), (-37.6, -711.426648670776268),
        (-1.0001, -1.84117416254141075), (-0.9999, -1.84086913548613961),
        (0.0, -0.693147180559945309), (5.0, -2.86651612963763593e-7),
        (8.2, -1.20193515427358589e-16),
    ],
    "ndtr": [
        (-8.3, 5.20556974489025402e-17),
        (-1e-10, 0.499999999960105772), (0.7, 0.758036347776926971), (5.5, 0.999999981010437534),
    ],
    "ndtri": [
        (1e-30, -11.4640246884436157), (1e-100, -21.2734535609653243),
        (1e-20, -9.26234008979840758), (0.02, -2.05374891063182304),
        (0.0749, -1.44023826752796366), (0.075, -1.43953147093845593),
        (0.3, -0.524400512708040816), (0.5000001, 2.5066282733116483e-7),
        (0.925, 1.43953147093845623), (0.99, 2.32634787404084077),
    ],
    "erfinv": [
        (1e-30, 8.86226925452758088e-31), (-1e-09, -8.86226925452758069e-10),
        (0.3, 0.272462714726754345), (-0.7, -0.732869077959216785), (0.95, 1.38590382434967768),
        (0.999999, 3.45891073727549878),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    # Near 1 the inverse moves 4e4 times as far as its argument.
    check_values(getattr(special, name), VALUES[name], 1e-12 if name == "erfinv" else 1e-13)


def test_edges():
    x = np.array([0.0, -0.0, INF, -INF, NAN])
    with enable_x64():
        for f in (lambda f: f, jit):
            np.testing.assert_array_equal(f(special.erfcx)(x), [1, 1, 0, INF, NAN])
            np.testing.assert_array_equal(f(special.dawsn)(x), [0, -0.0, 0, -0.0, NAN])
            np.testing.assert_array_equal(f(special.ndtr)(x), [0.5, 0.5, 1, 0, NAN])
            np.testing.assert_array_equal(f(special.log_ndtr)(x[2:]), [0, -INF, NAN])
            p = np.array([0.0, 1.0, 0.5, -0.1, 1.1, NAN])
            np.testing.assert_array_equal(f(special.ndtri)(p), [-INF, INF, 0, NAN, NAN, NAN])
            np.testing.assert_array_equal(
                f(special.erfinv)(2 * p - 1), [-INF, INF, 0, NAN, NAN, NAN]
            )


def test_inverses():
    p = np.array([1e-200, 1e-5, 0.2, 0.5, 0.9, 1 - 1e-9])
    with enable_x64():
        np.testing.assert_allclose(special.ndtr(special.ndtri(p)), p, rtol=1e-12)
        np.testing.assert_allclose(jit(lambda p: special.ndtr(special.ndtri(p)))(p), p, rtol=1e-12)
        x = np.array([-0.99, -1e-5, 1e-100, 0.5, 0.999])
        np.testing.assert_allclose(special.erf(special.erfinv(x)), x, rtol=1e-13)


def test_odd_and_complementary():
    x = np.array([1e-5, 0.3, 2.0, 6.0, 26.0])
    with enable_x64():
        np.testing.assert_array_equal(special.dawsn(-x), -special.dawsn(x))
        np.testing.assert_allclose(special.ndtr(x) + special.ndtr(-x), 1, rtol=1e-15)
        np.testing.assert_allclose(special.erf(x) + special.erfc(x), 1, rtol=1e-15)
        x = x[:4]
        np.testing.assert_allclose(special.erfcx(x), np.exp(x * x) * sp.erfc(x), rtol=1e-12)


def test_derivatives():
    x = 0.7
    with enable_x64():
        phi = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
        for f, want in {
            special.dawsn: 1 - 2 * x * sp.dawsn(x),
            special.erfcx: 2 * x * sp.erfcx(x) - 2 / np.sqrt(np.pi),
            special.ndtr: phi,
            special.log_ndtr: phi / sp.ndtr(x),
            special.ndtri: np.sqrt(2 * np.pi) * np.exp(sp.ndtri(x) ** 2 / 2),
        }.items():
            np.testing.assert_allclose(grad(f)(x), want, rtol=1e-13)
        # In the tail, where ndtr underflows, its logarithm has a slope all the same.
        np.testing.assert_allclose(grad(special.log_ndtr)(-1e4), 1e4, rtol=1e-7)
        np.testing.assert_allclose(grad(grad(special.log_ndtr))(-50.0), -1 + 1 / 2500, rtol=1e-5)


def test_integers_count_as_floats():
    for name in ("erf", "erfc", "erfcx", "erfinv", "dawsn", "ndtr", "log_ndtr", "ndtri"):
        out = getattr(special, name)(st.numpy.array([0, 1]))
        assert out.dtype == np.float32, name
