"""``to_batch_ensemble``: weights are kept, members differ by their factors, the model stays."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble.layers import (
    BatchEnsembleConv2d,
    BatchEnsembleLinear,
    repeat_members,
    split_members,
    to_batch_ensemble,
)

KEY = st.random.PRNGKey(0)
X = st.random.normal(st.random.PRNGKey(1), (4, 2, 5, 5))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, key=KEY)
        self.norm = nn.BatchNorm2d(3)
        self.mix = nn.Linear(3, 3, bias=False, key=KEY)
        self.again = self.mix
        self.head = nn.Sequential(nn.Linear(3, 2, key=KEY))

    def forward(self, x):
        x = snp.tanh(self.norm(self.conv(x))).mean((2, 3))
        return self.head(self.again(self.mix(x)))


def test_conversion():
    model = Model().eval()
    before = {k: np.asarray(v) for k, v in model.state_dict().items()}
    made = to_batch_ensemble(model, 3, factors="normal", key=KEY)
    assert isinstance(made, Model) and not made.training and not made.conv.shared.training
    assert type(made.conv) is BatchEnsembleConv2d and type(made.head[0]) is BatchEnsembleLinear
    assert made.mix is made.again and made.mix.bias is None
    assert (made.conv.shared.weight == model.conv.weight).all() and made.conv.shared.bias is None
    np.testing.assert_array_equal(made.conv.bias, np.stack([model.conv.bias] * 3))
    for k, v in model.state_dict().items():
        np.testing.assert_array_equal(v, before[k])
    out = split_members(made(repeat_members(X, 3)), 3)
    assert out.shape == (3, 4, 2) and not np.allclose(out[0], out[1])
    for layer in (made.conv, made.mix, made.head[0]):
        layer.r, layer.s = snp.ones(layer.r.shape), snp.ones(layer.s.shape)
    same = split_members(st.jit(made)(repeat_members(X, 3)), 3)
    np.testing.assert_allclose(same, np.stack([model(X)] * 3), rtol=1e-4, atol=1e-5)


def test_one_layer_and_keys():
    layer = nn.Linear(3, 2, key=KEY)
    made = to_batch_ensemble(layer, 4, key=KEY)
    assert type(made) is BatchEnsembleLinear and set(np.unique(made.r)) <= {-1, 1}
    again = to_batch_ensemble(layer, 4, key=KEY)
    np.testing.assert_array_equal(made.r, again.r)
    two = to_batch_ensemble(nn.Sequential(layer, nn.Linear(3, 2, key=KEY)), 4, key=KEY)
    assert (np.asarray(two[0].r) != np.asarray(two[1].r)).any()
    with pytest.raises(ValueError, match="BatchEnsembleLinear has no Linear or Conv2d layer"):
        to_batch_ensemble(made, 4, key=KEY)


def test_what_stays():
    model = nn.Sequential(nn.MultiheadAttention(4, 2, key=KEY), nn.Linear(4, 4, key=KEY))
    made = to_batch_ensemble(model, 2, key=KEY)
    assert type(made[0].out_proj) is type(model[0].out_proj)
    assert type(made[1]) is BatchEnsembleLinear


def test_refused():
    with pytest.raises(ValueError, match="Sequential has no Linear or Conv2d layer to replace"):
        to_batch_ensemble(nn.Sequential(), 4, key=KEY)
    with pytest.raises(TypeError, match="to_batch_ensemble: expected a module, got function"):
        to_batch_ensemble(lambda x: x, 4)
    with pytest.raises(ValueError, match="factors must be"):
        to_batch_ensemble(nn.Linear(2, 2), 4, factors="none", key=KEY)
