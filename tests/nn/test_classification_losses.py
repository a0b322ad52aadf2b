"""Losses of classes: each calls its function; weights are buffers; words."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.nn import functional as F

X = snp.array(np.sin(1.3 * np.arange(12)).reshape(3, 4).astype("f"))
Y = snp.array(np.cos(1.3 * np.arange(12)).reshape(3, 4).astype("f"))
SIGNS, ROWS = snp.where(Y > 0, 1, -1), snp.array([1, -1, 1])
CLASSES, FOUR = snp.array([0, 3, 1]), snp.array([0.5, 1.0, 2.0, 0.1])

LAYERS = [
    (
        nn.CrossEntropyLoss(FOUR, ignore_index=3, label_smoothing=0.1),
        (X, CLASSES),
        F.cross_entropy(X, CLASSES, FOUR, ignore_index=3, label_smoothing=0.1),
    ),
    (
        nn.NLLLoss(FOUR, reduction="sum"),
        (X, CLASSES),
        F.nll_loss(X, CLASSES, FOUR, reduction="sum"),
    ),
    (
        nn.BCELoss(FOUR),
        (nn.sigmoid(X), nn.sigmoid(Y)),
        F.binary_cross_entropy(nn.sigmoid(X), nn.sigmoid(Y), FOUR),
    ),
    (
        nn.BCEWithLogitsLoss(FOUR, pos_weight=FOUR),
        (X, nn.sigmoid(Y)),
        F.binary_cross_entropy_with_logits(X, nn.sigmoid(Y), FOUR, pos_weight=FOUR),
    ),
    (
        nn.KLDivLoss(reduction="batchmean", log_target=True),
        (X, Y),
        F.kl_div(X, Y, reduction="batchmean", log_target=True),
    ),
    (
        nn.CTCLoss(blank=1, reduction="sum"),
        (snp.stack([X, Y], 1), snp.array([[0, 2], [3, 0]]), [3, 3], [2, 1]),
        F.ctc_loss(
            snp.stack([X, Y], 1), snp.array([[0, 2], [3, 0]]), [3, 3], [2, 1], 1, reduction="sum"
        ),
    ),
]
IDS = [f"{type(case[0]).__name__}-{i}" for i, case in enumerate(LAYERS)]


@pytest.mark.parametrize("layer, arguments, want", LAYERS, ids=IDS)
def test_calls_its_function(layer, arguments, want):
    np.testing.assert_array_equal(layer(*arguments), want)
    assert not list(layer.parameters())


def test_weights_are_buffers():
    loss = nn.CrossEntropyLoss(FOUR)
    assert list(loss.state_dict()) == ["weight"] and not nn.CrossEntropyLoss().state_dict()
    compiled = st.jit(lambda loss, x: loss(x, CLASSES))
    np.testing.assert_allclose(compiled(loss, X), loss(X, CLASSES), rtol=1e-6)
    each = st.vmap(lambda loss: loss(X, CLASSES))(st.stack([loss, nn.CrossEntropyLoss(2 * FOUR)]))
    np.testing.assert_allclose(each, loss(X, CLASSES), rtol=1e-6)


def test_words():
    assert str(nn.CrossEntropyLoss(FOUR)) == (
        "CrossEntropyLoss(ignore_index=-100, reduction='mean', label_smoothing=0.0)"
    )
