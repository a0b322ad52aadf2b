"""Layers that look rows up: PyTorch's figures, beginnings, padding, ensembles, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import layer_digests, names, same, with_numbers

# Class, arguments, inputs; the names in state_dict; PyTorch's digests (``tests.nn.figures``).
CASES = [
    ("Embedding", (5, 3), {}, [[[1, 4, 0], [1, 1, 3]]], ["weight"], [(2, 3, 3), 0.45008, 0.13354]),
    (
        "Embedding",
        (5, 3),
        {"padding_idx": -4},
        [[[1, 4, 0], [1, 1, 3]]],
        ["weight"],
        [(2, 3, 3), 0.45008, 1.53279],
    ),
    (
        "EmbeddingBag",
        (5, 3),
        {"mode": "sum"},
        [[[1, 4, 0], [1, 1, 3]]],
        ["weight"],
        [(2, 3), 0.56942, 5.70847],
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
    table = np.asarray(nn.Embedding(400, 30, padding_idx=-1, key=st.random.PRNGKey(0)).weight)
    assert abs(table.std() - 1) < 0.03 and abs(table.mean()) < 0.03
    assert (table[-1] == 0).all() and (table[:-1] != 0).any(1).all()


def test_padding_is_not_trained():
    layer = nn.Embedding(4, 2, padding_idx=1, key=st.random.PRNGKey(0))
    assert layer.padding_idx == 1 and repr(layer) == "Embedding(4, 2, padding_idx=1)"
    slopes = st.grad(lambda layer: layer(snp.array([1, 1, 2])).sum())(layer)
    assert slopes.weight.tolist() == [[0, 0], [0, 0], [1, 1], [0, 0]]


def test_ensemble():
    layers = [nn.Embedding(5, 2, key=k) for k in st.random.split(st.random.PRNGKey(0), 3)]
    ids = snp.array([[0, 4], [2, 2]])
    run = st.jit(st.vmap(lambda layer, x: layer(x), in_axes=(0, None)))
    np.testing.assert_array_equal(run(st.stack(layers), ids), np.stack([m(ids) for m in layers]))


def test_weighted_bags():
    layer = nn.EmbeddingBag(5, 2, mode="sum", key=st.random.PRNGKey(0))
    ids, weights = snp.array([[0, 4]]), snp.array([[2.0, -1.0]])
    want = 2 * layer.weight[0] - layer.weight[4]
    np.testing.assert_allclose(layer(ids, weights)[0], want, rtol=1e-6)


def test_messages():
    with pytest.raises(TypeError, match="embedding: input must be integers"):
        nn.Embedding(3, 2)(snp.ones(2))
    with pytest.raises(ValueError, match="Embedding: padding_idx must be within 3 rows, got 3"):
        nn.Embedding(3, 2, 3)
    with pytest.raises(ValueError, match="EmbeddingBag: num_embeddings must be a positive"):
        nn.EmbeddingBag(0, 2)
