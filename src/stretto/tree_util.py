"""``stretto.tree_util``: trees under the names of ``jax.tree_util``.

The functions are those of ``stretto.tree`` and ``core.tree``; added here are questions about
structures, ``Partial``, and the registry as an object.

>>> import stretto as st
>>> st.tree_util.tree_map(lambda x: 2 * x, {"w": [1, 2]})
{'w': [2, 4]}
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import optree

from stretto._engine.core.guarded import guard_module
from stretto._engine.core.keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, keystr
from stretto._engine.core.tree import (
    NAMESPACE,
    flatten,
    flatten_with_path,
    leaves,
    map,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    structure,
    unflatten,
)
from stretto._engine.core.tree import flatten_one_level as _one_level
from stretto._engine.core.typing import Tree
from stretto.tree.reducing import (
    all,
    broadcast,
    leaves_with_path,
    map_with_path,
    reduce,
    reduce_associative,
    transpose,
)

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "PyTreeRegistry",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
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
    "treedef_tuple",
]

KeyEntry = TypeVar("KeyEntry")
KeyPath = tuple[KeyEntry, ...]
PyTreeDef = optree.PyTreeSpec

tree_all = all
tree_broadcast = broadcast
tree_flatten = flatten
tree_flatten_with_path = flatten_with_path
tree_leaves = leaves
tree_leaves_with_path = leaves_with_path
tree_map = map
tree_map_with_path = map_with_path
tree_reduce = reduce
tree_reduce_associative = reduce_associative
tree_structure = structure
tree_transpose = transpose
tree_unflatten = unflatten


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Say whether every element is a leaf.

    Args:
        iterable: the elements.
        is_leaf: which nodes to take for leaves.

    Returns:
        A Python boolean.

    >>> all_leaves([1, 2]), all_leaves([1, [2]]), all_leaves([None])
    (True, False, False)
    """
    return optree.all_leaves(iterable, is_leaf, namespace=NAMESPACE)


def is_tree_node(typ: type) -> bool:
    """Say whether objects of a class are nodes, and not leaves.

    Args:
        typ: the class.

    Returns:
        A Python boolean.

    >>> is_tree_node(dict), is_tree_node(int)
    (True, False)
    """
    return optree.register_pytree_node.get(typ, namespace=NAMESPACE) is not None


def flatten_one_level(tree: Tree) -> tuple[list[Tree], Hashable]:
    """Take a node apart into its children and its static data.

    Args:
        tree: a node.

    Returns:
        The children, and the static data.

    Raises:
        ValueError: ``tree`` is a leaf.

    >>> flatten_one_level({"b": 1, "a": [2]})
    ([[2], 1], ('a', 'b'))
    """
    pairs, static = _one_level(tree)
    return [child for _, child in pairs], static


def flatten_one_level_with_keys(tree: Tree) -> tuple[list[tuple[Any, Tree]], Hashable]:
    """Take a node apart into its children, each with its key, and its static data.

    Args:
        tree: a node.

    Returns:
        Pairs of a key and a child, and the static data.

    Raises:
        ValueError: ``tree`` is a leaf.

    >>> flatten_one_level_with_keys([5])
    ([(SequenceKey(idx=0), 5)], None)
    """
    return _one_level(tree)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """List the structures of a structure's children.

    Args:
        treedef: a structure.

    Returns:
        The structures.

    >>> treedef_children(tree_structure([1, (2, 3)]))[1] == tree_structure((0, 0))
    True
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Say whether a structure is a single node or leaf.

    Args:
        treedef: a structure.

    Returns:
        A Python boolean.

    >>> treedef_is_leaf(tree_structure(1)), treedef_is_leaf(tree_structure([1]))
    (True, False)
    """
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple of trees.

    Args:
        treedefs: the structures of the trees.

    Returns:
        The structure.

    >>> treedef_tuple([tree_structure(1), tree_structure([2])]) == tree_structure((1, [2]))
    True
    """
    return optree.treespec_tuple(treedefs, namespace=NAMESPACE)


class Partial(functools.partial):
    """``functools.partial`` that is a tree of its arguments; the function is static.

    It therefore passes through transformations, and ``jit`` compiles again for another function.

    >>> import stretto as st
    >>> double = st.tree_util.Partial(lambda x, y: x * y, 2.0)
    >>> st.jit(lambda f, x: f(x))(double, 3.0)
    Array(6., dtype=float32, weak_type=True)
    """


register_pytree_node(
    Partial,
    lambda x: ((x.args, x.keywords), x.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)


class PyTreeRegistry:
    """The classes that are nodes, as an object."""

    def flatten(
        self, tree: Tree, is_leaf: Callable[[Any], bool] | None = None
    ) -> tuple[list[Any], PyTreeDef]:
        """Take a tree apart into its leaves and the structure around them.

        Args:
            tree: the tree.
            is_leaf: which nodes to take for leaves.

        Returns:
            The leaves, and the structure.
        """
        return flatten(tree, is_leaf)

    def flatten_one_level(self, tree: Tree) -> tuple[list[Tree], Hashable] | None:
        """Take a node apart into its children and its static data.

        Args:
            tree: a node or leaf.

        Returns:
            The children, and the static data; ``None`` for a leaf.
        """
        return flatten_one_level(tree) if is_tree_node(type(tree)) else None

    def register_node(
        self,
        nodetype: type,
        to_iterable: Callable[[Any], tuple[Any, Any]],
        from_iterable: Callable[[Any, Any], Any],
    ) -> None:
        """Make a class a node.

        Args:
            nodetype: the class.
            to_iterable: from an object to its children and its static data.
            from_iterable: from static data and children to an object.
        """
        register_pytree_node(nodetype, to_iterable, from_iterable)


default_registry = PyTreeRegistry()

guard_module(__name__)
