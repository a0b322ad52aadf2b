"""Caches in memory: dictionaries of bounded size, and tables that hold their values weakly.

``room`` bounds plain dictionaries, which are emptied when they are full: a look-up, which hot paths
do, then costs no more than usual. Whatever adds an entry calls it first.

The standard library's weak containers run Python code when an object is freed. An exception that a
signal handler raises inside that code, such as the one for Ctrl-C, is lost, because Python has no
caller to hand it to. In a ``WeakTable`` nothing runs at that moment: adding an entry now and then
removes those that are dead.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

Table = TypeVar("Table", bound=dict[Any, Any])

CAPACITY = 4096
"""The default: more than a program has of nearly anything that is cached."""


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


T = TypeVar("T")

_FEW = 256


class WeakTable(Generic[T]):
    """Values by key, held weakly; the keys of dead values stay until some later entry is added.

    >>> class Thing:
    ...     pass
    >>> table, thing = WeakTable(), Thing()
    >>> table.keep("a", thing) is table.keep("a", Thing()) is table.get("a") is thing
    True
    >>> del thing
    >>> table.get("a"), table.values()
    (None, [])
    """

    __slots__ = ("_most", "_references")

    def __init__(self) -> None:
        self._references: dict[Hashable, weakref.ref[T]] = {}
        self._most = _FEW

    def get(self, key: Hashable) -> T | None:
        """Return the value under the key; ``None`` if there is none, or it has been freed."""
        reference = self._references.get(key)
        return None if reference is None else reference()

    def keep(self, key: Hashable, value: T) -> T:
        """Return the value under the key; where there is none, this one, which is added."""
        existing = self.get(key)
        if existing is not None:
            return existing
        self._references[key] = weakref.ref(value)
        if len(self._references) > self._most:
            self._prune()
        return value

    def values(self) -> list[T]:
        """Return all values that have not been freed."""
        references = list(self._references.values())
        return [value for reference in references if (value := reference()) is not None]

    def _prune(self) -> None:
        for key, reference in list(self._references.items()):
            if reference() is None and self._references.get(key) is reference:
                self._references.pop(key, None)
        self._most = 2 * len(self._references) + _FEW
