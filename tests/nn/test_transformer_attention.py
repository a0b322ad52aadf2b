"""``MultiheadAttention``: PyTorch's figures on set weights, names, initial numbers, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import Flat, layer_digests, names, same, with_numbers

# Class, arguments, inputs; PyTorch's digests of its results in one vector (``tests.nn.figures``).
CASES = [
    (
        "MultiheadAttention",
        (6, 2),
        {},
        [(4, 2, 6), (5, 2, 6), (5, 2, 6)],
        [(88,), 36.46608, 5.34527, 17.08639, -22.86475, -3.96614, 6.90559, -36.69662, 11.2337],
    ),
    (
        "MultiheadAttention",
        (6, 2),
        {"bias": False},
        [(4, 2, 6), (5, 2, 6), (5, 2, 6)],
        [(88,), -12.75451, -1.08733, 10.23065, 27.88466, -3.07052, -3.0818],
    ),
    (
        "MultiheadAttention",
        (6, 2),
        {"add_bias_kv": True, "add_zero_attn": True},
        [(4, 2, 6), (5, 2, 6), (5, 2, 6)],
        [
            (104,),
            3.70065,
            1.42883,
            -10.71645,
            -35.34249,
            1.74016,
            14.82386,
            -0.15185,
            0.16508,
            -37.27611,
            11.2337,
        ],
    ),
    (
        "MultiheadAttention",
        (6, 2),
        {"kdim": 3, "vdim": 4},
        [(4, 2, 6), (5, 2, 3), (5, 2, 4)],
        [
            (88,),
            36.16059,
            -10.0493,
            3.76322,
            -1.0985,
            5.24082,
            -3.5434,
            -1.66646,
            17.29346,
            20.15553,
            11.2337,
        ],
    ),
    (
        "MultiheadAttention",
        (6, 3),
        {"batch_first": True},
        [(2, 4, 6), (2, 5, 6), (2, 5, 6)],
        [(88,), 57.22144, 24.56625, 6.32077, -62.7145, -1.71544, 12.26554, -52.61254, 11.2337],
    ),
]

KEY = st.random.PRNGKey(0)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, want = case
    layer = Flat(with_numbers(name, args, settings))
    same(layer_digests(layer, inputs, st.jit)[0], want)


def test_names_and_initial_numbers():
    layer = nn.MultiheadAttention(60, 4, add_bias_kv=True, key=KEY)
    shapes = {n: v.shape for n, v in layer.state_dict().items()}
    assert shapes == {
        "in_proj_weight": (180, 60),
        "in_proj_bias": (180,),
        "bias_k": (1, 1, 60),
        "bias_v": (1, 1, 60),
        "out_proj.weight": (60, 60),
        "out_proj.bias": (60,),
    }
    bound = np.sqrt(6 / (180 + 60))  # Glorot's
    assert 0.98 * bound < abs(layer.in_proj_weight).max() <= bound
    assert 0.98 / np.sqrt(60) < abs(layer.out_proj.weight).max() <= 1 / np.sqrt(60)
    assert (layer.in_proj_bias == 0).all() and (layer.out_proj.bias == 0).all()
    # Glorot's normal numbers; torch.nn.init counts 60 inputs and 60 outputs for (1, 1, 60).
    assert 0.08 < layer.bias_k.std() < 0.19 and (layer.bias_k != layer.bias_v).any()
    apart = nn.MultiheadAttention(6, 2, kdim=3, vdim=4, bias=False, key=KEY)
    assert {n: v.shape for n, v in apart.state_dict().items()} == {
        "q_proj_weight": (6, 6),
        "k_proj_weight": (6, 3),
        "v_proj_weight": (6, 4),
        "out_proj.weight": (6, 6),
    }
    again = nn.MultiheadAttention(60, 4, add_bias_kv=True, key=KEY)
    np.testing.assert_array_equal(again.in_proj_weight, layer.in_proj_weight)
    assert nn.MultiheadAttention(4, 2, dtype=snp.bfloat16).in_proj_bias.dtype == snp.bfloat16


def test_members():
    layers = [nn.MultiheadAttention(6, 2, batch_first=True, key=k) for k in st.random.split(KEY, 3)]
    x = snp.sin(snp.arange(60.0)).reshape(2, 5, 6)
    each = st.jit(st.vmap(lambda m, x: m(x, x, x)[0], in_axes=(0, None)))(st.stack(layers), x)
    for i, layer in enumerate(layers):
        np.testing.assert_allclose(each[i], layer(x, x, x)[0], rtol=1e-4, atol=1e-6)


def test_dropout():
    layer, x = nn.MultiheadAttention(6, 2, 0.5, key=KEY), snp.ones((5, 6))
    one, two = (layer(x, x, x, dropout_key=k)[1] for k in st.random.split(KEY))
    assert (one != two).any()
    np.testing.assert_array_equal(one, layer(x, x, x, dropout_key=st.random.split(KEY)[0])[1])
    with pytest.raises(RuntimeError, match="MultiheadAttention draws random numbers"):
        st.jit(lambda x: layer(x, x, x)[0])(x)
    np.testing.assert_allclose(layer.eval()(x, x, x)[1], snp.full((5, 5), 0.2), rtol=1e-6)


def test_messages():
    with pytest.raises(ValueError, match="embed_dim must be a multiple of num_heads, got 6 and 4"):
        nn.MultiheadAttention(6, 4)
    with pytest.raises(ValueError, match="MultiheadAttention: kdim must be a positive integer"):
        nn.MultiheadAttention(6, 2, kdim=0)
    layer = nn.MultiheadAttention(6, 2, key=KEY)
    with pytest.raises(ValueError, match=r"MultiheadAttention: expected sizes .* embed_dim=6"):
        layer(snp.ones((3, 5)), snp.ones((3, 6)), snp.ones((3, 6)))
    with pytest.raises(TypeError, match="MultiheadAttention: attn_mask must be boolean"):
        layer(*[snp.ones((3, 6))] * 3, attn_mask=snp.ones((3, 3), int))
