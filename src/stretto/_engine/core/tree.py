"""Trees of arrays: nested containers flattened to leaves and back, with optree.

Layer 1 (core). Lists, tuples, named tuples, dictionaries (in the order of sorted keys), ordered
dictionaries, and registered classes and dataclasses are nodes; ``None`` is a node without leaves;
everything else is a leaf. The layer ``api`` flattens users' arguments here, so that the layers
below it see flat lists of values.
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
    """The leaves, in order, and the structure around them.

    >>> flatten({"b": 1, "a": (2, None)})[0]
    [2, 1]
    """
    return optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)


def unflatten(treedef: optree.PyTreeSpec, leaves: Sequence[Any]) -> Any:
    """The tree of this structure with these leaves.

    >>> unflatten(structure([0, {"a": 0}]), [1, 2])
    [1, {'a': 2}]
    """
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves, in order.

    >>> leaves([1, {"a": 2}, None])
    [1, 2]
    """
    return optree.tree_leaves(tree, is_leaf, namespace=NAMESPACE)


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> optree.PyTreeSpec:
    """The structure without the leaves; equal structures compare equal.

    >>> structure([1, (2, 3)]) == structure([4, (5, 6)])
    True
    """
    return optree.tree_structure(tree, is_leaf, namespace=NAMESPACE)


def map(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Apply ``f`` to each leaf of ``tree``, along with the subtrees of ``rest`` at its place.

    Raises ``ValueError``, which names the path at which the trees differ.

    >>> map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    flat, spec = flatten(tree, is_leaf)
    if not rest:
        return unflatten(spec, [f(leaf) for leaf in flat])
    others = [prefix_subtrees(spec, tree, other, i + 1) for i, other in enumerate(rest)]
    return unflatten(spec, [f(*group) for group in zip(flat, *others, strict=True)])


def prefix_subtrees(spec: optree.PyTreeSpec, tree: Any, other: Any, number: int) -> list[Any]:
    """The subtrees of ``other`` at the leaves of ``tree``, whose structure is ``spec``.

    Raises ``ValueError``, which names the path at which the two differ.
    """
    try:
        return spec.flatten_up_to(other)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"trees differ in structure: tree 0 and tree {number} part at {difference(tree, other)}"
        ) from error


def difference(one: Any, other: Any, path: str = "tree") -> str:
    """The path at which two trees differ, and what each has there."""
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
    """The path of each leaf as an expression in Python, starting from ``root``.

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
    """Each leaf with the keys that lead to it (see ``core.keys``), and the structure.

    With ``is_leaf_takes_path``, ``is_leaf(path, node)`` says what is a leaf.

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
    """What ``is_leaf`` says about each node, in the order in which flattening visits them."""
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
    if isinstance(static, list):
        static = tuple(static)
    keys = [key_of(accessor[0]) for accessor in accessors]
    return list(zip(keys, children, strict=True)), static


def prefix_leaves(prefix: Any, tree: Any, caller: str, argument: str) -> list[Any]:
    """The leaf of ``prefix`` that applies to each leaf of ``tree``; ``None`` in it is a leaf.

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


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Any, Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None:
    """Register a class as a node: ``flatten_func(x)`` gives its children and its static data.

    ``unflatten_func(static, children)`` undoes that. Static data is compared with ``==``, and must
    be hashable to pass through ``jit``. With ``flatten_with_keys_func`` paths have the keys that it
    gives, as with ``register_pytree_with_keys``.
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
    """Register a class as a node with keys of its own.

    ``flatten_with_keys(x)`` gives ((key, child), ...) and static data. ``flatten_func``, which
    gives the children without keys, is accepted and not needed.
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
    """Register a class with ``tree_flatten`` and ``tree_unflatten(static, children)`` as a node."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: C) -> C:
    """Register a class with ``tree_flatten_with_keys`` and ``tree_unflatten`` as a node.

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
    """Register a class as a node without leaves: its instances are static data.

    They are compared with ``==`` and hashed.

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
    """The step to an attribute, whose name need not be an identifier: ``layers.0``."""

    def codify(self, node: str = "*") -> str:
        """The attribute, after the text of the node."""
        return f"{node}.{self.entry}"


def register_attributes(
    cls: type,
    flatten_func: Callable[[Any], tuple[Any, Any, tuple[str, ...]]],
    unflatten_func: Callable[[Any, Any], Any],
) -> None:
    """Register a class as a node: flattening gives children, static data and the children's names.

    If the static data has a method ``difference(other)``, that is asked to describe the difference
    when two trees differ there.
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
    """Register a dataclass as a node: data fields are children, meta fields are static.

    By default fields with ``metadata={"static": True}`` are meta fields, the others data fields.
    Those in ``drop_fields`` are neither: an instance put together again does not have them.

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
    omitted = {f.name for f in fields if f.init} - {*data, *meta, *drop_fields}
    if unknown or omitted:
        raise ValueError(
            f"register_dataclass: {nodetype.__name__} has fields {[f.name for f in fields]}; "
            f"unknown: {sorted(unknown)}, left out: {sorted(omitted)}"
        )

    def to_children(x: Any) -> tuple[Any, Any, Any]:
        entries = tuple(data)
        return tuple(getattr(x, n) for n in data), tuple(getattr(x, n) for n in meta), entries

    def from_children(static: Any, children: Any) -> Any:
        values = dict(zip(data, children, strict=True)) | dict(zip(meta, static, strict=True))
        instance = object.__new__(nodetype)
        for name, value in values.items():
            object.__setattr__(instance, name, value)
        return instance

    optree.register_pytree_node(
        nodetype,
        to_children,
        from_children,
        path_entry_type=optree.DataclassEntry,
        namespace=NAMESPACE,
    )
    return nodetype
