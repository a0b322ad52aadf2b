"""Recurrent cells: PyTorch's figures on set weights, names, messages."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import Flat, layer_digests, names, same, with_numbers

# Class, arguments, inputs; PyTorch's digests of its results in one vector (``tests.nn.figures``).
CASES = [
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

KEY = st.random.PRNGKey(0)


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, want = case
    layer = Flat(with_numbers(name, args, settings))
    same(layer_digests(layer, inputs, st.jit)[0], want)


def test_names():
    cell = nn.GRUCell(2, 3, key=KEY)
    assert list(cell.state_dict()) == ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    assert nn.RNNCell(2, 3, bias=False, dtype=snp.bfloat16).weight_hh.dtype == snp.bfloat16


def test_words():
    assert str(nn.GRUCell(2, 3, bias=False)) == "GRUCell(2, 3, bias=False)"


def test_messages():
    with pytest.raises(ValueError, match=r"GRUCell\(2, 3\): expected input \(batch, 2 features\)"):
        nn.GRUCell(2, 3, key=KEY)(snp.ones((3, 4, 2)))
    with pytest.raises(ValueError, match="RNNCell: nonlinearity must be 'tanh' or 'relu', got 'g"):
        nn.RNNCell(2, 3, nonlinearity="gelu")
