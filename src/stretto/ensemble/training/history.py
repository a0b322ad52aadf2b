"""The history of a training: what was measured, entry after entry, of each member.

A dictionary: ``step`` and ``epoch`` of each entry, and everything else by name as an array
(entries, members).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["with_entry"]


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
