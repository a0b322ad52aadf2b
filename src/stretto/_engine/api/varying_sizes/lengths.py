"""Ragged arguments of the same lengths, which a trace has to know beside their types.

Arrays of two ragged arguments can be added only if they have one size, and a trace sees no lengths.
So equal ones are found before it, become one traced array, and belong to its key.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.interpreter import Tracer, Value

RAGGED: list[type] = []
"""The class of ragged arrays, once there are any."""


def holds_ragged(x: Any) -> bool:
    """Say if a tree has a ragged array."""
    if not RAGGED:
        return False
    ragged = tuple(RAGGED)
    is_ragged = lambda node: isinstance(node, ragged)
    return any(map(is_ragged, tree.leaves(x, is_ragged)))


def same_lengths(one: Any, other: Any) -> bool:
    """Say if lengths are known to be equal."""
    if one is other:
        return True
    known = all([isinstance(x, Value) and not isinstance(x, Tracer) for x in (one, other)])
    return known and np.array_equal(np.asarray(one), np.asarray(other))


def equal_lengths(structure: Any, leaves: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Return pairs of positions: of lengths, and of earlier ones that are equal."""
    if not RAGGED:
        return ()
    pairs: list[tuple[int, int]] = []
    firsts: list[int] = []
    for position in _positions(structure):
        same = [first for first in firsts if same_lengths(leaves[first], leaves[position])]
        if same:
            pairs.append((position, same[0]))
        else:
            firsts.append(position)
    return tuple(pairs)


def share_lengths(leaves: Sequence[Any], pairs: Sequence[tuple[int, int]]) -> Sequence[Any]:
    """Return the leaves with one array for equal lengths."""
    if not pairs:
        return leaves
    one = list(leaves)
    for position, first in pairs:
        one[position] = one[first]
    return one


def refuse_split(structure: Any, specs: Sequence[Any], caller: str) -> None:
    """Raise ``NotImplementedError`` where a ragged array is to be taken apart like an array."""
    if not RAGGED:
        return
    for position in _positions(structure, rectangles=False):
        if any([part is not None for part in (*specs[position - 1], *specs[position])]):
            raise NotImplementedError(
                f"{caller}: a ragged array is one row of elements, whose parts are not its arrays: "
                f"pass a rectangle, ragged.pad(), and the lengths, and use a mask; or leave it to "
                f"jit, which splits what it computes of a ragged array that is sharded"
            )


@functools.lru_cache(512)
def _positions(structure: Any, rectangles: bool = True) -> tuple[int, ...]:
    """Find the leaves of such a tree that are lengths; if so wanted, not those of rectangles."""
    (kind,) = RAGGED
    found: list[int] = []

    def visit(part: Any, start: int) -> None:
        if part.type is not None and issubclass(part.type, kind):
            # Only such nodes are built: others may refuse leaves that are no arrays.
            node = tree.unflatten(part, range(start, start + part.num_leaves))
            if rectangles or not node._wide:
                found.append(node._lengths)
            return
        for child in part.children():
            visit(child, start)
            start += child.num_leaves

    visit(structure, 0)
    return tuple(found)
