"""Losses with margins, and distances: each calls its function."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import nn
from stretto.nn import functional as F

X = snp.array(np.sin(1.3 * np.arange(12)).reshape(3, 4).astype("f"))
Y = snp.array(np.cos(1.3 * np.arange(12)).reshape(3, 4).astype("f"))
SIGNS, ROWS = snp.where(Y > 0, 1, -1), snp.array([1, -1, 1])
CLASSES, FOUR = snp.array([0, 3, 1]), snp.array([0.5, 1.0, 2.0, 0.1])

LAYERS = [
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
IDS = [f"{type(case[0]).__name__}-{i}" for i, case in enumerate(LAYERS)]


@pytest.mark.parametrize("layer, arguments, want", LAYERS, ids=IDS)
def test_calls_its_function(layer, arguments, want):
    np.testing.assert_array_equal(layer(*arguments), want)
    assert not list(layer.parameters())
