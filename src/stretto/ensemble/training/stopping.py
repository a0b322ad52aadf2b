"""``EarlyStopping``: each member stops when its own evaluations get no better."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.jit.jit import jit
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.integers import count
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.convert import convert
from stretto.ensemble.training.train_state import Best, Pack, TrainState


@dataclasses.dataclass(frozen=True)
class EarlyStopping:
    """Stop a member after ``patience`` evaluations in a row without a better score.

    A member that has stopped is left as it is.

    Args:
        patience: how many evaluations in a row without a better score stop a member.
        min_delta: by how much a score must be better; NaN is never better.
        monitor: the score: ``"loss"``, the validation loss, or the name of a metric.
        mode: ``"min"`` where smaller is better, ``"max"`` where larger is.
        restore_best: leave each member in the end as it was at its best evaluation, even one that
            never stopped.

    Raises:
        ValueError: ``patience`` is below 1, ``min_delta`` is negative, or ``mode`` is neither.

    Source: Prechelt, "Early stopping, but when?", 1998.

    >>> EarlyStopping(patience=3).monitor
    'loss'
    """

    patience: int
    min_delta: float = 0.0
    monitor: str = "loss"
    mode: str = "min"
    restore_best: bool = True

    def __post_init__(self) -> None:
        count(self.patience, "EarlyStopping", "patience", 1)
        if not self.min_delta >= 0:
            raise ValueError(f"EarlyStopping: min_delta must be at least 0, got {self.min_delta}")
        if self.mode not in ("min", "max"):
            raise ValueError(f"EarlyStopping: mode must be 'min' or 'max', got {self.mode!r}")

    def check(self, names: Iterable[str]) -> None:
        """Refuse to watch what is not evaluated.

        Args:
            names: those of what is.

        Raises:
            ValueError: ``monitor`` is not among them.
        """
        names = list(names)
        if self.monitor not in names:
            raise ValueError(
                f"EarlyStopping: monitor={self.monitor!r} is not among what is evaluated: "
                f"{', '.join(names)}"
            )

    def score(self, found: dict[str, np.ndarray]) -> np.ndarray:
        """Pick what is watched from an evaluation's results; the smaller the better.

        Args:
            found: by name, arrays of shape (members,).

        Returns:
            (members,).

        Raises:
            ValueError: ``monitor`` is not among the results.
        """
        self.check(found)
        return found[self.monitor] if self.mode == "min" else -found[self.monitor]

    def observe(self, state: TrainState, score: ArrayLike) -> TrainState:
        """Return the state after an evaluation with these scores.

        Args:
            state: a state begun with ``early_stopping=True``.
            score: (members,), the smaller the better.

        Returns:
            The new state.
        """
        score = np.asarray(score, np.float32)
        with config(recompilation_warning=0):  # one program for each pack is meant
            packs = [
                _OBSERVED(p, score[list(p.group.places)], self.patience, self.min_delta)
                for p in state.packs
            ]
        return state.replace(packs=tuple(packs))


def _observed(pack: Pack, score: ArrayLike, patience: int, min_delta: float) -> Pack:
    rows, best = pack.rows, pack.rows.best
    assert best is not None
    better = snp.logical_and(rows.active, score < best.score - min_delta)
    waited = snp.where(better, 0, best.waited + convert(rows.active, best.waited.dtype))
    stops = snp.logical_and(rows.active, waited >= patience)

    def one(now: Array, before: Array) -> Array:
        return snp.where(better.reshape(-1, *[1] * (now.ndim - 1)), now, before)

    own = tree.map(one, {**rows.own, **rows.kept}, best.own)
    return pack.replace(
        best=Best(snp.where(better, score, best.score), waited, own),
        active=snp.logical_and(rows.active, snp.logical_not(stops)),
        stopped=snp.where(stops, pack.step, rows.stopped),
    )


_OBSERVED = jit(_observed, static_argnums=(2, 3), donate_argnums=0)
