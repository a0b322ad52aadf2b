"""Read and refill dictionaries, lists, deques and sets, whatever their classes make of it.

A class of the user's may compute an element when it is asked for, as does one that makes a new
object of each class that it holds. To look at such a container is to run nothing of it.
"""

from __future__ import annotations

import collections
from typing import Any

_BASES: tuple[Any, ...] = (collections.OrderedDict, dict, collections.deque, list, set)


class Absent:
    """Stands for an entry that is not there."""


def _base(x: Any) -> Any:
    base: Any = next((base for base in _BASES if isinstance(x, base)), type(x))
    return base


def content_of(x: Any) -> dict[Any, Any]:
    """The elements of a container by key or number, those of a set by themselves.

    >>> class Doubled(dict):
    ...     def __getitem__(self, key):
    ...         return 2 * super().__getitem__(key)
    >>> content_of(Doubled(a=1))
    {'a': 1}
    """
    base = _base(x)
    if issubclass(base, dict):
        return dict(dict.items(x))
    if base not in _BASES:  # another kind of mapping
        return dict(x)
    elements = base.__iter__(x)
    return {v: v for v in elements} if base is set else dict(enumerate(elements))


def refill(x: Any, content: dict[Any, Any], now: dict[Any, Any] | None = None) -> None:
    """Make this the content of a container, and leave what is as it was in its place.

    Of a dictionary, only what is ``now`` in it is looked at; everything by default.
    """
    base = _base(x)
    if base is set:
        set.clear(x)
        set.update(x, content)
        return
    if base in (list, collections.deque):
        base.clear(x)
        base.extend(x, content.values())
        return
    now = content_of(x) if now is None else now
    for key in now.keys() - content.keys():
        base.__delitem__(x, key)
    for key, value in content.items():
        if now.get(key, Absent) is not value:
            base.__setitem__(x, key, value)
