"""Objects that a table finds by key for as long as others hold them.

Layer 1 (core). The standard library's weak containers run Python code at the moment when an object
goes. What a signal handler raises there is lost, as Python can hand it to nobody; Ctrl-C among it.
Here nothing runs then: who adds an entry removes those that are dead, now and then.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["WeakTable"]

T = TypeVar("T")

_FEW = 256


class WeakTable(Generic[T]):
    """Values by key, held weakly; the keys are held until an entry is added later.

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
        """The value that lives under the key; ``None`` where there is none."""
        found = self._references.get(key)
        return None if found is None else found()

    def keep(self, key: Hashable, value: T) -> T:
        """The value that lives under the key, which is this one where there is none."""
        there = self.get(key)
        if there is not None:
            return there
        self._references[key] = weakref.ref(value)
        if len(self._references) > self._most:
            self._prune()
        return value

    def values(self) -> list[T]:
        """All that live."""
        return [
            value for found in list(self._references.values()) if (value := found()) is not None
        ]

    def _prune(self) -> None:
        for key, found in list(self._references.items()):
            if found() is None and self._references.get(key) is found:
                self._references.pop(key, None)
        self._most = 2 * len(self._references) + _FEW
