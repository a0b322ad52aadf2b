"""The leaves of a function's arguments: their values, their names, and the way back.

Arguments are trees; what is below this layer knows flat lists of values only. These functions
flatten the one into the other, and know the name of each leaf for messages.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.boundary import bounded
from stretto._engine.core.functions import name_of, signature_of
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import float0, is_float0


def wraps(fun: Callable[..., Any], verb: str) -> Callable[[Any], Any]:
    """Give a transformed function the name and documentation of the one it was made from.

    Its errors show no frames of this package. Raises ``TypeError`` if ``fun`` is not a function.
    """
    if not callable(fun):
        raise TypeError(f"{verb}: expected a function, got {type(fun).__name__}")

    def decorate(transformed: Any) -> Any:
        call: Any = bounded(transformed)
        call.__wrapped__ = fun
        call.__name__ = call.__qualname__ = f"{verb}_{name_of(fun)}"
        call.__doc__ = getattr(fun, "__doc__", None)
        call.__module__ = getattr(fun, "__module__", None) or __name__
        return call

    return decorate


def argument_names(fun: Callable[..., Any], count: int) -> list[str]:
    """Return the names of a function's first ``count`` positional arguments."""
    signature = signature_of(fun)
    names: list[str] = []
    for parameter in signature.parameters.values() if signature else ():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            while len(names) < count:
                names.append(f"{parameter.name}[{len(names)}]")
    names.extend(f"args[{i}]" for i in range(len(names), count))
    return names[:count]


def leaf_names(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    paths: Callable[[Any, str], list[str]] = tree.paths,
) -> list[str]:
    """Return each leaf of the arguments as an expression in Python: ``params['w'][0]``.

    ``args`` and ``kwargs`` are trees, or with ``tree.paths_of`` for ``paths`` their structures.
    """
    names = [
        path
        for name, arg in zip(argument_names(fun, len(args)), args, strict=True)
        for path in paths(arg, name)
    ]
    for key in sorted(kwargs or {}):
        names.extend(paths((kwargs or {})[key], key))
    return names


class LeafNames(Sequence[str]):
    """The result of ``leaf_names``, computed when first read: it takes longer than most calls."""

    def __init__(self, *of: Any) -> None:
        self._of = of

    @functools.cached_property
    def _names(self) -> list[str]:
        return leaf_names(*self._of)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, i: Any) -> Any:
        return self._names[i]


def as_argnums(argnums: int | Sequence[int], count: int, caller: str) -> tuple[int, ...]:
    """Return positions of arguments, made non-negative.

    Raises ``TypeError`` for what is not an int, or names a missing argument; ``ValueError`` for an
    argument that is named twice.
    """
    if isinstance(argnums, int) and 0 <= argnums < count:
        return (argnums,)
    entries: tuple[Any, ...] = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    try:
        positions = tuple([operator.index(i) for i in entries])
    except TypeError:
        raise TypeError(
            f"{caller}: argnums must be an int or a sequence of ints, got {argnums!r}"
        ) from None
    for i in positions:
        if not -count <= i < count:
            raise TypeError(
                f"{caller}: argnums names argument {i}, but the function was called with {count} "
                f"positional arguments"
            )
    chosen = tuple(i % count for i in positions)
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"{caller}: argnums names an argument twice: {argnums!r}")
    return chosen


def as_values(leaves: Sequence[Any], caller: str, names: Callable[[], Sequence[str]]) -> list[Any]:
    """Return the leaves as values.

    ``TypeError`` names the first leaf that is not a value, ``OverflowError`` that of integers that
    do not fit.
    """
    try:
        return [leaf if isinstance(leaf, Value) else as_value(leaf, caller) for leaf in leaves]
    except (TypeError, OverflowError) as error:
        problem: Exception = error
    for leaf, name in zip(leaves, names(), strict=True):
        as_value(leaf, caller, name)
    raise problem


LEAF = tree.structure(0)
"""The structure of one leaf alone."""


class Nothing:
    """Stands for float0 zeros: a node without leaves, unflattened to such zeros of ``shape``."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


tree.register_pytree_node(
    Nothing, lambda x: ((), x.shape), lambda shape, _: np.zeros(shape, float0)
)


def without_float0(x: Any, lead: tuple[int, ...] = ()) -> Any:
    """Return the tree with float0 zeros replaced by nodes without leaves.

    Gradients by integers are such zeros; they hold nothing that could be computed. When the tree is
    put together again they come back, with leading axes ``lead``.
    """
    if not holds_float0(tree.leaves(x)):
        return x
    return tree.map(lambda leaf: Nothing((*lead, *leaf.shape)) if is_float0(leaf) else leaf, x)


def holds_float0(leaves: Sequence[Any]) -> bool:
    """Say if any leaf is float0 zeros."""
    return any([not isinstance(leaf, Value) and is_float0(leaf) for leaf in leaves])


def values_of_tree(x: Any, caller: str, root: str) -> tuple[list[Any], Any]:
    """Return the leaves of a tree as values, and its structure; messages call the tree ``root``."""
    if isinstance(x, Value):  # most results are a single value
        return [x], LEAF
    leaves, structure = tree.flatten(x)
    return as_values(leaves, caller, lambda: tree.paths(x, root)), structure
