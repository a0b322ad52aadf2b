"""Trees of arrays: nested containers flattened to leaves and back, with optree.

``None`` is a node without leaves, dictionaries go by sorted keys; lists, tuples, named tuples,
ordered dictionaries, and registered classes and dataclasses are nodes; all else is a leaf.
Registering, and keys of paths, are in ``nodes``; this is the namespace of all.

A class of nodes may keep leaves out of training, as modules do their buffers: its method
``_undifferentiated`` then gives those of an object. Derivatives by integers among them are no
error, and optimizers do not see them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import optree

from stretto._engine.core.caches import room
from stretto._engine.core.nodes import (  # noqa: F401 (functions of trees like those below)
    NAMESPACE,
    key_of,
    register_attributes,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    word,
)


def flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], optree.PyTreeSpec]:
    """Take a tree apart: its leaves, in order, and the structure around them.

    Args:
        tree: a tree of containers; anything that is no container is a leaf.
        is_leaf: a function of a node that says whether to take it as a leaf.

    Returns:
        The leaves, and the structure, of which ``unflatten`` makes the tree again.

    >>> flatten({"b": 1, "a": (2, None)})[0]
    [2, 1]
    """
    return optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)


def unflatten(treedef: optree.PyTreeSpec, leaves: Sequence[Any]) -> Any:
    """Build the tree of this structure with these leaves.

    Args:
        treedef: the structure, as ``flatten`` and ``structure`` give it.
        leaves: as many values as the structure has leaves, in order.

    Returns:
        The tree.

    Raises:
        ValueError: there are more leaves, or fewer, than the structure has.

    >>> unflatten(structure([0, {"a": 0}]), [1, 2])
    [1, {'a': 2}]
    """
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """List the leaves of a tree, in order.

    Args:
        tree: a tree of containers; anything that is no container is a leaf.
        is_leaf: a function of a node that says whether to take it as a leaf.

    Returns:
        The leaves.

    >>> leaves([1, {"a": 2}, None])
    [1, 2]
    """
    return optree.tree_leaves(tree, is_leaf, namespace=NAMESPACE)


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> optree.PyTreeSpec:
    """Find the structure of a tree, without its leaves.

    Args:
        tree: a tree of containers; anything that is no container is a leaf.
        is_leaf: a function of a node that says whether to take it as a leaf.

    Returns:
        The structure; equal structures compare equal.

    >>> structure([1, (2, 3)]) == structure([4, (5, 6)])
    True
    """
    return optree.tree_structure(tree, is_leaf, namespace=NAMESPACE)


def map(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Apply ``f`` to each leaf of ``tree``, along with the subtrees of ``rest`` at its place.

    Args:
        f: a function of one leaf, and of one subtree of each of ``rest``.
        tree: the tree whose structure the result has.
        *rest: more trees, which have the structure of ``tree``, and may go on below its leaves.
        is_leaf: a function of a node that says whether to take it as a leaf.

    Returns:
        The tree of what ``f`` returned.

    Raises:
        ValueError: the trees differ in structure; the message names the path where they part.

    >>> map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    flat, spec = flatten(tree, is_leaf)
    if not rest:
        return unflatten(spec, [f(leaf) for leaf in flat])
    others = [prefix_subtrees(spec, tree, other, i + 1) for i, other in enumerate(rest)]
    return unflatten(spec, [f(*group) for group in zip(flat, *others, strict=True)])


def prefix_subtrees(spec: optree.PyTreeSpec, tree: Any, other: Any, number: int) -> list[Any]:
    """Return the subtrees of ``other`` at the leaves of ``tree``, whose structure is ``spec``.

    Raises ``ValueError``, which names the path at which the two differ.
    """
    try:
        return spec.flatten_up_to(other)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"trees differ in structure: tree 0 and tree {number} part at {difference(tree, other)}"
        ) from error


def difference(one: Any, other: Any, path: str = "tree") -> str:
    """Return the path at which two trees differ, and what each has there."""
    a, b = _children(one), _children(other)
    if a is None or (b is not None and type(one) is not type(other)) or b is None:
        return f"{path}: {_describe(one)} and {_describe(other)}"
    static, other_static = _static(one), _static(other)
    if hasattr(static, "difference") and static != other_static:
        return f"{path}: {static.difference(other_static)}"
    if [entry for entry, _ in a] != [entry for entry, _ in b]:
        return f"{path}: {_describe(one)} and {_describe(other)}"
    for (entry, x), (_, y) in zip(a, b, strict=True):
        if structure(x) != structure(y):
            return difference(x, y, path + entry)
    return f"{path}: {_describe(one)} and {_describe(other)}"


def _children(tree: Any) -> list[tuple[str, Any]] | None:
    if optree.tree_is_leaf(tree, namespace=NAMESPACE):
        return None
    accessors, children, _ = optree.tree_flatten_with_accessor(
        tree, is_leaf=lambda node: node is not tree, namespace=NAMESPACE
    )
    return [
        (accessor.codify(""), child) for accessor, child in zip(accessors, children, strict=True)
    ]


def _static(tree: Any) -> Any:
    """Return the static data of a node."""
    return optree.tree_flatten_one_level(tree, namespace=NAMESPACE)[1]


def _describe(tree: Any) -> str:
    if isinstance(tree, dict):
        return f"a {type(tree).__name__} with keys {sorted(map(str, tree))}"
    if isinstance(tree, (list, tuple)):
        return f"a {type(tree).__name__} of length {len(tree)}"
    return "None" if tree is None else f"a {type(tree).__name__}"


def paths(tree: Any, root: str = "") -> list[str]:
    """Return the path of each leaf as an expression in Python, starting from ``root``.

    >>> paths({"w": [1, 2]}, "params")
    ["params['w'][0]", "params['w'][1]"]
    """
    return paths_of(structure(tree), root)


def paths_of(spec: optree.PyTreeSpec, root: str = "") -> list[str]:
    """List paths as ``paths`` does, for the structure of a tree.

    No tree is built for it: the class of a node may refuse leaves that are no arrays.
    """
    return [accessor.codify(root) for accessor in optree.treespec_accessors(spec)]


def names(tree: Any) -> list[tuple[str, ...]]:
    """Return the steps that lead to each leaf: keys, indices, names of fields and attributes.

    >>> names({"layers": [{"w": 1}]})
    [('layers', '0', 'w')]
    """
    spec = structure(tree)
    return [
        tuple([word(key_of(step)) for step in accessor])
        for accessor in optree.treespec_accessors(spec)
    ]


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., Any] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[tuple[Any, ...], Any]], optree.PyTreeSpec]:
    """Take a tree apart: each leaf with the keys that lead to it, and the structure.

    Args:
        tree: a tree of containers; anything that is no container is a leaf.
        is_leaf: a function of a node that says whether to take it as a leaf.
        is_leaf_takes_path: whether ``is_leaf`` is called with the path and the node, rather than
            with the node alone.

    Returns:
        A list of pairs (path, leaf), where a path is a tuple of keys such as ``DictKey``; and the
        structure.

    >>> flatten_with_path({"w": [1]})[0]
    [((DictKey(key='w'), SequenceKey(idx=0)), 1)]
    """
    if is_leaf is not None and is_leaf_takes_path:
        # optree passes only the node, so the answers are worked out beforehand, in its order.
        answers = iter(_answers_by_path(tree, is_leaf))
        is_leaf = lambda _: next(answers)
    accessors, flat, spec = optree.tree_flatten_with_accessor(tree, is_leaf, namespace=NAMESPACE)
    key_paths = [tuple([key_of(step) for step in accessor]) for accessor in accessors]
    return list(zip(key_paths, flat, strict=True)), spec


def _answers_by_path(tree: Any, is_leaf: Callable[[Any, Any], Any]) -> list[bool]:
    """Return what ``is_leaf`` says about each node, in the order of flattening."""
    answers: list[bool] = []

    def walk(node: Any, path: tuple[Any, ...]) -> None:
        answers.append(bool(is_leaf(path, node)))
        if not answers[-1] and not optree.tree_is_leaf(node, namespace=NAMESPACE):
            for key, child in flatten_one_level(node)[0]:
                walk(child, (*path, key))

    walk(tree, ())
    return answers


def flatten_one_level(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """Return the children of a node, each with its key, and the node's static data.

    Raises ``ValueError`` for a leaf.

    >>> flatten_one_level({"b": 1, "a": [2]})
    ([(DictKey(key='a'), [2]), (DictKey(key='b'), 1)], ('a', 'b'))
    """
    if optree.tree_is_leaf(tree, namespace=NAMESPACE):
        raise ValueError(f"flatten_one_level: expected a node of a tree, got a leaf, {tree!r}")
    accessors, children, _ = optree.tree_flatten_with_accessor(
        tree, is_leaf=lambda node: node is not tree, namespace=NAMESPACE
    )
    static = _static(tree)
    if isinstance(static, list):
        static = tuple(static)
    keys = [key_of(accessor[0]) for accessor in accessors]
    return list(zip(keys, children, strict=True)), static


def prefix_leaves(prefix: Any, tree: Any, caller: str, argument: str) -> list[Any]:
    """Give the leaf of ``prefix`` that applies to each leaf of ``tree``; ``None`` in it is a leaf.

    A list in the prefix may stand for a tuple in the tree. Raises ``ValueError`` if ``prefix`` is
    not a prefix of ``tree``.
    """
    out: list[Any] = []

    def walk(p: Any, t: Any, path: str) -> None:
        if p is None or isinstance(p, int) or optree.tree_is_leaf(p, namespace=NAMESPACE):
            out.extend([p] * structure(t).num_leaves)
            return
        if isinstance(p, list) and isinstance(t, tuple):
            p = tuple(p)
        if p.__class__ is tuple is t.__class__ and len(p) == len(t):  # the common case, made fast
            for i, (x, y) in enumerate(zip(p, t, strict=True)):
                walk(x, y, f"{path}[{i}]")
            return
        a, b = _children(p), _children(t)
        if (
            a is None
            or b is None
            or type(p) is not type(t)
            or [entry for entry, _ in a] != [entry for entry, _ in b]
        ):
            raise ValueError(
                f"{caller}: {argument} must be a prefix of the tree it describes; they part at "
                f"{path}: {_describe(p)} in {argument}, {_describe(t)} in the tree"
            )
        for (entry, x), (_, y) in zip(a, b, strict=True):
            walk(x, y, path + entry)

    walk(prefix, tree, argument)
    return out


_known: dict[Any, frozenset[int]] = {}


def left_out(x: Any, treedef: Any) -> frozenset[int]:
    """Return the numbers of those leaves, of a tree of this structure."""
    found = _known.get(treedef)
    if found is None:
        found = room(_known)[treedef] = frozenset(_found(x))
    return found


def _found(x: Any) -> set[int]:
    numbers: set[int] = set()
    start = 0
    for node in leaves(x, _leaves_out):
        inside = structure(node)
        stop = start + inside.num_leaves
        if _leaves_out(node):
            numbered = unflatten(inside, range(start, stop))
            numbers.update([i for i in numbered._undifferentiated() if isinstance(i, int)])
        start = stop
    return numbers


def _leaves_out(node: Any) -> bool:
    return hasattr(type(node), "_undifferentiated")
