"""Cases of layers that hold nothing: most are a function's case with its settings kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.parity import functions_dense, functions_images, functions_losses
from benchmarks.parity.case import Case, Layer, Step
from benchmarks.parity.draw import Draw, Families
from benchmarks.parity.functions_images import rank_of
from benchmarks.parity.layers import in_both_modes

__all__ = ["families"]

families = Families()

FUNCTIONS = {
    **functions_images.families.makers,
    **functions_dense.families.makers,
    **functions_losses.families.makers,
}

SAME = {
    "ReLU": "relu",
    "ReLU6": "relu6",
    "LeakyReLU": "leaky_relu",
    "ELU": "elu",
    "SELU": "selu",
    "CELU": "celu",
    "GELU": "gelu",
    "SiLU": "silu",
    "Mish": "mish",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Hardtanh": "hardtanh",
    "Hardswish": "hardswish",
    "Hardsigmoid": "hardsigmoid",
    "LogSigmoid": "logsigmoid",
    "Tanhshrink": "tanhshrink",
    "Softshrink": "softshrink",
    "Hardshrink": "hardshrink",
    "Threshold": "threshold",
    "GLU": "glu",
    "Softmax": "softmax",
    "Softmin": "softmin",
    "LogSoftmax": "log_softmax",
    **{f"MaxPool{n}d": f"max_pool{n}d" for n in (1, 2, 3)},
    **{f"AvgPool{n}d": f"avg_pool{n}d" for n in (1, 2, 3)},
    **{f"LPPool{n}d": f"lp_pool{n}d" for n in (1, 2, 3)},
    **{f"AdaptiveAvgPool{n}d": f"adaptive_avg_pool{n}d" for n in (1, 2, 3)},
    **{f"AdaptiveMaxPool{n}d": f"adaptive_max_pool{n}d" for n in (1, 2, 3)},
    "PixelShuffle": "pixel_shuffle",
    "PixelUnshuffle": "pixel_unshuffle",
    "ChannelShuffle": "channel_shuffle",
    "Unfold": "unfold",
    "Fold": "fold",
    "Upsample": "interpolate",
    "LocalResponseNorm": "local_response_norm",
    "MSELoss": "mse_loss",
    "L1Loss": "l1_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss",
    "GaussianNLLLoss": "gaussian_nll_loss",
    "PoissonNLLLoss": "poisson_nll_loss",
    "CrossEntropyLoss": "cross_entropy",
    "NLLLoss": "nll_loss",
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "SoftMarginLoss": "soft_margin_loss",
    "HingeEmbeddingLoss": "hinge_embedding_loss",
    "MarginRankingLoss": "margin_ranking_loss",
    "MultiMarginLoss": "multi_margin_loss",
    "MultiLabelMarginLoss": "multilabel_margin_loss",
    "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss",
    "KLDivLoss": "kl_div",
    "TripletMarginLoss": "triplet_margin_loss",
    "CosineEmbeddingLoss": "cosine_embedding_loss",
    "CTCLoss": "ctc_loss",
    "CosineSimilarity": "cosine_similarity",
    "PairwiseDistance": "pairwise_distance",
}
"""Layers whose constructor takes the function's settings."""

NOT_SETTINGS: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("MSELoss", "L1Loss", "HuberLoss"), ("weight",)
)
"""Arguments that the function has and the layer not."""


@families.add(*SAME)
def from_function(draw: Draw, name: str) -> Case:
    case = FUNCTIONS[SAME[name]](draw, SAME[name])
    (step,) = case.steps
    left_out = NOT_SETTINGS.get(name, ())
    settings = {key: value for key, value in step.kwargs.items() if key not in left_out}
    steps = tuple(Step(step.args, {}, training) for training in (True, False))
    return replace(case, target=Layer(name, (), settings), steps=steps)


DROPOUTS = {
    "Dropout": "dropout",
    "AlphaDropout": "alpha_dropout",
    "FeatureAlphaDropout": "feature_alpha_dropout",
    **{f"Dropout{n}d": f"dropout{n}d" for n in (1, 2, 3)},
    "RReLU": "rrelu",
}


@families.add(*DROPOUTS)
def dropout(draw: Draw, name: str) -> Case:
    case = FUNCTIONS[DROPOUTS[name]](draw, DROPOUTS[name])
    (step,) = case.steps
    settings = dict(step.kwargs)
    training = settings.pop("training", False)
    return replace(case, target=Layer(name, (), settings), steps=(Step(step.args, {}, training),))


@families.add("Softmax2d")
def softmax(draw: Draw, name: str) -> Case:
    return in_both_modes(Layer(name), draw.normal(*draw.lead(3), 2, 4))


@families.add(
    *[
        f"{kind}Pad{n}d"
        for kind in ("Zero", "Constant", "Reflection", "Replication", "Circular")
        for n in (1, 2, 3)
    ]
)
def padding(draw: Draw, name: str) -> Case:
    rank = rank_of(name)
    arguments: tuple[Any, ...] = (draw.per_axis(2 * rank, 0, 3),)
    if name.startswith("Constant"):
        arguments = (*arguments, 1.5)
    x = draw.normal(*draw.lead(2), *draw.sizes(rank, 4, 6))
    return in_both_modes(Layer(name, arguments), x)


@families.add("Identity")
def identity(draw: Draw, name: str) -> Case:
    return in_both_modes(Layer(name, (3,), {"unused": True}), draw.normal(2, 3))


@families.add("Flatten")
def flatten(draw: Draw, name: str) -> Case:
    start, end = sorted(draw.sizes(2, 0, 3))
    return in_both_modes(Layer(name, (start, draw.choice(end, end - 4))), draw.normal(2, 3, 2, 4))


@families.add("Unflatten")
def unflatten(draw: Draw, name: str) -> Case:
    layer = Layer(name, (draw.choice(1, -2), draw.choice((2, 3), (6,), (3, -1), (1, 6))))
    return in_both_modes(layer, draw.normal(2, 6, 4))


@families.add("UpsamplingNearest2d", "UpsamplingBilinear2d")
def upsampling(draw: Draw, name: str) -> Case:
    one = (
        {"scale_factor": draw.integer(1, 3)}
        if draw.chance(0.5)
        else {"size": draw.per_axis(2, 1, 9)}
    )
    return in_both_modes(Layer(name, (), one), draw.normal(2, 2, *draw.sizes(2, 2, 6)))
