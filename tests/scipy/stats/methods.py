"""Checks of distributions, against SciPy's and by their own laws."""

import itertools

import numpy as np
from scipy import integrate, stats

import stretto as st
from stretto.scipy import stats as ours

INF, NAN = np.inf, np.nan


def check_density(name, shapes, low, high, breaks=()):
    """The density integrates to 1 over its support, and is the cdf's derivative."""
    f = getattr(ours, name)
    with st.enable_x64():
        pdf = lambda x: np.asarray(f.pdf(x, *shapes))
        ends = [low, *breaks, high]
        total = sum(
            integrate.quad_vec(pdf, a, b, epsabs=1e-10)[0] for a, b in itertools.pairwise(ends)
        )
        np.testing.assert_allclose(total, 1, rtol=1e-8)


def check_methods(name, shapes, x, methods, rtol=1e-12):
    """As SciPy's, with a location and a scale; and the gradient of the logarithm is the ratio's."""
    f, theirs = getattr(ours, name), getattr(stats, name)
    with st.enable_x64():
        for method in methods.split():
            for placed in ({}, {"loc": 0.5, "scale": 2.0}):
                got = getattr(f, method)(x, *shapes, **placed)
                want = getattr(theirs, method)(x, *shapes, **placed)
                np.testing.assert_allclose(got, want, rtol=rtol, err_msg=f"{name}.{method}")
            assert np.isnan(float(getattr(f, method)(NAN, *shapes))), method
            assert np.isnan(float(getattr(f, method)(1.0, *shapes, scale=-1.0))), method


def check_slopes(name, shapes, points):
    """The derivative of the cdf is the density, that of logsf minus the density over sf."""
    f = getattr(ours, name)
    with st.enable_x64():
        for x in points:
            density = float(f.pdf(x, *shapes))
            slope = st.grad(lambda x: f.cdf(x, *shapes))(x)
            np.testing.assert_allclose(slope, density, rtol=1e-10)
            slope = st.grad(lambda x: f.logsf(x, *shapes))(x)
            np.testing.assert_allclose(slope, -density / float(f.sf(x, *shapes)), rtol=1e-10)


def check_ends(name, shapes, low, high):
    """Nothing outside of the support, all of it between its ends."""
    f = getattr(ours, name)
    with st.enable_x64():
        outside = np.array([v for v in (low - 1, high + 1) if np.isfinite(v)])
        if outside.size:
            np.testing.assert_array_equal(f.pdf(outside, *shapes), 0)
            np.testing.assert_array_equal(f.logpdf(outside, *shapes), -INF)
        if hasattr(f, "cdf"):
            ends = np.array([-INF, low - 1.0, high + 1.0, INF])
            np.testing.assert_array_equal(f.cdf(ends, *shapes), [0, 0, 1, 1])
            np.testing.assert_array_equal(f.sf(ends, *shapes), [1, 1, 0, 0])
