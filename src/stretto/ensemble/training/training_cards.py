"""What is shown of a training: who was trained, how far, and with what losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core import pictures
from stretto._engine.core.cards import Card, Item, amount, counted, ends, line, number
from stretto._engine.core.interpreter import Value
from stretto.ensemble import ensemble_cards

if TYPE_CHECKING:  # they name this module
    from stretto.ensemble.training.fitted import Fitted
    from stretto.ensemble.training.train_state import TrainState


_MOST = 8
"""The most members, or kinds of measurement, that are named."""


def fitted_text(fitted: Fitted[Any]) -> str:
    """The ``repr`` of a training's result."""
    return "\n".join([_head(fitted), *[f"  {text}" for text in _lines(fitted)]])


def card_of_fitted(fitted: Fitted[Any]) -> Card:
    """A training's result, with the course of its losses and the ensemble."""
    head, _, facts = _head(fitted).partition(": ")
    body: list[Item] = [line(text) for text in _lines(fitted)]
    body.append(ensemble_cards.card_of(fitted.ensemble))
    picture = _course(np.asarray(fitted.history.get("loss", ()), np.float64))
    return Card(head, tuple(facts.split(", ")), tuple(body), picture=picture)


def _course(losses: np.ndarray) -> str:
    """The mean loss of those that trained, from the first entry to the last."""
    if losses.ndim != 2 or not losses.size:
        return ""
    known = np.isfinite(losses)
    sums, counts = np.where(known, losses, 0).sum(1), known.sum(1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return pictures.curve(means[:: 1 + len(means) // 400])


def _head(fitted: Fitted[Any]) -> str:
    state = fitted.state
    steps = f"{counted(int(state.step), 'step')}, {counted(int(state.epoch), 'epoch')}"
    return f"Fitted: {counted(state.size, 'member')}, {steps}"


def _lines(fitted: Fitted[Any]) -> Iterator[str]:
    kinds = [f"{g.size} × {ensemble_cards.kind_of(g)}" for g in fitted.ensemble._layout.groups]
    yield f"ensemble: {_some(kinds)}"
    measured = list(_measured(fitted.history))
    for name, values in measured[:_MOST]:
        yield f"{name}: {_last(values)}"
    if len(measured) > _MOST:
        yield f"and {', '.join([name for name, _ in measured[_MOST:]])[:200]}"
    if fitted.stopped:
        words = _some([f"{member} at step {step}" for member, step in fitted.stopped.items()])
        yield f"stopped early: {len(fitted.stopped)}: {words}"
    if fitted.diverged:
        words = _some([f"{m} at step {d.step} ({d.path})" for m, d in fitted.diverged.items()])
        yield f"diverged: {len(fitted.diverged)}: {words}"


def _measured(history: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """What was measured of each member: names, and values of shape (entries, members)."""
    for name, values in history.items():
        values = np.asarray(values)
        if values.ndim == 2 and values.size:
            yield name, values


def _last(values: np.ndarray) -> str:
    """The last value that each member has of a measurement, over the members."""
    known = np.isfinite(values)
    members = np.flatnonzero(known.any(0))
    if not len(members):
        return "not finite"
    entries = len(values) - 1 - np.argmax(known[::-1, members], 0)
    last = values[entries, members]
    if values.shape[1] == 1:
        return number(float(last[0]))
    least, greatest = (int(best(last)) for best in (np.argmin, np.argmax))
    return (
        f"mean {number(float(last.mean()))}, least {number(float(last[least]))} (member "
        f"{members[least]}), greatest {number(float(last[greatest]))} (member {members[greatest]})"
    )


def _some(words: Sequence[str]) -> str:
    first, left_out, last = ends(words, _MOST)
    return ", ".join([*first, *([f"... {left_out:,} more"] * bool(left_out)), *last])


def state_text(state: TrainState[Any]) -> str:
    """The ``repr`` of a training's state."""
    return f"TrainState({', '.join(_state_facts(state))})"


def card_of_state(state: TrainState[Any]) -> Card:
    """A training's state, with the members that run and those that no longer do."""
    finished = [pack for packs in state.finished for pack in packs]
    body = []
    for what, packs in (("running", state.packs), ("finished", finished)):
        for pack in packs:
            text = (
                f"{what}: {pack.group.size} × {ensemble_cards.kind_of(pack.group)}, {amount(pack)}"
            )
            body.append(line(text))
    return Card("TrainState", tuple(_state_facts(state)), tuple(body))


def _state_facts(state: TrainState[Any]) -> Iterator[str]:
    yield counted(state.size, "member")
    stopped = sum([pack.group.size for packs in state.finished for pack in packs])
    if stopped:
        yield f"{stopped} no longer run"
    for noun in ("step", "epoch"):
        count: Any = getattr(state, noun)
        if not isinstance(count, Value):
            yield counted(count, noun)
    yield amount(state)
