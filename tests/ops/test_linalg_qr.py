"""The QR factorisation: the laws, NumPy, reflections, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.core.errors import MissingRuleError
from stretto.laws import c64, c128, f32, f64, law
from stretto.lax.linalg import householder_product, qr
from stretto.ops.linalg_qr import Geqrf, HouseholderProduct, Qr, geqrf


def steep(x):
    return x + 3 * snp.eye(*x.shape[-2:], dtype=x.dtype)


def reduced(x):
    return qr(steep(x), full_matrices=False)


# Reflections have no derivative: they are refused.
LAWS = [
    *(law(Qr, reduced, kind(3, 3)) for kind in (f32, f64, c64, c128)),
    *(law(Qr, reduced, kind(*shape)) for kind in (f32, c64) for shape in ((2, 4, 2), (2, 4))),
    law(Qr, lambda x: qr(steep(x)), f32(2, 3)),
    law(Qr, qr, f32(4, 2), derivative=False),
    *(law(Geqrf, geqrf, kind(4, 2), derivative=False) for kind in (f32, c64)),
    *(law(HouseholderProduct, lambda x: householder_product(*geqrf(x)), kind(4, 2),
          derivative=False) for kind in (f32, c64)),
]  # fmt: skip


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)], ids=str)
@pytest.mark.parametrize("mode", ["complete", "reduced"])
def test_equals_numpy(shape, mode):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    f = lambda x: qr(x, full_matrices=mode == "complete")
    for g in (f, st.jit(f)):
        for got, want in zip(g(snp.array(x)), np.linalg.qr(x, mode), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-5)


def test_the_diagonal_of_r_is_real():
    x = np.random.default_rng(0).normal(size=(3, 3)) * (1 + 1j)
    _, r = qr(snp.array(x.astype(np.complex64)))
    np.testing.assert_allclose(np.imag(np.diag(r)), 0, atol=1e-6)


def test_refusals():
    with pytest.raises(MissingRuleError, match="columns of q beyond those of x are not determined"):
        st.grad(lambda x: snp.sum(qr(x)[0]))(snp.ones((3, 2)))
    with pytest.raises(MissingRuleError, match="use qr, which has derivatives"):
        st.grad(lambda x: snp.sum(geqrf(x)[0]))(snp.ones((3, 2)))
    with pytest.raises(ValueError, match="householder_product: expected a of no more columns"):
        householder_product(snp.ones((2, 3)), snp.ones(2))
