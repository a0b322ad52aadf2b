"""A small language model as users write it: masks and positions made for the length at hand."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn

WIDTH, WORDS, LONGEST = 16, 11, 32
RNG = np.random.default_rng(0)
TEXTS = [snp.asarray(RNG.integers(0, WORDS, n)) for n in (5, 17, 9, 32)]


class Model(nn.Module):
    def __init__(self, *, key):
        super().__init__()
        a, b, c, d = st.random.split(key, 4)
        self.words = nn.Embedding(WORDS, WIDTH, key=a)
        self.places = nn.Parameter(st.random.normal(b, (LONGEST, WIDTH)) / 10)
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True, key=c)
        self.out = nn.Linear(WIDTH, WORDS, key=d)

    def forward(self, ids):
        n = ids.shape[-1]
        x = self.words(ids) + self.places[:n]
        later = snp.triu(snp.ones((n, n), bool), 1)
        h = self.norm(x)
        return self.out(x + self.attention(h, h, h, attn_mask=later, need_weights=False)[0])


def loss(model, ids):
    logits = model(ids[..., :-1])
    return nn.functional.cross_entropy(logits.reshape(-1, WORDS), ids[..., 1:].reshape(-1))


@pytest.fixture(scope="module")
def model():
    return Model(key=st.random.key(0))


def same(got, want):
    for a, b in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_texts_of_any_length(model):
    step = st.jit(st.value_and_grad(loss), dynamic_axes=(None, {0: "n"}))
    for ids in TEXTS:
        same(step(model, ids), st.value_and_grad(loss)(model, ids))


def test_batches_of_any_number_and_length(model):
    step = st.jit(st.value_and_grad(loss), dynamic_axes=(None, {0: "b", 1: "n"}))
    for b, n in ((2, 7), (5, 30), (1, 12)):
        ids = snp.asarray(RNG.integers(0, WORDS, (b, n)))
        same(step(model, ids), st.value_and_grad(loss)(model, ids))


@pytest.mark.parametrize("compiled", [False, True])
def test_texts_of_different_lengths_at_once(model, compiled):
    def total(model, ragged):
        return st.vmap(loss, in_axes=(None, 0))(model, ragged).mean()

    step = st.value_and_grad(total)
    got = (st.jit(step) if compiled else step)(model, st.ragged(TEXTS).at_most(LONGEST + 1))
    each = [st.value_and_grad(loss)(model, ids) for ids in TEXTS]
    same(got, st.tree.map(lambda *parts: sum(parts) / len(parts), *each))
