"""Structures of arguments and results as plain data: what a file says of the trees of a function.

Dictionaries, lists, tuples and ``None`` are what they are. A named tuple, a dataclass, a module or
another node of a class is its class's name, and its children by name: no file can name a class that
is then used. So such a result comes back as a dictionary, and such an argument may be given as an
object with children of these names, or as that dictionary.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import optree

from stretto._engine.core import tree
from stretto._engine.core.errors import ExportError
from stretto.files.names import Damaged

LEAF = "leaf"
"""What stands for an array."""

_DEEPEST = 100


def describe(spec: Any, caller: str) -> Any:
    """Return a structure as JSON: a leaf, ``None``, or a kind with its children.

    Raises ``ExportError`` for keys of a dictionary that JSON has not.

    >>> describe(tree.structure((1, {"w": [2, None]})), "program")
    {'tuple': ['leaf', {'dict': [['w', {'list': ['leaf', None]}]]}]}
    """
    kind = spec.type
    if kind is None:
        return LEAF
    if kind is type(None):
        return None
    children = [describe(child, caller) for child in spec.children()]
    if kind in (dict, OrderedDict, defaultdict):
        keys = list(spec.entries())
        for key in keys:
            if not _is_key(key, (str, int)):
                raise ExportError(
                    f"{caller}: keys of dictionaries must be integers or text that can be printed, "
                    f"and one is {key!r}"
                )
        return {"dict": [list(pair) for pair in zip(keys, children, strict=True)]}
    if kind in (list, tuple):
        return {kind.__name__: children}
    steps = [accessor[0] for accessor in optree.treespec_accessors(spec.one_level())]
    names = [tree.word(tree.key_of(step)) for step in steps]
    return {"names": [kind.__name__, [list(p) for p in zip(names, children, strict=True)]]}


def _is_key(key: Any, kinds: tuple[type, ...]) -> bool:
    return type(key) in kinds and (type(key) is not str or key.isprintable())


def count(node: Any, depth: int = 0) -> int:
    """Return the number of leaves of a description that was read. Raises ``Damaged``."""
    return sum([count(child, depth + 1) for child in _children(node, depth)], int(node == LEAF))


def _children(node: Any, depth: int) -> list[Any]:
    """Return the children of a node, which is checked to be one."""
    if node is None or node == LEAF:
        return []
    try:
        if depth > _DEEPEST:
            raise TypeError("there are too many levels")
        ((kind, inside),) = node.items()
        if kind in ("list", "tuple") and isinstance(inside, list):
            return inside
        if kind == "names":
            name, inside = inside
            if not _is_key(name, (str,)):
                raise TypeError("the name of a class is no text")
        elif kind != "dict":
            raise TypeError(f"there is no kind {kind!r}"[:80])
        keys = [key for key, _ in inside]
        allowed = (str,) if kind == "names" else (str, int)
        if not all(_is_key(k, allowed) for k in keys) or len(set(keys)) < len(keys):
            raise TypeError("its keys are no names, or are not all different")
        return [child for _, child in inside]
    except (TypeError, ValueError, AttributeError) as error:
        raise Damaged(f"its description of arguments or results is damaged: {error}") from None


def build(node: Any, leaves: Iterator[Any]) -> Any:
    """Return the tree of a description, with the next of these leaves at each place.

    >>> build({"tuple": ["leaf", {"names": ["State", [["mean", "leaf"]]]}]}, iter([1, 2]))
    (1, {'mean': 2})
    """
    if node is None:
        return None
    if node == LEAF:
        return next(leaves)
    ((kind, inside),) = node.items()
    if kind == "list":
        return [build(child, leaves) for child in inside]
    if kind == "tuple":
        return tuple([build(child, leaves) for child in inside])
    pairs = inside[1] if kind == "names" else inside
    return {key: build(child, leaves) for key, child in pairs}


class Mismatch(TypeError):
    """An argument is not of the structure that a file says; the message says where."""


def order(node: Any, given: Any, path: str, start: int = 0) -> list[int]:
    """Return which leaf of a given tree each leaf of a description is; both are descriptions.

    Raises ``Mismatch``, whose message begins with the path.

    >>> expected = describe(tree.structure({"b": 1, "a": (2, 3)}), "program")
    >>> order(expected, describe(tree.structure({"a": (1, 2), "b": 3}), "program"), "x")
    [0, 1, 2]
    """
    if node == LEAF or node is None:
        if given != node:
            wanted = "an array" if node == LEAF else "None"
            raise Mismatch(f"{path} must be {wanted}, got {_words(given)}")
        return [start] if node == LEAF else []
    starts, children = [], []
    for name, child in _named(given):
        starts.append((name, start))
        children.append(child)
        start += count(child)
    wanted = _named(node)
    ((kind, _),) = node.items()
    if given in (None, LEAF) or (kind in ("list", "tuple")) != (_kind(given) in ("list", "tuple")):
        raise Mismatch(f"{path} must be {_words(node)}, got {_words(given)}")
    places = {name: (begin, c) for (name, begin), c in zip(starts, children, strict=True)}
    if places.keys() != {name for name, _ in wanted}:
        raise Mismatch(f"{path} must be {_words(node)}, got {_words(given)}")
    return [
        i
        for name, child in wanted
        for i in order(child, places[name][1], f"{path}[{name!r}]", places[name][0])
    ]


def _kind(node: Any) -> str:
    return next(iter(node))


def _named(node: Any) -> Sequence[tuple[Any, Any]]:
    """Return the children of a node by key, name or number."""
    if node is None or node == LEAF:
        return []
    ((kind, inside),) = node.items()
    if kind in ("list", "tuple"):
        return list(enumerate(inside))
    return [(key, child) for key, child in (inside[1] if kind == "names" else inside)]


def _words(node: Any) -> str:
    if node is None:
        return "None"
    if node == LEAF:
        return "an array"
    ((kind, inside),) = node.items()
    if kind in ("list", "tuple"):
        return f"a {kind} of {len(inside)}"
    names, pairs = ("a dictionary", inside) if kind == "dict" else (f"a {inside[0]}", inside[1])
    return f"{names} of {', '.join(str(key) for key, _ in pairs) or 'nothing'}"
