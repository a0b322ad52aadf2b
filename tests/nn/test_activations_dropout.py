"""Dropout layers: modes, keys, ensembles of masks, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.nn import functional as F

KEY = st.random.PRNGKey(0)
LAYERS = {
    nn.Dropout: (F.dropout, (30, 40)),
    nn.Dropout1d: (F.dropout1d, (30, 40, 2)),
    nn.Dropout2d: (F.dropout2d, (30, 40, 2, 2)),
    nn.Dropout3d: (F.dropout3d, (30, 40, 2, 2, 2)),
    nn.AlphaDropout: (F.alpha_dropout, (30, 40)),
    nn.FeatureAlphaDropout: (F.feature_alpha_dropout, (30, 40, 2)),
}


@pytest.mark.parametrize("cls", LAYERS, ids=lambda c: c.__name__)
def test_modes(cls):
    f, shape = LAYERS[cls]
    layer, x = cls(0.3), snp.ones(shape)
    out = layer(x, key=KEY)
    np.testing.assert_array_equal(out, f(x, 0.3, True, key=KEY))
    assert (out != x).any()
    np.testing.assert_array_equal(layer.eval()(x), x)
    np.testing.assert_array_equal(cls(0.0)(x), x)
    np.testing.assert_array_equal(cls(1.0)(x), snp.zeros(shape))
    assert str(cls(0.3)) == f"{cls.__name__}(p=0.3)"


def test_keys():
    layer, x = nn.Dropout(), snp.ones(200)
    with nn.keys(KEY):
        one, two = layer(x), layer(x)
    with nn.keys(KEY):
        again = layer(x)
    assert (one != two).any() and (one == again).all()
    compiled = st.jit(lambda key, x: layer(x, key=key))
    np.testing.assert_array_equal(compiled(KEY, x), layer(x, key=KEY))

    def opened(key, x):
        with nn.keys(key):
            return layer(x)

    np.testing.assert_array_equal(st.jit(opened)(KEY, x), one)
    each = st.vmap(opened, in_axes=(0, None))(st.random.split(KEY, 4), x)
    assert len(np.unique(each, axis=0)) == 4


def test_missing_key_names_the_layer_and_the_ways_out():
    layer, x = nn.Dropout(), snp.ones(3)
    with pytest.raises(RuntimeError, match=r"Dropout draws random numbers.*ass key=.*nn.keys\(key"):
        st.jit(layer)(x)
    with pytest.raises(RuntimeError, match=r"Dropout draws .*pass key=.*randomness"):
        st.vmap(layer)(x)
    np.testing.assert_array_equal(st.jit(layer.eval())(x), x)


def test_messages():
    with pytest.raises(ValueError, match=r"Dropout: p must be from 0 to 1, got 1.5"):
        nn.Dropout(1.5)
    with pytest.raises(TypeError, match="Dropout2d: p must be a Python number"):
        nn.Dropout2d("half")
