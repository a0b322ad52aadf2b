"""Members that stop: early, when their evaluations get no better, or since their values diverged.

Those that diverged are named by member, step, and path of the parameter.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.jit.jit import jit
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.errors import NonFiniteError, StrettoError
from stretto._engine.core.integers import count
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.convert import convert
from stretto.ensemble.training.train_state import Best, Pack, TrainState, read

R = TypeVar("R")


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


class DivergenceError(StrettoError, FloatingPointError):
    """A member's loss, gradients or parameters became infinite or NaN.

    ``divergences`` has the faults by member, ``state`` all that training had reached; the members
    named are in it as they were before that step.
    """

    divergences: dict[int, Divergence]
    state: TrainState


class DivergenceWarning(UserWarning):
    """A member's loss, gradients or parameters became infinite or NaN, and it no longer trains."""


class Divergence(NamedTuple):
    """The step at which a member went wrong, and the parameter."""

    step: int
    """The number of steps it had done."""
    path: str
    """The first parameter whose gradient or next value was not finite; or ``loss``."""


def divergences(state: TrainState) -> dict[int, Divergence]:
    """List the members that diverged.

    Args:
        state: the state of a training.

    Returns:
        By member, the step and the path of the parameter.

    >>> import stretto as st, stretto.numpy as snp
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 1.0}, {"w": 0.0}])
    >>> trainer = st.ensemble.Trainer(lambda m, x: snp.log(m(x)).mean(), st.optim.sgd(0.1))
    >>> state = trainer.start(ensemble, st.random.PRNGKey(0))
    >>> state, _ = trainer.step(state, snp.ones(3))
    >>> divergences(state)
    {1: Divergence(step=0, path='w')}
    """
    faults_by_member = {}
    for pack in state.all_packs():
        failed = read(pack.rows.failed)
        if (failed < 0).all():
            continue
        names = [*pack.trained, "loss"]
        faults = read(pack.rows.fault)
        for row in np.flatnonzero(failed >= 0):
            faults_by_member[pack.group.places[row]] = Divergence(
                int(failed[row]), names[int(faults[row])]
            )
    return dict(sorted(faults_by_member.items()))


def naming_member(pack: Pack, run: Callable[..., R], *args: Any) -> R:
    """Return ``run(*args)``, a step of these members; a fault in it names the step and the member.

    Steps raise such a fault under ``config.debug_nans`` and ``debug_infs``, whatever
    ``on_divergence`` says.
    """
    try:
        return run(*args)
    except NonFiniteError as error:
        fault, places = error.fault, pack.group.places
        words = f"fit: at step {int(read(pack.step))}"
        if len(places) == 1:
            words += f", of member {places[0]}"
        elif fault.examples and not fault.steps and fault.examples[0] < len(places):
            words += f", of member {places[fault.examples[0]]}"
        fault.note = words
        raise


def report_new(
    state: TrainState, known: dict[int, Divergence], reaction: str
) -> dict[int, Divergence]:
    """Return all that went wrong so far; raises or warns if any of it was not known."""
    faults = divergences(state)
    new = {m: d for m, d in faults.items() if m not in known}
    if not new:
        return faults
    words = "; ".join(
        f"member {m} diverged at step {d.step}: "
        + ("the loss" if d.path == "loss" else f"the gradient or the next value of {d.path}")
        + " is not finite"
        for m, d in new.items()
    )
    if reaction == "raise":
        raise _error(words, faults, state)
    done = {"freeze": "it keeps its last finite parameters", "drop": "it is dropped"}[reaction]
    warnings.warn(f"fit: {words}; {done}", DivergenceWarning, stacklevel=user_stack_level())
    return faults


def _error(words: str, faults: dict[int, Any], state: TrainState) -> DivergenceError:
    error = DivergenceError(
        f"fit: {words}. The ensemble is as it was before that step; a lower learning rate, "
        f"clipping (optim.clip_by_global_norm), or on_divergence='freeze' or 'drop' lets the "
        f"others continue"
    )
    error.divergences, error.state = faults, state
    return error
