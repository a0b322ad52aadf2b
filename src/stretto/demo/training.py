"""The training: one classifier and its step, and the loop over batches for all members at once.

Classifier and step are written for one member and one batch, and know of no ensemble; ``vmap``
makes the step of all members, each with its own key, bootstrap and learning rate.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.typing import ArrayLike, Key
from stretto.demo.data import CLASSES, Dataset
from stretto.demo.options import DemoError

__all__ = ["HIDDEN", "Adam", "Layer", "Member", "Params", "Plan", "Trained", "learning_rates",
           "new_member", "predict", "probabilities", "step", "step_all", "train"]  # fmt: skip


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
    """Return (batch, classes) of images (batch, pixels), uint8, which are scaled to [0, 1] here."""
    x = images.astype(snp.float32) / 255
    *hidden, last = params
    for layer in hidden:
        x = st.nn.relu(x @ layer.weight + layer.bias)
    return x @ last.weight + last.bias


def probabilities(params: Params, images: st.Array) -> st.Array:
    """Return (batch, classes), summing to 1 over the classes."""
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


HIDDEN = (128, 128)
_IMAGES_AT_ONCE = 1000

# The same member for each of: its state, its learning rate, its rows; the data is everyone's.
step_all = st.jit(st.vmap(step, in_axes=(0, 0, None, None, 0)))
_predict = st.jit(st.vmap(probabilities, in_axes=(0, None)))


class Plan(NamedTuple):
    """The number of members, and how they are trained."""

    members: int
    draws: int
    """The size of each member's bootstrap."""
    epochs: int
    batch: int
    rates: tuple[float, float]
    """The lowest and the highest learning rate."""
    seed: int

    @property
    def steps(self) -> int:
        """The steps of each member; what an epoch leaves of a batch is dropped."""
        return self.epochs * (self.draws // self.batch)


class Trained(NamedTuple):
    """The members at the end of their training, and what another step of it would take.

    Every leaf of ``members``, and ``rates`` and ``rows``, have a leading axis of members.
    """

    members: Member
    rates: st.Array
    """(members,)."""
    images: st.Array
    """(examples, pixels), uint8."""
    labels: st.Array
    """(examples,)."""
    rows: st.Array
    """(members, batch): of each member's bootstrap, one batch."""


def learning_rates(plan: Plan) -> np.ndarray:
    """Return (members,), float32: from lowest to highest by equal factors; one has the middle."""
    low, high = plan.rates
    if plan.members == 1:
        return np.array([(low * high) ** 0.5], np.float32)
    return np.geomspace(low, high, plan.members).astype(np.float32)


def train(data: Dataset, plan: Plan, on_step: Callable[[int, st.Array], None]) -> Trained:
    """Train all members from their own keys, each on its own bootstrap at its own rate.

    Args:
        data: what to learn from.
        plan: how.
        on_step: called after each step with its number, from 1, and the losses, (members,).

    Raises:
        DemoError: a batch is larger than a bootstrap, or a member diverged.
    """
    examples, pixels = data.train.images.shape
    if plan.batch > plan.draws:
        raise DemoError(f"a batch of {plan.batch} is more than the {plan.draws} draws of a member")
    keys = st.random.split(st.random.PRNGKey(plan.seed), plan.members)
    start_keys, bootstrap_keys, order_keys = np.asarray(
        st.vmap(lambda key: st.random.split(key, 3))(keys)
    ).swapaxes(0, 1)
    start = functools.partial(new_member, sizes=(pixels, *HIDDEN, CLASSES))
    members = st.vmap(start)(start_keys)
    rates = snp.asarray(learning_rates(plan))
    images, labels = snp.asarray(data.train.images), snp.asarray(data.train.labels)
    bootstraps = st.vmap(lambda key: st.random.randint(key, (plan.draws,), 0, examples))(
        bootstrap_keys
    )
    done = 0
    for epoch in range(plan.epochs):
        for rows in _batches(order_keys, bootstraps, epoch, plan.batch):
            members, losses = step_all(members, rates, images, labels, rows)
            done += 1
            on_step(done, losses)
            if done * plan.epochs == (epoch + 1) * plan.steps:  # the last of the epoch
                _check_losses(losses, rates, epoch)
    return Trained(members, rates, images, labels, bootstraps[:, : plan.batch])


def predict(members: Member, images: np.ndarray) -> np.ndarray:
    """Return (members, examples, classes): what each member says of images (examples, pixels)."""
    parts = [
        np.asarray(_predict(members.params, snp.asarray(images[i : i + _IMAGES_AT_ONCE])))
        for i in range(0, len(images), _IMAGES_AT_ONCE)
    ]
    return np.concatenate(parts, axis=1)


def _shuffle(keys: st.Array, bootstraps: st.Array, epoch: int) -> st.Array:
    """Return (members, draws): bootstraps in orders drawn from the member's key and the epoch."""
    return st.vmap(lambda key, rows: st.random.permutation(st.random.fold_in(key, epoch), rows))(
        keys, bootstraps
    )


def _batches(keys: st.Array, bootstraps: st.Array, epoch: int, batch: int) -> Iterator[np.ndarray]:
    """Yield (members, batch) rows of the data, step by step through one epoch."""
    rows = np.asarray(_shuffle(keys, bootstraps, epoch))
    for i in range(rows.shape[1] // batch):
        yield rows[:, i * batch : (i + 1) * batch]


def _check_losses(losses: st.Array, rates: st.Array, epoch: int) -> None:
    """Name a member whose training went wrong."""
    for number, (value, rate) in enumerate(zip(np.asarray(losses), np.asarray(rates))):
        if not np.isfinite(value):
            raise DemoError(
                f"member {number} diverged: its loss is {value} after epoch {epoch + 1} at "
                f"learning rate {rate:.2g}; give lower --rates"
            )
