"""What the transformations share in reading a user's function and its arguments.

Layer 7 (api).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto.core import tree
from stretto.core.interpreter import as_value
from stretto.core.types import float0

__all__ = [
    "argument_names",
    "as_argnums",
    "as_values",
    "leaf_names",
    "name_of",
    "signature_of",
    "values_of_tree",
    "without_float0",
    "wraps",
]


def name_of(fun: Callable[..., Any]) -> str:
    """The function's name, for programs and messages."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    name = getattr(fun, "__name__", None) or type(fun).__name__
    return "function" if name == "<lambda>" else name


def wraps(fun: Callable[..., Any], verb: str) -> Callable[[Any], Any]:
    """Give a transformed function the name and documentation of the one it was made from."""

    def decorate(transformed: Any) -> Any:
        transformed.__wrapped__ = fun
        transformed.__name__ = f"{verb}_{name_of(fun)}"
        transformed.__qualname__ = transformed.__name__
        transformed.__doc__ = getattr(fun, "__doc__", None)
        transformed.__module__ = getattr(fun, "__module__", None) or __name__
        return transformed

    return decorate


def signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    """The signature, where Python can tell it."""
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def argument_names(fun: Callable[..., Any], count: int) -> list[str]:
    """The names under which a function takes its first ``count`` positional arguments."""
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
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None
) -> list[str]:
    """For each leaf of the arguments, how Python would write it: ``params['w'][0]``."""
    names = [
        path
        for name, arg in zip(argument_names(fun, len(args)), args, strict=True)
        for path in tree.paths(arg, name)
    ]
    for key in sorted(kwargs or {}):
        names.extend(tree.paths((kwargs or {})[key], key))
    return names


def as_argnums(argnums: int | Sequence[int], count: int, who: str) -> tuple[int, ...]:
    """Positions of arguments, counted from the front; raises ``TypeError`` for one not there."""
    several = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for i in several:
        if not -count <= i < count:
            raise TypeError(
                f"{who}: argnums names argument {i}, but the function was called with {count} "
                f"positional arguments"
            )
    return tuple(i % count for i in several)


def as_values(leaves: Sequence[Any], who: str, names: Callable[[], Sequence[str]]) -> list[Any]:
    """The leaves as values; ``TypeError`` says which, by its name, is none."""
    try:
        return [as_value(leaf, who) for leaf in leaves]
    except TypeError:
        for leaf, name in zip(leaves, names(), strict=True):
            as_value(leaf, who, name)
        raise


class Nothing:
    """A node without leaves for float0 zeros: no value, rebuilt as zeros of ``shape``."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


tree.register_pytree_node(
    Nothing, lambda x: ((), x.shape), lambda shape, _: np.zeros(shape, float0)
)


def without_float0(x: Any, lead: tuple[int, ...] = ()) -> Any:
    """The tree with float0 zeros as nodes without leaves, which come back with shape ``lead`` more.

    Gradients by integers are such zeros; they hold nothing that could be computed.
    """
    if all(getattr(leaf, "dtype", None) != float0 for leaf in tree.leaves(x)):
        return x
    return tree.map(
        lambda leaf: (
            Nothing((*lead, *leaf.shape)) if getattr(leaf, "dtype", None) == float0 else leaf
        ),
        x,
    )


def values_of_tree(x: Any, who: str, root: str) -> tuple[list[Any], Any]:
    """The leaves of a tree, called ``root``, as values; and its structure."""
    leaves, structure = tree.flatten(x)
    return as_values(leaves, who, lambda: tree.paths(x, root)), structure
