"""Spherical harmonics: values of high degree, poles, undefined orders, derivatives."""

import numpy as np
from scipy import special as sp

import stretto as st
from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64

VALUES = [
    (0, 0, 0.3, 0.4, 0.28209479177387814 + 0j),
    (3, -2, 1.1, 0.4, 0.2565202049331878 - 0.2641230936616712j),
    (40, 7, 0.2, 1.0, -0.6219196055673708 - 0.5419705856883893j),
    (200, -200, 1.5, 0.0, 0.6830160223344579 + 0j),
    (100, 1, 3.0, 2.0, -0.2774356086105328 + 0.6062078643022348j),
]


def test_values():
    n, m, theta, phi, want = map(np.array, zip(*VALUES, strict=True))
    with enable_x64():
        for f in (special.sph_harm_y, jit(special.sph_harm_y)):
            np.testing.assert_allclose(f(n, m, theta, phi), want, rtol=1e-12)


def test_what_is_no_harmonic_is_zero():
    n, m = np.array([1.0, 2.0, -1.0, 1.5]), np.array([2.0, -3.0, 0.0, 1.0])
    with enable_x64():
        np.testing.assert_array_equal(special.sph_harm_y(n, m, 0.3, 0.4), 0)


def test_of_negative_order_the_conjugate():
    """Y_n^-m = (-1)^m conj Y_n^m."""
    m = np.arange(1, 5)
    with enable_x64():
        below, above = (np.asarray(special.sph_harm_y(4, k, 1.1, 0.7)) for k in (-m, m))
    np.testing.assert_allclose(below, (-1.0) ** m * above.conj(), rtol=1e-14)


def test_they_are_normalized():
    theta, weights = np.polynomial.legendre.leggauss(20)
    with enable_x64():
        for n, m in ((0, 0), (3, 2), (7, -4)):
            y = np.asarray(special.sph_harm_y(n, m, np.arccos(theta), 0.3))
            np.testing.assert_allclose(2 * np.pi * np.sum(weights * np.abs(y) ** 2), 1, rtol=1e-13)


def test_harmonics_at_the_pole_and_their_derivative():
    with enable_x64():
        got = grad(lambda t: st.numpy.real(special.sph_harm_y(2, 1, t, 0.5)))(0.0)
        # Y = -√(15 / 8π) sin θ cos θ e^(iφ)
        np.testing.assert_allclose(got, -np.sqrt(15 / (8 * np.pi)) * np.cos(0.5), rtol=1e-13)
        clipped = special.sph_harm_y(10, 2, 0.3, 0.4, n_max=6)
        np.testing.assert_allclose(clipped, special.sph_harm_y(6, 2, 0.3, 0.4))


def test_harmonics_beyond_the_poles():
    """As functions of cos(theta): with n_max and without, where the sine is negative too."""
    n, m = np.array([(n, m) for n in range(4) for m in range(-n, n + 1)]).T
    with enable_x64():
        for theta in (-0.5, 3.5, 5.0, 7.0):
            want = sp.sph_harm_y(n, m, theta, 0.3)
            for options in ({}, {"n_max": 5}):
                f = lambda t, o=options: special.sph_harm_y(n, m, t, 0.3, **o)
                np.testing.assert_allclose(f(theta), want, atol=1e-12)
                np.testing.assert_allclose(jit(f)(theta), want, atol=1e-12)
            slope = st.jvp(
                lambda t: st.numpy.real(special.sph_harm_y(n, m, t, 0.3)), (theta,), (1.0,)
            )[1]
            ends = [sp.sph_harm_y(n, m, theta + h, 0.3).real for h in (1e-6, -1e-6)]
            np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, atol=1e-8)
