"""Cases of functions over features: linear, look-up, normalization, activations, dropout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.parity.case import Case, Fixed, called
from benchmarks.parity.draw import Draw, Families

__all__ = ["families"]

families = Families()

SINGLE = "PyTorch holds 1/6, or 1/alpha, in single precision"

ACTIVATIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "relu": {},
    "relu6": {},
    "leaky_relu": {"negative_slope": (0.3, 0.0)},
    "elu": {"alpha": (1.7,)},
    "selu": {},
    "celu": {"alpha": (0.6,)},
    "gelu": {"approximate": ("none", "tanh")},
    "silu": {},
    "mish": {},
    "sigmoid": {},
    "tanh": {},
    "softplus": {"beta": (2.0, 0.5), "threshold": (3.0, 25.0)},
    "softsign": {},
    "hardtanh": {"min_val": (-0.5, -2.0), "max_val": (0.75, 3.0)},
    "hardswish": {},
    "hardsigmoid": {},
    "logsigmoid": {},
    "tanhshrink": {},
    "softshrink": {"lambd": (1.0, 0.0)},
    "hardshrink": {"lambd": (1.0, 0.0)},
}
"""Activations of each number by itself, and values of their settings beside the defaults."""

# Where activations have kinks, and far out.
CORNERS = (
    -1e4,
    -100,
    -30,
    -6,
    -3,
    -1,
    -0.5,
    -0.25,
    0,
    0.25,
    0.5,
    1,
    3,
    6,
    10,
    10.125,
    30,
    100,
    1e4,
)


@families.add("linear")
def linear(draw: Draw, name: str) -> Case:
    features, out = draw.sizes(2, 1, 8)
    arrays = [draw.normal(*draw.sizes(draw.integer(0, 2), 1, 4), features)]
    arrays.append(draw.normal(out, features))
    if draw.chance(0.5):
        arrays.append(draw.normal(out))
    return called(name, *arrays)


@families.add("bilinear")
def bilinear(draw: Draw, name: str) -> Case:
    first, second, out = draw.sizes(3, 1, 5)
    outer = draw.sizes(draw.integer(1, 2), 1, 4)
    arrays = [draw.normal(*outer, first), draw.normal(*outer, second)]
    arrays.append(draw.normal(out, first, second))
    if draw.chance(0.5):
        arrays.append(draw.normal(out))
    return called(name, *arrays)


@families.add("embedding")
def embedding(draw: Draw, name: str) -> Case:
    rows, features = draw.sizes(2, 1, 8)
    settings = {"padding_idx": draw.integer(-rows, rows - 1)} if draw.chance(0.5) else {}
    indices = draw.integers(0, rows - 1, *draw.sizes(draw.integer(0, 2), 1, 4))
    return called(name, indices, draw.normal(rows, features), **settings)


@families.add("embedding_bag")
def embedding_bag(draw: Draw, name: str) -> Case:
    rows, features, bags, length = draw.sizes(4, 1, 8)
    settings: dict[str, Any] = {"mode": draw.choice("sum", "mean", "max")}
    if draw.chance(0.5):
        settings["padding_idx"] = draw.integer(-rows, rows - 1)
    if settings["mode"] == "sum" and draw.chance(0.5):
        settings["per_sample_weights"] = draw.normal(bags, length)
    indices = draw.integers(0, rows - 1, bags, length)
    return called(name, indices, draw.normal(rows, features), **settings)


def affine(draw: Draw, *shape: int) -> tuple[Any, Any]:
    """Weight and bias, or a weight, or neither."""
    kind = draw.integer(0, 2)
    return draw.normal(*shape) if kind else None, draw.normal(*shape) if kind == 2 else None


@families.add("batch_norm", "instance_norm")
def norm_by_statistics(draw: Draw, name: str) -> Case:
    rank, channels = draw.integer(0 if name == "batch_norm" else 1, 3), draw.integer(1, 4)
    x = 3 * draw.normal(draw.integer(2, 4), channels, *draw.sizes(rank, 2, 4)) + 1
    own = draw.chance(0.5)
    statistics = (Fixed(draw.normal(channels)), Fixed(draw.uniform(channels, high=3.0)))
    if own and draw.chance(0.5):
        statistics = (None, None)
    settings: dict[str, Any] = {
        "training" if name == "batch_norm" else "use_input_stats": own,
        "eps": draw.choice(1e-5, 1e-2),
    }
    return called(name, x, *statistics, *affine(draw, channels), **settings)


@families.add("layer_norm", "rms_norm")
def norm_of_features(draw: Draw, name: str) -> Case:
    outer, shape = draw.sizes(draw.integer(0, 2), 1, 3), draw.sizes(draw.integer(1, 2), 2, 5)
    weight, bias = affine(draw, *shape)
    settings: dict[str, Any] = {"normalized_shape": shape, "weight": weight}
    if name == "layer_norm":
        settings["bias"] = bias
    if draw.chance(0.5):
        settings["eps"] = 1e-3
    return called(name, draw.normal(*outer, *shape), **settings)


@families.add("group_norm")
def group_norm(draw: Draw, name: str) -> Case:
    groups = draw.integer(1, 3)
    channels = groups * draw.integer(1, 3)
    weight, bias = affine(draw, channels)
    # PyTorch refuses groups of one number.
    least = 2 if channels > groups else 3
    x = draw.normal(2, channels, *(draw.sizes(draw.integer(0, 3), 2, 4) or (least,)))
    return called(name, x, num_groups=groups, weight=weight, bias=bias)


@families.add("local_response_norm")
def local_response_norm(draw: Draw, name: str) -> Case:
    x = draw.normal(2, draw.integer(1, 7), *draw.sizes(draw.integer(1, 3), 1, 4))
    return called(name, x, size=draw.integer(1, 5), alpha=0.5, beta=0.6, k=1.5)


@families.add("normalize")
def normalize(draw: Draw, name: str) -> Case:
    x = draw.normal(*draw.sizes(draw.integer(2, 3), 1, 4))
    return called(name, x, p=draw.choice(1.0, 2.0, 3.0, float("inf")), dim=draw.integer(-2, 1))


@families.add(*ACTIVATIONS)
def activation(draw: Draw, name: str) -> Case:
    x = np.concatenate([np.array(CORNERS, float), draw.normal(21)])
    settings = {
        key: draw.choice(*values) for key, values in ACTIVATIONS[name].items() if draw.chance(0.6)
    }
    case = called(name, x, **settings)
    if name in ("hardsigmoid", "celu"):
        return replace(case, slack=1e4, because=SINGLE)
    return case


@families.add("rrelu")
def rrelu(draw: Draw, name: str) -> Case:
    """Where it draws slopes, from an interval of one."""
    x = draw.normal(2, 5)
    if draw.chance(0.5):
        return called(name, x, lower=0.25, upper=0.25, training=True)
    return called(name, x, lower=draw.choice(0.1, 0.2), upper=draw.choice(0.3, 0.5))


@families.add("threshold")
def threshold(draw: Draw, name: str) -> Case:
    return called(
        name, draw.normal(9), threshold=draw.choice(0.5, -0.5), value=draw.choice(7.0, 0.0)
    )


@families.add("prelu")
def prelu(draw: Draw, name: str) -> Case:
    channels = draw.integer(1, 3)
    x = draw.normal(2, channels, *draw.sizes(draw.integer(0, 2), 2, 4))
    return called(name, x, draw.normal(channels if draw.chance(0.7) else 1))


@families.add("glu")
def glu(draw: Draw, name: str) -> Case:
    return called(name, draw.normal(4, 6, 2), dim=draw.choice(0, 1, -1))


@families.add("softmax", "softmin", "log_softmax")
def softmax(draw: Draw, name: str) -> Case:
    scale = draw.choice(1, 64)
    return called(name, scale * draw.normal(3, 4, 2), dim=draw.choice(0, 1, -1))


@families.add(
    "dropout", "alpha_dropout", "feature_alpha_dropout", *[f"dropout{n}d" for n in (1, 2, 3)]
)
def dropout(draw: Draw, name: str) -> Case:
    """Where nothing is left to chance: out of training, and of none or, if plain, of all."""
    rank = int(name[-2]) if name[-1] == "d" else 2
    x = draw.normal(2, 3, *draw.sizes(rank, 2, 4))
    if draw.chance(0.4):
        return called(name, x, p=draw.choice(0.0, 0.3, 1.0), training=False)
    return called(name, x, p=draw.choice(0.0, 1.0), training=True)
