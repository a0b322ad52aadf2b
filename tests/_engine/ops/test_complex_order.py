"""The order of complex numbers: NumPy's, NaN, derivatives."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.complex_order import complex_extremum, complex_greater

NAN = np.nan
X = np.array([1 + 2j, 1 - 1j, 3, complex(NAN, 1), complex(1, NAN), 1 + 1j, -np.inf], np.complex64)
Y = np.array([1 + 1j, 2, 3 + 1j, 1, 1 + 1j, complex(0, NAN), 5j], np.complex64)


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_extrema_are_numpys(name):
    f = getattr(snp, name)
    for g in (f, st.jit(f), st.vmap(f)):
        np.testing.assert_array_equal(g(X, Y), getattr(np, name)(X, Y))
    np.testing.assert_array_equal(f(X[:3], 2.0), getattr(np, name)(X[:3], 2))


def test_lax_has_them_too():
    np.testing.assert_array_equal(st.lax.max(X, Y), np.maximum(X, Y))
    np.testing.assert_array_equal(st.lax.min(X, Y), np.minimum(X, Y))
    assert complex_greater(snp.array(X), snp.array(Y)).tolist()[:3] == [True, False, False]
    np.testing.assert_array_equal(complex_extremum(snp.array(X), snp.array(Y), True)[0], X[0])


def test_derivatives_go_to_the_one_chosen_and_half_at_ties():
    slope = st.grad(lambda x: snp.maximum(x, 2 + 0j).real)
    assert [complex(slope(z)) for z in (3 + 1j, 1 + 1j, 2 + 0j)] == [1, 0, 0.5]
