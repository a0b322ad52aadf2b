"""Transformers: PyTorch's figures on set weights, names, masks, copies of layers, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import Flat, layer_digests, names, same, with_numbers

# Class, arguments, inputs; PyTorch's digests of its results in one vector (``tests.nn.figures``).
CASES = [
    (
        "Transformer",
        (4, 2, 1, 2, 8, 0.0),
        {},
        [(5, 2, 4), (3, 2, 4)],
        [
            (3, 2, 4),
            0.6336,
            0.00018,
            0.00012,
            0.00028,
            4e-05,
            5e-05,
            1e-05,
            3e-05,
            -1e-05,
            -1e-05,
            -1e-05,
            1e-05,
            1e-05,
            -4e-05,
            0.00013,
            0.0003,
            0.00042,
            -6e-05,
            9e-05,
            8e-05,
            4e-05,
            6e-05,
            2e-05,
            -0.00022,
            2e-05,
            -0.00105,
            -0.00011,
            2e-05,
            0.00017,
            0.00013,
            2e-05,
            0.00012,
            0.00013,
            0.00061,
            -0.00177,
            -0.00078,
            -0.0007,
            0.00089,
            -0.00033,
            -0.00036,
            -7e-05,
            -0.01011,
            -5e-05,
            0.00528,
            -0.00179,
            -0.0722,
            -0.03779,
            -0.00068,
            -5e-05,
            -0.00852,
            0.00604,
            -0.14277,
            -0.10936,
            -0.47723,
            1.23107,
        ],
    ),
]

KEY = st.random.PRNGKey(0)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, want = case
    layer = Flat(with_numbers(name, args, settings))
    same(layer_digests(layer, inputs, st.jit)[0], want)


def layer(cls=nn.TransformerEncoderLayer, dropout=0.0, **settings):
    return cls(4, 2, 8, dropout, key=KEY, **settings)


def wave(*shape):
    return snp.sin(1.3 * snp.arange(float(np.prod(shape)))).reshape(shape)


def test_names():
    encoder = nn.TransformerEncoder(layer(), 2, nn.LayerNorm(4))
    assert "layers.1.linear1.weight" in encoder.state_dict() and "norm.bias" in encoder.state_dict()


def test_causal():
    x, encoder = wave(5, 2, 4), nn.TransformerEncoder(layer(), 2)
    later = snp.array(np.triu(np.ones((5, 5), bool), 1))
    out = encoder(x, is_causal=True)
    for mask in (later, nn.Transformer.generate_square_subsequent_mask(5)):
        np.testing.assert_allclose(encoder(x, mask), out, rtol=1e-5, atol=1e-6)
    # What comes later changes nothing.
    np.testing.assert_allclose(encoder(x[:3], is_causal=True), out[:3], rtol=1e-4, atol=1e-5)
    decoder, memory = nn.TransformerDecoder(layer(nn.TransformerDecoderLayer), 2), wave(6, 2, 4)
    full = decoder(x, memory, tgt_is_causal=True)
    part = decoder(x[:3], memory, tgt_is_causal=True)
    np.testing.assert_allclose(part, full[:3], rtol=1e-4, atol=1e-5)


def test_stacks_are_their_layers_in_turn():
    x, norm = wave(5, 2, 4), nn.LayerNorm(4)
    encoder = nn.TransformerEncoder(layer(norm_first=True), 2, norm)
    one, two = encoder.layers
    np.testing.assert_allclose(encoder(x), norm(two(one(x))), rtol=1e-5, atol=1e-6)
    # The copies begin alike, and are trained apart.
    assert len(list(encoder.parameters())) == len(encoder.state_dict()) == 26
    np.testing.assert_array_equal(one.linear1.weight, two.linear1.weight)
    slope = st.grad(lambda m: (m(x) ** 3).sum())(encoder)
    assert (slope.layers[0].linear1.weight != slope.layers[1].linear1.weight).any()
    model = nn.Transformer(4, 2, 2, 2, 8, key=KEY)
    assert (model.encoder.layers[0].linear1.weight != model.encoder.layers[1].linear1.weight).any()


def test_messages():
    with pytest.raises(ValueError, match="TransformerEncoder: num_layers must be a positive"):
        nn.TransformerEncoder(layer(), 0)
