"""Dictionaries of what was met before, which must not grow for ever.

Layer 1 (core). They are plain ones, so that looking something up costs what it always does; what is
put in goes through ``room``.
"""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["CAPACITY", "room"]

Table = TypeVar("Table", bound=dict[Any, Any])

CAPACITY = 4096
"""More than a program has of nearly anything."""


def room(table: Table, capacity: int = CAPACITY) -> Table:
    """The table, emptied if it is full: what is still in use is soon in it again.

    >>> table = {i: i for i in range(4)}
    >>> room(table, capacity=4)["new"] = 4
    >>> table
    {'new': 4}
    """
    if len(table) >= capacity:
        table.clear()
    return table
