"""How PyTorch nests tensors in containers, as a ``Structure``.

An exported program knows each container of its arguments and results by a class and by whatever
PyTorch's own description of trees keeps beside it; where those have names, they are the fields.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

from stretto.torch.structure import LEAF, NOTHING, Structure, record

__all__ = ["children_of", "structure_of"]


def children_of(spec: Any) -> Sequence[Any]:
    """The descriptions of what is in a container, by PyTorch's description of it."""
    return [] if spec.is_leaf() else list(spec.children())


def structure_of(spec: Any) -> Structure:
    """A nesting of PyTorch's, by its description of trees (``TreeSpec``), as plain data.

    Raises ``NotImplementedError`` for a container whose parts have no names, or none that are
    attributes.
    """
    if spec.is_leaf():
        return LEAF
    children = tuple([structure_of(part) for part in children_of(spec)])
    context = spec.context
    # PyTorch's type of every named tuple is the function that makes their classes
    kind = context if spec.type is collections.namedtuple else spec.type
    name = kind.__name__
    if issubclass(kind, dict) and not hasattr(kind, "to_tuple"):
        keys = context[1] if issubclass(kind, collections.defaultdict) else context
        return Structure("dict", keys=tuple(keys), children=children)
    if kind in (tuple, list, collections.deque) or name == "Size":
        return Structure("tuple" if issubclass(kind, tuple) else "list", children=children)
    fields, empty = _fields(kind, context)
    if fields is None or len(fields) != len(children):
        raise NotImplementedError(
            f"from_torch: an argument or a result is a {name}, and it is not known what its parts "
            f"are called; wrap the module in one that takes and gives tuples and dictionaries"
        )
    named = tuple(map(str, (*fields, *empty)))
    try:
        record(name, named)
    except ValueError as error:
        raise NotImplementedError(f"from_torch: {error}") from error
    return Structure("named", name, named, (*children, *(NOTHING,) * len(empty)))


def _fields(kind: Any, context: Any) -> tuple[Sequence[Any] | None, Sequence[Any]]:
    """The names of the parts, if there are names; and those of what was None."""
    if issubclass(kind, tuple):  # named tuples, and what PyTorch's operations return
        return getattr(kind, "_fields", None) or getattr(kind, "__match_args__", None), ()
    if not isinstance(context, (tuple, list)):
        return None, ()
    if len(context) == 2 and all([isinstance(names, (tuple, list)) for names in context]):
        return context[0], context[1]  # a registered dataclass
    return context, ()
