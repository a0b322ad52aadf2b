"""Rows over features: dense layers, look-up, normalization, activations, dropout."""

from __future__ import annotations

from benchmarks.layers.row import Row, integers, normal, of

__all__ = ["FEATURES"]

DENSE = [
    Row(  # an MLP, the head of ResNet-50, the feed-forward part of BERT
        "linear",
        "Linear",
        (
            of(normal(32, 784), in_features=784, out_features=128),
            of(normal(64, 2048), in_features=2048, out_features=1000),
            of(normal(4, 128, 768), in_features=768, out_features=3072),
        ),
    ),
    Row(
        "linear-one",
        "Linear",
        (
            of(normal(1, 64), in_features=64, out_features=64),
            of(normal(1, 768), in_features=768, out_features=768),
            of(normal(1, 4096), in_features=4096, out_features=1000),
        ),
    ),
    Row(
        "bilinear",
        "Bilinear",
        (
            of(normal(8, 16), normal(8, 16), in1_features=16, in2_features=16, out_features=8),
            of(normal(32, 64), normal(32, 64), in1_features=64, in2_features=64, out_features=64),
            of(
                normal(32, 128), normal(32, 96), in1_features=128, in2_features=96, out_features=128
            ),
        ),
    ),
    Row(  # a word-level LSTM, small and base BERT
        "embedding",
        "Embedding",
        (
            of(integers(1000, 32, 16), num_embeddings=1000, embedding_dim=64),
            of(integers(10000, 8, 128), num_embeddings=10000, embedding_dim=256),
            of(integers(30522, 4, 512), num_embeddings=30522, embedding_dim=768),
        ),
    ),
    Row(
        "embedding-bag",
        "EmbeddingBag",
        (
            of(integers(1000, 32, 16), num_embeddings=1000, embedding_dim=64),
            of(integers(30522, 64, 32), num_embeddings=30522, embedding_dim=128),
            of(integers(50257, 256, 64), num_embeddings=50257, embedding_dim=256),
        ),
        {"mode": "mean"},
    ),
]

CHANNELS = (32, 64, 256)


def channels(name: str) -> list[dict[str, int]]:
    """The channels at each size, under the name that the layer has for them."""
    return [{name: count} for count in CHANNELS]


SEQUENCES = [normal(4, 32, 64), normal(16, 64, 256), normal(16, 256, 512)]
IMAGES = [normal(4, 32, 14, 14), normal(16, 64, 28, 28), normal(8, 256, 56, 56)]
VOLUMES = [normal(2, 32, 4, 7, 7), normal(4, 64, 8, 14, 14), normal(2, 256, 8, 28, 28)]
BY_RANK = {1: SEQUENCES, 2: IMAGES, 3: VOLUMES}
TOKENS = [normal(1, 32, 128), normal(8, 128, 768), normal(8, 512, 768)]


def normalizing(inputs: list, named: list[dict[str, int]]) -> tuple:
    """Inputs, each with the settings at its size."""
    small, medium, large = (of(x, **one) for x, one in zip(inputs, named, strict=True))
    return small, medium, large


NORMALISATION = [
    *(
        Row(
            f"batch-norm{n}d",
            f"BatchNorm{n}d",
            normalizing(BY_RANK[n], channels("num_features")),
            training=True,
        )
        for n in (1, 2, 3)
    ),
    Row("batch-norm2d-eval", "BatchNorm2d", normalizing(IMAGES, channels("num_features"))),
    Row(
        "instance-norm2d",
        "InstanceNorm2d",
        normalizing(IMAGES, channels("num_features")),
        {"affine": True},
        training=True,
    ),
    Row(
        "group-norm", "GroupNorm", normalizing(IMAGES, channels("num_channels")), {"num_groups": 32}
    ),
    *(
        Row(
            name,
            target,
            normalizing(TOKENS, [{"normalized_shape": size} for size in (128, 768, 768)]),
        )
        for name, target in (("layer-norm", "LayerNorm"), ("rms-norm", "RMSNorm"))
    ),
    Row(  # AlexNet
        "local-response-norm",
        "LocalResponseNorm",
        (of(normal(1, 16, 27, 27)), of(normal(4, 64, 27, 27)), of(normal(8, 96, 55, 55))),
        {"size": 5},
    ),
    Row("normalize", "normalize", tuple(map(of, TOKENS)), {"dim": -1}),
]

