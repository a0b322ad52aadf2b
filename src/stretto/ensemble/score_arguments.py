"""Arguments of scores and calibrators: arrays whose shapes fit, and probabilities.

What does not fit raises an error that says what was expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.caches import WeakTable
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto.nn.functional.activations import indicator

Groups: TypeAlias = tuple[Any, ...]
"""The names of groups of examples, in their order."""

_averages: WeakTable[Value] = WeakTable()
"""Arrays that are combined of members', by identity."""


def at_least_float32(x: ArrayLike, caller: str, argument: str) -> Array:
    """Make an array of float32 or float64: bfloat16 cannot tell a confidence of 0.999 from 1."""
    values = as_value(x, caller, argument)
    return values if values.dtype == np.float64 else values.astype(np.float32)


def concrete(x: Array) -> np.ndarray | None:
    """Return the values, or ``None`` while they are traced."""
    return None if isinstance(x, Tracer) else np.asarray(x)


def is_table(x: object) -> bool:
    """Say whether it is a table, such as a DataFrame, or another library's array."""
    made = hasattr(x, "__array__") or hasattr(x, "__dataframe__")
    return made and not isinstance(x, (type, Value, np.ndarray, np.generic))


def at_least(least: int, value: int, caller: str, what: str) -> None:
    """Raise ``ValueError`` where a count, such as of bins, is less than it must be."""
    if value < least:
        raise ValueError(f"{caller}: expected at least {least} {what}, got {value}")


def check_binning(caller: str, bins: int, binning: str) -> None:
    """Raise ``ValueError`` where there are no bins, or for an unknown kind of them."""
    at_least(1, bins, caller, "bin")
    if binning not in ("width", "mass"):
        raise ValueError(f"{caller}: binning must be 'width' or 'mass', got {binning!r}")


def of_members(
    caller: str, x: ArrayLike, argument: str = "probs", axes: str = "..., classes"
) -> Array:
    """Return an array with an axis of members, of at least one, in front of the named others."""
    values = at_least_float32(x, caller, argument)
    named = [a for a in axes.split(", ") if a and a != "..."]
    if values.ndim < 1 + len(named) or not values.shape[0]:
        shape = f"(members, {axes})" if axes else "(members,)"
        raise ValueError(
            f"{caller}: expected {argument} of shape {shape} with at least one member, "
            f"got {values.shape}"
        )
    return values


def mark_as_average(x: Array) -> Array:
    """Return the array, known from now on as one that has no axis of members any more."""
    if x.ndim == 2 and not isinstance(x, Tracer):
        _averages.keep(id(x), x)
    return x


def are_members(
    caller: str, x: ArrayLike, argument: str = "probs", axes: str = "..., classes"
) -> Array:
    """Do as ``of_members``, but refuse what predictions of members were combined to.

    An average (examples, classes) looks like one example of members, (members, classes).
    """
    if _averages.get(id(x)) is x:
        raise ValueError(
            f"{caller}: {argument} of shape {np.shape(x)} is combined of the members' already, and "
            f"the members are what it needs: give {argument} of shape (members, {axes}). Of an "
            f"average, (examples, classes), the largest probability is probs.max(-1)"
        )
    return of_members(caller, x, argument, axes)


def check_labels(
    caller: str,
    probs: ArrayLike,
    labels: ArrayLike,
    argument: str = "probs",
    axes: str = "examples, classes",
) -> tuple[Array, Array]:
    """Return predictions of shape (..., examples, classes), and labels of their classes.

    With ``axes="examples"`` predictions are of shape (..., examples), and labels are 0 or 1.
    """
    p, y = at_least_float32(probs, caller, argument), as_value(labels, caller, "labels")
    of_classes = axes == "examples, classes"
    shape = p.shape[:-1] if of_classes else p.shape
    if not shape or y.ndim < 1 or shape[-y.ndim :] != y.shape:
        raise ValueError(
            f"{caller}: expected {argument} of shape (..., {axes}) and labels of shape "
            f"(examples,), got {p.shape} and {y.shape}"
        )
    if not np.issubdtype(y.dtype, np.integer):
        raise TypeError(f"{caller}: expected labels of an integer dtype, got {y.dtype}")
    values, classes = concrete(y), p.shape[-1] if of_classes else 2
    if values is not None:
        wrong = (values < 0) | (values >= classes)
        if wrong.any():
            place = tuple(int(i[0]) for i in np.nonzero(wrong))
            raise ValueError(
                f"{caller}: expected labels from 0 to {classes - 1}, as {argument} of shape "
                f"{p.shape} have it; got {values[place]} at {place if y.ndim > 1 else place[0]}"
            )
    return p, y


