"""Describe as plain data how arguments and results of an imported module are nested.

PyTorch nests tensors in tuples, lists, dictionaries, named tuples and classes such as the outputs
of transformers. A ``Structure`` says how, takes apart a value that is nested so, and puts one
together; what PyTorch keeps in a class of its own becomes a named tuple here. ``structure_of``
reads PyTorch's own description, which knows each container by its class and by what PyTorch keeps
beside it; where those have names, they are the fields.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import keyword
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Structure:
    """A leaf, or a container of structures.

    Args:
        kind: ``"leaf"``, ``"nothing"`` (a None that is never anything else), ``"tuple"``,
            ``"list"``, ``"dict"``, or ``"named"``.
        name: for a named one, that of its class.
        keys: of a dictionary; for a named one, its fields.
        children: what is in it.
    """

    kind: str
    name: str = ""
    keys: tuple[str | int, ...] = ()
    children: tuple[Structure, ...] = ()

    @property
    def size(self) -> int:
        """The number of leaves."""
        return 1 if self.kind == "leaf" else sum([child.size for child in self.children])

    def taken(self, value: Any, what: str) -> Iterator[tuple[str, Any]]:
        """The leaves of a value that is nested so, each with what it is called.

        Raises:
            TypeError: the value is nested otherwise; the message calls it ``what``.
        """
        if self.kind == "leaf":
            yield what, value
            return
        if self.kind == "nothing":
            if value is not None:
                raise TypeError(
                    f"{what}: expected None, as in the example it was imported with; got a "
                    f"{type(value).__name__}"
                )
            return
        for label, child, part in zip(
            self._labels(), self.children, self._parts(value, what), strict=True
        ):
            yield from child.taken(part, what + label)

    def _labels(self) -> list[str]:
        match self.kind:
            case "dict":
                return [f"[{key!r}]" for key in self.keys]
            case "named":
                return [f".{field}" for field in self.keys]
        return [f"[{k}]" for k in range(len(self.children))]

    def _parts(self, value: Any, what: str) -> Sequence[Any]:
        expected = f"{what}: expected {self}, as in the example it was imported with"
        match self.kind:
            case "dict":
                if not isinstance(value, Mapping):
                    raise TypeError(f"{expected}; got a {type(value).__name__}")
                if set(value) != set(self.keys):
                    raise TypeError(f"{expected}; got the keys {sorted(map(str, value))}")
                return [value[key] for key in self.keys]
            case "named" if not isinstance(value, (tuple, list)):
                found = [getattr(value, str(field), value) for field in self.keys]
                if any([part is value for part in found]):
                    raise TypeError(f"{expected}; got a {type(value).__name__}")
                return found
        if not isinstance(value, (tuple, list, collections.deque)):
            raise TypeError(f"{expected}; got a {type(value).__name__}")
        if len(value) != len(self.children):
            raise TypeError(f"{expected}; got {len(value)} elements")
        return list(value)

    def filled(self, leaves: Iterator[Any]) -> Any:
        """The value that is nested so, of these leaves in order."""
        if self.kind == "leaf":
            return next(leaves)
        if self.kind == "nothing":
            return None
        parts = [child.filled(leaves) for child in self.children]
        match self.kind:
            case "tuple":
                return tuple(parts)
            case "list":
                return parts
            case "dict":
                return dict(zip(self.keys, parts, strict=True))
        return record(self.name, tuple(map(str, self.keys)))(*parts)

    def __str__(self) -> str:
        match self.kind:
            case "leaf":
                return "an array or a number"
            case "nothing":
                return "None"
            case "dict":
                return f"a dictionary with the keys {list(self.keys)}"
            case "named":
                return f"{self.name} with the fields {list(self.keys)}"
        return f"a {self.kind} of {len(self.children)}"

    def to_json(self) -> Any:
        """The structure in terms of JSON."""
        parts = [child.to_json() for child in self.children]
        return [self.kind, self.name, list(self.keys), parts]

    @classmethod
    def from_json(cls, data: Any) -> Structure:
        """The structure that ``to_json`` gave this for.

        Raises:
            ValueError: it is not of that form.
        """
        kind, name, keys, parts = data
        children = tuple([cls.from_json(part) for part in parts])
        if kind not in ("leaf", "nothing", "tuple", "list", "dict", "named") or (
            kind in ("dict", "named") and len(keys) != len(children)
        ):
            raise ValueError(f"this is no structure: {data!r}")
        return cls(kind, str(name), tuple(keys), children)


LEAF = Structure("leaf")
NOTHING = Structure("nothing")


@functools.cache
def record(name: str, fields: tuple[str, ...]) -> type:
    """The class of named tuples of this name and with these fields, which are keys as well."""
    valid = [field.isidentifier() and not keyword.iskeyword(field) for field in fields]
    if not all(valid) or any([field.startswith("_") for field in fields]):
        raise ValueError(f"{name}: the fields {list(fields)} cannot be attributes")
    base: Any = collections.namedtuple(name, fields)

    def by_key(self: Any, key: Any) -> Any:
        return getattr(self, key) if isinstance(key, str) else tuple.__getitem__(self, key)

    return type(name, (base,), {"__slots__": (), "__getitem__": by_key})


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
