"""What the tests of activation functions share: PyTorch's figures, extremes, NaN."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F

X = [-6.0, -3.0, -1.0, -0.5, 0.0, 0.5, 3.0, 6.0]


def same_as_pytorch(case):
    name, settings, values, slopes = case

    def f(x):
        return getattr(F, name)(x, **settings)

    x, both = snp.array(X), st.vmap(st.value_and_grad(f))
    np.testing.assert_allclose(f(x), values, rtol=1e-5, atol=1e-5)
    for wrap in (lambda f: f, st.jit):
        got = wrap(both)(x)
        np.testing.assert_allclose(got[0], values, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got[1], slopes, rtol=1e-5, atol=1e-5)


def finite_at_extremes(case):
    name, settings, *_ = case

    def f(x):
        return getattr(F, name)(x, **settings)

    x = snp.array([-1e10, -1e4, 1e4, 1e10])
    assert np.isfinite(st.vmap(st.grad(f))(x)).all()
    for kind in (snp.bfloat16, snp.float16):
        assert f(snp.array([-0.5, 2.0], kind)).dtype == kind


def nan_stays(case):
    name, settings, *_ = case
    assert np.isnan(getattr(F, name)(snp.array(np.nan), **settings).item()), name
