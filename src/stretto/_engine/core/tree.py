"""Trees of arrays: nested containers flattened to leaves and back, by optree.

Layer 1 (core). ``None`` is a node without leaves, dictionaries go by sorted keys; lists, tuples,
named tuples, ordered dictionaries, and registered classes and dataclasses are nodes; all else is a
leaf.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import optree

from stretto._engine.core.keys import Keyed, key_of, word

__all__ = [
    "NAMESPACE",
    "flatten",
    "flatten_one_level",
    "flatten_with_path",
    "leaves",
    "map",
    "names",
    "paths",
    "prefix_leaves",
    "register_attributes",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "structure",
    "unflatten",
]

NAMESPACE = "stretto"
C = TypeVar("C", bound=type)


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
    """Apply ``f`` to each leaf of ``tree``, with the subtrees of ``rest`` at its place.

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
    """The subtrees of ``other`` at the leaves of ``spec``; where they part is named if they do."""
    try:
        return spec.flatten_up_to(other)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"trees differ in structure: tree 0 and tree {number} part at {difference(tree, other)}"
        ) from error


def difference(one: Any, other: Any, path: str = "tree") -> str:
    """The path at which two trees part, and what stands there in each."""
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
    """The static data of a node."""
    return optree.tree_flatten_one_level(tree, namespace=NAMESPACE)[1]


def _describe(tree: Any) -> str:
    if isinstance(tree, dict):
        return f"a {type(tree).__name__} with keys {sorted(map(str, tree))}"
    if isinstance(tree, (list, tuple)):
        return f"a {type(tree).__name__} of length {len(tree)}"
    return "None" if tree is None else f"a {type(tree).__name__}"


def paths(tree: Any, root: str = "") -> list[str]:
    """The path of each leaf as Python would write it after ``root``.

    >>> paths({"w": [1, 2]}, "params")
    ["params['w'][0]", "params['w'][1]"]
    """
    spec = structure(tree)
    return [accessor.codify(root) for accessor in optree.treespec_accessors(spec)]


def names(tree: Any) -> list[tuple[str, ...]]:
    """The steps that lead to each leaf: keys, indices, names of fields and attributes.

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
        answers = iter(_asked_with_path(tree, is_leaf))
        is_leaf = lambda _: next(answers)
    accessors, flat, spec = optree.tree_flatten_with_accessor(tree, is_leaf, namespace=NAMESPACE)
    where = [tuple([key_of(step) for step in accessor]) for accessor in accessors]
    return list(zip(where, flat, strict=True)), spec


def _asked_with_path(tree: Any, is_leaf: Callable[[Any, Any], Any]) -> list[bool]:
    """What ``is_leaf`` says of each node, in the order in which flattening comes to them."""
    answers: list[bool] = []

    def walk(node: Any, path: tuple[Any, ...]) -> None:
        answers.append(bool(is_leaf(path, node)))
        if not answers[-1] and not optree.tree_is_leaf(node, namespace=NAMESPACE):
            for key, child in flatten_one_level(node)[0]:
                walk(child, (*path, key))

    walk(tree, ())
    return answers


def flatten_one_level(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """The children of a node, each with its key, and the node's static data.

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
    keys = [key_of(accessor[0]) for accessor in accessors]
    return list(zip(keys, children, strict=True)), tuple(static) if isinstance(
        static, list
    ) else static


def prefix_leaves(prefix: Any, tree: Any, caller: str, argument: str) -> list[Any]:
    """One leaf of ``prefix`` for each leaf of ``tree``; ``None`` in a prefix is a leaf.

    A list in the prefix may stand for a tuple in the tree at the top. Raises ``ValueError`` where
    ``prefix`` is not a prefix of ``tree``.
    """
    out: list[Any] = []

    def walk(p: Any, t: Any, path: str) -> None:
        if p is None or isinstance(p, int) or optree.tree_is_leaf(p, namespace=NAMESPACE):
            out.extend([p] * structure(t).num_leaves)
            return
        if isinstance(p, list) and isinstance(t, tuple):
            p = tuple(p)
        if p.__class__ is tuple is t.__class__ and len(p) == len(t):  # what most prefixes are
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


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Any, Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None:
    """Make a class a node of trees.

    Args:
        nodetype: the class.
        flatten_func: gives, for an object, a pair (children, static data). The static data must
            compare by ``==``; to pass through ``jit`` it must be hashable.
        unflatten_func: makes an object of static data and children.
        flatten_with_keys_func: gives a pair (((key, child), ...), static data), so that paths have
            keys of the class's own; by default they have the children's numbers.

    Raises:
        ValueError: the class is a node already.

    >>> class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> register_pytree_node(Box, lambda box: ((box.x,), None), lambda _, children: Box(*children))
    >>> leaves([Box(1), Box(2)])
    [1, 2]
    """
    if flatten_with_keys_func is not None:
        register_pytree_with_keys(nodetype, flatten_with_keys_func, unflatten_func, flatten_func)
        return
    optree.register_pytree_node(nodetype, flatten_func, unflatten_func, namespace=NAMESPACE)


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Any, Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None:
    """Make a class a node of trees, with keys of its own for its children.

    Args:
        nodetype: the class.
        flatten_with_keys: gives, for an object, a pair (((key, child), ...), static data).
        unflatten_func: makes an object of static data and children.
        flatten_func: gives the children without keys; not needed.

    Raises:
        ValueError: the class is a node already.

    >>> from stretto._engine.core.keys import GetAttrKey
    >>> class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> register_pytree_with_keys(
    ...     Box,
    ...     lambda box: (((GetAttrKey("x"), box.x),), None),
    ...     lambda static, children: Box(*children),
    ... )
    >>> paths(Box([1]), "box")
    ['box.x[0]']
    """
    del flatten_func

    def to_children(x: Any) -> tuple[Any, Any, Any]:
        pairs, static = flatten_with_keys(x)
        pairs = tuple(pairs)
        return tuple([child for _, child in pairs]), static, tuple([key for key, _ in pairs])

    optree.register_pytree_node(
        nodetype, to_children, unflatten_func, path_entry_type=Keyed, namespace=NAMESPACE
    )


