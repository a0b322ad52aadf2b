"""A module as a tree: iteration over what it holds, and its ``Layout``, all of it but the arrays.

``Module`` builds on it, and registers these functions.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from stretto._engine.core.boundary import bounded
from stretto._engine.core.caches import WeakTable
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.threads import lock
from stretto._engine.core.typing import Array, Tree

if TYPE_CHECKING:
    from stretto.nn.module import Module


class ModuleTree:
    """Walk over what a module holds, by the roles of its attributes."""

    _roles: dict[str, str]
    _holds_once: ClassVar[bool] = True  # what is at two places, which a file says (files/names.py)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over the modules among the attributes.

        Returns:
            Pairs of name and module.
        """
        for name, role in self._roles.items():
            if role == "module" and self.__dict__[name] is not None:
                yield name, self.__dict__[name]

    def children(self) -> Iterator[Module]:
        """Iterate over the modules among the attributes.

        Returns:
            The modules.
        """
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Iterate over this module and all inside it; one held twice comes once.

        Args:
            prefix: what names begin with.

        Yields:
            Pairs of dotted name and module; this module's own name is ``prefix``.
        """
        yield from self._walk(prefix, set())

    def _walk(self: Any, prefix: str, seen: set[int]) -> Iterator[tuple[str, Module]]:
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, module in self.named_children():
            yield from module._walk(f"{prefix}.{name}" if prefix else name, seen)

    def modules(self) -> Iterator[Module]:
        """Iterate over this module and all inside it; one held twice comes once.

        Returns:
            The modules.
        """
        return (module for _, module in self.named_modules())

    def _named(self, role: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, module in self.named_modules(prefix) if recurse else [(prefix, self)]:
            for name, r in module._roles.items():
                value = module.__dict__[name]
                if r == role and value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    @bounded
    def named_parameters(
        self, prefix: str = "", recurse: bool = True
    ) -> Iterator[tuple[str, Array]]:
        """Iterate over the parameters by name; one held twice comes once.

        Args:
            prefix: what names begin with.
            recurse: whether those of inner modules come too.

        Returns:
            Pairs of dotted name and array.
        """
        return self._named("parameter", prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Array]:
        """Iterate over the parameters; one held twice comes once.

        Args:
            recurse: whether those of inner modules come too.

        Returns:
            The arrays.
        """
        return (x for _, x in self.named_parameters(recurse=recurse))

    @described_like(named_parameters)
    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Array]]:
        """Iterate over the buffers by name; one held twice comes once."""
        return self._named("buffer", prefix, recurse)

    @described_like(parameters)
    def buffers(self, recurse: bool = True) -> Iterator[Array]:
        """Iterate over the buffers; one held twice comes once."""
        return (x for _, x in self.named_buffers(recurse=recurse))

    def _undifferentiated(self) -> Iterator[Array]:
        """Return the leaves that derivatives by a module leave out, where they have none."""
        return self.buffers()

    def get_submodule(self, target: str) -> Module:
        """Find a module inside this one by its dotted name.

        Args:
            target: the name, such as ``"encoder.layers.0"``; the empty name is this module's.

        Returns:
            The module.

        Raises:
            AttributeError: there is no such module; the message lists those there are.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            if module._roles.get(name) != "module" or module.__dict__[name] is None:
                have = [n for n, _ in module.named_children()]
                raise AttributeError(
                    f"{target!r}: {type(module).__name__} has no module {name!r}; it has {have}"
                )
            module = module.__dict__[name]
        return module

    def _arrays(self) -> Iterator[tuple[str, Any]]:
        """Return the module's own parameters and buffers, without those of inner modules."""
        for name, role in self._roles.items():
            if role in ("parameter", "buffer") and self.__dict__[name] is not None:
                yield name, self.__dict__[name]


BORROWED = "_borrowed"
"""An entry of a module that was taken from an ensemble, which changes to it would not reach."""

_M = TypeVar("_M", bound="Module")


class Layout:
    """Hold what a module is but its arrays: names and roles of attributes, and static values.

    Equal layouts are one object, so that structures of modules compare and hash fast.
    """

    __slots__ = ("__weakref__", "cls", "held", "roles", "static", "unsaved")

    _all: ClassVar[WeakTable[Layout]] = WeakTable()
    _lock = lock()

    cls: type
    roles: tuple[tuple[str, str], ...]
    """Names and roles, in order."""
    static: tuple[Any, ...]
    """The values of the static attributes."""
    held: tuple[str, ...]
    """The names of the other attributes."""
    unsaved: frozenset[str]
    """The buffers that are left out of ``state_dict``."""

    def __new__(
        cls,
        of: type,
        roles: tuple[tuple[str, str], ...],
        static: tuple[Any, ...],
        unsaved: frozenset[str],
    ) -> Layout:
        """Return the one layout with these contents."""
        # 1, 1.0 and True are equal; as settings of a layer they are not.
        key = (of, roles, static, tuple(map(type, static)), unsaved)
        with cls._lock:
            layout = cls._all.get(key)
            if layout is None:
                layout = super().__new__(cls)
                layout.cls, layout.roles, layout.static, layout.unsaved = of, roles, static, unsaved
                layout.held = tuple(name for name, role in roles if role != "static")
                cls._all.keep(key, layout)
        return layout

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, (self.cls, self.roles, self.static, self.unsaved)

    def difference(self, other: Layout) -> str:
        """Describe the attribute in which two modules of a class differ."""
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


def flatten(module: Module) -> tuple[list[Any], Layout, tuple[str, ...]]:
    """Return the attributes that are arrays or modules, the layout, and the names of the former."""
    held = module.__dict__
    layout = held["_layout"]
    if layout is None:
        roles = module._roles
        layout = held["_layout"] = Layout(
            type(module),
            tuple(roles.items()),
            tuple([held[n] for n, role in roles.items() if role == "static"]),
            module._unsaved,
        )
    return [held[n] for n in layout.held], layout, layout.held


def unflatten(layout: Layout, children: Iterable[Tree]) -> Module:
    """Return the module with this layout and these arrays and modules."""
    module = object.__new__(layout.cls)
    held = module.__dict__
    held["_roles"] = dict(layout.roles)
    held["_unsaved"] = layout.unsaved
    held["_layout"] = layout
    static, others = iter(layout.static), iter(children)
    for name, role in layout.roles:
        held[name] = next(static if role == "static" else others)
    return module


def clone(module: _M, memo: dict[int, Any], deep: bool = True) -> _M:
    """Return a copy of a module and, if ``deep``, of all inside it; what is shared stays shared.

    Deep copies get arrays of their own, so that the copy is not tied to the original.
    """
    if id(module) in memo:
        return memo[id(module)]
    copied = object.__new__(type(module))
    memo[id(module)] = copied
    copied.__dict__.update(module.__dict__)
    copied.__dict__["_roles"] = dict(module._roles)
    copied.__dict__.pop(BORROWED, None)
    if deep:
        for name, child in module.named_children():
            copied.__dict__[name] = clone(child, memo)
        for name, value in module._arrays():
            if not isinstance(value, Tracer):
                copied.__dict__[name] = memo.setdefault(id(value), copy.copy(value))
    return copied
