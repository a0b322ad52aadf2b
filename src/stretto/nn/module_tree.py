"""``ModuleTree``: iteration over the modules, parameters and buffers inside a module.

``Module`` builds on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stretto._engine.core.boundary import bounded
from stretto._engine.core.typing import Array

if TYPE_CHECKING:
    from stretto.nn.module import Module

__all__ = ["ModuleTree"]


class ModuleTree:
    """Walks over what a module holds, by the roles of its attributes."""

    _roles: dict[str, str]

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

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Array]]:
        """Iterate over the buffers by name; one held twice comes once.

        Args:
            prefix: what names begin with.
            recurse: whether those of inner modules come too.

        Returns:
            Pairs of dotted name and array.
        """
        return self._named("buffer", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Array]:
        """Iterate over the buffers; one held twice comes once.

        Args:
            recurse: whether those of inner modules come too.

        Returns:
            The arrays.
        """
        return (x for _, x in self.named_buffers(recurse=recurse))

    def _undifferentiated(self) -> Iterator[Array]:
        """The leaves that derivatives by a module leave out, where they have none."""
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
        """The module's own parameters and buffers, without those of inner modules."""
        for name, role in self._roles.items():
            if role in ("parameter", "buffer") and self.__dict__[name] is not None:
                yield name, self.__dict__[name]
