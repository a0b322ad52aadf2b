"""Transformers and their layers: PyTorch's figures, masks, chance, messages."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.nn import functional as F
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
    )
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


# Class, arguments, inputs; PyTorch's digests of its results in one vector (``tests.nn.figures``).
LAYERS_CASES = [
    (
        "TransformerEncoderLayer",
        (4, 2, 8, 0.0),
        {},
        [(3, 2, 4)],
        [
            (3, 2, 4),
            -0.44894,
            0.78579,
            0.46902,
            0.05907,
            -0.21771,
            0.04491,
            0.47124,
            -0.09639,
            -0.63414,
            0.01163,
            -0.05239,
            0.16693,
            0.33011,
            1.23107,
        ],
    ),
    (
        "TransformerEncoderLayer",
        (4, 2, 8, 0.0),
        {"norm_first": True, "activation": "gelu"},
        [(3, 2, 4)],
        [
            (3, 2, 4),
            -5.12313,
            11.48126,
            -2.42623,
            1.11569,
            1.23201,
            1.16718,
            1.15635,
            0.41546,
            2.92345,
            1.23107,
            0.40402,
            4.3276,
            0.32757,
            -1.33872,
        ],
    ),
    (
        "TransformerEncoderLayer",
        (4, 2, 8, 0.0),
        {"batch_first": True, "bias": False},
        [(3, 2, 4)],
        [(3, 2, 4), -1.01418, 2.05183, 1.2501, -2.59941, 1.2362, 0.249, 1.32517, 1.91124],
    ),
    (
        "TransformerDecoderLayer",
        (4, 2, 8, 0.0),
        {},
        [(3, 2, 4), (5, 2, 4)],
        [
            (3, 2, 4),
            -0.3719,
            0.34759,
            -0.06597,
            -0.22151,
            -0.0697,
            -0.16605,
            0.00426,
            0.00741,
            0.0494,
            -0.3229,
            -0.02837,
            -0.59065,
            0.32203,
            0.99174,
            0.11974,
            0.05045,
            -0.03842,
            -0.34777,
            -0.39169,
            -0.50099,
            1.23107,
        ],
    ),
    (
        "TransformerDecoderLayer",
        (4, 2, 8, 0.0),
        {"norm_first": True},
        [(3, 2, 4), (5, 2, 4)],
        [
            (3, 2, 4),
            -2.75648,
            11.65638,
            -7.98355,
            4.32183,
            1.52789,
            -0.01836,
            1.02777,
            1.23565,
            2.88343,
            -1.22105,
            1.25894,
            0.38173,
            -0.49984,
            -1.91314,
            1.23107,
            0.33866,
            5.19233,
            -3.02383,
            -3.8936,
            -0.03941,
            -0.61799,
        ],
    ),
]


@pytest.mark.parametrize("case", LAYERS_CASES, ids=names(LAYERS_CASES))
def test_equals_pytorch_of_layers(case):
    name, args, settings, inputs, want = case
    layer = Flat(with_numbers(name, args, settings))
    same(layer_digests(layer, inputs, st.jit)[0], want)


def test_names_of_layers():
    assert list(layer().state_dict()) == [
        "self_attn.in_proj_weight",
        "self_attn.in_proj_bias",
        "self_attn.out_proj.weight",
        "self_attn.out_proj.bias",
        "linear1.weight",
        "linear1.bias",
        "linear2.weight",
        "linear2.bias",
        "norm1.weight",
        "norm1.bias",
        "norm2.weight",
        "norm2.bias",
    ]
    assert not any("bias" in n for n in layer(bias=False).state_dict())


def test_padding():
    x, pad = wave(5, 2, 4), snp.array([[False] * 5, [False] * 3 + [True] * 2])
    out = layer()(x, None, pad)
    np.testing.assert_allclose(out[:3, 1], layer()(x[:3, 1]), rtol=1e-4, atol=1e-5)
    decoder, y = layer(nn.TransformerDecoderLayer), wave(3, 2, 4)
    out = decoder(y, x, memory_key_padding_mask=pad)
    np.testing.assert_allclose(out[:, 1], decoder(y[:, 1], x[:3, 1]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cls", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer])
def test_dropout(cls):
    module, x = layer(cls, 0.5), wave(5, 2, 4)
    inputs = (x,) if cls is nn.TransformerEncoderLayer else (x, x)
    one, two = (module(*inputs, key=k) for k in st.random.split(KEY))
    assert (one != two).any()
    np.testing.assert_array_equal(one, module(*inputs, key=st.random.split(KEY)[0]))
    run = st.jit(lambda m, key: m(*inputs, key=key))
    np.testing.assert_allclose(run(module, st.random.split(KEY)[1]), two, rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match=r"MultiheadAttention draws random .*key="):
        st.jit(module)(*inputs)
    with nn.keys(KEY):
        assert (module(*inputs) != module(*inputs)).any()
    np.testing.assert_allclose(module.eval()(*inputs), layer(cls)(*inputs), rtol=1e-6)


def test_members():
    models = [
        nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True, key=k)
        for k in st.random.split(KEY, 3)
    ]
    x = wave(2, 5, 4)
    loss = lambda m, x: (m(x) ** 3).sum()
    got = st.jit(st.vmap(st.value_and_grad(loss), in_axes=(0, None)))(st.stack(models), x)
    for i, model in enumerate(models):
        value, slope = st.value_and_grad(loss)(model, x)
        np.testing.assert_allclose(got[0][i], value, rtol=1e-4)
        for a, b in zip(got[1].parameters(), slope.parameters()):
            np.testing.assert_allclose(a[i], b, rtol=1e-3, atol=1e-4)


def test_activations():
    x = wave(5, 2, 4)
    for same_as in (F.gelu, nn.GELU()):
        other = layer(activation=same_as)
        np.testing.assert_allclose(layer(activation="gelu")(x), other(x), rtol=1e-6)


def test_messages_of_layers():
    with pytest.raises(
        ValueError, match="activation must be 'relu', 'gelu' or a function, got 'x'"
    ):
        layer(activation="x")
    with pytest.raises(TypeError, match="TransformerDecoderLayer: activation must be"):
        layer(nn.TransformerDecoderLayer, activation=3)
    with pytest.raises(ValueError, match=r"MultiheadAttention: expected sizes .* float32\[5,2,3\]"):
        layer()(wave(5, 2, 3))
