"""Recurrent layers and cells: PyTorch's figures, shapes, chance, messages."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import Flat, layer_digests, names, same, with_numbers

# Class, arguments, inputs; PyTorch's digests of its results in one vector (``tests.nn.figures``).
CASES = [
    (
        "RNN",
        (2, 3),
        {},
        [(4, 2, 2)],
        [(30,), -3.11284, 0.96034, -0.235, 0.9141, -1.89443, -1.89443],
    ),
    (
        "RNN",
        (2, 3),
        {"nonlinearity": "relu", "bias": False},
        [(4, 2)],
        [(15,), 0.36497, 0.93568, 0.42338, -0.46125],
    ),
    (
        "LSTM",
        (2, 3),
        {"num_layers": 2, "bidirectional": True},
        [(4, 2, 2)],
        [
            (96,),
            0.28046,
            0.29196,
            -0.62549,
            0.05339,
            -0.20233,
            -0.20233,
            -0.36006,
            0.42291,
            0.01804,
            0.01804,
            1.06556,
            -0.35848,
            -0.58772,
            -0.58772,
            -0.02985,
            -0.0801,
            -0.45109,
            -0.45109,
        ],
    ),
    (
        "LSTM",
        (2, 3),
        {"proj_size": 2, "batch_first": True},
        [(2, 4, 2)],
        [(26,), -0.46196, 0.01533, 0.29019, 0.13007, -0.00569, -0.00569, 0.3912],
    ),
    (
        "GRU",
        (2, 3),
        {"num_layers": 2},
        [(4, 2, 2)],
        [
            (36,),
            0.59005,
            -0.43682,
            -0.6982,
            -0.00942,
            0.14045,
            0.09057,
            0.32112,
            -0.20764,
            0.36304,
            0.30392,
        ],
    ),
    (
        "GRU",
        (2, 3),
        {"bidirectional": True, "bias": False},
        [(4, 2)],
        [(30,), -0.13661, -0.27246, 1.25707, -0.13742, -0.82029, -0.1735],
    ),
]

KEY = st.random.PRNGKey(0)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, want = case
    layer = Flat(with_numbers(name, args, settings))
    same(layer_digests(layer, inputs, st.jit)[0], want)


def test_names_and_initial_numbers():
    layer = nn.LSTM(5, 9, 2, bidirectional=True, proj_size=4, key=KEY)
    shapes = {n: v.shape for n, v in layer.state_dict().items()}
    first = {"weight_ih": (36, 5), "weight_hh": (36, 4), "bias_ih": (36,), "bias_hh": (36,)}
    expected = {}
    for end in ("_l0", "_l0_reverse", "_l1", "_l1_reverse"):
        for name, shape in {**first, "weight_hr": (4, 9)}.items():
            expected[name + end] = (36, 8) if name + end[:3] == "weight_ih_l1" else shape
    assert shapes == expected and list(shapes) == list(expected)
    for value in layer.parameters():
        assert abs(value).max() <= 1 / 3 and abs(value).max() > 0.25
    assert list(nn.GRU(2, 3, bias=False, key=KEY).state_dict()) == ["weight_ih_l0", "weight_hh_l0"]


@pytest.mark.parametrize("cls", [nn.RNN, nn.LSTM, nn.GRU])
def test_states_go_on(cls):
    layer, x = cls(2, 3, key=KEY), snp.sin(snp.arange(24.0)).reshape(6, 2, 2)
    whole, last = layer(x)
    first, state = layer(x[:4])
    second, end = layer(x[4:], state)
    np.testing.assert_allclose(snp.concatenate([first, second]), whole, rtol=1e-5, atol=1e-6)
    for a, b in zip(end if cls is nn.LSTM else [end], last if cls is nn.LSTM else [last]):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_members():
    layers = [nn.GRU(2, 3, batch_first=True, key=k) for k in st.random.split(KEY, 3)]
    x = snp.sin(snp.arange(20.0)).reshape(2, 5, 2)
    loss = lambda m, x: (m(x)[0] ** 2).sum()
    got = st.jit(st.vmap(st.value_and_grad(loss), in_axes=(0, None)))(st.stack(layers), x)
    for i, layer in enumerate(layers):
        value, slope = st.value_and_grad(loss)(layer, x)
        np.testing.assert_allclose(got[0][i], value, rtol=1e-5)
        np.testing.assert_allclose(got[1].weight_hh_l0[i], slope.weight_hh_l0, rtol=1e-3, atol=1e-5)


def test_dropout():
    layer, x = nn.LSTM(2, 3, 2, dropout=0.5, key=KEY), snp.ones((4, 20, 2))
    one, two = (layer(x, key=k)[0] for k in st.random.split(KEY))
    assert (one != two).any()
    with pytest.raises(RuntimeError, match="LSTM draws random numbers"):
        st.jit(lambda x: layer(x)[0])(x)
    assert (layer.eval()(x)[0] == layer(x)[0]).all()


def test_words():
    assert str(nn.LSTM(2, 3, 2, batch_first=True)) == "LSTM(2, 3, num_layers=2, batch_first=True)"


def test_messages():
    layer = nn.LSTM(2, 3, batch_first=True, key=KEY)
    with pytest.raises(
        ValueError, match=r"LSTM\(2, 3, batch_first=True\): expected input \(\.\.\., 2"
    ):
        layer(snp.ones((4, 5)))
    with pytest.raises(
        ValueError, match=r"LSTM\(.*expected input \(batch, length, 2 features\), or"
    ):
        layer(snp.ones((1, 4, 5, 2)))
    with pytest.raises(ValueError, match=r"expected h of shape \(1, 4, 3\), got float32\[4,3\]"):
        layer(snp.ones((4, 5, 2)), (snp.ones((4, 3)), snp.ones((4, 3))))
    with pytest.raises(ValueError, match="RNN: nonlinearity must be 'tanh' or 'relu', got 'gelu'"):
        nn.RNN(2, 3, nonlinearity="gelu")
    with pytest.raises(ValueError, match="LSTM: proj_size must be from 0 to hidden_size 3, got 3"):
        nn.LSTM(2, 3, proj_size=3)
    with pytest.raises(ValueError, match="GRU: hidden_size must be a positive integer, got 0"):
        nn.GRU(2, 0)


# Class, arguments, inputs; PyTorch's digests of its results in one vector (``tests.nn.figures``).
CELLS_CASES = [
    ("RNNCell", (2, 3), {}, [(4, 2)], [(4, 3), -0.76122, 0.35152, -0.96174, 0.0, 0.01207, 0.01207]),
    (
        "RNNCell",
        (2, 3),
        {"nonlinearity": "relu"},
        [(2,)],
        [(3,), -0.14022, 1.06805, 0.40687, 0.0, 1.17318, 1.17318],
    ),
    ("LSTMCell", (2, 3), {}, [(4, 2)], [(24,), -0.09484, -0.13118, 0.319, 0.0, -0.12474, -0.12474]),
    ("GRUCell", (2, 3), {"bias": False}, [(4, 2)], [(4, 3), 0.36051, -0.24784, -0.43486, 0.0]),
]


@pytest.mark.parametrize("case", CELLS_CASES, ids=names(CELLS_CASES))
def test_equals_pytorch_of_cells(case):
    name, args, settings, inputs, want = case
    layer = Flat(with_numbers(name, args, settings))
    same(layer_digests(layer, inputs, st.jit)[0], want)


def test_names():
    cell = nn.GRUCell(2, 3, key=KEY)
    assert list(cell.state_dict()) == ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    assert nn.RNNCell(2, 3, bias=False, dtype=snp.bfloat16).weight_hh.dtype == snp.bfloat16


def test_words_of_cells():
    assert str(nn.GRUCell(2, 3, bias=False)) == "GRUCell(2, 3, bias=False)"


def test_messages_of_cells():
    with pytest.raises(ValueError, match=r"GRUCell\(2, 3\): expected input \(batch, 2 features\)"):
        nn.GRUCell(2, 3, key=KEY)(snp.ones((3, 4, 2)))
    with pytest.raises(ValueError, match="RNNCell: nonlinearity must be 'tanh' or 'relu', got 'g"):
        nn.RNNCell(2, 3, nonlinearity="gelu")
