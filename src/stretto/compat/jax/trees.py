"""Trees by JAX's rules, which are those of the registry of nodes that XLA's package has.

Typed keys and deques are leaves, and dictionaries come back sorted, those with a default too, but
not those that are ordered. The classes registered with Stretto are nodes here too.
"""

from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import optree

from stretto._engine.core import nodes
from stretto._engine.core.nodes import DictKey, FlattenedIndexKey, GetAttrKey, Keyed, SequenceKey
from stretto._engine.xla.clients import pytree
from stretto.random.key_arrays import KeyArray
from stretto.tree import ravel as ravelled

__all__ = [
    "ENTRIES",
    "LEAVES",
    "flatten",
    "flatten_one_level",
    "flatten_with_path",
    "leaves",
    "map_",
    "one_level_with_keys",
    "pytree",
    "ravel_pytree",
    "registry",
    "structure",
    "tree_is_leaf",
]

LEAVES: set[type] = {KeyArray}
"""Classes whose objects are leaves though they are nodes in Stretto's trees."""

IsLeaf = Callable[[Any], bool] | None


class _Entry(NamedTuple):
    """Takes objects of a class apart, and makes them."""

    to_iter: Callable[[Any], Any]
    from_iter: Callable[[Any, Any], Any]
    with_keys: Callable[[Any], Any] | None = None


ENTRIES: dict[type, _Entry] = {}
"""The classes that are nodes."""

_changing = threading.Lock()
_made: list[Any] = []


@functools.cache
def registry() -> Any:
    """Return the registry of these classes, which is made when the first tree is taken apart."""
    with _changing:
        if not _made:
            made = pytree().PyTreeRegistry()
            # By these a structure that is pickled finds it again.
            made.__module__, made.__name__ = __name__, "REGISTRY"
            for cls, entry in ENTRIES.items():
                if cls not in _BUILT_IN:
                    made.register_node(cls, *entry)
            _made.append(made)
        return _made[0]


def __getattr__(name: str) -> Any:
    if name == "REGISTRY":
        return registry()
    if name in ("PyTreeDef", "PyTreeRegistry"):
        return getattr(pytree(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Any]:
    """Return the leaves of a tree and its structure."""
    return registry().flatten(tree, is_leaf)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree."""
    return registry().flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Return the structure of a tree."""
    return registry().flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: Any) -> bool:
    """Say whether it is a leaf by itself."""
    return registry().flatten_one_level(tree) is None


def map_(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to the leaves of trees of one structure."""
    flat, definition = registry().flatten(tree, is_leaf)
    if not rest:
        return definition.unflatten([f(leaf) for leaf in flat])
    others = [definition.flatten_up_to(other) for other in rest]
    return definition.unflatten([f(*group) for group in zip(flat, *others, strict=True)])


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., Any] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[tuple[Any, ...], Any]], Any]:
    """Pairs of the keys that lead to a leaf and the leaf, and the structure."""
    asked = is_leaf
    if is_leaf is not None:
        if is_leaf_takes_path:
            asked = lambda path, node: is_leaf(_path(path), node)
        else:
            asked = lambda _, node: is_leaf(node)
    pairs, definition = registry().flatten_with_path(tree, asked)
    return [(_path(path), leaf) for path, leaf in pairs], definition


def one_level_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """Pairs of a key and a child of a node, and the node's static data."""
    _, static = flatten_one_level(tree)
    # The registry's function for this gives all fields of a named tuple the name of the first.
    pairs, _ = registry().flatten_with_path(tree, lambda path, _: len(path) == 1)
    return [(_key(path[0]), child) for path, child in pairs], static


def flatten_one_level(tree: Any) -> tuple[list[Any], Any]:
    """Return the children of a node, and its static data; ``ValueError`` for a leaf."""
    found = registry().flatten_one_level(tree)
    if found is None:
        raise ValueError(f"flatten_one_level: can't flatten a leaf, {type(tree).__name__}")
    children, static = found
    return list(children), static


_OWN: dict[str, Callable[[Any], Any]] = {
    "DictKey": lambda key: DictKey(key.key),
    "FlattenedIndexKey": lambda key: FlattenedIndexKey(key.key),
    "GetAttrKey": lambda key: GetAttrKey(key.name),
    "SequenceKey": lambda key: SequenceKey(key.idx),
}


def _key(key: Any) -> Any:
    """Return the key; for one of the registry's, ours."""
    cls = type(key)
    own = _OWN.get(cls.__name__) if cls.__module__ == pytree().__name__ else None
    return key if own is None else own(key)


def _path(path: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([_key(key) for key in path])


def _register(cls: type, *functions: Any) -> None:
    """Make a class a node: by functions as an entry has."""
    with _changing:
        if _made:
            _made[0].register_node(cls, *functions)
        ENTRIES[cls] = _Entry(*functions)


def _register_node(node: nodes.Node) -> None:
    """Make a class of Stretto's trees a node here."""
    cls, to_children, from_children, entry, apart = node
    if cls in LEAVES:
        return
    if entry is optree.AutoEntry:
        _register(cls, apart, from_children)
        return

    def pair(x: Any) -> tuple[Any, Any]:
        return to_children(x)[:2]

    def with_keys(x: Any) -> tuple[list[tuple[Any, Any]], Any]:
        children, static, steps = to_children(x)
        keys = steps if entry is Keyed else [GetAttrKey(name) for name in steps]
        return list(zip(keys, children, strict=True)), static

    _register(cls, pair if apart is to_children else apart, from_children, with_keys)


def _keyed(items: Any) -> list[tuple[Any, Any]]:
    return [(DictKey(key), child) for key, child in items]


_BUILT_IN = {
    tuple: _Entry(lambda x: (x, None), lambda _, xs: tuple(xs)),
    list: _Entry(lambda x: (x, None), lambda _, xs: list(xs)),
    dict: _Entry(flatten_one_level, lambda keys, xs: dict(zip(keys, xs, strict=True))),
    type(None): _Entry(lambda _: ((), None), lambda _, __: None),
}
ENTRIES.update(_BUILT_IN)
_register(
    collections.OrderedDict,
    lambda x: (tuple(x.values()), tuple(x)),
    lambda keys, xs: collections.OrderedDict(zip(keys, xs, strict=True)),
    lambda x: (_keyed(x.items()), tuple(x)),
)
_register(
    collections.defaultdict,
    lambda x: (tuple([x[key] for key in sorted(x)]), (x.default_factory, tuple(sorted(x)))),
    lambda data, xs: collections.defaultdict(data[0], zip(data[1], xs, strict=True)),
    lambda x: (_keyed((key, x[key]) for key in sorted(x)), (x.default_factory, tuple(sorted(x)))),
)
nodes.tell(_register_node)


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return all leaves as one vector, and the function from such a vector to the tree."""
    leaves, structure = flatten(pytree)
    vector, back = ravelled(leaves)
    return vector, lambda flat: structure.unflatten(back(flat))
