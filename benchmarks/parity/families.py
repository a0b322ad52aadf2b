"""All families of cases, by the name of the function or layer."""

from __future__ import annotations

from benchmarks.parity import (
    functions_attention,
    functions_dense,
    functions_images,
    functions_losses,
    layers,
    layers_plain,
    layers_sequences,
)
from benchmarks.parity.case import Case
from benchmarks.parity.draw import Draw, Maker

__all__ = ["FAMILIES", "cases_of"]

FAMILIES: dict[str, Maker] = {
    **functions_images.families.makers,
    **functions_dense.families.makers,
    **functions_losses.families.makers,
    **functions_attention.families.makers,
    **layers.families.makers,
    **layers_plain.families.makers,
    **layers_sequences.families.makers,
}


def cases_of(name: str, count: int, seed: int) -> list[Case]:
    """The first cases of a family; they depend on the seed and the family's name."""
    draw = Draw(seed, name)
    return [FAMILIES[name](draw, name) for _ in range(count)]
