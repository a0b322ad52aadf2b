"""Reducing trees, mapping them with paths, and turning them inside out.

Layer 7 (tree). Next, read ``members``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stretto.core import tree as _tree
from stretto.core.tree import flatten_with_path, leaves, unflatten

__all__ = ["all", "map_with_path", "reduce", "transpose"]


def reduce(f: Callable[[Any, Any], Any], tree: Any, *initial: Any) -> Any:
    """Combine all leaves, from the left, by ``f``, beginning with ``initial`` if it is given.

    >>> reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
    6
    """
    return functools.reduce(f, leaves(tree), *initial)


def all(tree: Any) -> bool:
    """Whether every leaf is true.

    >>> all([True, {"a": 1}])
    True
    """
    return not [leaf for leaf in leaves(tree) if not leaf]


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply ``f(path, leaf, ...)`` to each leaf; the path is the tuple of keys that lead to it.

    >>> map_with_path(lambda path, x: (path, x), {"w": [1]})
    {'w': [(('w', 0), 1)]}
    """
    pairs, spec = flatten_with_path(tree)
    others = [_tree.prefix_subtrees(spec, tree, other, i + 1) for i, other in enumerate(rest)]
    flat = [f(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others, strict=True)]
    return unflatten(spec, flat)


def transpose(outer: Any, inner: Any, tree: Any) -> Any:
    """Turn a tree of structure ``outer`` of trees of structure ``inner`` inside out.

    >>> from stretto.core.tree import structure
    >>> transpose(structure([0, 0]), structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    rows = [inner.flatten_up_to(sub) for sub in outer.flatten_up_to(tree)]
    return unflatten(inner, [unflatten(outer, column) for column in zip(*rows, strict=True)])
