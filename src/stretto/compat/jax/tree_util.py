"""``jax.tree_util``: trees by JAX's rules, those of the registry of nodes that XLA's package has.

Typed keys and deques are leaves, and dictionaries come back sorted, those with a default too, but
not those that are ordered. The classes registered with Stretto are nodes here too.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import optree

from stretto._engine.core import nodes
from stretto._engine.core.nodes import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Keyed,
    SequenceKey,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from stretto._engine.core.threads import Lock
from stretto._engine.xla.clients import pytree
from stretto.random.key_arrays import KeyArray
from stretto.tree import Partial
from stretto.tree import ravel as ravelled

__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath",
           "Partial", "SequenceKey", "all_leaves", "build_tree", "flatten_one_level",
           "keystr", "prefix_errors", "register_dataclass", "register_pytree_node",
           "register_pytree_node_class", "register_pytree_with_keys",
           "register_pytree_with_keys_class", "register_static", "tree_all",
           "tree_broadcast", "tree_flatten", "tree_flatten_with_path", "tree_leaves",
           "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce",
           "tree_reduce_associative", "tree_structure", "tree_transpose",
           "tree_unflatten", "treedef_children", "treedef_is_leaf",
           "treedef_is_strict_leaf", "treedef_tuple"]  # fmt: skip

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

_changing = Lock()
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
    """Return pairs of the keys that lead to a leaf and the leaf, and the structure."""
    asked = is_leaf
    if is_leaf is not None:
        if is_leaf_takes_path:
            asked = lambda path, node: is_leaf(_path(path), node)
        else:
            asked = lambda _, node: is_leaf(node)
    pairs, definition = registry().flatten_with_path(tree, asked)
    return [(_path(path), leaf) for path, leaf in pairs], definition


def one_level_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """Return pairs of a key and a child of a node, and the node's static data."""
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


tree_flatten = flatten
tree_flatten_with_path = flatten_with_path
tree_leaves = leaves
tree_map = map_
tree_structure = structure
_NOTHING = object()

KeyEntry = TypeVar("KeyEntry")
KeyPath = tuple[KeyEntry, ...]


def __getattr__(name: str) -> Any:
    if name in ("REGISTRY", "default_registry"):
        return registry()
    if name in ("PyTreeDef", "PyTreeRegistry"):
        return getattr(pytree(), name)
    raise AttributeError(f"module 'jax.tree_util' has no attribute {name!r}")


def tree_unflatten(treedef: Any, leaves: Iterable[Any]) -> Any:
    """Build the tree of a structure with these leaves."""
    return treedef.unflatten(leaves)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., Any] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Return pairs of the keys that lead to a leaf, and the leaf."""
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., Any] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function to the path and the leaf at each place of trees of one structure."""
    pairs, definition = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [definition.flatten_up_to(other) for other in rest]
    return definition.unflatten(
        [f(path, leaf, *group) for (path, leaf), *group in zip(pairs, *others, strict=True)]
    )


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _NOTHING,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Combine the leaves of a tree, from the first to the last."""
    start = () if initializer is _NOTHING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _NOTHING,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Combine the leaves of a tree in pairs, and what came of these in pairs, to the last."""
    flat = leaves(tree, is_leaf)
    if not flat:
        if identity is _NOTHING:
            raise ValueError("tree_reduce_associative: a tree without leaves needs an identity")
        return identity
    while len(flat) > 1:
        pairs = [operation(a, b) for a, b in zip(flat[::2], flat[1::2])]
        flat = pairs + flat[len(flat) - len(flat) % 2 :]
    return flat[0]


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Say whether all leaves are true."""
    return all(leaves(tree, is_leaf))


def tree_broadcast(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Return the tree with the leaf of a prefix of it in the place of each leaf."""
    flat, definition = flatten(prefix_tree, is_leaf)
    parts = definition.flatten_up_to(full_tree)
    filled = [map_(lambda _, x=x: x, part, is_leaf=is_leaf) for x, part in zip(flat, parts)]
    return definition.unflatten(filled)


def tree_transpose(outer_treedef: Any, inner_treedef: Any, pytree_to_transpose: Any) -> Any:
    """Turn a tree of trees inside out."""
    flat, definition = flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    # Static data may say what the children are, so that structures need not be equal.
    if definition.num_leaves != outer_treedef.num_leaves * inner_treedef.num_leaves:
        raise TypeError(
            f"tree_transpose: expected the structure {outer_treedef.compose(inner_treedef)}, "
            f"got {definition}"
        )
    size = inner_treedef.num_leaves
    rows = [flat[i : i + size] for i in range(0, len(flat), size)]
    columns = list(zip(*rows)) if rows else [()] * size
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Say whether every element is a leaf."""
    elements = list(iterable)
    flat = leaves(elements, is_leaf and (lambda x: x is not elements and is_leaf(x)))
    return len(flat) == len(elements) and all(a is b for a, b in zip(flat, elements, strict=True))


def build_tree(treedef: Any, xs: Any) -> Any:
    """Build the tree of a structure from nested sequences of what stands at its leaves."""
    return treedef.from_iterable_tree(xs)


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """Return makers of the errors that say where a tree is no prefix of another; none if it is."""
    try:
        structure(prefix_tree, is_leaf).flatten_up_to(full_tree)
    except ValueError as error:
        text = str(error)
        return [lambda name: ValueError(f"{name}: {text}")]
    return []


def treedef_children(treedef: Any) -> list[Any]:
    """Return the structures of the children of a structure's root."""
    return treedef.children()


def treedef_is_leaf(treedef: Any) -> bool:
    """Say whether a structure is a single node."""
    return treedef.num_nodes == 1


def treedef_is_strict_leaf(treedef: Any) -> bool:
    """Say whether a structure is that of a leaf, and not of a node without children."""
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


def treedef_tuple(treedefs: Iterable[Any]) -> Any:
    """Return the structure of a tuple of trees."""
    return pytree().treedef_tuple(registry(), list(treedefs))
