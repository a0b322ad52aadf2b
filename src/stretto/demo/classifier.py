"""One classifier and one step of its training, written for one member and one batch.

Nothing here knows of ensembles: ``training`` makes them with ``vmap``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.typing import ArrayLike, Key

__all__ = ["Adam", "Layer", "Member", "Params", "new_member", "probabilities", "step"]


class Layer(NamedTuple):
    """A dense layer."""

    weight: st.Array
    """(inputs, outputs)."""
    bias: st.Array
    """(outputs,)."""


Params = tuple[Layer, ...]


class Adam(NamedTuple):
    """The state of the optimizer (Kingma and Ba, 2015)."""

    steps: st.Array
    """(), how many steps were taken."""
    mean: Params
    """The running mean of the gradients."""
    square: Params
    """The running mean of their squares."""


class Member(NamedTuple):
    """A classifier in training."""

    params: Params
    adam: Adam


def new_member(key: Key, sizes: Sequence[int]) -> Member:
    """Return a classifier with layers between these sizes, drawn from the key.

    Weights are normal with variance 2/inputs (He et al., 2015), biases zero.
    """
    keys = st.random.split(key, len(sizes) - 1)
    params = tuple(
        Layer(st.random.normal(k, (inputs, outputs)) * (2 / inputs) ** 0.5, snp.zeros(outputs))
        for k, inputs, outputs in zip(keys, sizes, sizes[1:])
    )
    zeros = st.tree.map(snp.zeros_like, params)
    return Member(params, Adam(snp.zeros(()), zeros, zeros))


def logits(params: Params, images: st.Array) -> st.Array:
    """(batch, classes) of images (batch, pixels), uint8, which are scaled to [0, 1] here."""
    x = images.astype(snp.float32) / 255
    *hidden, last = params
    for layer in hidden:
        x = st.nn.relu(x @ layer.weight + layer.bias)
    return x @ last.weight + last.bias


def probabilities(params: Params, images: st.Array) -> st.Array:
    """(batch, classes), summing to 1 over the classes."""
    return st.nn.softmax(logits(params, images), dim=-1)


def loss(params: Params, images: st.Array, labels: st.Array) -> st.Array:
    """Return the mean cross-entropy of a batch, in nats."""
    log_probs = st.nn.log_softmax(logits(params, images), dim=-1)
    chosen = st.nn.one_hot(labels, log_probs.shape[-1])
    return -snp.mean(snp.sum(log_probs * chosen, axis=-1))


def step(
    member: Member, rate: st.Array, images: st.Array, labels: st.Array, rows: ArrayLike
) -> tuple[Member, st.Array]:
    """Return the member after a step of Adam on these rows of the data, and the loss before it.

    Args:
        member: the classifier.
        rate: (), its learning rate.
        images: (examples, pixels), uint8, all of the training images.
        labels: (examples,), their labels.
        rows: (batch,), the batch.
    """
    params, (steps, mean, square) = member
    value, gradient = st.value_and_grad(loss)(params, images[rows], labels[rows])
    steps = steps + 1
    mean = st.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = st.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)
    # The bias corrections of Adam's mean and square, folded into the rate.
    rate = rate * snp.sqrt(1 - 0.999**steps) / (1 - 0.9**steps)
    params = st.tree.map(lambda p, m, s: p - rate * m / (snp.sqrt(s) + 1e-8), params, mean, square)
    return Member(params, Adam(steps, mean, square)), value
