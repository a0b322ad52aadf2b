"""Trees by JAX's rules: typed keys and deques are leaves, and dictionaries come back sorted.

The classes registered with Stretto are nodes here too, in a namespace of optree's of its own, which
``core/nodes`` fills. Next, read ``presented/tree_util``.
"""

from __future__ import annotations

import collections
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import optree

from stretto._engine.core import nodes
from stretto._engine.core.bounded import room
from stretto._engine.core.keys import key_of
from stretto.random.key_arrays import KeyArray

__all__ = [
    "NAMESPACE",
    "PyTreeDef",
    "flatten",
    "flatten_one_level",
    "flatten_with_path",
    "leaves",
    "map_",
    "one_level_with_keys",
    "or_deque",
    "structure",
    "tree_is_leaf",
]

NAMESPACE = "stretto.as_jax"
nodes.view(NAMESPACE, frozenset({KeyArray}))

IsLeaf = Callable[[Any], bool] | None

_is_deque: Callable[[Any], bool] = lambda node: node.__class__ is deque
# Deques are nodes of optree's in all namespaces; those of subclasses are not.


def or_deque(is_leaf: IsLeaf) -> Callable[[Any], bool]:
    """Whether a node is to be a leaf: for this predicate, or since it is a deque."""
    if is_leaf is None:
        return _is_deque
    return lambda node: node.__class__ is deque or is_leaf(node)


class _Leaf:
    def __repr__(self) -> str:
        return "*"


_LEAF = _Leaf()


class PyTreeDef:
    """The structure of a tree, as ``tree_structure`` gives it; compared by ``==``, and hashable.

    >>> structure({"b": 1, "a": (2, None)})
    PyTreeDef({'a': (*, None), 'b': *})
    """

    __slots__ = ("__weakref__", "_sorted", "spec")
    __module__ = "jax.tree_util"

    spec: Any
    _sorted: Any

    def __init__(self, spec: Any, sorted_spec: Any = None) -> None:
        self.spec = spec
        self._sorted = sorted_spec

    @property
    def num_leaves(self) -> int:
        """How many leaves it has."""
        return self.spec.num_leaves

    @property
    def num_nodes(self) -> int:
        """How many nodes it has, leaves among them."""
        return self.spec.num_nodes

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Build the tree with these leaves."""
        if self._sorted is None:
            self._sorted = _sorted(self.spec)
        return self._sorted.unflatten(leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of a tree that this is a prefix of, at the leaves of this."""
        try:
            return self.spec.flatten_up_to(tree)
        except TypeError as error:
            raise ValueError(str(error)) from error

    def children(self) -> list[PyTreeDef]:
        """The structures of the children of the root."""
        return [PyTreeDef(child) for child in self.spec.children()]

    def node_data(self) -> tuple[type, Any] | None:
        """The class and the static data of the root; None for a leaf."""
        if self.spec.is_leaf():
            return None
        root = self.spec.unflatten([_LEAF] * self.num_leaves)
        return type(root), flatten_one_level(root)[1]

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """The structure with another in the place of each leaf."""
        return PyTreeDef(self.spec.compose(inner.spec))

    def is_leaf(self) -> bool:
        """Whether it is that of a leaf."""
        return self.spec.is_leaf()

    def walk(
        self, f_node: Callable[..., Any], f_leaf: Callable[..., Any], leaves: Iterable[Any]
    ) -> Any:
        """Apply ``f_leaf`` to leaves, and ``f_node`` to what its children gave, up to the root."""
        remaining = iter(leaves)

        def walk(definition: PyTreeDef) -> Any:
            if definition.is_leaf():
                leaf = next(remaining)
                return leaf if f_leaf is None else f_leaf(leaf)
            given = tuple([walk(child) for child in definition.children()])
            return f_node(given, definition.node_data())

        return walk(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PyTreeDef) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(self.spec)

    def __repr__(self) -> str:
        return f"PyTreeDef({_text(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PyTreeDef, (self.spec,)


def _text(definition: PyTreeDef) -> str:
    data = definition.node_data()
    if data is None:
        return "*"
    cls, static = data
    inner = [_text(child) for child in definition.children()]
    if cls is type(None):
        return "None"
    if cls is tuple:
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    if cls is list:
        return f"[{', '.join(inner)}]"
    if cls is dict:
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in zip(static, inner)) + "}"
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return f"CustomNode(namedtuple[{cls.__name__}], [{', '.join(inner)}])"
    return f"CustomNode({cls.__name__}[{static}], [{', '.join(inner)}])"


_DATA = 2  # the place of static data in the state of a node of optree's structures
_DEQUE = optree.tree_structure(deque()).__getstate__()[0][0][0]
_ordered: dict[Any, Any] = {}
"""Structures in which deques are leaves, and those that build them with dictionaries sorted.

True stands for the structure itself: that of equal static data may hold other objects.
"""


def _sorted(spec: Any) -> Any:
    """The structure that builds dictionaries with their keys sorted, however they were inserted."""
    known = _known(spec)
    if known is None:
        known = _without_order(spec)
        with suppress(TypeError, ValueError):
            room(_ordered)[known] = known is spec or known
    return known


