"""Names of a tree's arrays in a file, and a description that rebuilds the tree.

The description is JSON among the file's metadata. It knows dictionaries, lists, tuples, ``None``
and ragged arrays; of other nodes it lists the names beneath.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from stretto._engine.api import varying_sizes
from stretto._engine.api.varying_sizes.sizes import RAGGED
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.typing import Tree

json = LazyModule("json")


DESCRIPTION = "stretto"
"""The entry of the metadata that holds the description."""

_RESERVED = "__metadata__"
_ROOT = "value"  # what the only leaf of a tree that is a leaf is called
_VERSION = 1
_DICTS = {"dict": dict, "ordered": OrderedDict}
_LISTS = {"list": list, "tuple": tuple}


class Damaged(ValueError):
    """The file, or its description of the tree, is not as the format says."""


def leaf_names(root: Tree, caller: str) -> list[str]:
    """Return the name of each leaf: the keys, indices and fields that lead to it, joined by dots.

    Raises ``ValueError`` where two leaves have one name, or one that the format reserves.

    >>> leaf_names({"layers": [{"w": 1}, {"w": 2}]}, "save")
    ['layers.0.w', 'layers.1.w']
    """
    names = [".".join(steps) if steps else _ROOT for steps in tree.names(root)]
    if len(set(names)) < len(names) or _RESERVED in names:
        first: dict[str, int] = {}
        for i, name in enumerate(names):
            if name in first or name == _RESERVED:
                paths = tree.paths(root, "tree")
                reason = (
                    f"the format keeps this name for itself ({paths[i]})"
                    if name == _RESERVED
                    else f"{paths[first[name]]} and {paths[i]} would both be called so"
                )
                raise ValueError(f"{caller}: {name!r} cannot be the name of an array: {reason}")
            first[name] = i
    return names


HOLDS_ONCE = "_holds_once"
"""An attribute, true of classes of nodes that hold an array at two places as one: tied weights."""


def ties_of(root: Tree, names: Sequence[str]) -> dict[str, str]:
    """Return the second names of arrays that a module holds at several places, each with the first.

    Other containers have an entry for each name, whatever is in it.
    """
    ties: dict[str, str] = {}
    whole = lambda node: getattr(type(node), HOLDS_ONCE, False)
    place = 0
    for piece in tree.leaves(root, whole):
        if not whole(piece):
            place += 1
            continue
        first: dict[int, str] = {}
        flat = tree.leaves(piece)
        for name, leaf in zip(names[place : place + len(flat)], flat, strict=True):
            # What NumPy holds may be written to, and is to be two arrays after it was read.
            if isinstance(leaf, Value) and first.setdefault(id(leaf), name) != name:
                ties[name] = first[id(leaf)]
        place += len(flat)
    return ties


# The description


def describe(
    root: Tree, kinds: Mapping[str, str], dtypes: Mapping[str, str], ties: Mapping[str, str]
) -> str:
    """Return the structure, and by name a leaf's kind and dtype where its array lacks them.

    ``ties`` are names without an array, each with the one whose array it shares.
    """
    record = {"version": _VERSION, "tree": _node(root), "kinds": kinds, "dtypes": dtypes}
    if ties:
        record["ties"] = ties
    return json.dumps(record, separators=(",", ":"))


def _node(node: Tree) -> object:
    if node is None:
        return None
    for word, cls in _DICTS.items():
        if type(node) is cls and {type(key) for key in node} <= {str, int}:
            return {word: [[key, _node(child)] for key, child in node.items()]}
    for word, cls in _LISTS.items():
        if type(node) is cls:
            return {word: [_node(child) for child in node]}
    if type(node) in RAGGED:
        return {"ragged": node._most}
    flat = tree.leaves(node)
    if len(flat) == 1 and flat[0] is node:
        return "leaf"
    return {"names": [".".join(steps) for steps in tree.names(node)]}


class Description(NamedTuple):
    """What a file says about the tree in it."""

    node: Any
    kinds: dict[str, str]
    dtypes: dict[str, str]
    ties: dict[str, str]


def parse(text: str) -> Description:
    """Return what a description says. Raises ``Damaged``."""
    try:
        record = json.loads(text)
        version = record["version"]
        if version != _VERSION:
            raise Damaged(
                f"its description of the tree is of version {version!r}, and this Stretto knows "
                f"{_VERSION}"
            )
        node, *words = record["tree"], record["kinds"], record["dtypes"], record.get("ties", {})
        if not all(map(_is_words, words)):
            raise TypeError("kinds, dtypes and ties must be words by name")
    except (KeyError, TypeError, json.JSONDecodeError, RecursionError) as error:
        raise damaged(error) from None
    return Description(node, *words)


def refuse_twice(text: bytes) -> None:
    """Raise ``Damaged`` where something in a header, which is JSON, has two entries of one name."""

    def once(pairs: list[tuple[str, Any]]) -> None:
        if len(dict.fromkeys(name for name, _ in pairs)) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise Damaged(f"it is damaged: its header has two entries {twice!r}")

    json.loads(text, object_pairs_hook=once)


def _is_words(x: object) -> bool:
    return isinstance(x, dict) and all(isinstance(v, str) for v in x.values())


def damaged(error: object) -> Damaged:
    """Return the error that a description is damaged, in so many words."""
    return Damaged(f"its description of the tree is damaged: {error}")


def rebuild(node: object, leaves: Mapping[str, Any]) -> Tree:
    """Return the tree that a description's node says, of the leaves ``found`` by name.

    A node that was an object of a class is a dictionary by names. Raises ``Damaged`` where the
    description is no such thing, or names other leaves than those found.
    """
    left = dict(leaves)
    try:
        made = _made(node, (), left)
    except (TypeError, ValueError, RecursionError) as error:
        raise damaged(error) from None
    except KeyError as error:
        raise damaged(f"it names an array {error} that is not in the file") from None
    if left:
        raise damaged(f"it does not name the arrays {', '.join(left)}")
    return made


def _made(node: object, steps: tuple[str, ...], left: dict[str, Any]) -> Tree:
    if node is None:
        return None
    if node == "leaf":
        return left.pop(".".join(steps) if steps else _ROOT)
    ((word, inside),) = node.items() if isinstance(node, dict) else (("", None),)
    if word in _DICTS and isinstance(inside, list):
        return _DICTS[word]((key, _made(child, (*steps, str(key)), left)) for key, child in inside)
    if word in _LISTS and isinstance(inside, list):
        children = enumerate(inside)
        return _LISTS[word](_made(child, (*steps, str(i)), left) for i, child in children)
    if word == "names" and isinstance(inside, list):
        return {name: left.pop(".".join((*steps, name))) for name in inside}
    if word == "ragged" and isinstance(inside, int):
        values, lengths = [left.pop(".".join((*steps, name))) for name in ("values", "lengths")]
        return varying_sizes.ragged.Ragged._of(values, lengths, inside, False, 0)
    raise TypeError(f"no node is written {node!r}"[:200])


def covers(patterns: str | Iterable[str] | Callable[[str], bool], name: str) -> bool:
    """Say whether a choice of parts covers this name.

    Patterns are a shell's; one that covers a prefix up to a dot covers what is below it.

    >>> covers("fc1", "fc1.weight"), covers(["fc1.*", "fc2.bias"], "fc2.weight")
    (True, False)
    """
    if callable(patterns):
        return bool(patterns(name))
    listed = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatchcase(name, p) or fnmatchcase(name, f"{p}.*") for p in listed)
