"""The settings that chains are run with: every optimization on, each one off, any mixture.

None of them may change a result.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

__all__ = ["ALL_ON", "OPTIMISATIONS", "PLANS", "SETTINGS", "draw_settings", "lines_of"]

OPTIMISATIONS = (
    "simplify",
    "roll_loops",
    "interpret_small",
    "eager_compiled",
    "disk_cache",
    "compile_in_background",
    "stable_forms",
    "kernels",
)
"""The settings of which each switches an optimization, or digits that would be lost; by default all
are on."""

PLANS = ("at once", "batched", "wide", "written out", "in turn")
"""The formulations of what vmap maps, other than that found by estimate."""

ALL_ON: Mapping[str, Any] = {**dict.fromkeys(OPTIMISATIONS, True), "plan": "auto"}

SETTINGS: dict[str, Mapping[str, Any]] = {
    "all on": ALL_ON,
    **{f"{name} off": {**ALL_ON, name: False} for name in OPTIMISATIONS},
    "all off": {**dict.fromkeys(OPTIMISATIONS, False), "plan": "at once"},
    **{f"plan {plan}": {**ALL_ON, "plan": plan} for plan in PLANS},
}
"""By what a test is called that runs with them."""


def draw_settings(seed: int) -> Mapping[str, Any]:
    """All on, one off, or any mixture, in equal shares."""
    rng = random.Random(f"settings {seed}")
    mixture = {name: rng.random() < 0.5 for name in OPTIMISATIONS}
    plan = rng.choice(["auto", "auto", *PLANS])
    one = {**ALL_ON, rng.choice(OPTIMISATIONS): False}
    return rng.choice([ALL_ON, one, {**mixture, "plan": plan}])


def lines_of(settings: Mapping[str, Any]) -> str:
    """The settings as a program that runs by itself makes them."""
    odd = {name: value for name, value in settings.items() if value != ALL_ON[name]}
    return "".join(f"st.config.{name} = {value!r}\n" for name, value in odd.items())
