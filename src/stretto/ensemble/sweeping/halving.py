"""``Halving``: configurations that are behind are dropped, at a few epochs.

What is dropped leaves its pack as a member does that has stopped early, so that the others go on in
a smaller program.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.typing import ArrayLike
from stretto.ensemble.training.fit_callbacks import Callback, Event
from stretto.ensemble.training.stopping import EarlyStopping
from stretto.ensemble.training.train_state import TrainState, read


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


class Clock(Callback):
    """A callback that keeps how long each epoch took, and how many members it trained."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.members: list[int] = []
        self._last = 0.0

    def on_start(self, event: Event) -> None:
        """Begin the first epoch."""
        self._last = time.monotonic()

    def on_entry(self, event: Event) -> None:
        """End an epoch, and begin the next."""
        now = time.monotonic()
        self.seconds.append(now - self._last)
        self.members.append(int(np.isfinite(event.entry["loss"]).sum()))
        self._last = now

    def cost(self, cuts: Sequence[int]) -> str | None:
        """Say what halving cost, where that is more than it can have saved.

        After these epochs members were dropped, and the next compiled a smaller program. An epoch
        of all members takes at most as many times as long as there are more of them.

        >>> clock = Clock()
        >>> clock.seconds, clock.members = [2.0, 3.0, 0.1, 0.1], [60, 20, 20, 20]
        >>> clock.cost([1])
        'halving took 2.9 s to compile smaller programs, and saved 0.6 s of steps at most...
        >>> clock.seconds[1:] = [1.2, 1.0, 1.0]
        >>> clock.cost([1]) is None
        True
        """
        took = saved = 0.0
        ends = [*cuts[1:], len(self.seconds)]
        for start, end in zip(cuts, ends):
            stage = self.seconds[start:end]
            if len(stage) < 2:  # a single epoch does not tell compiling from steps
                return None
            usual = min(stage)
            took += stage[0] - usual
            saved += len(stage) * usual * (self.members[0] / max(self.members[start], 1) - 1)
        if took <= saved:
            return None
        return (
            f"halving took {took:.1f} s to compile smaller programs, and saved {saved:.1f} s of "
            f"steps at most: without halving= this sweep is faster, and trains all to the end"
        )


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
