"""Layers that are activations: their functions with their settings, parameters, chance, words."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.nn import functional as F

X = np.linspace(-4, 4, 24).reshape(2, 4, 3).astype("f")

LAYERS = [
    (nn.ReLU(), F.relu),
    (nn.ReLU(inplace=True), F.relu),
    (nn.ReLU6(), F.relu6),
    (nn.SELU(), F.selu),
    (nn.Hardswish(), F.hardswish),
    (nn.Hardsigmoid(), F.hardsigmoid),
    (nn.LeakyReLU(0.3), lambda x: F.leaky_relu(x, 0.3)),
    (nn.ELU(1.5), lambda x: F.elu(x, 1.5)),
    (nn.CELU(0.5), lambda x: F.celu(x, 0.5)),
    (nn.Hardtanh(-0.5, 2.0), lambda x: F.hardtanh(x, -0.5, 2.0)),
    (nn.Threshold(0.5, 7.0), lambda x: F.threshold(x, 0.5, 7.0)),
    (nn.Softshrink(1.0), lambda x: F.softshrink(x, 1.0)),
    (nn.Hardshrink(1.0), lambda x: F.hardshrink(x, 1.0)),
    (nn.PReLU(4), lambda x: F.prelu(x, snp.full((4,), 0.25))),
    (nn.RReLU(0.1, 0.2).eval(), lambda x: F.rrelu(x, 0.1, 0.2)),
]


@pytest.mark.parametrize("layer, f", LAYERS, ids=[f"{a}-{i}" for i, (a, _) in enumerate(LAYERS)])
def test_calls_its_function(layer, f):
    x = snp.array(X)
    np.testing.assert_array_equal(layer(x), f(x))


def test_in_a_compiled_function():
    model = nn.Sequential(nn.LeakyReLU(0.2), nn.PReLU(4), nn.GELU())
    x = snp.array(X)
    np.testing.assert_allclose(st.jit(lambda m, x: m(x))(model, x), model(x), rtol=1e-6)
    slope = st.grad(lambda m: m(x).sum())(model)
    assert slope[1].weight.shape == (4,) and float(abs(slope[1].weight).sum()) > 0


def test_words():
    assert str(nn.ReLU(inplace=True)) == "ReLU()"
    assert str(nn.LeakyReLU(0.2)) == "LeakyReLU(negative_slope=0.2)"
    assert str(nn.GELU()) == "GELU(approximate='none')"
    assert str(nn.PReLU(3)) == "PReLU(num_parameters=3)"


def test_parameters():
    assert list(nn.PReLU(3).state_dict()) == ["weight"] and not nn.ReLU().state_dict()
    assert nn.PReLU(3, 0.1, dtype=snp.bfloat16).weight.dtype == snp.bfloat16
    with pytest.raises(ValueError, match="PReLU: num_parameters must be a positive integer, got 0"):
        nn.PReLU(0)


def test_random_slopes():
    x, key, layer = -snp.ones(100), st.random.PRNGKey(0), nn.RReLU()
    out = layer(x, key=key)
    assert len(np.unique(out)) > 90
    np.testing.assert_array_equal(out, F.rrelu(x, training=True, key=key))
    with nn.keys(key):
        assert (layer(x) != layer(x)).any()


SMOOTH = [
    (nn.SiLU(), F.silu),
    (nn.Mish(), F.mish),
    (nn.Sigmoid(), F.sigmoid),
    (nn.LogSigmoid(), F.logsigmoid),
    (nn.Tanh(), F.tanh),
    (nn.Tanhshrink(), F.tanhshrink),
    (nn.Softsign(), F.softsign),
    (nn.GELU(), F.gelu),
    (nn.GELU("tanh"), lambda x: F.gelu(x, "tanh")),
    (nn.Softplus(2.0, 3.0), lambda x: F.softplus(x, 2.0, 3.0)),
    (nn.GLU(1), lambda x: F.glu(x, 1)),
    (nn.Softmax(1), lambda x: F.softmax(x, 1)),
    (nn.Softmin(1), lambda x: F.softmin(x, 1)),
    (nn.LogSoftmax(1), lambda x: F.log_softmax(x, 1)),
    (nn.Softmax2d(), lambda x: F.softmax(x, 0)),
]


@pytest.mark.parametrize("layer, f", SMOOTH, ids=[f"{a}-{i}" for i, (a, _) in enumerate(SMOOTH)])
def test_a_smooth_one_calls_its_function(layer, f):
    x = snp.array(X)
    np.testing.assert_array_equal(layer(x), f(x))


def test_messages():
    with pytest.raises(ValueError, match=r"Softmax2d\(\): expected input \(batch, channels, hei"):
        nn.Softmax2d()(snp.ones((2, 3)))
    with pytest.raises(TypeError, match="dim"):
        nn.Softmax()
