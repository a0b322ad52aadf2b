"""How arguments and results of an imported module are nested, as plain data.

PyTorch nests tensors in tuples, lists, dictionaries, named tuples and classes such as the outputs
of transformers. A ``Structure`` says how, takes a value apart that is nested so, and puts one
together; what PyTorch keeps in a class of its own becomes a named tuple here.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import keyword
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["LEAF", "NOTHING", "Structure", "record"]


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
