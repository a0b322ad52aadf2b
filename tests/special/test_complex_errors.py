"""Error functions of complex numbers: values on both sides of the border of the series."""

import numpy as np
import pytest

from stretto import jit
from stretto._engine.core.config import enable_x64
from stretto._engine.core.interpreter import as_value
from stretto.special.complex_errors import erf_complex, erfc_complex, erfcx_complex

# z; erf, erfc and erfcx of it
VALUES = [
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
    z, want = (np.array([row[k] for row in VALUES]) for k in (0, place))
    with enable_x64():
        for f in (function, jit(function)):
            np.testing.assert_allclose(f(as_value(z)), want, rtol=1e-12)


def test_symmetries():
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
