"""Whether a task has the same values under Stretto and under JAX, and what rounding does to them.

In float64 they must be equal. In float32, too, unless rounding decides: then data that differ by
one unit in the last place move JAX's own values as far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.ecosystem.tasks.data import NUDGE
from benchmarks.ecosystem.tasks.running import Told, Values
from benchmarks.ecosystem.tasks.table import EQUAL, Task

__all__ = ["Agreement", "agreement", "apart"]

WIDE = {"JAX_ENABLE_X64": "1"}
MORE = 100
"""How much further than a nudge values may be apart where rounding decides."""


class Agreement(NamedTuple):
    """How far values are apart, each relative to the largest of its array.

    ``nudged`` is how far JAX's own move with the last place of the data, where that was asked.
    """

    narrow: float
    wide: float
    nudged: float | None
    message: str | None

    def as_json(self) -> dict[str, Any]:
        """The fields, for a file."""
        return self._asdict()


def apart(one: Values, other: Values) -> float:
    """The greatest distance between values of two programs, relative to the scale of the second.

    Infinite where names, types or shapes differ, or one has NaN where the other has none.
    """
    if one.keys() != other.keys():
        return np.inf
    distances = [0.0]
    for name, target in other.items():
        values = one[name]
        if values.dtype != target.dtype or values.shape != target.shape:
            return np.inf
        x, y = np.asarray(values, np.float64), np.asarray(target, np.float64)
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return np.inf
        x, y = x[np.isfinite(x)], y[np.isfinite(y)]
        scale = float(np.abs(y).max(initial=0)) or 1.0
        distances.append(float(np.abs(x - y).max(initial=0)) / scale)
    return max(distances)


def agreement(task: Task, run: Callable[[str, dict[str, str]], Told]) -> Agreement:
    """Compare a task; ``run`` runs it under a framework with variables of the environment."""

    def values(framework: str, **variables: str) -> Values:
        return run(framework, variables).values

    wide = apart(values("stretto", **WIDE), values("jax", **WIDE))
    theirs = values("jax")
    narrow = apart(values("stretto"), theirs)
    nudged = apart(values("jax", **{NUDGE: "1"}), theirs) if narrow > EQUAL else None
    return Agreement(narrow, wide, nudged, _message(task, narrow, wide, nudged))


def _message(task: Task, narrow: float, wide: float, nudged: float | None) -> str | None:
    if not wide <= EQUAL:
        return f"values in float64 are {wide:.1e} apart, relative to the largest"
    if nudged is None:
        return None
    if not task.chaotic:
        return f"values in float32 are {narrow:.1e} apart, relative to the largest"
    if not narrow <= MORE * nudged:
        return (
            f"values in float32 are {narrow:.1e} apart, and by {nudged:.1e} where data differ in "
            f"their last place"
        )
    return None
