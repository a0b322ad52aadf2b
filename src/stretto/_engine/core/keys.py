"""Keys: the steps that lead from a tree to its leaves, and how they are written.

A path is a tuple of keys. Each is a dictionary's key, an index into a sequence, an attribute's
name, or a position among the children of a class that does not name them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import optree


@dataclasses.dataclass(frozen=True, slots=True)
class DictKey:
    """A key of a dictionary.

    Args:
        key: the key.

    >>> str(DictKey("w"))
    "['w']"
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceKey:
    """An index into a list or a tuple.

    Args:
        idx: the place, counted from 0.

    >>> str(SequenceKey(0))
    '[0]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


@dataclasses.dataclass(frozen=True, slots=True)
class GetAttrKey:
    """The name of an attribute, or of a field.

    Args:
        name: the name.

    >>> str(GetAttrKey("weight"))
    '.weight'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class FlattenedIndexKey:
    """A position among the children of a class that does not name them.

    Args:
        key: the place, counted from 0.

    >>> str(FlattenedIndexKey(0))
    '[<flat index 0>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


class Keyed(optree.PyTreeEntry):
    """The step to a child for which the class supplies its own key."""

    def codify(self, node: str = "*") -> str:
        """Return the key, after the text of the node."""
        return f"{node}{self.entry}"


def key_of(step: optree.PyTreeEntry) -> Any:
    """Return the key for one of optree's steps."""
    if isinstance(step, Keyed):
        return step.entry
    if isinstance(step, optree.MappingEntry):
        return DictKey(step.entry)
    if isinstance(step, (optree.NamedTupleEntry, optree.StructSequenceEntry)):
        return GetAttrKey(step.field)
    if isinstance(step, optree.SequenceEntry):
        return SequenceKey(step.entry)
    if isinstance(step, optree.GetAttrEntry):
        return GetAttrKey(step.entry)
    return FlattenedIndexKey(step.entry)


def word(key: Any) -> str:
    """Return the key without brackets and dots."""
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """Write a path as Python would, or its keys alone with a separator.

    Args:
        keys: the path: a tuple of keys, as ``flatten_with_path`` gives it.
        simple: whether to write the keys alone, without brackets, quotes and dots.
        separator: what stands between them; nothing by default.

    Returns:
        The text.

    >>> path = (DictKey("layers"), SequenceKey(0), GetAttrKey("weight"))
    >>> keystr(path)
    "['layers'][0].weight"
    >>> keystr(path, simple=True, separator="/")
    'layers/0/weight'
    """
    return separator.join([word(key) if simple else str(key) for key in keys])
