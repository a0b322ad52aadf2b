"""Bessel functions: values where formulas meet, edges, recurrences, refusals."""

import numpy as np
import pytest
from scipy import special as sp

import stretto as st
from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64
from stretto._engine.core.interpreter import as_value
from stretto.special.bessel import BESSEL_J
from tests.special.values import check_values

INF, NAN = np.inf, np.nan

VALUES = {
    "i0": [
        (1e-30, 1.0), (0.5, 1.06348337074132352), (8.0, 427.564115721804785),
        (7.9999, 427.524130295966671), (100.0, 1.07375170713107382e+42),
        (700.0, 1.52959334767187374e+302),
    ],
    "i0e": [
        (1e-08, 0.999999990000000075), (8.0, 0.143431781856850311),
        (-30.0, 0.0731459464822372939), (10000.0, 0.00398947267460473211),
    ],
    "i1": [
        (1e-30, 5.00000000000000042e-31), (-0.5, -0.257894305390896316),
        (8.0, 399.873136782560098), (7.9999, 399.83538057975892),
        (100.0, 1.06836939033816248e+42), (700.0, 1.52850039023390069e+302),
    ],
    "i1e": [
        (1e-08, 4.99999995000000042e-9), (8.0, 0.134142493292698178),
        (-30.0, -0.0719163305986475547), (10000.0, 0.00398927319598366226),
    ],
    "jn": [
        (0.0, 1e-08, 0.999999999999999975),
        (1.0, 1e-30, 5.00000000000000042e-31), (3.0, 24.9, 0.119742807732548183),
        (3.0, 25.1, 0.0959240403499265995), (12.0, 6.9, 0.00229969370809727427),
        (12.0, 7.3, 0.00401906448394080943), (12.0, 100.0, 0.0662360486596380413),
        (5.0, -9.5, 0.16132126019962659), (30.0, 5.0, 2.67117727825079881e-21),
        (2.0, 10000.0, 0.00709688984353990739),
    ],
}  # fmt: skip


def first_kind(n, x):
    return BESSEL_J(as_value(n), as_value(x))


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    check_values(first_kind if name == "jn" else getattr(special, name), VALUES[name])


def test_edges():
    x = np.array([0.0, INF, -INF, NAN])
    with enable_x64():
        for f in (lambda f: f, jit):
            np.testing.assert_allclose(f(special.i0)(x), [1, INF, INF, NAN], rtol=1e-15)
            np.testing.assert_array_equal(f(special.i1)(x), [0, INF, -INF, NAN])
            np.testing.assert_allclose(f(special.i0e)(x), [1, 0, 0, NAN], rtol=1e-15)
            np.testing.assert_array_equal(f(special.i1e)(x), [0, 0, 0, NAN])
            got = f(lambda x: special.bessel_jn(x, v=2))(x)
            np.testing.assert_array_equal(got[:, 1:3], 0)
            np.testing.assert_array_equal(got[:, 0], [1, 0, 0])
            assert np.isnan(np.asarray(got[:, 3])).all()


def test_a_row_of_orders_obeys_the_recurrence():
    x = np.array([0.3, 2.0, 11.0, 60.0, -4.0])
    with enable_x64():
        rows = np.asarray(special.bessel_jn(x, v=20))
        n = np.arange(1, 20)[:, None]
        scale = np.abs(rows[:-2]) + np.abs(rows[2:])
        error = rows[:-2] + rows[2:] - 2 * n / x * rows[1:-1]
        assert (np.abs(error) <= 1e-12 * scale).all()
        # 1 = J_0 + 2 (J_2 + J_4 + ...)
        np.testing.assert_allclose((rows[0] + 2 * rows[2::2].sum(0))[[0, 1, 4]], 1, rtol=1e-13)


def test_shapes_and_whole_numbers():
    assert special.bessel_jn(np.ones((2, 3)), v=0).shape == (1, 2, 3)
    assert special.bessel_jn(np.array([1, 2]), v=1).dtype == np.float32
    with pytest.raises(TypeError, match="bessel_jn: v must be an integer"):
        special.bessel_jn(1.0, v=1.5)


def test_derivatives():
    with enable_x64():
        x = 2.3
        np.testing.assert_allclose(grad(special.i0)(x), sp.i1(x), rtol=1e-14)
        np.testing.assert_allclose(grad(special.i1)(x), sp.i0(x) - sp.i1(x) / x, rtol=1e-14)
        np.testing.assert_allclose(grad(special.i0e)(-x), sp.i0e(x) - sp.i1e(x), rtol=1e-13)
        rows = st.jacfwd(lambda x: special.bessel_jn(x, v=3))(x)
        np.testing.assert_allclose(rows, [sp.jvp(n, x) for n in range(4)], rtol=1e-13)
        assert float(grad(special.i1e)(0.0)) == 0.5


def test_bessel_functions_far_out():
    x = np.array([0.0, 1e-3, 30.0, 1e4])
    with enable_x64():
        for f in (special.bessel_jn, jit(special.bessel_jn, static_argnames="v")):
            got = f(x, v=12)
            np.testing.assert_allclose(got, [sp.jv(n, x) for n in range(13)], rtol=1e-9, atol=1e-14)
