"""Nodes of trees: register classes as such, with optree; and keys, the steps from node to node.

A path is a tuple of keys. Each is a dictionary's key, an index into a sequence, an attribute's
name, or a position among the children of a class that does not name them.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import optree

from stretto._engine.core.caches import room


@dataclasses.dataclass(frozen=True, slots=True)
class DictKey:
    """The ``key`` of an item of a dictionary.

    >>> str(DictKey("w"))
    "['w']"
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceKey:
    """The index ``idx`` of an item of a list or a tuple, from 0.

    >>> str(SequenceKey(0))
    '[0]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


@dataclasses.dataclass(frozen=True, slots=True)
class GetAttrKey:
    """The ``name`` of an attribute, or of a field.

    >>> str(GetAttrKey("weight"))
    '.weight'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class FlattenedIndexKey:
    """The place ``key`` of a child, from 0, of a class that does not name its children.

    >>> str(FlattenedIndexKey(0))
    '[<flat index 0>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


class Keyed(optree.PyTreeEntry):
    """The step to a child for which the class supplies its own key."""

    def codify(self, node: str = "*") -> str:
        """Return the key, after the text of the node."""
        return f"{node}{self.entry}"


def key_of(step: optree.PyTreeEntry) -> Any:
    """Return the key for one of optree's steps."""
    if isinstance(step, Keyed):
        return step.entry
    if isinstance(step, optree.MappingEntry):
        return DictKey(step.entry)
    if isinstance(step, (optree.NamedTupleEntry, optree.StructSequenceEntry)):
        return GetAttrKey(step.field)
    if isinstance(step, optree.SequenceEntry):
        return SequenceKey(step.entry)
    if isinstance(step, optree.GetAttrEntry):
        return GetAttrKey(step.entry)
    return FlattenedIndexKey(step.entry)


def word(key: Any) -> str:
    """Return the key without brackets and dots."""
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """Write a path as Python would, or its keys alone with a separator.

    Args:
        keys: the path: a tuple of keys, as ``flatten_with_path`` gives it.
        simple: whether to write the keys alone, without brackets, quotes and dots.
        separator: what stands between them; nothing by default.

    Returns:
        The text.

    >>> path = (DictKey("layers"), SequenceKey(0), GetAttrKey("weight"))
    >>> keystr(path)
    "['layers'][0].weight"
    >>> keystr(path, simple=True, separator="/")
    'layers/0/weight'
    """
    return separator.join([word(key) if simple else str(key) for key in keys])


NAMESPACE = "stretto"
C = TypeVar("C", bound=type)


class Node(NamedTuple):
    """Say how a class is a node."""

    cls: type
    to_children: Callable[[Any], Any]
    """Gives (children, static data), and perhaps what ``entry`` makes steps of."""
    from_children: Callable[[Any, Any], Any]
    entry: type[optree.PyTreeEntry]
    apart: Callable[[Any], Any]
    """Does as ``to_children``, but need not give the third."""


APART: dict[type, Callable[[Any], Any] | None] = {}
"""The functions that take registered classes apart, to (children, static data) and perhaps more.

For the fast path of ``jit``; None has a class go the general way there.
"""

_KEYS = 64
"""The most static data of one class for which its keys are remembered."""

_nodes: list[Node] = []
_told: list[Callable[[Node], None]] = []


def tell(register: Callable[[Node], None]) -> None:
    """Have a function be told of all classes that are nodes, now and later.

    Args:
        register: the function.
    """
    _told.append(register)
    for node in _nodes:
        register(node)


def _register(
    cls: type,
    to_children: Callable[[Any], Any],
    from_children: Callable[[Any, Any], Any],
    entry: type[optree.PyTreeEntry] = optree.AutoEntry,
    apart: Callable[[Any], Any] | None = None,
) -> None:
    with warnings.catch_warnings():
        # It says that a named tuple is a node already: whoever registers one wants it otherwise.
        warnings.filterwarnings("ignore", "PyTree type", UserWarning)
        optree.register_pytree_node(
            cls, to_children, from_children, path_entry_type=entry, namespace=NAMESPACE
        )
    node = Node(cls, to_children, from_children, entry, apart or to_children)
    _nodes.append(node)
    APART[cls] = node.apart
    for register in _told:
        register(node)


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

    >>> from stretto._engine.core.tree import leaves
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
    _register(nodetype, flatten_func, unflatten_func)


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
        flatten_func: gives a pair (children, static data), which is quicker. The keys are then
            asked for once for equal static data.

    Raises:
        ValueError: the class is a node already.

    >>> from stretto._engine.core.nodes import GetAttrKey
    >>> from stretto._engine.core.tree import paths
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

    def with_keys(x: Any) -> tuple[Any, Any, Any]:
        pairs, static = flatten_with_keys(x)
        pairs = tuple(pairs)
        return tuple([child for _, child in pairs]), static, tuple([key for key, _ in pairs])

    if flatten_func is None:
        _register(nodetype, with_keys, unflatten_func, Keyed)
        return
    known: dict[Any, tuple[Any, ...]] = {}

    def to_children(x: Any) -> tuple[Any, Any, Any]:
        children, static = flatten_func(x)
        children = tuple(children)
        try:
            keys = known.get(static)
        except TypeError:  # not hashable
            return with_keys(x)
        if keys is None or len(keys) != len(children):
            keys = room(known, _KEYS)[static] = with_keys(x)[2]
        return children, static, keys

    _register(nodetype, to_children, unflatten_func, Keyed, flatten_func)


def register_pytree_node_class(cls: C) -> C:
    """Make a class with ``tree_flatten`` and ``tree_unflatten`` a node of trees: a decorator.

    Args:
        cls: a class whose method ``tree_flatten`` returns (children, static data), and whose class
            method ``tree_unflatten(static, children)`` makes an object of them.

    Returns:
        The class.

    Raises:
        ValueError: the class is a node already.

    >>> from stretto._engine.core.tree import leaves
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

    >>> from stretto._engine.core.nodes import GetAttrKey
    >>> from stretto._engine.core.tree import paths
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

    >>> from stretto._engine.core.tree import leaves
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
        """Return the attribute, after the text of the node."""
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
    _register(cls, flatten_func, unflatten_func, _Attribute)


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

    >>> from stretto._engine.core.tree import leaves
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

    _register(nodetype, to_children, from_children, optree.DataclassEntry)
    return nodetype
