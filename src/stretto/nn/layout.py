"""``Layout``: what of a module is not arrays, so that trees of modules can be compared.

``module`` makes one when a module is flattened.
"""

from __future__ import annotations

from typing import Any, ClassVar

from stretto._engine.core.forks import lock
from stretto._engine.core.weak import WeakTable

__all__ = ["Layout"]


class Layout:
    """What of a module is not arrays: names and roles of attributes, and the static ones.

    Equal layouts are one object, so that structures of modules compare and hash fast.
    """

    __slots__ = ("__weakref__", "cls", "held", "roles", "static", "unsaved")

    _all: ClassVar[WeakTable[Layout]] = WeakTable()
    _lock = lock()

    cls: type
    roles: tuple[tuple[str, str], ...]
    """Names and roles, in order."""
    static: tuple[Any, ...]
    """The values of those that are static."""
    held: tuple[str, ...]
    """The names of the others."""
    unsaved: frozenset[str]
    """The buffers that are left out of ``state_dict``."""

    def __new__(
        cls,
        of: type,
        roles: tuple[tuple[str, str], ...],
        static: tuple[Any, ...],
        unsaved: frozenset[str],
    ) -> Layout:
        """The one layout of these."""
        # 1, 1.0 and True are equal; as settings of a layer they are not.
        key = (of, roles, static, tuple(map(type, static)), unsaved)
        with cls._lock:
            made = cls._all.get(key)
            if made is None:
                made = super().__new__(cls)
                made.cls, made.roles, made.static, made.unsaved = of, roles, static, unsaved
                made.held = tuple(name for name, role in roles if role != "static")
                cls._all.keep(key, made)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, (self.cls, self.roles, self.static, self.unsaved)

    def difference(self, other: Layout) -> str:
        """In which attribute two modules of a class differ, in words."""
        name = self.cls.__name__
        if [n for n, _ in self.roles] != [n for n, _ in other.roles]:
            ours, theirs = ([n for n, _ in x.roles] for x in (self, other))
            return f"a {name} with attributes {ours}, in this order, and one with {theirs}"
        for (n, role), (_, other_role) in zip(self.roles, other.roles):
            if role != other_role:
                return f"a {name} in which {n} is a {role}, and one in which it is a {other_role}"
        names = [n for n, role in self.roles if role == "static"]
        for n, a, b in zip(names, self.static, other.static):
            if a != b or type(a) is not type(b):
                return f"a {name} with {n}={a!r} and one with {n}={b!r}"
        return f"a {name} that saves all but {sorted(self.unsaved)} and one {sorted(other.unsaved)}"
