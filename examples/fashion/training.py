"""Training: all members by ``Ensemble.fit``, and on from there by a loop of one's own.

Next, read ``soups``.
"""

from typing import Any, NamedTuple

import numpy as np

import stretto as st
from examples.fashion.data import Part
from stretto import nn
from stretto.ensemble import SWA, DataOrder, Fitted, Trainer, accuracy

__all__ = ["Further", "Plan", "loss", "rates", "train"]


class Plan(NamedTuple):
    """How long, and how fast."""

    draws: int = 20_000
    """The size of each member's bootstrap."""
    epochs: int = 2
    """Passes over it."""
    batch: int = 64
    lowest: float = 2e-3
    """The lowest learning rate of an architecture's members, at the beginning."""
    highest: float = 8e-3
    """The highest."""
    snapshots: int = 3
    """How many snapshots of each member are averaged."""
    between: int = 50
    """Steps from one to the next."""


def loss(member: Any, images: Any, labels: Any) -> Any:
    """The cross entropy of one member on one batch."""
    return nn.functional.cross_entropy(member(images), labels)


def rates(plan: Plan, members: int) -> np.ndarray:
    """(members,): learning rates from the lowest to the highest, by equal factors."""
    return np.geomspace(plan.lowest, plan.highest, members).astype(np.float32)


def of_all(ensemble: st.Ensemble, own: np.ndarray) -> np.ndarray:
    """(members of the ensemble,): the same numbers for the members of each architecture."""
    return np.tile(own, len(ensemble) // len(own))


def train(
    ensemble: st.Ensemble, train: Part, held_out: Part, plan: Plan, members: int, key: Any
) -> Fitted:
    """Train each member on its own bootstrap, at its own rate, which falls to 0 along a cosine."""
    steps = plan.epochs * (plan.draws // plan.batch)

    def falling(learning_rate: Any) -> Any:
        return st.optim.adam(st.optim.cosine_decay_schedule(learning_rate, steps))

    return ensemble.fit(
        loss,
        tuple(train),
        falling,
        hyperparams={"learning_rate": of_all(ensemble, rates(plan, members))},
        epochs=plan.epochs,
        batch_size=plan.batch,
        order="bootstrap",
        fraction=plan.draws / len(train.labels),
        validation=tuple(held_out),
        metrics={"accuracy": lambda member, x, y: accuracy(member(x), y)},
        validation_batch_size=min(500, len(held_out.labels)),
        key=key,
    )


class Further:
    """Trains on from where members are, at rates that stay as they are.

    One ``Trainer`` for all calls, so that the step is compiled once.
    """

    def __init__(self, train: Part, plan: Plan, members: int, ensemble: st.Ensemble) -> None:
        self.train, self.plan = train, plan
        own = of_all(ensemble, rates(plan, members) / 4)
        self.trainer = Trainer(loss, st.optim.adam, hyperparams={"learning_rate": own})
        count = len(train.labels)
        self.order = DataOrder(
            count, plan.batch, "bootstrap", len(ensemble), fraction=plan.draws / count
        )

    def __call__(self, ensemble: st.Ensemble, key: Any) -> tuple[st.Ensemble, st.Ensemble]:
        """The ensemble some steps later, and the average of each member's snapshots on the way.

        With the key that ``train`` had, members go on with the bootstraps that they had.
        """
        plan, average = self.plan, SWA()
        state, snapshots = self.trainer.start(ensemble, key), average.init(ensemble)
        for snapshot in range(plan.snapshots):
            order = np.asarray(self.order.indices(key, plan.epochs + snapshot))
            for rows in order[: plan.between]:  # (members, batch)
                batch = self.train.images[rows], self.train.labels[rows]
                state, _ = self.trainer.step(state, batch, each=True)
            snapshots = average.update(snapshots, state.ensemble)
        return state.ensemble, average.value(snapshots)
