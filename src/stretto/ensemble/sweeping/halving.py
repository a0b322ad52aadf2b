"""``Halving``: configurations that are behind are dropped, at a few epochs.

What is dropped leaves its pack as a member does that has stopped early, so that the others go on in
a smaller program. Next, read ``sweep``.
"""

from __future__ import annotations

import dataclasses

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.typing import ArrayLike
from stretto.ensemble.training.reading import read
from stretto.ensemble.training.state import TrainState
from stretto.ensemble.training.stopping import EarlyStopping

__all__ = ["Halving", "cuts_of"]


def cuts_of(count: int, epochs: int, factor: int, first: int) -> dict[int, int]:
    """After which epochs how many configurations go on: one in ``factor``, each time.

    After ``first`` epochs, and whenever ``factor`` times as many are done (Jamieson and Talwalkar,
    "Non-stochastic best arm identification and hyperparameter optimization", 2016).

    >>> cuts_of(200, 27, 3, 1)
    {1: 67, 3: 23, 9: 8}
    """
    cuts = {}
    epoch = first
    while epoch < epochs and count > 1:
        count = -(-count // factor)
        cuts[epoch] = count
        epoch *= factor
    return cuts


@dataclasses.dataclass(frozen=True)
class Halving(EarlyStopping):
    """Early stopping, and the end of all but the best configurations at each of the cuts."""

    cuts: tuple[tuple[int, int], ...] = ()
    """Pairs: after this epoch, so many configurations go on."""
    members: tuple[int, ...] = ()
    """The configuration of each member; its score is the mean of its members'."""

    def observe(self, state: TrainState, score: ArrayLike) -> TrainState:
        """As ``EarlyStopping``; then drop what is behind.

        Args:
            state: a state begun with ``early_stopping=True``.
            score: (members,), the smaller the better.

        Returns:
            The new state.
        """
        state = super().observe(state, score)
        count = dict(self.cuts).get(state.epoch)
        if count is None:
            return state
        best = np.full(state.size, np.inf)
        for pack in state.all_packs():
            assert pack.rows.best is not None
            best[list(pack.group.places)] = read(pack.rows.best.score)
        best[state.each("failed") >= 0] = np.inf
        # What was dropped before has a worse best than all that went on, and stays behind.
        owners = np.asarray(self.members)
        means = np.bincount(owners, best) / np.bincount(owners)
        kept = np.isin(owners, np.argsort(means, kind="stable")[:count])
        packs = []
        for pack in state.packs:
            here = snp.asarray(kept[list(pack.group.places)])
            stops = snp.logical_and(pack.rows.active, snp.logical_not(here))
            packs.append(
                pack.replace(
                    active=snp.logical_and(pack.rows.active, here),
                    stopped=snp.where(stops, pack.step, pack.rows.stopped),
                )
            )
        return state.replace(packs=tuple(packs))
