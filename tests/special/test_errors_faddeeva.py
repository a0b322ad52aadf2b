"""The Faddeeva function: values in each quadrant, far out, on the axes; its derivative."""

import numpy as np
import pytest
from scipy import special as sp

from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64
from stretto._engine.core.interpreter import as_value
from stretto.special.errors import erf_complex, erfc_complex, erfcx_complex

VALUES = [
    (0.5 + 0.1j, 0.7175877421575944 + 0.40847440160301646j),
    (3 + 1e-10j, 0.00012340981194315306 + 0.20115731703752635j),
    (1e-8 + 20j, 0.02817434874105132 + 1.4052174534598011e-11j),
    (7 - 0.5j, -0.0059104241310586735 + 0.08101143885794782j),
    (-6.3 + 2j, 0.026640585391808424 - 0.08194487516873454j),
    (30 + 40j, 0.009027826365823543 + 0.006768162575404747j),
    (1e9 + 1j, 5.641895835477563e-19 + 5.641895835477563e-10j),
]


def test_values_in_each_part():
    z, want = map(np.array, zip(*VALUES, strict=True))
    with enable_x64():
        for f in (special.wofz, jit(special.wofz)):
            got = np.asarray(f(z))
            np.testing.assert_allclose(got.real, want.real, rtol=1e-12)
            np.testing.assert_allclose(got.imag, want.imag, rtol=1e-12)


def test_symmetries():
    """w(-conj z) = conj w(z), w(z) + w(-z) = 2 exp(-z^2)."""
    z = np.array([0.3 + 0.7j, 2 - 0.5j, 6.3 + 1e-3j, 0.05j])
    with enable_x64():
        for f in (special.wofz, jit(special.wofz)):
            w = np.asarray(f(z))
            np.testing.assert_allclose(f(-z.conj()), w.conj(), rtol=1e-14)
            np.testing.assert_allclose(w + f(-z), 2 * np.exp(-z * z), rtol=1e-14, atol=1e-14)


def test_where_the_rules_meet():
    """Beside the nodes of both rules, and about the border between them."""
    x = np.arange(0, 7, np.sqrt(np.pi / 12) / 4)
    z = np.concatenate([x + 1j * y for y in (0.0, 1e-12, 0.3, 6.1, 6.2)])
    with enable_x64():
        np.testing.assert_allclose(jit(special.wofz)(z), sp.wofz(z), rtol=1e-12)


def test_real_arguments_and_infinite_ones():
    with enable_x64():
        for f in (special.wofz, jit(special.wofz)):
            got = f(np.array([0.0, 1.5]))
            assert got.dtype == np.complex128
            np.testing.assert_allclose(got, sp.wofz(np.array([0.0, 1.5])), rtol=1e-14)
            ends = f(np.array([complex(0, np.inf), complex(np.inf, 1), complex(-np.inf, 1)]))
            np.testing.assert_array_equal(ends, 0)
    assert special.wofz(np.float32(1)).dtype == np.complex64


def test_derivative():
    z = 0.7 - 0.4j
    with enable_x64():
        want = -2 * z * sp.wofz(z) + 2j / np.sqrt(np.pi)
        np.testing.assert_allclose(grad(special.wofz, holomorphic=True)(z), want, rtol=1e-14)


def test_errors_name_the_argument():
    with pytest.raises(TypeError, match="wofz: z must be an array or a number"):
        special.wofz([1.0])


# z; erf, erfc and erfcx of it
VALUES_COMPLEX_ERRORS = [
    (1e-9 + 1e-12j, 1.1283791670955127e-09 + 1.1283791670955126e-12j,
     0.9999999988716208 - 1.1283791670955126e-12j, 0.9999999988716208 - 1.1283791650955126e-12j),
    (0.999 + 0.01j, 0.84232682312071 + 0.004159243173801607j,
     0.15767317687928997 - 0.004159243173801607j, 0.427841482051179 - 0.00273513058162468j),
    (1.001 + 0.5j, 0.9509972021879864 + 0.18752526060625585j,
     0.0490027978120136 - 0.18752526060625585j, 0.3910154168063973 - 0.12706568135312596j),
    (-2 + 3j, 20.829461427614568 + 8.687318271470163j,
     -19.829461427614568 - 8.687318271470163j, -0.08133907992862736 - 0.12108616246299844j),
    (5 + 0.1j, 0.9999999999991864 + 1.3224158313587025e-12j,
     8.135637230298415e-13 - 1.3224158313587025e-12j, 0.11066424464977836 - 0.0021325263291299993j),
    (0.1 - 6j, 376864860316649.1 - 154014234098766.06j,
     -376864860316648.1 + 154014234098766.06j, 0.00163702777820524 + 0.09536765976488083j),
]  # fmt: skip


@pytest.mark.parametrize("place", [1, 2, 3])
def test_values(place):
    function = [erf_complex, erfc_complex, erfcx_complex][place - 1]
    z, want = (np.array([row[k] for row in VALUES_COMPLEX_ERRORS]) for k in (0, place))
    with enable_x64():
        for f in (function, jit(function)):
            np.testing.assert_allclose(f(as_value(z)), want, rtol=1e-12)


def test_symmetries_of_complex_errors():
    z = np.array([1e-20 + 1e-30j, 0.5j, 0.9 + 0.4j, 1.2 - 0.3j, 4 + 2j])
    with enable_x64():
        erf = np.asarray(erf_complex(as_value(z)))
        np.testing.assert_allclose(erf_complex(as_value(-z)), -erf, rtol=1e-13)
        np.testing.assert_allclose(erf_complex(as_value(z.conj())), erf.conj(), rtol=1e-13)
        np.testing.assert_allclose(erf + erfc_complex(as_value(z)), 1, rtol=1e-13)


def test_tiny_arguments_keep_their_digits():
    with enable_x64():
        got = erf_complex(as_value(np.array([1e-300 + 1e-305j, 0])))
    np.testing.assert_allclose(got, np.array([1e-300 + 1e-305j, 0]) * 2 / np.sqrt(np.pi))
