"""Reducing trees, mapping them with paths, and turning them inside out."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stretto._engine.core import tree as _tree
from stretto._engine.core.tree import flatten_with_path, leaves, unflatten
from stretto._engine.core.typing import Tree

if TYPE_CHECKING:
    import optree

__all__ = ["all", "broadcast", "leaves_with_path", "map_with_path", "reduce", "reduce_associative",
           "static", "transpose"]  # fmt: skip

_NOTHING = object()


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Tree,
    initializer: Tree = _NOTHING,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Tree:
    """Combine all leaves, from the left.

    Args:
        function: ``function(result so far, leaf)``.
        tree: the tree.
        initializer: what to begin with; by default the first leaf.
        is_leaf: which nodes to take for leaves.

    Returns:
        The result.

    Raises:
        TypeError: the tree has no leaves, and there is no ``initializer``.

    >>> reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
    6
    """
    initial = () if initializer is _NOTHING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *initial)


def reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Tree,
    *,
    identity: Tree = _NOTHING,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Tree:
    """Combine all leaves, by halves, so that no leaf goes through many operations.

    Args:
        operation: associative, of two leaves.
        tree: the tree.
        identity: the result where there are no leaves.
        is_leaf: which nodes to take for leaves.

    Returns:
        The result.

    Raises:
        TypeError: the tree has no leaves, and there is no ``identity``.

    >>> reduce_associative(lambda x, y: (x, y), [1, 2, 3, 4, 5])
    ((1, 2), (3, (4, 5)))
    """

    def combine(parts: list[Any]) -> Tree:
        if len(parts) == 1:
            return parts[0]
        half = len(parts) // 2
        return operation(combine(parts[:half]), combine(parts[half:]))

    flat = leaves(tree, is_leaf)
    if not flat and identity is _NOTHING:
        raise TypeError("reduce_associative: the tree has no leaves; give identity=")
    return combine(flat) if flat else identity


def all(tree: Tree, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Say whether every leaf is true.

    Args:
        tree: the tree.
        is_leaf: which nodes to take for leaves.

    Returns:
        Whether it is; True without leaves.

    >>> all([True, {"a": 1}])
    True
    """
    return not [leaf for leaf in leaves(tree, is_leaf) if not leaf]


def leaves_with_path(
    tree: Tree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """List the leaves, each with the keys that lead to it.

    Args:
        tree: the tree.
        is_leaf: which nodes to take for leaves.
        is_leaf_takes_path: call ``is_leaf(path, node)``.

    Returns:
        Pairs of a path, which is a tuple of keys, and a leaf.

    >>> leaves_with_path({"w": [1]})
    [((DictKey(key='w'), SequenceKey(idx=0)), 1)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: Tree,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Tree:
    """Apply ``f(path, leaf, ...)`` to each leaf; the path is the tuple of keys that lead to it.

    Args:
        f: the function.
        tree: the tree.
        *rest: further trees, of which ``tree`` is a prefix.
        is_leaf: which nodes to take for leaves.
        is_leaf_takes_path: call ``is_leaf(path, node)``.

    Returns:
        A tree of the results.

    >>> from stretto._engine.core.nodes import keystr
    >>> map_with_path(lambda path, x: (keystr(path), x), {"w": [1]})
    {'w': [("['w'][0]", 1)]}
    """
    pairs, spec = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [_tree.prefix_subtrees(spec, tree, other, i + 1) for i, other in enumerate(rest)]
    flat = [f(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others, strict=True)]
    return unflatten(spec, flat)


def broadcast(
    prefix_tree: Tree, full_tree: Tree, is_leaf: Callable[[Any], bool] | None = None
) -> Tree:
    """Make a tree like ``full_tree``, each leaf that of ``prefix_tree`` above it.

    Args:
        prefix_tree: a tree that ends where, or before, ``full_tree`` does.
        full_tree: the tree.
        is_leaf: which nodes of ``prefix_tree`` to take for leaves.

    Returns:
        The new tree.

    Raises:
        ValueError: the one is not a prefix of the other, with the path.

    >>> broadcast({"a": 1, "b": 2}, {"a": [5, 6], "b": (7,)})
    {'a': [1, 1], 'b': (2,)}
    """

    def fill(leaf: Tree, part: Tree) -> Tree:
        return _tree.map(lambda _: leaf, part, is_leaf=is_leaf)

    return _tree.map(fill, prefix_tree, full_tree, is_leaf=is_leaf)


def static(**kwargs: Any) -> Any:  # noqa: ANN401 (a value of the field's type, to checkers)
    """Make a field of a dataclass static data, for ``register_dataclass``.

    Args:
        **kwargs: as for ``dataclasses.field``.

    Returns:
        The field.

    >>> import stretto as st
    >>> @st.tree.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = st.tree.static(default="layer")
    >>> st.tree.leaves(Layer(1.0))
    [1.0]
    """
    return dataclasses.field(metadata={**kwargs.pop("metadata", {}), "static": True}, **kwargs)


def transpose(
    outer_treedef: optree.PyTreeSpec,
    inner_treedef: optree.PyTreeSpec | None,
    pytree_to_transpose: Tree,
) -> Tree:
    """Turn a tree of trees inside out.

    Args:
        outer_treedef: the structure of the whole.
        inner_treedef: that of the trees in it; ``None`` takes that of the first.
        pytree_to_transpose: the tree.

    Returns:
        A tree of structure ``inner_treedef`` of trees of structure ``outer_treedef``.

    >>> from stretto._engine.core.tree import structure
    >>> transpose(structure([0, 0]), structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    parts = outer_treedef.flatten_up_to(pytree_to_transpose)
    inner = _tree.structure(parts[0]) if inner_treedef is None else inner_treedef
    rows = [inner.flatten_up_to(part) for part in parts]
    return unflatten(
        inner, [unflatten(outer_treedef, column) for column in zip(*rows, strict=True)]
    )
