"""Activation functions in pieces: definitions, slopes at corners, settings, messages."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.activations import same_slopes, same_values

MEANINGS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))
    ),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
}


@pytest.mark.parametrize("name", MEANINGS)
def test_activations(name):
    same_values(name, MEANINGS[name])


@pytest.mark.parametrize("name", MEANINGS)
def test_derivatives_of_activations(name):
    same_slopes(name, MEANINGS[name])


def test_relu_is_cheap_and_flat_at_zero():
    assert st.grad(nn.relu)(0.0).item() == 0
    assert st.grad(nn.relu6)(0.0).item() == 0
    assert st.grad(nn.relu6)(6.0).item() == 0
    graph = st.make_graph(nn.relu)(snp.ones(3))
    assert len(str(graph).splitlines()) <= 5
    assert np.isnan(nn.relu(snp.array(np.nan)).item())
    assert nn.relu(snp.array([-1, 2])).dtype == snp.int32


def test_settings():
    assert nn.leaky_relu(snp.array([-1.0]), 0.5).item() == -0.5
    assert nn.elu(snp.array([-100.0]), 2.0).item() == -2
    assert nn.celu(snp.array([-100.0]), 2.0).item() == -2
    with pytest.raises(TypeError, match="array"):
        nn.relu([1.0])


def test_sparse_functions():
    x = snp.array([-3.0, -1.5, -0.99, 0.0, 0.5, 1.0, 2.0])
    plus = st.nn.sparse_plus(x)
    np.testing.assert_allclose(plus, [0, 0, 2.5e-5, 0.25, 0.5625, 1, 2], rtol=1e-5)
    slope = st.vmap(st.grad(st.nn.sparse_plus))(x)
    np.testing.assert_allclose(slope, st.nn.sparse_sigmoid(x), rtol=1e-5)


def test_selu_is_named_in_its_message():
    with pytest.raises(TypeError, match=r"^selu: x must be an array"):
        nn.selu([1.0])
