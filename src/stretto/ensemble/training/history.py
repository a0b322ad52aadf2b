"""The history of a training: what was measured, entry after entry, of each member.

A dictionary: ``step`` and ``epoch`` of each entry, and everything else by name as an array
(entries, members).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["columns_of", "with_entry"]


def with_entry(
    history: Mapping[str, Any], step: int, epoch: int, entry: Mapping[str, np.ndarray], size: int
) -> dict[str, np.ndarray]:
    """The history with one more entry. What is not in it is NaN there."""
    count = len(history.get("step", ()))
    out: dict[str, Any] = {
        "step": np.append(np.asarray(history.get("step", ()), np.int32), np.int32(step)),
        "epoch": np.append(np.asarray(history.get("epoch", ()), np.int32), np.int32(epoch)),
    }
    for name in [*(n for n in history if n not in out), *(n for n in entry if n not in history)]:
        nothing = np.full(size, np.nan, np.float32)
        before = history.get(name, np.broadcast_to(nothing, (count, size)))
        row = np.asarray(entry.get(name, nothing), np.float32)
        out[name] = np.concatenate([np.asarray(before), row[None]])
    return out


def columns_of(history: Mapping[str, np.ndarray], form: str, caller: str) -> dict[str, np.ndarray]:
    """The history as columns of a table.

    ``"long"``: a row for each member of each entry, with ``step``, ``epoch``, ``member``, and a
    column for each of the rest. ``"wide"``: a row for each entry, and columns such as ``loss/0``
    for member 0. Raises ``ValueError`` for another form.
    """
    if form not in ("long", "wide"):
        raise ValueError(f"{caller}: form must be 'long' or 'wide', got {form!r}")
    measured = {n: x for n, x in history.items() if n not in ("step", "epoch")}
    step, epoch = (np.asarray(history.get(n, ()), np.int32) for n in ("step", "epoch"))
    if form == "wide":
        each = {f"{n}/{i}": column for n, x in measured.items() for i, column in enumerate(x.T)}
        return {"step": step, "epoch": epoch, **each}
    size = next((x.shape[1] for x in measured.values()), 0)
    return {
        "step": np.repeat(step, size),
        "epoch": np.repeat(epoch, size),
        "member": np.tile(np.arange(size, dtype=np.int32), len(step)),
        **{n: x.ravel() for n, x in measured.items()},
    }
