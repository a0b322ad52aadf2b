"""Cases of layers with parameters or buffers, and of containers."""

from __future__ import annotations

from typing import Any

from benchmarks.parity.case import Case, Layer, Step
from benchmarks.parity.draw import Draw, Families
from benchmarks.parity.functions_images import rank_of

__all__ = ["families", "in_both_modes"]

families = Families()


def in_both_modes(layer: Layer, *inputs: Any, **settings: Any) -> Case:
    """A step in train mode and one in evaluation mode."""
    steps = [Step(inputs, settings, training) for training in (True, False)]
    return Case(layer, tuple(steps))


@families.add("Linear")
def linear(draw: Draw, name: str) -> Case:
    features, out = draw.sizes(2, 1, 8)
    x = draw.normal(*draw.sizes(draw.integer(0, 2), 1, 4), features)
    return in_both_modes(Layer(name, (features, out), {"bias": draw.chance(0.6)}), x)


@families.add("Bilinear")
def bilinear(draw: Draw, name: str) -> Case:
    first, second, out = draw.sizes(3, 1, 5)
    layer = Layer(name, (first, second, out), {"bias": draw.chance(0.6)})
    return in_both_modes(layer, draw.normal(3, first), draw.normal(3, second))


@families.add("Embedding", "EmbeddingBag")
def embedding(draw: Draw, name: str) -> Case:
    rows, features = draw.sizes(2, 2, 8)
    settings: dict[str, Any] = {}
    if draw.chance(0.5):
        settings["padding_idx"] = draw.integer(-rows, rows - 1)
    if name == "EmbeddingBag":
        settings["mode"] = draw.choice("sum", "mean", "max")
    layer = Layer(name, (rows, features), settings)
    return in_both_modes(layer, draw.integers(0, rows - 1, 3, 4))


@families.add("Conv1d", "Conv2d", "Conv3d")
def convolution(draw: Draw, name: str) -> Case:
    rank, groups = rank_of(name), draw.integer(1, 2)
    channels, out = groups * draw.integer(1, 3), groups * draw.integer(1, 3)
    settings: dict[str, Any] = {
        "stride": draw.per_axis(rank, 1, 2),
        "dilation": draw.per_axis(rank, 1, 2),
        "groups": groups,
        "padding": draw.per_axis(rank, 0, 2),
        "bias": draw.chance(0.6),
        "padding_mode": draw.choice("zeros", "reflect", "replicate", "circular"),
    }
    if draw.chance(0.3):
        settings |= {"padding": draw.choice("same", "valid"), "stride": 1}
    x = draw.normal(*draw.lead(channels), *draw.sizes(rank, 4, 6))
    return in_both_modes(Layer(name, (channels, out, draw.per_axis(rank, 1, 3)), settings), x)


@families.add("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
def transposed_convolution(draw: Draw, name: str) -> Case:
    rank, groups = rank_of(name), draw.integer(1, 2)
    channels, out = groups * draw.integer(1, 3), groups * draw.integer(1, 3)
    settings = {
        "stride": draw.per_axis(rank, 1, 3),
        "dilation": draw.per_axis(rank, 1, 2),
        "groups": groups,
        "padding": draw.per_axis(rank, 0, 1),
        "output_padding": draw.per_axis(rank, 0, 1),
        "bias": draw.chance(0.6),
    }
    x = draw.normal(*draw.lead(channels), *draw.sizes(rank, 3, 4))
    return in_both_modes(Layer(name, (channels, out, draw.per_axis(rank, 2, 3)), settings), x)


@families.add(*[f"{kind}Norm{n}d" for kind in ("Batch", "Instance") for n in (1, 2, 3)])
def norm_with_statistics(draw: Draw, name: str) -> Case:
    """Three steps of training, each on other numbers, then one of evaluation."""
    rank, channels = rank_of(name), draw.integer(1, 4)
    settings = {
        "affine": draw.chance(0.6),
        "track_running_stats": draw.chance(0.7),
        "momentum": draw.choice(0.1, 0.4, None),
        "eps": draw.choice(1e-5, 1e-2),
    }
    shape = (4, channels, *draw.sizes(rank, 2, 4))
    if name == "BatchNorm1d" and draw.chance(0.4):
        shape = shape[:2]
    if name.startswith("Instance") and draw.chance(0.3):
        shape = shape[1:]
    steps = [Step((2 * draw.normal(*shape) + 1,), {}, mode) for mode in (True, True, True, False)]
    return Case(Layer(name, (channels,), settings), tuple(steps))


@families.add("LayerNorm", "RMSNorm")
def norm_of_features(draw: Draw, name: str) -> Case:
    shape = draw.sizes(draw.integer(1, 2), 2, 5)
    settings: dict[str, Any] = {"elementwise_affine": draw.chance(0.6)}
    if name == "LayerNorm":
        settings["bias"] = draw.chance(0.6)
    if draw.chance(0.3):
        settings["eps"] = 1e-3
    return in_both_modes(Layer(name, (shape,), settings), draw.normal(3, *shape))


@families.add("GroupNorm")
def group_norm(draw: Draw, name: str) -> Case:
    groups = draw.integer(1, 3)
    channels = groups * draw.integer(1, 3)
    layer = Layer(name, (groups, channels), {"affine": draw.chance(0.6)})
    return in_both_modes(layer, draw.normal(2, channels, 3, 2))


@families.add("PReLU")
def prelu(draw: Draw, name: str) -> Case:
    channels = draw.integer(1, 3)
    layer = Layer(name, (draw.choice(1, channels),), {"init": draw.choice(0.25, 0.5)})
    return in_both_modes(layer, draw.normal(2, channels, 3))


def small(draw: Draw) -> tuple[list[Layer], int]:
    """Three layers, and the number of features that they take."""
    features, hidden = draw.sizes(2, 2, 5)
    middle = draw.choice(
        Layer("BatchNorm1d", (hidden,)), Layer("Tanh"), Layer("LayerNorm", (hidden,))
    )
    return [Layer("Linear", (features, hidden)), middle, Layer("Linear", (hidden, 2))], features


@families.add("Sequential")
def sequential(draw: Draw, name: str) -> Case:
    """One in another, in three steps of training and one of evaluation."""
    layers, features = small(draw)
    steps = [Step((draw.normal(4, features),), {}, mode) for mode in (True, True, True, False)]
    return Case(Layer(name, (Layer(name, tuple(layers)), Layer("ReLU"))), tuple(steps))


@families.add("ModuleList")
def module_list(draw: Draw, name: str) -> Case:
    return Case(Layer(name, (small(draw)[0],)), ())


@families.add("ModuleDict")
def module_dict(draw: Draw, name: str) -> Case:
    return Case(Layer(name, (dict(zip(("b", "a", "c"), small(draw)[0])),)), ())


@families.add("ParameterList")
def parameter_list(draw: Draw, name: str) -> Case:
    return Case(Layer(name, ([draw.normal(2, 3), draw.normal(1)],)), ())


@families.add("ParameterDict")
def parameter_dict(draw: Draw, name: str) -> Case:
    """Names in order: PyTorch sorts those of a plain dictionary, Stretto keeps them."""
    return Case(Layer(name, ({"a": draw.normal(2, 3), "b": draw.normal(1)},)), ())
