"""Layers that are losses: their functions with their settings, buffers, words."""

from __future__ import annotations

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


MARGINS = [
    (nn.MultiMarginLoss(2, 0.5, FOUR), (X, CLASSES), F.multi_margin_loss(X, CLASSES, 2, 0.5, FOUR)),
    (
        nn.MultiLabelMarginLoss(),
        (X[0], snp.array([2, -1, 0, 0])),
        F.multilabel_margin_loss(X[0], snp.array([2, -1, 0, 0])),
    ),
    (
        nn.MultiLabelSoftMarginLoss(FOUR),
        (X, nn.sigmoid(Y)),
        F.multilabel_soft_margin_loss(X, nn.sigmoid(Y), FOUR),
    ),
    (nn.SoftMarginLoss(), (X, SIGNS), F.soft_margin_loss(X, SIGNS)),
    (nn.HingeEmbeddingLoss(0.5), (X, SIGNS), F.hinge_embedding_loss(X, SIGNS, 0.5)),
    (nn.MarginRankingLoss(0.5), (X, Y, SIGNS), F.margin_ranking_loss(X, Y, SIGNS, 0.5)),
    (nn.CosineEmbeddingLoss(0.5), (X, Y, ROWS), F.cosine_embedding_loss(X, Y, ROWS, 0.5)),
    (
        nn.TripletMarginLoss(0.5, 1.0, swap=True),
        (X, Y, X * Y),
        F.triplet_margin_loss(X, Y, X * Y, 0.5, 1.0, swap=True),
    ),
    (nn.PairwiseDistance(1.0, keepdim=True), (X, Y), F.pairwise_distance(X, Y, 1.0, keepdim=True)),
    (nn.CosineSimilarity(0), (X, Y), F.cosine_similarity(X, Y, 0)),
]
MARGIN_IDS = [f"{type(case[0]).__name__}-{i}" for i, case in enumerate(MARGINS)]


@pytest.mark.parametrize("layer, arguments, want", MARGINS, ids=MARGIN_IDS)
def test_one_with_a_margin_calls_its_function(layer, arguments, want):
    np.testing.assert_array_equal(layer(*arguments), want)
    assert not list(layer.parameters())


REGRESSIONS = [
    (nn.MSELoss(), (X, Y), F.mse_loss(X, Y)),
    (nn.MSELoss(reduction="none"), (X, Y), F.mse_loss(X, Y, reduction="none")),
    (nn.L1Loss("sum"), (X, Y), F.l1_loss(X, Y, reduction="sum")),
    (nn.SmoothL1Loss(beta=0.3), (X, Y), F.smooth_l1_loss(X, Y, beta=0.3)),
    (nn.HuberLoss(delta=0.3), (X, Y), F.huber_loss(X, Y, delta=0.3)),
    (nn.GaussianNLLLoss(full=True), (X, Y, Y**2), F.gaussian_nll_loss(X, Y, Y**2, True)),
    (nn.PoissonNLLLoss(full=True), (X, Y), F.poisson_nll_loss(X, Y, full=True)),
]
REGRESSION_IDS = [f"{type(case[0]).__name__}-{i}" for i, case in enumerate(REGRESSIONS)]


@pytest.mark.parametrize("layer, arguments, want", REGRESSIONS, ids=REGRESSION_IDS)
def test_one_of_numbers_calls_its_function(layer, arguments, want):
    np.testing.assert_array_equal(layer(*arguments), want)
    assert not list(layer.parameters())
