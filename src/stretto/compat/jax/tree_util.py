"""``jax.tree_util``: trees by JAX's rules."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from stretto._engine.core.nodes import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from stretto.compat.jax.trees import (
    flatten,
    flatten_one_level,
    flatten_with_path,
    leaves,
    map_,
    pytree,
    registry,
    structure,
)
from stretto.tree import Partial

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "SequenceKey",
    "all_leaves",
    "build_tree",
    "flatten_one_level",
    "keystr",
    "prefix_errors",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_is_strict_leaf",
    "treedef_tuple",
]

tree_flatten = flatten
tree_flatten_with_path = flatten_with_path
tree_leaves = leaves
tree_map = map_
tree_structure = structure
_NOTHING = object()

KeyEntry = TypeVar("KeyEntry")
KeyPath = tuple[KeyEntry, ...]


def __getattr__(name: str) -> Any:
    if name == "default_registry":
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
    """Pairs of the keys that lead to a leaf, and the leaf."""
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
    """Makers of the errors that say where a tree is not a prefix of another; none if it is."""
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
