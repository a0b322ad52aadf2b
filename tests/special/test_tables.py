"""Chebyshev coefficients: their sums in the middle and at both ends; no more would count."""

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from scipy import special as sp

from stretto.special import tables

# What each is the expansion of, by its variable t.
EXPANSIONS = {
    "SI": lambda t: _over(sp.sici, np.sqrt(8 * (t + 1)), 0, 1),
    "SPENCE": lambda t: sp.spence(1 - t / 2) / (t / 2),
    "FRESNEL_S": lambda t: _over(sp.fresnel, 1.6 * ((t + 1) / 2) ** 0.25, 0, 3),
    "FRESNEL_C": lambda t: _over(sp.fresnel, 1.6 * ((t + 1) / 2) ** 0.25, 1, 1),
    "EI_6": lambda t: _scaled_ei(24 / (t + 3)),
    "EI_12": lambda t: _scaled_ei(48 / (t + 3)),
}


def _over(function, x, which, power):
    return function(x)[which] / x**power


def _scaled_ei(x):
    return x * np.exp(-x) * sp.expi(x)


@pytest.mark.parametrize("name", EXPANSIONS)
def test_they_are_the_functions(name):
    t = np.array([-0.9, -0.3, 0.2, 0.7, 1.0])
    got = chebyshev.chebval(t, getattr(tables, name))
    np.testing.assert_allclose(got, EXPANSIONS[name](t), rtol=1e-14)


@pytest.mark.parametrize("name", [n for n in vars(tables) if n.isupper()])
def test_they_end_where_nothing_more_counts(name):
    table = np.abs(getattr(tables, name))
    assert 0 < table[-1] < 1e-16 * table.max()
