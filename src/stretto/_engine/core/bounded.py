"""Caches of bounded size: dictionaries that are emptied when they are full.

They are plain dictionaries, so that a look-up, which hot paths do, costs no more than usual;
whatever adds an entry calls ``room`` first.
"""

from __future__ import annotations

from typing import Any, TypeVar

Table = TypeVar("Table", bound=dict[Any, Any])

CAPACITY = 4096
"""By default: more than a program has of nearly anything that is cached."""


def room(table: Table, capacity: int = CAPACITY) -> Table:
    """Return the table, emptied if it is full: entries still in use soon come back.

    >>> table = {i: i for i in range(4)}
    >>> room(table, capacity=4)["new"] = 4
    >>> table
    {'new': 4}
    """
    if len(table) >= capacity:
        table.clear()
    return table