def _known(spec: Any) -> Any:
    """The same, where it is remembered; None otherwise."""
    try:
        known = _ordered.get(spec)
    except (TypeError, ValueError):  # static data that cannot be hashed, or compared
        return None
    return spec if known is True else known


def _has_deque(spec: Any) -> bool:
    """Whether a deque is a node in it."""
    return any([state[0] == _DEQUE for state in spec.__getstate__()[0]])


def _without_order(spec: Any) -> Any:
    states, none_is_leaf, namespace = spec.__getstate__()
    if not any([state[-1] for state in states]):
        return spec
    plain = [(*state[:-1], _in_order(state)) for state in states]
    made: Any = optree.PyTreeSpec.__new__(optree.PyTreeSpec)
    made.__setstate__((tuple(plain), none_is_leaf, namespace))
    return made


def _in_order(state: tuple[Any, ...]) -> dict[Any, None] | None:
    """The keys of a dictionary in the order in which it is built."""
    if state[-1] is None:
        return None
    keys = state[_DATA]
    return dict.fromkeys(keys[1] if isinstance(keys, tuple) else keys)


def tree_is_leaf(tree: Any) -> bool:
    """Whether it is a leaf by itself."""
    return optree.tree_is_leaf(tree, _is_deque, namespace=NAMESPACE)


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree and its structure."""
    # A predicate for deques would be asked about every node, and there are hardly any.
    flat, spec = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
    known = _known(spec)
    if known is None:
        if _has_deque(spec):
            flat, spec = optree.tree_flatten(tree, or_deque(is_leaf), namespace=NAMESPACE)
        known = _sorted(spec)
    return flat, PyTreeDef(spec, known)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree."""
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree."""
    return flatten(tree, is_leaf)[1]


def map_(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to the leaves of trees of one structure."""
    flat, definition = flatten(tree, is_leaf)
    if not rest:
        return definition.unflatten([f(leaf) for leaf in flat])
    others = [_up_to(definition, tree, other, i + 1) for i, other in enumerate(rest)]
    return definition.unflatten([f(*group) for group in zip(flat, *others, strict=True)])


def _up_to(definition: PyTreeDef, tree: Any, other: Any, number: int) -> list[Any]:
    try:
        return definition.spec.flatten_up_to(other)
    except (ValueError, TypeError) as error:
        text = str(error).replace("dictionary key mismatch", "Dict key mismatch", 1)
        raise ValueError(f"trees 0 and {number} differ in structure: {text}") from error


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., Any] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]:
    """Pairs of the keys that lead to a leaf and the leaf, and the structure."""
    if is_leaf is not None and is_leaf_takes_path:
        answers = iter(list(_answers(tree, is_leaf, ())))
        is_leaf = lambda _: next(answers)
    # The namespace of JAX's trees has no keys, and the other one has other leaves.
    is_leaf, is_leaf_again = _twice(or_deque(is_leaf))
    flat, spec = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
    accessors, _, _ = optree.tree_flatten_with_accessor(
        tree, is_leaf_again, namespace=nodes.NAMESPACE
    )
    paths = [tuple([key_of(step) for step in accessor]) for accessor in accessors]
    return list(zip(paths, flat, strict=True)), PyTreeDef(spec)


def _twice(is_leaf: Callable[[Any], bool]) -> tuple[Callable[[Any], bool], Callable[[Any], bool]]:
    """The predicate, and one that gives its answers again, in order."""
    answers: list[bool] = []

    def first(node: Any) -> bool:
        answers.append(is_leaf(node) or nodes.is_leaf_in(NAMESPACE, type(node)))
        return answers[-1]

    again = iter(answers)
    return first, lambda _: next(again)


def _answers(tree: Any, is_leaf: Callable[..., Any], path: tuple[Any, ...]) -> Iterator[bool]:
    yield (leaf := bool(is_leaf(path, tree)))
    if not leaf and not tree_is_leaf(tree):
        for key, child in one_level_with_keys(tree)[0]:
            yield from _answers(child, is_leaf, (*path, key))


def one_level_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Hashable]:
    """Pairs of a key and a child of a node, and the node's static data."""
    children, static = flatten_one_level(tree)
    accessors, _, _ = optree.tree_flatten_with_accessor(
        tree, is_leaf=lambda node: node is not tree, namespace=nodes.NAMESPACE
    )
    keys = [key_of(accessor[0]) for accessor in accessors]
    return list(zip(keys, children, strict=True)), static


def flatten_one_level(tree: Any) -> tuple[list[Any], Any]:
    """The children of a node, and its static data; ``ValueError`` for a leaf."""
    if tree_is_leaf(tree):
        raise ValueError(f"flatten_one_level: can't flatten a leaf, {type(tree).__name__}")
    made = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    children: Any = made[0]
    static: Any = made[1]
    cls = type(tree)
    if cls in (list, tuple):
        static = None
    elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
        static = cls
    elif cls is collections.OrderedDict:
        static = tuple(tree)
    elif cls is collections.defaultdict:
        static = (tree.default_factory, tuple(static[1]))
    return list(children), static
