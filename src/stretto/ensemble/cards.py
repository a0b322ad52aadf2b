"""Cards and texts of ensembles and trainings: architectures, parts and counts; losses and stops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.cards import (
    Card,
    Item,
    amount,
    bytes_in,
    counted,
    curve,
    ends,
    line,
    number,
    numbers_in,
    one_line,
    short,
    size,
    type_words,
)
from stretto._engine.core.interpreter import Value
from stretto.ensemble.groups import Group, Member, call_module
from stretto.nn.module import Module

if TYPE_CHECKING:
    from stretto.ensemble.ensemble import Ensemble
    from stretto.ensemble.training.fitted import Fitted
    from stretto.ensemble.training.train_state import TrainState

_MOST_GROUPS = 30
"""The most architectures that are printed."""


def text_of(ensemble: Ensemble[Any]) -> str:
    """Return the ``repr`` of an ensemble: a line for each architecture."""
    lines = [
        f"  {group.size} × {kind_of(group)}: {', '.join(_facts(group, arrays))}"
        for group, arrays in zip(ensemble._layout.groups, ensemble._arrays, strict=True)
    ]
    first, left_out, last = ends(lines, _MOST_GROUPS)
    middle = [f"  ... {left_out:,} more architectures"] if left_out else []
    head = f"Ensemble of {counted(len(ensemble), 'member')}"
    return "\n".join([head, *first, *middle, *last])


def kind_of(group: Group) -> str:
    """Return what the members of a group are, in a word."""
    if group.function is not call_module:
        return str(getattr(group.function, "__name__", "a function"))
    params = tree.unflatten(group.structure, group.names)
    return params._get_name() if isinstance(params, Module) else type(params).__name__


def _facts(group: Group, arrays: Sequence[Any]) -> Iterator[str]:
    """Say how much a member has, and what of it is shared, frozen or in another mode."""
    counts = [
        numbers_in([x]) // (1 if is_shared else max(group.size, 1))
        for x, is_shared in zip(arrays, group.shared, strict=True)
    ]
    trained = sum([n for n, t in zip(counts, group.trained, strict=True) if t])
    yield f"{counted(len(counts), 'array')} each"
    yield f"{counted(sum(counts), 'number')}"
    shared = sum(group.shared)
    if shared:
        yield f"{shared} of {counted(len(counts), 'array')} shared"
    if trained < sum(counts):
        yield f"{trained:,} trained"
    if group.function is call_module:
        params = tree.unflatten(group.structure, group.names)
        if isinstance(params, Module) and not params.training:
            yield "in evaluation mode"


def card_of(ensemble: Ensemble[Any]) -> Card:
    """Return the ensemble, with the arrays of each architecture as they are stacked."""
    layout = ensemble._layout
    arrays = [x for column in ensemble._arrays for x in column]
    facts = [counted(len(layout.groups), "architecture"), size(bytes_in(arrays))]
    if layout.chunk_size is not None:
        facts.append(f"chunks of {layout.chunk_size}")
    facts += [f"{name} {value}" for name, value in layout.options]
    if layout.over is not None:
        facts.append(f"over {layout.over.mesh}")
    body = [
        _card(group, column) for group, column in zip(layout.groups, ensemble._arrays, strict=True)
    ]
    return Card(f"Ensemble of {counted(len(ensemble), 'member')}", tuple(facts), tuple(body))


def _card(group: Group, arrays: Sequence[Any]) -> Card:
    body: list[Item] = []
    rows = zip(group.names, arrays, group.shared, group.trained, strict=True)
    for name, x, is_shared, is_trained in rows:
        notes = [w for w, yes in (("shared", is_shared), ("not trained", not is_trained)) if yes]
        words = f" {', '.join(notes)}" if notes else ""
        body.append(((f"{name}: ", ""), (type_words(x), "op"), (words, "quiet")))
    facts = tuple(_facts(group, arrays))
    return Card(f"{group.size} × {kind_of(group)}", facts, tuple(body), open=False)


def member_text(member: Member) -> str:
    """Return the ``repr`` of a member of functions: its parameters whole if they are few."""
    name = getattr(member.function, "__name__", member.function)
    leaves = tree.leaves(member.params)
    is_small = len(leaves) <= 12 and numbers_in(leaves) <= 60
    params = repr(member.params) if is_small else short(member.params)
    return f"Member({name}, {params})"


def card_of_member(member: Member) -> Card:
    """Return a member of functions, and its parameters."""
    lines = zip(tree.paths(member.params), tree.leaves(member.params), strict=True)
    body = tuple([((f"{path}: ", ""), (type_words(x), "op")) for path, x in lines])
    name = getattr(member.function, "__name__", None) or one_line(repr(member.function))
    return Card(f"Member of {name}", (counted(len(body), "array"),), body)


_MOST = 8
"""The most members, or kinds of measurement, that are named."""


def fitted_text(fitted: Fitted[Any]) -> str:
    """Return the ``repr`` of a training's result."""
    return "\n".join([_head(fitted), *[f"  {text}" for text in _lines(fitted)]])


def card_of_fitted(fitted: Fitted[Any]) -> Card:
    """Return a training's result, with the course of its losses and the ensemble."""
    head, _, facts = _head(fitted).partition(": ")
    body: list[Item] = [line(text) for text in _lines(fitted)]
    body.append(card_of(fitted.ensemble))
    picture = _course(np.asarray(fitted.history.get("loss", ()), np.float64))
    return Card(head, tuple(facts.split(", ")), tuple(body), picture=picture)


def _course(losses: np.ndarray) -> str:
    """Return the mean loss of those that trained, from the first entry to the last."""
    if losses.ndim != 2 or not losses.size:
        return ""
    known = np.isfinite(losses)
    sums, counts = np.where(known, losses, 0).sum(1), known.sum(1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return curve(means[:: 1 + len(means) // 400])


def _head(fitted: Fitted[Any]) -> str:
    state = fitted.state
    steps = f"{counted(int(state.step), 'step')}, {counted(int(state.epoch), 'epoch')}"
    return f"Fitted: {counted(state.size, 'member')}, {steps}"


def _lines(fitted: Fitted[Any]) -> Iterator[str]:
    kinds = [f"{g.size} × {kind_of(g)}" for g in fitted.ensemble._layout.groups]
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
    """Yield what was measured of each member: names, and values of shape (entries, members)."""
    for name, values in history.items():
        values = np.asarray(values)
        if values.ndim == 2 and values.size:
            yield name, values


def _last(values: np.ndarray) -> str:
    """Return the last value that each member has of a measurement, over the members."""
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
    """Return the ``repr`` of a training's state."""
    return f"TrainState({', '.join(_state_facts(state))})"


def card_of_state(state: TrainState[Any]) -> Card:
    """Return a training's state, with the members that run and those that no longer do."""
    finished = [pack for packs in state.finished for pack in packs]
    body = []
    for what, packs in (("running", state.packs), ("finished", finished)):
        for pack in packs:
            text = f"{what}: {pack.group.size} × {kind_of(pack.group)}, {amount(pack)}"
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
