"""Modules that hold modules, or parameters, in order or by name.

``Sequential`` runs what it holds; the others hold it, so that it is trained and named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stretto._engine.core.integers import integer
from stretto._engine.core.migration import class_of
from stretto._engine.core.typing import Tree
from stretto.nn.module import Module, Parameter


class _Ordered(Module):
    """Hold what the numbered containers share: attributes ``0``, ``1``, ..."""

    _holds = "parameter"

    def _value(self, value: Tree) -> Tree:
        return Parameter(value)

    def _names(self) -> list[str]:
        return [name for name in self._roles if name.isdigit()]

    def __len__(self) -> int:
        return len(self._names())

    def __iter__(self) -> Iterator[Tree]:
        return (self.__dict__[name] for name in self._names())

    def __getitem__(self, index: int | slice) -> Tree:
        if isinstance(index, slice):
            return self._from(list(self)[index])
        return self.__dict__[self._place(index)]

    def __setitem__(self, index: int, value: Tree) -> None:
        setattr(self, self._place(index), self._value(value))

    def __delitem__(self, index: int | slice) -> None:
        values = list(self)
        del values[index]
        self._replace(values)

    def _replace(self, values: Iterable[Tree]) -> None:
        """Hold these values instead, numbered from 0."""
        for name in self._names():
            delattr(self, name)
        self.extend(values)

    def _place(self, index: int) -> str:
        i = integer(index, type(self).__name__, "the index")
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"{type(self).__name__}: index {i}, but it has {n} elements")
        return self._names()[i % n]

    def _from(self, values: Iterable[Tree]) -> Tree:
        container = type(self).__new__(type(self))
        Module.__init__(container)
        container.training = self.training
        return container.extend(values)

    def append(self, value: Tree) -> Tree:
        """Add an element at the end.

        Args:
            value: the element.

        Returns:
            The container.
        """
        name = str(len(self))
        self._free(name)
        setattr(self, name, self._value(value))
        return self

    def extend(self, values: Iterable[Tree]) -> Tree:
        """Add elements at the end.

        Args:
            values: the elements, in order.

        Returns:
            The container.
        """
        for value in values:
            self.append(value)
        return self

    def insert(self, index: int, value: Tree) -> None:
        """Add an element before an index.

        Args:
            index: where; negative ones count from the end.
            value: the element.
        """
        self._value(value)
        values = list(self)
        values.insert(index, value)
        self._replace(values)

    def pop(self, index: int = -1) -> Tree:
        """Remove an element.

        Args:
            index: which; the last by default.

        Returns:
            The element.

        Raises:
            IndexError: there is no such element.
        """
        value = self[index]
        del self[index]
        return value


class ModuleList(_Ordered):
    """A list of modules, held by another module.

    Args:
        modules: the modules, in order.

    Raises:
        TypeError: an element is not a module.

    As PyTorch's ``nn.ModuleList``.

    >>> from stretto import nn
    >>> layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    >>> len(layers), list(layers.state_dict())
    (2, ['0.weight', '0.bias', '1.weight', '1.bias'])
    """

    _holds = "module"

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def _value(self, value: Tree) -> Tree:
        if not isinstance(value, Module):
            raise TypeError(f"{type(self).__name__}: expected modules, got {class_of(value)}")
        return value


class Sequential(ModuleList):
    """Modules run one after another: each takes what the one before it gives.

    Args:
        *modules: the modules in order, or one dictionary of names and modules.

    Raises:
        TypeError: an argument is not a module.

    As PyTorch's ``nn.Sequential``.

    >>> import stretto as st
    >>> from stretto import nn
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    >>> model(st.numpy.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        Module.__init__(self)
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.register_module(name, module)
        else:
            self.extend(modules)

    def _names(self) -> list[str]:
        return [name for name, role in self._roles.items() if role == "module"]

    def forward(self, input: Tree) -> Tree:
        """Run the modules.

        Args:
            input: what the first module takes.

        Returns:
            What the last module gives; ``input`` itself where there is none.
        """
        for module in self:
            input = module(input)
        return input


class ModuleDict(Module):
    """A dictionary of modules, held by another module.

    Args:
        modules: a dictionary of names and modules, or pairs of them.

    Raises:
        KeyError: a name is that of another attribute.
        TypeError: a value is not a module.

    As PyTorch's ``nn.ModuleDict``.

    >>> from stretto import nn
    >>> heads = nn.ModuleDict({"left": nn.Linear(2, 1), "right": nn.Linear(2, 1)})
    >>> sorted(heads)
    ['left', 'right']
    """

    def __init__(self, modules: Mapping[str, Tree] | Iterable[tuple[str, Tree]] = ()) -> None:
        super().__init__()
        self.update(modules)

    def _names(self) -> list[str]:
        return [name for name, role in self._roles.items() if role == self._holds]

    _holds = "module"

    def _value(self, value: Tree) -> Tree:
        if not isinstance(value, Module):
            raise TypeError(f"{type(self).__name__}: expected modules, got {class_of(value)}")
        return value

    def __len__(self) -> int:
        return len(self._names())

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __contains__(self, name: str) -> bool:
        return name in self._names()

    def __getitem__(self, name: str) -> Tree:
        if name not in self._names():
            raise KeyError(f"{type(self).__name__} has no {name!r}; it has {self._names()}")
        return self.__dict__[name]

    def __setitem__(self, name: str, value: Tree) -> None:
        if name not in self._names():
            self._free(name)
        setattr(self, name, self._value(value))

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def pop(self, name: str) -> Tree:
        """Remove an element by name.

        Args:
            name: its name.

        Returns:
            The element.

        Raises:
            KeyError: there is no such element.
        """
        value = self[name]
        delattr(self, name)
        return value

    def keys(self) -> list[str]:
        """List the names, in order.

        Returns:
            The names.
        """
        return self._names()

    def values(self) -> list[Tree]:
        """List the elements, in order.

        Returns:
            The elements.
        """
        return [self.__dict__[name] for name in self._names()]

    def items(self) -> list[tuple[str, Tree]]:
        """List pairs of name and element, in order.

        Returns:
            The pairs.
        """
        return [(name, self.__dict__[name]) for name in self._names()]

    def update(self, values: Mapping[str, Tree] | Iterable[tuple[str, Tree]]) -> None:
        """Add elements, or replace those of the same names.

        Args:
            values: a dictionary of names and elements, or pairs of them.
        """
        pairs: Any = values
        for name, value in pairs.items() if hasattr(pairs, "items") else pairs:
            self[name] = value


class ParameterList(_Ordered):
    """A list of parameters, held by a module.

    Args:
        values: the arrays, in order.

    Raises:
        TypeError: an element is not an array, or has no gradient.

    As PyTorch's ``nn.ParameterList``.

    >>> import stretto as st
    >>> from stretto import nn
    >>> scales = nn.ParameterList([st.numpy.ones(2), st.numpy.ones(3)])
    >>> [p.shape for p in scales]
    [(2,), (3,)]
    """

    def __init__(self, values: Iterable[Tree] = ()) -> None:
        super().__init__()
        self.extend(values)


class ParameterDict(ModuleDict):
    """A dictionary of parameters, held by a module.

    Args:
        modules: a dictionary of names and arrays, or pairs of them.

    Raises:
        KeyError: a name is that of another attribute.
        TypeError: a value is not an array, or has no gradient.

    As PyTorch's ``nn.ParameterDict``.

    >>> import stretto as st
    >>> from stretto import nn
    >>> nn.ParameterDict({"scale": st.numpy.ones(2)})["scale"].shape
    (2,)
    """

    _holds = "parameter"

    def _value(self, value: Tree) -> Tree:
        return Parameter(value)