def register_pytree_node_class(cls: C) -> C:
    """Make a class with ``tree_flatten`` and ``tree_unflatten`` a node of trees: a decorator.

    Args:
        cls: a class whose method ``tree_flatten`` returns (children, static data), and whose class
            method ``tree_unflatten(static, children)`` makes an object of them.

    Returns:
        The class.

    Raises:
        ValueError: the class is a node already.

    >>> @register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...
    ...     def tree_flatten(self):
    ...         return (self.x,), None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, static, children):
    ...         return cls(*children)
    >>> leaves([Box(1), Box(2)])
    [1, 2]
    """
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: C) -> C:
    """Make a class with ``tree_flatten_with_keys`` and ``tree_unflatten`` a node: a decorator.

    Args:
        cls: a class whose method ``tree_flatten_with_keys`` returns (((key, child),
            ...), static data), and whose class method ``tree_unflatten(static,
            children)`` makes an object of them.

    Returns:
        The class.

    Raises:
        ValueError: the class is a node already.

    >>> from stretto._engine.core.keys import GetAttrKey
    >>> @register_pytree_with_keys_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...
    ...     def tree_flatten_with_keys(self):
    ...         return ((GetAttrKey("x"), self.x),), None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, static, children):
    ...         return cls(*children)
    >>> paths(Box([1]), "box")
    ['box.x[0]']
    """
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten)
    return cls


def register_static(cls: C) -> C:
    """Make a class a node without leaves: its objects are static data, compared and hashed.

    Args:
        cls: a class whose objects compare by ``==`` and are hashable.

    Returns:
        The class.

    Raises:
        ValueError: the class is a node already.

    >>> @register_static
    ... @dataclasses.dataclass(frozen=True)
    ... class Mode:
    ...     name: str
    >>> leaves([Mode("train"), 1])
    [1]
    """
    register_pytree_node(cls, lambda x: ((), x), lambda static, _: static)
    return cls


class _Attribute(optree.GetAttrEntry):
    """A child by its attribute's name, which need not be an identifier: ``layers.0``."""

    def codify(self, node: str = "*") -> str:
        """The attribute, after the text of the node."""
        return f"{node}.{self.entry}"


def register_attributes(
    cls: type,
    flatten_func: Callable[[Any], tuple[Any, Any, tuple[str, ...]]],
    unflatten_func: Callable[[Any, Any], Any],
) -> None:
    """Make a class a node of attributes: (children, static data, names of the children).

    Static data with a method ``difference(other)`` is asked for the words when two trees part
    there.
    """
    optree.register_pytree_node(
        cls, flatten_func, unflatten_func, path_entry_type=_Attribute, namespace=NAMESPACE
    )


def register_dataclass(
    nodetype: C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> C:
    """Make a dataclass a node: data fields are children, meta fields static.

    Args:
        nodetype: the dataclass.
        data_fields: the names of the fields that are children; by default those that are neither
            meta fields nor dropped.
        meta_fields: the names of the fields that are static data; by default those with
            ``metadata={"static": True}``.
        drop_fields: the names of the fields that are neither, and that an object lacks after it
            went through a tree.

    Returns:
        The class, so that this serves as a decorator.

    Raises:
        TypeError: ``nodetype`` is not a dataclass.
        ValueError: a name is not a field's, a field of the constructor is left out, or the class
            is a node already.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Dense:
    ...     weight: float
    ...     bias: float
    >>> leaves(Dense(1.0, 2.0))
    [1.0, 2.0]
    """
    fields = dataclasses.fields(nodetype)
    if meta_fields is None:
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
    if data_fields is None:
        data_fields = [
            f.name for f in fields if f.init and f.name not in (*meta_fields, *drop_fields)
        ]
    data, meta = tuple(data_fields), tuple(meta_fields)
    unknown = {*data, *meta, *drop_fields} - {f.name for f in fields}
    left_out = {f.name for f in fields if f.init} - {*data, *meta, *drop_fields}
    if unknown or left_out:
        raise ValueError(
            f"register_dataclass: {nodetype.__name__} has fields {[f.name for f in fields]}; "
            f"unknown: {sorted(unknown)}, left out: {sorted(left_out)}"
        )

    def to_children(x: Any) -> tuple[Any, Any, Any]:
        entries = tuple(data)
        return tuple(getattr(x, n) for n in data), tuple(getattr(x, n) for n in meta), entries

    def from_children(static: Any, children: Any) -> Any:
        values = dict(zip(data, children, strict=True)) | dict(zip(meta, static, strict=True))
        made = object.__new__(nodetype)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    optree.register_pytree_node(
        nodetype,
        to_children,
        from_children,
        path_entry_type=optree.DataclassEntry,
        namespace=NAMESPACE,
    )
    return nodetype
