"""The gamma function of complex numbers: laws, SciPy, derivatives."""

import numpy as np
import pytest
from scipy import special as sp

from stretto import grad, jit, numpy
from stretto._engine.core.config import enable_x64
from stretto._engine.ops.special import complex_gamma as ops
from stretto.laws import c64, c128, law

FUNCTIONS = {"gamma": ops.complex_gamma, "digamma": ops.complex_digamma}
LAWS = [law(ops.ComplexGamma, lambda z: ops.complex_gamma(z * 0.5 + 1.5), kind(3))
        for kind in (c64, c128)]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("wide", [False, True])
def test_equals_scipy(name, wide):
    rng = np.random.default_rng(0)
    z = rng.uniform(-6, 6, 100) + 1j * rng.uniform(-15, 15, 100)
    z = np.concatenate([z, [0.5 + 0.1j, -3.001 + 1e-3j, 1e-5j, 20 + 3j, -1.5 + 40j, 2, -2.5]])
    z = z.astype(np.complex128 if wide else np.complex64)
    want = getattr(sp, name)(z.astype(np.complex128))
    with enable_x64(wide):
        for f in (FUNCTIONS[name], jit(FUNCTIONS[name])):
            got = f(numpy.array(z))
            assert got.dtype == z.dtype
            np.testing.assert_allclose(got, want, rtol=1e-11 if wide else 1e-5, atol=1e-30)


def test_derivatives_and_the_real_line():
    with enable_x64():
        z, h = 0.5 - 1.5j, 1e-5
        slope = grad(ops.complex_digamma, holomorphic=True)
        near = (sp.digamma(z + h) - sp.digamma(z - h)) / (2 * h)
        np.testing.assert_allclose(slope(z), near, rtol=1e-9)
        x = np.array([-2.5, 0.3, 4.0])
        np.testing.assert_allclose(ops.complex_gamma(numpy.array(x + 0j)), sp.gamma(x), rtol=1e-13)
        np.testing.assert_allclose(
            ops.complex_digamma(numpy.array(x + 0j)), sp.digamma(x), rtol=1e-13
        )
