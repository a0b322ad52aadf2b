"""Members that went wrong, by name: member, step, path of the parameter."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from stretto._engine.core.errors import NonFiniteError, StrettoError
from stretto._engine.core.position import user_stack_level
from stretto.ensemble.training.train_state import Pack, TrainState, read

R = TypeVar("R")


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
    """When a member went wrong, and where."""

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
    """All that went wrong so far; raises or warns if any of it was not known."""
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
