"""Layers over arrays of different lengths equal the loop in Python over them.

Values and gradients, eager and compiled; there is no module of this name.
"""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, random
from stretto.nn import functional as F

RNG = np.random.default_rng(0)
LENGTHS = [3, 7, 1, 12]
PARTS = [RNG.normal(size=(n, 4)).astype(np.float32) for n in LENGTHS]
CLASSES = [RNG.integers(0, 4, n) for n in LENGTHS]
KEY = random.key(0)


class Block(nn.Module):
    """Tokens, their places, attention, and a network: what a model of language is made of."""

    def __init__(self, key):
        super().__init__()
        keys = random.split(key, 3)
        self.tokens = nn.Embedding(4, 8, key=keys[0])
        self.places = nn.Embedding(16, 8, key=keys[1])
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, norm_first=True, key=keys[2])

    def forward(self, x):
        n = x.shape[0]
        seen = snp.arange(n)[:, None] >= snp.arange(n)
        mask = snp.where(seen, 0.0, -snp.inf)
        return self.layer(self.tokens(x) + self.places(snp.arange(n)), mask)


def waves(_, x):
    """The positional encoding of sines and cosines."""
    angles = snp.arange(x.shape[0])[:, None] / 10000 ** (snp.arange(2) / 2)
    return x + snp.concatenate([snp.sin(angles), snp.cos(angles)], 1)


def table(model, x):
    """A positional encoding that is learned."""
    return x + model(snp.arange(x.shape[0]))


def causal(model, x):
    n = x.shape[0]
    return model(x, x, x, attn_mask=snp.arange(n)[:, None] < snp.arange(n))[0]


itself = lambda model, x: model(x)
attended = lambda model, x: model(x, x, x, need_weights=False)[0]
rows = lambda model, x: model(x.T).T
batch_of_one = lambda model, x: model(x.T[None])[0].T
with_states = lambda model, x: model(x)
MEMORY = RNG.normal(size=(5, 4)).astype(np.float32)

LAYERS = {
    "attention": (lambda: nn.MultiheadAttention(4, 2, key=KEY), attended),
    "attention_with_weights": (
        lambda: nn.MultiheadAttention(4, 2, key=KEY),
        lambda m, x: m(x, x, x)[0] + (m(x, x, x)[1] ** 2).sum(),
    ),
    "causal_attention": (lambda: nn.MultiheadAttention(4, 2, key=KEY), causal),
    "attention_to_memory": (
        lambda: nn.MultiheadAttention(4, 2, key=KEY),
        lambda m, x: m(x, MEMORY, MEMORY)[0],
    ),
    "dot_product": (
        lambda: nn.Linear(4, 4, key=KEY),
        lambda m, x: F.scaled_dot_product_attention(m(x), x, x, is_causal=True),
    ),
    "encoder_layer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0, key=KEY), itself),
    "encoder": (
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, 8, 0.0, activation="gelu", key=KEY), 1, nn.LayerNorm(4)
        ),
        itself,
    ),
    "decoder_layer": (
        lambda: nn.TransformerDecoderLayer(4, 2, 8, 0.0, key=KEY),
        lambda m, x: m(x, MEMORY),
    ),
    "rnn": (lambda: nn.RNN(4, 3, key=KEY), with_states),
    "lstm": (lambda: nn.LSTM(4, 3, 2, key=KEY), with_states),
    "gru": (lambda: nn.GRU(4, 3, bidirectional=True, key=KEY), with_states),
    "conv1d": (lambda: nn.Conv1d(4, 3, 3, padding=1, key=KEY), rows),
    "conv1d_same": (lambda: nn.Conv1d(4, 3, 4, padding="same", key=KEY), rows),
    "conv1d_strided": (lambda: nn.Conv1d(4, 3, 3, stride=2, padding=1, key=KEY), rows),
    "conv1d_dilated": (lambda: nn.Conv1d(4, 4, 3, padding=2, dilation=2, groups=2, key=KEY), rows),
    "conv1d_of_one_batch": (lambda: nn.Conv1d(4, 3, 1, key=KEY), batch_of_one),
    "conv_transpose1d": (lambda: nn.ConvTranspose1d(4, 3, 3, stride=2, key=KEY), rows),
    "layer_norm": (lambda: nn.LayerNorm(4), itself),
    "rms_norm": (lambda: nn.RMSNorm(4), itself),
    "group_norm": (lambda: nn.GroupNorm(2, 4), batch_of_one),
    "instance_norm": (lambda: nn.InstanceNorm1d(4, eps=0.1, affine=True), batch_of_one),
    "mean_of_all": (lambda: nn.AdaptiveAvgPool1d(1), rows),
    "adaptive_mean": (lambda: nn.AdaptiveAvgPool1d(3), rows),
    "adaptive_mean_of_each": (lambda: nn.AdaptiveAvgPool1d(None), rows),
    "greatest_of_all": (lambda: nn.AdaptiveMaxPool1d(1), rows),
    "adaptive_max": (lambda: nn.AdaptiveMaxPool1d(4), rows),
    "max_pool": (lambda: nn.MaxPool1d(3, 1, 1), rows),
    "max_pool_strided": (lambda: nn.MaxPool1d(3, 2, 1), rows),
    "mean_pool": (lambda: nn.AvgPool1d(3, 1, 1), rows),
    "mean_pool_strided": (lambda: nn.AvgPool1d(3, 2, 1), rows),
    "mean_pool_of_what_is_there": (lambda: nn.AvgPool1d(3, 2, 1, count_include_pad=False), rows),
    "network": (
        lambda: nn.Sequential(nn.Linear(4, 8, key=KEY), nn.GELU(), nn.Linear(8, 2, key=KEY)),
        itself,
    ),
    "dropout": (lambda: nn.Dropout(0.4), lambda m, x: m(x, key=KEY)),
    "waves": (nn.Identity, waves),
    "learned_places": (lambda: nn.Embedding(16, 4, key=KEY), table),
}