def with_targets(
    caller: str, predictions: ArrayLike, targets: ArrayLike, argument: str = "predictions"
) -> tuple[Array, Array, tuple[int, ...]]:
    """Return predictions of shape (..., *targets), real targets, and the axes that those are of."""
    p = at_least_float32(predictions, caller, argument)
    t = at_least_float32(targets, caller, "targets")
    if t.ndim < 1 or p.shape[-t.ndim :] != t.shape:
        raise ValueError(
            f"{caller}: expected targets of shape (examples, ...) and {argument} of that "
            f"shape after any leading axes, got {t.shape} and {p.shape}"
        )
    return p, of_rank(t, p.ndim), tuple(range(-t.ndim, 0))


def group_ids(
    caller: str,
    groups: ArrayLike,
    examples: int,
    num_groups: int | None = None,
    names: Groups | None = None,
) -> tuple[Array, Groups]:
    """Return the place of each example's group, (examples,) of int32, and the groups' names.

    Integers are places themselves, from 0 to ``num_groups`` − 1; other labels, such as strings, go
    by their place among ``names``, or without these in ascending order. A traced integer out of
    range is of no group.
    """
    known = None if isinstance(groups, Tracer) else np.asarray(groups)
    shape = np.shape(groups) if known is None else known.shape
    if shape != (examples,):
        raise ValueError(
            f"{caller}: expected groups of shape ({examples},), one for each example, got {shape}"
        )
    if known is not None and known.dtype.kind in "bUSOT":
        return _by_name(caller, known, num_groups, names)
    ids = as_value(groups, caller, "groups")
    if not np.issubdtype(ids.dtype, np.integer):
        raise TypeError(
            f"{caller}: expected groups of integers from 0 on, or of names (strings, booleans), "
            f"got {ids.dtype}"
        )
    if names is not None and names != tuple(range(len(names))):
        raise TypeError(f"{caller}: expected groups by name, of {few(names)}; got {ids.dtype}")
    if names is None and num_groups is None:
        if known is None:
            raise ValueError(f"{caller}: groups are traced, so num_groups= must say how many")
        num_groups = int(known.max(initial=-1)) + 1
    found = names or tuple(range(num_groups or 0))
    at_least(1, len(found), caller, "group")
    if known is not None and ((known < 0) | (known >= len(found))).any():
        wrong = known[(known < 0) | (known >= len(found))][0]
        raise ValueError(f"{caller}: expected groups from 0 to {len(found) - 1}, got {wrong}")
    # A negative index would count from the end.
    return snp.where(ids < 0, len(found), ids).astype(np.int32), found


def _by_name(
    caller: str, labels: np.ndarray, num_groups: int | None, names: Groups | None
) -> tuple[Array, Groups]:
    """Do as ``group_ids`` for groups that have names."""
    if num_groups is not None:
        raise ValueError(
            f"{caller}: num_groups is of groups that are integers; these are of {labels.dtype}"
        )
    found = tuple(sorted(set(labels.tolist()))) if names is None else names
    place = {name: i for i, name in enumerate(found)}
    for label in labels.tolist():
        if label not in place:
            raise ValueError(f"{caller}: no group {label!r}; there are {few(found)}")
    return snp.asarray(np.array([place[label] for label in labels.tolist()], np.int32)), found


def few(names: Sequence[Any]) -> str:
    """Return the first of the names, for a message."""
    return ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")


def clamped(probs: Array) -> Array:
    """Return at least the least normal number, which a probability that underflowed counts as."""
    return snp.maximum(probs, float(np.finfo(probs.dtype).tiny))


def correct(probs: Array, labels: Array) -> Array:
    """Return (..., examples): 1 where the label is the most probable class; NaN where probs are."""
    right = (snp.argmax(probs, axis=-1) == of_rank(labels, probs.ndim - 1)).astype(probs.dtype)
    return snp.where(snp.any(snp.isnan(probs), axis=-1), np.nan, right)


def one_hot_like(probs: Array, labels: Array) -> Array:
    """Return (..., examples, classes) of ``probs``'s dtype: 1 at the label."""
    return of_rank(indicator(labels, probs.shape[-1], probs.dtype), probs.ndim)


def to_sum_one(values: Array) -> Array:
    """Divide values by their sum over the last axis; all zeros become equal."""
    total = snp.sum(values, axis=-1, keepdims=True)
    some = snp.not_equal(total, 0)
    return snp.where(some, values / snp.where(some, total, 1), 1 / values.shape[-1])
