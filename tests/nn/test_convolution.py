"""Layers that convolve: PyTorch's figures, beginnings, ensembles, sizes, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import layer_digests, names, same, with_numbers

# Class, arguments, inputs; the names in state_dict; PyTorch's digests (``tests.nn.figures``).
CASES = [
    (
        "Conv1d",
        (4, 6, 3),
        {"stride": 2, "groups": 2, "padding": 1},
        [(2, 4, 7)],
        ["weight", "bias"],
        [(2, 6, 4), 3.05141, 2.11631, 1.86558, 0.76285],
    ),
    (
        "Conv2d",
        (3, 4, (3, 2)),
        {"padding": "same", "padding_mode": "reflect"},
        [(3, 5, 4)],
        ["weight", "bias"],
        [(4, 5, 4), 6.06845, -21.26058, -19.73441, 2.7206],
    ),
    (
        "Conv2d",
        (2, 3, 3),
        {"padding": (1, 2), "padding_mode": "circular", "bias": False},
        [(2, 2, 4, 5)],
        ["weight"],
        [(2, 3, 4, 7), -0.24121, 34.39413, 0.31656],
    ),
    (
        "Conv2d",
        (2, 3, 2),
        {"padding": 1, "padding_mode": "replicate", "dilation": 2},
        [(2, 2, 4, 5)],
        ["weight", "bias"],
        [(2, 3, 4, 5), -0.0205, -21.49412, -0.04779, 0.18204],
    ),
    (
        "Conv3d",
        (2, 2, 2),
        {"stride": (1, 2, 1)},
        [(1, 2, 3, 4, 3)],
        ["weight", "bias"],
        [(1, 2, 2, 2, 2), 9.4895, -0.28184, 24.61408, 1.06604],
    ),
    (
        "ConvTranspose1d",
        (4, 6, 3),
        {"stride": 2, "groups": 2, "padding": 1, "output_padding": 1},
        [(2, 4, 4)],
        ["weight", "bias"],
        [(2, 6, 8), 4.1606, -0.84603, 0.51941, 1.47112],
    ),
    (
        "ConvTranspose2d",
        (2, 3, (3, 2)),
        {"dilation": 2},
        [(2, 3, 4)],
        ["weight", "bias"],
        [(3, 7, 6), -1.58896, -0.17566, 1.79765, 1.24408],
    ),
    (
        "ConvTranspose3d",
        (2, 1, 2),
        {"stride": 2, "bias": False},
        [(1, 2, 2, 2, 3)],
        ["weight"],
        [(1, 1, 4, 4, 6), -0.54191, 0.20103, -0.29853],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, keys, want = case
    layer = with_numbers(name, args, settings)
    assert list(layer.state_dict()) == keys
    for run in (lambda f: f, st.jit):
        same(layer_digests(layer, inputs, run)[0], want)


def test_beginning():
    layer = nn.Conv2d(16, 32, (3, 5), groups=2, key=st.random.PRNGKey(0))
    assert layer.weight.shape == (32, 8, 3, 5) and layer.bias.shape == (32,)
    bound = 1 / np.sqrt(8 * 15)
    assert 0.95 * bound < np.abs(layer.weight).max() <= bound
    assert 0.7 * bound < np.abs(layer.bias).max() <= bound
    layer = nn.ConvTranspose1d(6, 32, 4, groups=2, key=st.random.PRNGKey(0))
    assert layer.weight.shape == (6, 16, 4) and layer.bias.shape == (32,)
    assert 0.95 / 8 < np.abs(layer.weight).max() <= 1 / 8


def test_attributes():
    layer = nn.Conv2d(4, 6, 3, stride=2, padding=[1, 0], key=st.random.PRNGKey(0))
    assert layer.kernel_size == (3, 3) and layer.stride == (2, 2) and layer.padding == (1, 0)
    assert layer.dilation == (1, 1) and layer.groups == 1 and layer.padding_mode == "zeros"
    assert repr(layer) == "Conv2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 0))"
    layer = nn.Conv1d(2, 2, 3, padding="same", padding_mode="circular", bias=False)
    words = "padding='same', padding_mode='circular', bias=False"
    assert repr(layer) == f"Conv1d(2, 2, kernel_size=(3,), stride=(1,), {words})"


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_no_padding_is_none(mode):
    layer = nn.Conv1d(1, 1, 2, padding="valid", padding_mode=mode, key=st.random.PRNGKey(0))
    assert layer(snp.ones((1, 5))).shape == (1, 4)


def test_output_size():
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2, key=st.random.PRNGKey(0))
    x = snp.ones((1, 1, 4, 4))
    assert layer(x).shape == (1, 1, 9, 9)
    assert layer(x, output_size=(10, 9)).shape == (1, 1, 10, 9)
    assert layer(x, (1, 1, 10, 10)).shape == (1, 1, 10, 10)
    for size in ((11, 9), (8, 9), (9,)):
        with pytest.raises(ValueError, match=r"output_size must be from \(9, 9\) to \(10, 10\)"):
            layer(x, size)


def test_ensemble():
    keys = st.random.split(st.random.PRNGKey(0), 3)
    layers = [nn.Conv2d(2, 3, 3, padding=1, stride=2, key=k) for k in keys]
    stacked = st.stack(layers)
    same_x = st.random.normal(st.random.PRNGKey(1), (4, 2, 6, 5))
    own_x = st.random.normal(st.random.PRNGKey(2), (3, 4, 2, 6, 5))

    def loss(layer, x):
        return (layer(x) ** 2).sum()

    for x, axis in ((same_x, None), (own_x, 0)):
        each = [x] * 3 if axis is None else list(x)
        run = st.jit(st.vmap(lambda layer, x: layer(x), in_axes=(0, axis)))
        want = np.stack([layer(x) for layer, x in zip(layers, each)])
        np.testing.assert_allclose(run(stacked, x), want, rtol=1e-4, atol=1e-5)
        slopes = st.jit(st.vmap(st.grad(loss), in_axes=(0, axis)))(stacked, x)
        want = np.stack([st.grad(loss)(layer, x).weight for layer, x in zip(layers, each)])
        np.testing.assert_allclose(slopes.weight, want, rtol=1e-4, atol=1e-4)


MESSAGES = [
    (
        lambda: nn.Conv2d(3, 8, 3)(snp.ones((2, 4, 8, 8))),
        r"Conv2d\(3, 8, .*\): expected input \(batch, 3 channels, height, width\) or the same "
        r"without the batch, got float32\[2,4,8,8\]",
    ),
    (lambda: nn.Conv1d(3, 8, 3)(snp.ones(3)), r"Conv1d\(.*batch, 3 channels, length\)"),
    (lambda: nn.ConvTranspose3d(3, 8, 3)(snp.ones((3, 4, 4))), "ConvTranspose3d.*got float32"),
    (lambda: nn.Conv2d(3, 8, 3, groups=2), "groups must divide in_channels and out_channels"),
    (lambda: nn.Conv2d(3, 8, 0), "Conv2d: kernel_size must be an integer of at least 1"),
    (lambda: nn.Conv2d(3, 8, 3, padding="full"), "padding must be 'same', 'valid' or numbers"),
    (lambda: nn.Conv2d(3, 8, 3, 2, "same"), "padding='same' needs a stride of 1"),
    (lambda: nn.Conv2d(3, 8, 3, padding_mode="mirror"), "padding_mode must be 'zeros'"),
    (lambda: nn.ConvTranspose2d(3, 8, 3, padding_mode="reflect"), "padding_mode must be 'zeros'"),
    (lambda: nn.Conv2d(3.0, 8, 3), "in_channels must be a positive integer, got 3.0"),
]


@pytest.mark.parametrize("call, words", MESSAGES, ids=range(len(MESSAGES)))
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()
