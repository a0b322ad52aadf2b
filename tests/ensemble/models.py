"""Members that the tests make ensembles of."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import nn

KEY = st.random.PRNGKey(5)
X = st.random.normal(st.random.PRNGKey(6), (7, 4))


def mlp(key, width=5):
    first, second = st.random.split(key)
    return nn.Sequential(nn.Linear(4, width, key=first), nn.Tanh(), nn.Linear(width, 2, key=second))


def mlps(*widths):
    return [mlp(k, w) for k, w in zip(st.random.split(KEY, len(widths)), widths, strict=True)]


def product(params, x):
    return x @ params["w"] + params["b"]


def trees(count):
    keys = st.random.split(KEY, count)
    return [
        {"w": st.random.normal(k, (4, 2)), "b": snp.full(2, float(i))} for i, k in enumerate(keys)
    ]


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