def close(a, b, error=2e-5):
    np.testing.assert_allclose(a, b, rtol=error, atol=error)


def total(y):
    """A number that depends on every element of a result."""
    return sum(snp.sin(leaf).sum() for leaf in st.tree.leaves(y))


def law(f, model, parts, error=1e-4):
    """The function over ragged data and its gradients equal those of the loop."""
    r = st.ragged(parts)
    expected = [f(model, snp.asarray(x)) for x in parts]
    for run in (st.vmap(f, (None, 0)), st.jit(st.vmap(f, (None, 0)))):
        got = st.tree.leaves(run(model, r), lambda x: isinstance(x, st.Ragged))
        for leaf, wanted in zip(got, zip(*map(st.tree.leaves, expected), strict=True), strict=True):
            for a, b in zip(leaf, wanted, strict=True):
                close(a, b, error)

    inexact = r.dtype == np.float32
    argnums = (0, 1) if inexact else 0
    each = lambda model, r: st.vmap(lambda m, x: total(f(m, x)), (None, 0))(model, r).sum()
    loop = lambda model, parts: sum(total(f(model, x)) for x in parts)
    wanted = st.grad(loop, argnums)(model, [snp.asarray(x) for x in parts])
    for slope in (st.grad(each, argnums), st.jit(st.grad(each, argnums))):
        got = slope(model, r)
        by_model, wanted_model = (got[0], wanted[0]) if inexact else (got, wanted)
        pairs = zip(st.tree.leaves(by_model), st.tree.leaves(wanted_model), strict=True)
        for a, b in pairs:
            close(a, b, 5 * error)
        if inexact:
            for a, b in zip(got[1].like(r), wanted[1], strict=True):
                close(a, b, 5 * error)


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    make, f = LAYERS[name]
    # one value for each channel has no variance: alone it is refused
    law(f, make(), [x for x in PARTS if len(x) > 1] if name == "instance_norm" else PARTS)


def test_a_model_of_tokens():
    law(itself, Block(KEY), CLASSES)


def test_an_embedding_alone():
    law(itself, nn.Embedding(4, 3, padding_idx=1, key=KEY), CLASSES)


@pytest.mark.parametrize("name", ["gru", "encoder_layer"])
def test_one_after_another(name):
    make, f = LAYERS[name]
    model, r = make(), st.ragged(PARTS)
    at_once = st.vmap(lambda x: f(model, x))(r)
    in_turn = st.lax.map(lambda x: f(model, x), r)
    scanned = st.lax.scan(lambda c, x: (c, f(model, x)), 0, r)[1]
    for other in (in_turn, scanned):
        for a, b in zip(st.tree.leaves(at_once), st.tree.leaves(other), strict=True):
            close(a, b)


def test_dropout_with_a_key_for_each_example():
    keys = random.split(KEY, len(PARTS))
    model = nn.Dropout(0.5)
    out = st.vmap(lambda x, key: model(x, key=key))(st.ragged(PARTS), keys)
    for i, x in enumerate(PARTS):
        np.testing.assert_array_equal(out[i], model(x, key=keys[i]))
