"""``mc_dropout``: each run is the model with dropout alone in train mode and a key of its own."""

import numpy as np
import pytest

import stretto as st
from stretto import nn
from stretto.ensemble.layers import mc_dropout

KEY = st.random.PRNGKey(0)
X = st.random.normal(st.random.PRNGKey(1), (4, 6))


def make():
    return nn.Sequential(
        nn.Linear(6, 8, key=KEY), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3, key=KEY)
    )


def looped(model, x, key, samples):
    made = model.clone().eval()
    made[2].train()
    outs = []
    for k in st.random.split(key, samples):
        with nn.keys(k):
            outs.append(np.asarray(made(x)))
    return np.stack(outs)


def test_the_loop_over_runs():
    model = make()
    outs = mc_dropout(model, X, KEY, 6)
    np.testing.assert_allclose(outs, looped(model, X, KEY, 6), rtol=1e-4, atol=1e-5)
    assert not np.allclose(outs[0], outs[1])
    assert model.training and model[2].training and not model[1].running_mean.any()
    np.testing.assert_allclose(mc_dropout(model, (X,), KEY, 6, chunk_size=4), outs, rtol=1e-5)
    np.testing.assert_allclose(mc_dropout(model.eval(), X, KEY, 6), outs, rtol=1e-5)
    assert not np.allclose(mc_dropout(model, X, st.random.PRNGKey(5), 6), outs)


def test_inside_transformations():
    model = make()
    outs = mc_dropout(model, X, KEY, 3)
    jitted = st.jit(lambda m, x, k: mc_dropout(m, x, k, 3))(model, X, KEY)
    np.testing.assert_allclose(jitted, outs, rtol=1e-4, atol=1e-5)
    slope = st.grad(lambda x: mc_dropout(model, x, KEY, 3).sum())(X)
    other = st.grad(lambda x: sum(looped_once(model, x, k) for k in st.random.split(KEY, 3)))(X)
    np.testing.assert_allclose(slope, other, rtol=1e-4, atol=1e-5)
    members = st.stack([model, make()])
    each = st.vmap(lambda m: mc_dropout(m, X, KEY, 3))(members)
    np.testing.assert_allclose(each[1], outs, rtol=1e-4, atol=1e-5)


def looped_once(model, x, key):
    made = model.clone().eval()
    made[2].train()
    with nn.keys(key):
        return made(x).sum()


def test_layers_with_a_dropout_setting():
    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(6, 2, dropout=0.5, key=KEY)

        def forward(self, x):
            return self.attention(x, x, x)[0]

    outs = mc_dropout(Attend(), X, KEY, 2)
    assert not np.allclose(outs[0], outs[1])


def test_compiled_once():
    model, traces = make(), []

    class Counting(nn.Module):
        def forward(self, x):
            traces.append(1)
            return x

    model.append(Counting())
    for seed in range(3):
        mc_dropout(model, X, st.random.PRNGKey(seed), 4)
    assert len(traces) == 1


def test_refused():
    with pytest.raises(
        ValueError, match="Sequential has no dropout, so all runs would be the same"
    ):
        mc_dropout(nn.Sequential(nn.Dropout(0.0), nn.Linear(2, 2)), X, KEY, 3)
    with pytest.raises(TypeError, match="mc_dropout: expected a module, got function"):
        mc_dropout(lambda x: x, X, KEY, 3)
    with pytest.raises(ValueError, match="mc_dropout: samples must be a positive integer, got 0"):
        mc_dropout(make(), X, KEY, 0)
    with pytest.raises(TypeError, match=r"random\.mc_dropout: expected a key"):
        mc_dropout(make(), X, 3, 3)
    with pytest.raises(ValueError, match="mc_dropout: chunk_size must be a positive integer"):
        mc_dropout(make(), X, KEY, 3, chunk_size=0)
