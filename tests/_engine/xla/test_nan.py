"""NaN in extrema of compiled programs, which the library that XLA hands work to loses."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

FUNCTIONS = {
    "max": lambda x, axis: snp.max(x + 1, axis),
    "min": snp.min,
    "mean of maximum": lambda x, axis: snp.maximum(x + 1, 0).mean(axis),
    "sum of minimum": lambda x, axis: snp.minimum(0, x).sum(axis),
    "sum of clip": lambda x, axis: snp.clip(2 * x, -1, 1).sum(axis),
    "mean of relu": lambda x, axis: st.nn.relu(x).mean(axis),
    "softmax": st.nn.softmax,
    "cummax": st.lax.cummax,
    "one window": lambda x, axis: st.lax.reduce_window(
        x, -np.inf, st.lax.max, (8 if axis == 0 else 1, x.shape[1]), (1, 1), "VALID"
    ),
    "product of maximum": lambda x, axis: snp.maximum(x + 1, 0) @ snp.ones((8, x.shape[1])).T,
    "maximum of product": lambda x, axis: snp.minimum(x @ snp.ones((40, x.shape[1])).T, 1),
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("shape", [(8, 16), (64, 256), (1000, 33)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_stays(name, shape, sign):
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    x[3, 5] = np.copysign(np.nan, sign)
    for axis in (0, 1):
        fun = lambda x, axis=axis: FUNCTIONS[name](x, axis)
        eager = np.asarray(fun(snp.asarray(x)))
        assert np.isnan(eager).any()
        np.testing.assert_array_equal(np.isnan(st.jit(fun)(x)), np.isnan(eager))
