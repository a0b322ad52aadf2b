"""Cases of losses and distances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.parity.case import Case, Fixed, called
from benchmarks.parity.draw import Draw, Families

__all__ = ["families"]

families = Families()

KINDS = ("none", "mean", "sum")


def reduction(draw: Draw) -> str:
    return draw.choice(*KINDS)


def weighted(draw: Draw, settings: dict[str, Any], name: str, *shape: int) -> dict[str, Any]:
    """The settings, sometimes with constant weights too."""
    if draw.chance(0.4):
        settings[name] = Fixed(draw.uniform(*shape, high=3.0))
    return settings


@families.add("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
def regression(draw: Draw, name: str) -> Case:
    x, y = draw.normal(4, 3), draw.normal(4, 3)
    y[0, 0], x[1, 1], y[1, 1] = x[0, 0], 0.5, 1.5  # no difference, and one at the bend
    settings: dict[str, Any] = {"reduction": reduction(draw)}
    if name == "smooth_l1_loss":
        return called(name, x, y, beta=draw.choice(1.0, 0.25, 0.0), **settings)
    if draw.chance(0.3):
        settings["weight"] = draw.uniform(4, 3)
    if name == "huber_loss":
        settings["delta"] = draw.choice(1.0, 0.25)
    return called(name, x, y, **settings)


@families.add("gaussian_nll_loss")
def gaussian(draw: Draw, name: str) -> Case:
    variance = draw.uniform(*draw.choice((4, 3), (4, 1), (4,)))
    if draw.chance(0.2):
        variance = np.where(variance < 0.3, 0.0, 0.5)  # below eps, and above
    settings = {"full": draw.chance(0.5), "reduction": reduction(draw)}
    return called(name, draw.normal(4, 3), draw.normal(4, 3), variance, **settings)


@families.add("poisson_nll_loss")
def poisson(draw: Draw, name: str) -> Case:
    of_log = draw.chance(0.5)
    settings = {"log_input": of_log, "full": draw.chance(0.5), "reduction": reduction(draw)}
    x = draw.normal(4, 3) if of_log else draw.uniform(4, 3)
    return called(name, x, 4 * draw.uniform(4, 3), **settings)


@families.add("cross_entropy")
def cross_entropy(draw: Draw, name: str) -> Case:
    shape = draw.choice((5,), (4, 5), (4, 5, 3), (2, 5, 3, 2))
    settings = {"label_smoothing": draw.choice(0.0, 0.25), "reduction": reduction(draw)}
    weighted(draw, settings, "weight", 5)
    logits = draw.choice(1, 4) * draw.normal(*shape)
    if draw.chance(0.3):
        return called(name, logits, draw.uniform(*shape), **settings)
    if draw.chance(0.3):
        settings["ignore_index"] = 2
    return called(
        name,
        logits,
        draw.integers(0, 4, *shape[:1] if len(shape) > 1 else (), *shape[2:]),
        **settings,
    )


@families.add("nll_loss")
def nll(draw: Draw, name: str) -> Case:
    shape = draw.choice((5,), (4, 5), (4, 5, 3), (2, 5, 3, 2))
    settings = weighted(draw, {"reduction": reduction(draw)}, "weight", 5)
    if draw.chance(0.3):
        settings["ignore_index"] = 2
    target = draw.integers(0, 4, *shape[:1] if len(shape) > 1 else (), *shape[2:])
    return called(name, draw.normal(*shape), target, **settings)


@families.add("binary_cross_entropy")
def binary(draw: Draw, name: str) -> Case:
    x, y = draw.uniform(3, 4), draw.uniform(3, 4)
    settings = weighted(draw, {"reduction": reduction(draw)}, "weight", 4)
    if draw.chance(0.4):
        x[0], y[0] = [0, 1, 0, 1], [1, 0, 0, 1]  # where the logarithm is bounded by -100
        because = "PyTorch divides by p (1 - p) or 1e-12, and holds that in single precision"
        return replace(called(name, x, Fixed(y), **settings), slack=1e4, because=because)
    return called(name, x, y, **settings)


@families.add("binary_cross_entropy_with_logits")
def binary_of_logits(draw: Draw, name: str) -> Case:
    x = draw.normal(3, 4)
    x[0] = [0, 100, -100, 1e4]
    settings = weighted(draw, {"reduction": reduction(draw)}, "weight", 4)
    return called(name, x, draw.uniform(3, 4), **weighted(draw, settings, "pos_weight", 4))


@families.add("soft_margin_loss")
def soft_margin(draw: Draw, name: str) -> Case:
    return called(name, draw.normal(3, 4), Fixed(draw.signs(3, 4)), reduction=reduction(draw))


@families.add("hinge_embedding_loss")
def hinge(draw: Draw, name: str) -> Case:
    y = Fixed(draw.signs(6))
    return called(name, draw.normal(6), y, margin=draw.choice(1.0, 0.7), reduction=reduction(draw))


@families.add("margin_ranking_loss")
def ranking(draw: Draw, name: str) -> Case:
    settings = {"margin": draw.choice(0.0, 0.4), "reduction": reduction(draw)}
    return called(name, draw.normal(6), draw.normal(6), Fixed(draw.signs(6)), **settings)


@families.add("multi_margin_loss")
def multi_margin(draw: Draw, name: str) -> Case:
    settings = {"p": draw.choice(1, 2), "margin": 0.8, "reduction": reduction(draw)}
    lead = draw.choice((), (4,))
    x, target = draw.normal(*lead, 5), draw.integers(0, 4, *lead)
    return called(name, x, target, **weighted(draw, settings, "weight", 5))


@families.add("multilabel_margin_loss")
def multilabel_margin(draw: Draw, name: str) -> Case:
    target = np.array([[3, 0, -1, 1, 2], [-1, 0, 0, 0, 0], [4, 3, 2, 1, 0]])
    rows = draw.choice((0,), (2,), slice(None))
    return called(name, draw.normal(3, 5)[rows], target[rows], reduction=reduction(draw))


@families.add("multilabel_soft_margin_loss")
def multilabel_soft_margin(draw: Draw, name: str) -> Case:
    target = Fixed(draw.mask(0.5, 3, 4).astype(float))
    settings = weighted(draw, {"reduction": reduction(draw)}, "weight", 4)
    return called(name, 4 * draw.normal(3, 4), target, **settings)


@families.add("kl_div")
def kl(draw: Draw, name: str) -> Case:
    of_log = draw.chance(0.4)
    settings = {"log_target": of_log, "reduction": draw.choice(*KINDS, "batchmean")}
    p = draw.uniform(3, 4)
    if of_log:
        return called(name, draw.normal(3, 4), draw.normal(3, 4), **settings)
    if draw.chance(0.5):
        return called(name, draw.normal(3, 4), Fixed(np.where(p < 0.3, 0.0, p)), **settings)
    return called(name, draw.normal(3, 4), p, **settings)


@families.add("triplet_margin_loss")
def triplet(draw: Draw, name: str) -> Case:
    settings = {
        "swap": draw.chance(0.5),
        "p": draw.choice(1.0, 2.0, 3.0),
        "reduction": reduction(draw),
    }
    return called(name, draw.normal(5, 4), draw.normal(5, 4), draw.normal(5, 4), **settings)


@families.add("cosine_embedding_loss")
def cosine_embedding(draw: Draw, name: str) -> Case:
    lead = draw.choice((), (4,))
    settings = {"margin": draw.choice(0.0, 0.2), "reduction": reduction(draw)}
    x, y = draw.normal(*lead, 3), draw.normal(*lead, 3)
    return called(name, x, y, np.asarray(draw.signs(*lead)).astype(int), **settings)


@families.add("cosine_similarity")
def cosine(draw: Draw, name: str) -> Case:
    x = draw.normal(3, 4, 2)
    if draw.chance(0.2):
        x[:, 1] = 0
    y = draw.normal(*draw.choice((3, 4, 2), (1, 4, 2), (3, 1, 2)))
    return called(name, x, y, dim=draw.choice(0, 1, -1))


@families.add("pairwise_distance")
def distance(draw: Draw, name: str) -> Case:
    y = draw.normal(*draw.choice((5, 4), (4,)))
    p = draw.choice(0.5, 1.0, 2.0, 3.0, float("inf"))
    return called(name, draw.normal(5, 4), y, p=p, keepdim=draw.chance(0.5))


@families.add("ctc_loss")
def ctc(draw: Draw, name: str) -> Case:
    """Of log-probabilities, for only there is PyTorch's gradient one."""
    settings: dict[str, Any] = {"reduction": reduction(draw)}
    if draw.chance(0.2):
        labels = (np.array([1, 3]), np.array(6), np.array(2))
        case = called(name, draw.normal(6, 4), *labels, blank=2, **settings)
        return replace(case, through="log_softmax")
    settings["zero_infinity"] = draw.chance(0.5)
    targets = draw.integers(1, 4, 3, 3)
    targets[0] = [2, 2, 3]
    lengths, sizes = np.array([7, 6, 5]), np.array([3, 2, 1])
    if settings["zero_infinity"]:
        lengths, sizes = np.array([7, 1, 5]), np.array([3, 2, 0])  # impossible, and nothing
    if draw.chance(0.4):
        targets = np.concatenate([row[:size] for row, size in zip(targets, sizes)])
        sizes = tuple(map(int, sizes))  # so that they are known when it is compiled
        lengths = tuple(map(int, lengths))
    logits = 2 * draw.normal(7, 3, 5)
    return replace(called(name, logits, targets, lengths, sizes, **settings), through="log_softmax")
