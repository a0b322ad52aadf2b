"""Ties: parameters and modules that a module holds in two places, where a tree holds them twice.

An ensemble takes the second places out of its members before it stacks them, and puts the one value
back at all places when a member is run. Read ``groups`` next.
"""

from __future__ import annotations

from typing import TypeAlias

from stretto._engine.core.typing import Tree
from stretto.nn.module import Module

Ties: TypeAlias = tuple[tuple[str, str], ...]
"""The dotted name of each second place, and that of the first, in the order of a walk."""


def ties_of(member: Tree) -> Ties:
    """The ties of a module, found by identity; none in a tree that is not a module.

    Arrays count as tied where both are parameters: a buffer is assigned by its own module.

    >>> from stretto import nn
    >>> layer = nn.Linear(2, 2)
    >>> ties_of(nn.Sequential(layer, nn.ReLU(), layer))
    (('2', '0'),)
    """
    ties: list[tuple[str, str]] = []
    first: dict[int, str] = {}

    def walk(module: Module, path: str) -> None:
        first[id(module)] = path
        lead = f"{path}." if path else ""
        parameters = [
            (name, value) for name, value in module._arrays() if module._roles[name] == "parameter"
        ]
        for name, value in parameters:
            if id(value) in first:
                ties.append((lead + name, first[id(value)]))
            else:
                first[id(value)] = lead + name
        for name, child in module.named_children():
            if id(child) in first:
                ties.append((lead + name, first[id(child)]))
            else:
                walk(child, lead + name)

    if isinstance(member, Module):
        walk(member, "")
    return tuple(ties)


def untied(member: Tree, ties: Ties) -> Tree:
    """The member with ``None`` at the second places; itself where there are none."""
    if not ties:
        return member
    copy = member.clone()
    for place, _ in ties:
        owner, name = _owner(copy, place)
        owner.__dict__[name] = None
    return copy


def retied(member: Tree, ties: Ties) -> Tree:
    """The member itself, in which the second places hold what the first do."""
    for place, first in ties:
        owner, name = _owner(member, place)
        source, attribute = _owner(member, first)
        owner.__dict__[name] = source.__dict__[attribute]
    return member


def _owner(module: Module, place: str) -> tuple[Module, str]:
    """The module that has the attribute of this dotted name, and the attribute."""
    path, _, name = place.rpartition(".")
    return module.get_submodule(path), name
