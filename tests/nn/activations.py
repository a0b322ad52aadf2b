"""What the tests of activation functions share: values and slopes against a definition."""

from __future__ import annotations

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import nn

X = np.array([-100.0, -4.0, -3.0, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0, 6.0, 7.0, 100.0], np.float32)
WIDE = X.astype(np.float64)


def same_values(name, meaning):
    f, want = getattr(nn, name), meaning(WIDE)
    for got in (f(snp.array(X)), st.jit(f)(X), st.vmap(f)(snp.array(X))):
        assert got.dtype == snp.float32
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    for dtype in (snp.bfloat16, snp.float16):
        assert f(snp.array([0.5], dtype)).dtype == dtype


def same_slopes(name, meaning):
    f, h = meaning, 1e-4
    x = np.array([-20.0, -4.1, -0.6, 0.3, 0.9, 2.2, 5.0, 30.0])
    numeric = (f(x + h) - f(x - h)) / (2 * h)
    slopes = st.vmap(st.grad(getattr(nn, name)))(snp.array(x))
    np.testing.assert_allclose(slopes, numeric, rtol=1e-3, atol=1e-4)
    seconds = st.vmap(st.grad(st.grad(getattr(nn, name))))(snp.array(x))
    assert np.isfinite(np.asarray(seconds)).all()
    at_extremes = st.vmap(st.grad(getattr(nn, name)))(snp.array([-1e4, 0.0, 1e4]))
    assert np.isfinite(np.asarray(at_extremes)).all()
