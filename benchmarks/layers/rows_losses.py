"""Rows of losses and distances, with the mean over the batch."""

from __future__ import annotations

from benchmarks.layers.row import Drawn, Row, integers, normal, of, signs, simplex, uniform

__all__ = ["LOSSES"]


def each(x: Drawn, *shape: int) -> Drawn:
    """As `x`, of another shape, and nothing is differentiated by it: a target."""
    return Drawn(x.kind, shape, x.bounds, fixed=True)


def targets(x: Drawn, y: Drawn) -> tuple:
    """Predictions and targets: of an MLP, of pixels of small images, and of large ones."""
    small, medium, large = (64, 16), (32, 3, 64, 64), (16, 3, 224, 224)
    a, b, c = (of(Drawn(x.kind, s, x.bounds), each(y, *s)) for s in (small, medium, large))
    return a, b, c


def classes(x: Drawn) -> tuple:
    """Scores of classes: digits, ImageNet, and the next word of GPT-2."""
    a, b, c = (
        of(Drawn(x.kind, (batch, count), x.bounds), integers(count, batch))
        for batch, count in ((64, 10), (256, 1000), (256, 50257))
    )
    return a, b, c


def labels(x: Drawn, y: Drawn) -> tuple:
    """Scores of labels, of which several hold."""
    a, b, c = (
        of(Drawn(x.kind, shape, x.bounds), each(y, *shape))
        for shape in ((64, 20), (256, 80), (256, 1000))
    )
    return a, b, c


PAIRS = ((64, 32), (256, 256), (1024, 512))
EMBEDDED = tuple(of(normal(*shape), normal(*shape)) for shape in PAIRS)

LOSSES = [
    Row("mse-loss", "MSELoss", targets(normal(), normal())),
    Row("l1-loss", "L1Loss", targets(normal(), normal())),
    Row("smooth-l1-loss", "SmoothL1Loss", targets(normal(), normal())),
    Row("huber-loss", "HuberLoss", targets(normal(), normal())),
    Row("soft-margin-loss", "SoftMarginLoss", targets(normal(), signs())),
    Row("hinge-embedding-loss", "HingeEmbeddingLoss", targets(normal(), signs())),
    Row("bce-loss", "BCELoss", targets(uniform(low=0.05, high=0.95), uniform())),
    Row("bce-with-logits-loss", "BCEWithLogitsLoss", targets(normal(), uniform())),
    Row("poisson-nll-loss", "PoissonNLLLoss", targets(normal(), uniform(high=4.0))),
    Row("kl-div-loss", "KLDivLoss", labels(normal(), simplex()), {"reduction": "batchmean"}),
    Row(
        "gaussian-nll-loss",
        "GaussianNLLLoss",
        tuple(
            of(normal(*shape), normal(*shape, fixed=True), uniform(*shape, low=0.5, high=2.0))
            for shape in ((64, 16), (256, 256), (4096, 256))
        ),
    ),
    Row("cross-entropy", "CrossEntropyLoss", classes(normal())),
    Row("cross-entropy-smoothed", "CrossEntropyLoss", classes(normal()), {"label_smoothing": 0.1}),
    Row(
        "cross-entropy-pixels",
        "CrossEntropyLoss",
        tuple(
            of(normal(batch, 21, size, size), integers(21, batch, size, size))
            for batch, size in ((1, 28), (2, 64), (4, 128))
        ),
    ),
    Row("nll-loss", "NLLLoss", classes(normal())),
    Row("multi-margin-loss", "MultiMarginLoss", classes(normal())),
    Row(
        "multilabel-margin-loss",
        "MultiLabelMarginLoss",
        tuple(
            of(normal(batch, count), integers(count, batch, count, low=-1))
            for batch, count in ((16, 10), (64, 20), (128, 80))
        ),
        without_jax="JAX has none, and none is written plainly",
    ),
    Row("multilabel-soft-margin-loss", "MultiLabelSoftMarginLoss", labels(normal(), uniform())),
    Row(
        "margin-ranking-loss",
        "MarginRankingLoss",
        tuple(of(normal(n), normal(n), signs(n)) for n in (64, 4096, 262144)),
    ),
    Row(
        "cosine-embedding-loss",
        "CosineEmbeddingLoss",
        tuple(of(normal(n, d), normal(n, d), signs(n)) for n, d in PAIRS),
    ),
    Row(
        "triplet-margin-loss",
        "TripletMarginLoss",
        tuple(of(normal(n, d), normal(n, d), normal(n, d)) for n, d in PAIRS),
    ),
    Row(
        "ctc-loss",
        "ctc_loss",
        tuple(
            of(
                normal(length, batch, count),
                integers(count, batch, target, low=1),
                input_lengths=(length,) * batch,
                target_lengths=(target,) * batch,
            )
            for length, batch, count, target in (
                (32, 4, 20, 8),
                (100, 8, 32, 20),
                (250, 16, 80, 40),
            )
        ),
        through="log_softmax",
        without_jax="JAX has none; Optax is another library",
        of_largest=1e-4,  # sums of hundreds of steps, in logarithms
    ),
    Row("cosine-similarity", "CosineSimilarity", EMBEDDED),
    Row("pairwise-distance", "PairwiseDistance", EMBEDDED),
]
