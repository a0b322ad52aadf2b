"""Losses of ragged predictions and targets equal the loop in Python, and models learn by them.

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


def close(a, b, error=2e-5):
    np.testing.assert_allclose(a, b, rtol=error, atol=error)


LOSSES = {
    "cross_entropy": (F.cross_entropy, CLASSES),
    "cross_entropy_smoothed": (
        lambda x, t, reduction: F.cross_entropy(x, t, label_smoothing=0.1, reduction=reduction),
        CLASSES,
    ),
    "cross_entropy_with_weights": (
        lambda x, t, reduction: F.cross_entropy(x, t, snp.arange(1.0, 5), reduction=reduction),
        CLASSES,
    ),
    "nll": (
        lambda x, t, reduction: F.nll_loss(F.log_softmax(x, -1), t, reduction=reduction),
        CLASSES,
    ),
    "nll_with_ignored": (
        lambda x, t, reduction: F.nll_loss(
            F.log_softmax(x, -1), t, ignore_index=0, reduction=reduction
        ),
        [np.where(np.arange(len(t)) == 1, 0, t % 3 + 1) for t in CLASSES],
    ),
    "mse": (F.mse_loss, [x[::-1] for x in PARTS]),
    "smooth_l1": (F.smooth_l1_loss, [x[::-1] for x in PARTS]),
    "binary_cross_entropy": (
        F.binary_cross_entropy_with_logits,
        [(x > 0).astype(np.float32) for x in PARTS],
    ),
    "binary_cross_entropy_of_probabilities": (
        lambda x, t, reduction: F.binary_cross_entropy(F.sigmoid(x), t, reduction=reduction),
        [(x > 0).astype(np.float32) for x in PARTS],
    ),
    "kl": (
        lambda x, t, reduction: F.kl_div(F.log_softmax(x, -1), t, reduction=reduction),
        [np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in PARTS],
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    loss, targets = LOSSES[name]
    logits, wanted = st.ragged(PARTS), st.ragged(targets)
    parts = [snp.asarray(x) for x in PARTS]

    def each(x, t):
        """The mean over the examples of their means."""
        return st.vmap(lambda x, t: loss(x, t, reduction="mean"))(x, t.like(x)).mean()

    def over_all(x, t):
        """The mean over all elements."""
        sums = st.vmap(lambda x, t: loss(x, t, reduction="sum"))(x, t.like(x))
        return sums.sum() / x.lengths.sum()

    def each_in_turn(parts):
        pairs = zip(parts, targets, strict=True)
        return sum(loss(x, t, reduction="mean") for x, t in pairs) / len(parts)

    def joined(parts):
        whole = loss(snp.concatenate(parts), np.concatenate(targets), reduction="sum")
        return whole / sum(LENGTHS)

    for ragged, loop in ((each, each_in_turn), (over_all, joined)):
        value, slope = st.value_and_grad(loop)(parts)
        for run in (st.value_and_grad(ragged), st.jit(st.value_and_grad(ragged))):
            got, by_x = run(logits, wanted)
            close(got, value)
            for a, b in zip(by_x.like(logits), slope, strict=True):
                close(a, b)


def test_losses_of_each_element_are_ragged():
    logits, wanted = st.ragged(PARTS), st.ragged(CLASSES)
    out = st.vmap(lambda x, t: F.cross_entropy(x, t, reduction="none"))(logits, wanted)
    whole = F.cross_entropy(np.concatenate(PARTS), np.concatenate(CLASSES), reduction="none")
    close(out.values, whole)
    np.testing.assert_array_equal(out.lengths, LENGTHS)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_loss_of_an_alignment(reduction):
    """Inputs and targets both vary, in lengths of their own."""
    labels = [RNG.integers(1, 4, n) for n in (2, 4, 1, 5)]

    def loss(x, t):
        logs = F.log_softmax(x, -1)
        return F.ctc_loss(logs, t, x.shape[0], t.shape[0], reduction=reduction)

    over = lambda x, t: st.vmap(loss)(x, t).sum()
    loop = lambda parts: sum(loss(x, snp.asarray(t)) for x, t in zip(parts, labels, strict=True))
    value, slope = st.value_and_grad(loop)([snp.asarray(x) for x in PARTS])
    logits, wanted = st.ragged(PARTS), st.ragged(labels)
    for run in (st.value_and_grad(over), st.jit(st.value_and_grad(over))):
        got, by_x = run(logits, wanted)
        close(got, value, 1e-4)
        for a, b in zip(by_x.like(logits), slope, strict=True):
            close(a, b, 1e-4)


def test_a_network_learns_from_ragged_data():
    """A GRU tells sequences that rise from those that fall, whatever their lengths."""
    lengths = RNG.integers(4, 20, 32)
    signs = RNG.integers(0, 2, 32)
    parts = [
        (np.linspace(0, 1, n)[:, None] * (2 * s - 1) + RNG.normal(0, 0.1, (n, 1))).astype("f4")
        for n, s in zip(lengths, signs, strict=True)
    ]
    r = st.ragged(parts)
    gru, head = nn.GRU(1, 8, key=KEY), nn.Linear(8, 2, key=KEY)
    optimizer = st.optim.adam(0.03)

    def loss(models):
        gru, head = models
        logits = st.vmap(lambda x: head(gru(x)[0][-1]))(r)
        return F.cross_entropy(logits, signs)

    models = (gru, head)
    state = optimizer.init(models)

    @st.jit
    def train(models, state):
        value, slope = st.value_and_grad(loss)(models)
        updates, state = optimizer.update(slope, state, models)
        return st.optim.apply_updates(models, updates), state, value

    for _ in range(30):
        models, state, value = train(models, state)
    assert float(value) < 0.1
