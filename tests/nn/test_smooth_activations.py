"""Smooth activations: each calls its function; messages."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import nn
from stretto.nn import functional as F

X = np.linspace(-4, 4, 24).reshape(2, 4, 3).astype("f")

LAYERS = [
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


@pytest.mark.parametrize("layer, f", LAYERS, ids=[f"{a}-{i}" for i, (a, _) in enumerate(LAYERS)])
def test_calls_its_function(layer, f):
    x = snp.array(X)
    np.testing.assert_array_equal(layer(x), f(x))


def test_messages():
    with pytest.raises(ValueError, match=r"Softmax2d\(\): expected input \(batch, channels, hei"):
        nn.Softmax2d()(snp.ones((2, 3)))
    with pytest.raises(TypeError, match="dim"):
        nn.Softmax()
