"""The leaves of a tree that their node keeps out of training: buffers of modules.

A class of nodes that has such leaves has a method ``_undifferentiated``, which gives those of an
object. Derivatives by integers among them are no error, and optimizers do not see them.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.core import tree
from stretto._engine.core.bounded import room

_known: dict[Any, frozenset[int]] = {}


def left_out(x: Any, structure: Any) -> frozenset[int]:
    """Return the numbers of those leaves, of a tree of this structure."""
    found = _known.get(structure)
    if found is None:
        found = room(_known)[structure] = frozenset(_found(x))
    return found


def _found(x: Any) -> set[int]:
    numbers: set[int] = set()
    start = 0
    for node in tree.leaves(x, _leaves_out):
        structure = tree.structure(node)
        stop = start + structure.num_leaves
        if _leaves_out(node):
            numbered = tree.unflatten(structure, range(start, stop))
            numbers.update([i for i in numbered._undifferentiated() if isinstance(i, int)])
        start = stop
    return numbers


def _leaves_out(node: Any) -> bool:
    return hasattr(type(node), "_undifferentiated")
