"""All models that are surveyed, by family."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterable

from benchmarks.torch_models.model import Model

__all__ = ["FAMILIES", "chosen"]

FAMILIES = {
    "density": "by_hand_density",
    "fields": "by_hand_fields",
    "routing": "by_hand_routing",
    "sequences": "by_hand_sequences",
    "tables": "by_hand_tables",
    "geometric": "of_geometric",
    "torchvision": "of_torchvision",
    "timm": "of_timm",
    "diffusers": "of_diffusers",
    "language": "of_language",
    "vision": "of_vision",
    "time": "of_sound_and_time",
}
"""The files, by what the names of their models begin with; a library is imported when asked for."""


def chosen(beginnings: Iterable[str]) -> Iterable[Model]:
    """The models whose names begin with one of these."""
    wanted = tuple(beginnings)
    for family, file in FAMILIES.items():
        if any([x.startswith(family) or family.startswith(x) for x in wanted]):
            module = importlib.import_module(f"benchmarks.torch_models.wider.{file}")
            plain = file.startswith("by_hand") or family == "geometric"
            for model in module.MODELS:
                if model.name.startswith(wanted):
                    yield dataclasses.replace(model, single=not plain)