HIDDEN = (of(normal(32, 128)), of(normal(4, 128, 768)), of(normal(4, 512, 3072)))
"""An MLP's units, a small transformer's, those inside a block of GPT-2."""
MAPS = (of(normal(1, 32, 14, 14)), of(normal(8, 64, 28, 28)), of(normal(8, 64, 112, 112)))
"""Feature maps of a small CNN and of ResNet."""

ACTIVATIONS = [
    Row("relu", "ReLU", MAPS),
    Row("relu6", "ReLU6", MAPS),
    Row("leaky-relu", "LeakyReLU", MAPS),
    Row("elu", "ELU", HIDDEN),
    Row("selu", "SELU", HIDDEN),
    Row("celu", "CELU", HIDDEN),
    Row("gelu", "GELU", HIDDEN),
    Row("gelu-tanh", "GELU", HIDDEN, {"approximate": "tanh"}),
    Row("silu", "SiLU", HIDDEN),
    Row("mish", "Mish", HIDDEN),
    Row("sigmoid", "Sigmoid", HIDDEN),
    Row("tanh", "Tanh", HIDDEN),
    Row("softplus", "Softplus", HIDDEN),
    Row("softsign", "Softsign", HIDDEN),
    Row("hardtanh", "Hardtanh", HIDDEN),
    Row("hardswish", "Hardswish", MAPS),
    Row("hardsigmoid", "Hardsigmoid", MAPS),
    Row("log-sigmoid", "LogSigmoid", HIDDEN),
    Row("tanhshrink", "Tanhshrink", HIDDEN),
    Row("softshrink", "Softshrink", HIDDEN),
    Row("hardshrink", "Hardshrink", HIDDEN),
    Row("threshold", "Threshold", HIDDEN, {"threshold": 0.5, "value": 0.1}),
    Row("glu", "GLU", HIDDEN),
    Row(
        "prelu",
        "PReLU",
        normalizing(
            [one.inputs[0] for one in MAPS],
            [{"num_parameters": one.inputs[0].shape[1]} for one in MAPS],
        ),
    ),
    Row("rrelu", "RReLU", MAPS),
    Row("rrelu-training", "RReLU", MAPS, training=True, by_chance=True),
]

SCORES = (of(normal(32, 10)), of(normal(4, 8, 128, 128)), of(normal(4, 12, 512, 512)))
"""Classes, and the scores of attention."""
PIXELS = (of(normal(1, 2, 28, 28)), of(normal(2, 21, 64, 64)), of(normal(4, 21, 224, 224)))
"""Classes of each pixel."""
WORDS = (of(normal(32, 10)), of(normal(64, 1000)), of(normal(64, 50257)))
"""Classes of images, and of the next word."""

SOFTMAXES = [
    Row("softmax", "Softmax", SCORES, {"dim": -1}),
    Row("log-softmax", "LogSoftmax", WORDS, {"dim": -1}),
    Row("softmax2d", "Softmax2d", PIXELS),
    Row("gumbel-softmax", "gumbel_softmax", WORDS, by_chance=True),
]

CHANNELWISE = (of(normal(64, 32, 7, 7)), of(normal(32, 64, 28, 28)), of(normal(32, 64, 56, 56)))
"""With enough channels for their share to be compared."""

DROPOUT = [
    Row("dropout", "Dropout", HIDDEN, {"p": 0.1}, training=True, by_chance=True),
    Row("dropout2d", "Dropout2d", CHANNELWISE, {"p": 0.5}, training=True, by_chance=True),
    Row("alpha-dropout", "AlphaDropout", HIDDEN, {"p": 0.1}, training=True, by_chance=True),
    Row(
        "feature-alpha-dropout",
        "FeatureAlphaDropout",
        CHANNELWISE,
        {"p": 0.5},
        training=True,
        by_chance=True,
    ),
]

FEATURES = [*DENSE, *NORMALISATION, *ACTIVATIONS, *SOFTMAXES, *DROPOUT]
