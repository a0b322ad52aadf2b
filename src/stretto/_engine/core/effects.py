"""Effects: what an operation does besides computing its outputs.

``Primitive.effects`` and ``Program.effects`` are sets of these. An operation with an observable
effect is kept even though nothing reads its outputs; a named axis is what a collective needs from a
``vmap`` around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Effect:
    """Something that can be seen from outside the program; compared by identity.

    Args:
        name: what programs call it; by default its class.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name or type(self).__name__

    def __repr__(self) -> str:
        return self.name


CALLBACK = Effect("callback")
"""A Python function is called, as often as the program says, in any order."""

ORDERED = Effect("ordered callback")
"""A Python function is called, in the order of the program."""


class NamedAxis(NamedTuple):
    """The operation works across the examples of the ``vmap`` whose axis has this name."""

    name: Any


class OnMesh(NamedTuple):
    """The operation says where on the devices of this mesh its results are."""

    mesh: Any


def meshes(effects: Iterable[Any]) -> list[Any]:
    """Return the meshes that the effects name."""
    return [e.mesh for e in effects if type(e) is OnMesh]


def observable(effects: Iterable[Any]) -> bool:
    """Say whether any of the effects would be missed if the operation were dropped."""
    return any(isinstance(e, Effect) for e in effects)


def names_axis(effects: Iterable[Any], name: Any) -> bool:
    """Say whether any of the effects works across the axis of this name."""
    return any(type(e) is NamedAxis and e.name == name for e in effects)
