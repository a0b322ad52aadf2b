"""Modules and functions that are loaded when first used, because most programs need few of them.

``exports`` gives a package its names, each loaded when it is asked for. ``LazyModule`` stands for a
module of another package, ``LazyMethod`` for a method of a class; ``shown`` gives a class the
methods by which notebooks and rich show its objects.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from stretto._engine import core
from stretto._engine.core.guarded import guard

C = TypeVar("C", bound=type)


class LazyModule:
    """Stands for a module of another package; imports it when an attribute is first asked for.

    Stretto's own modules need none: their packages load them when they are asked for.

    >>> LazyModule("math").pi > 3
    True
    """

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # what tools ask of any object
            raise AttributeError(attribute)
        value = getattr(importlib.import_module(self._name), attribute)
        self.__dict__[attribute] = value
        return value


class LazyMethod:
    """Stands for a method that is a function of another module; imports that when first asked for.

    >>> class Angle(float):
    ...     sine = LazyMethod("math", "sin")
    >>> Angle.sine(0.0)
    0.0
    """

    def __init__(self, home: str, function: str) -> None:
        self._home, self._function = home, function

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        function = guard(getattr(importlib.import_module(self._home), self._function))
        setattr(self._owner, self._name, function)
        return function if instance is None else function.__get__(instance, owner)


def shown(home: str, card: str, text: str | None = None) -> Callable[[C], C]:
    """Decorate a class whose objects notebooks and rich show by a card; see ``core/cards``.

    ``card`` is the function of the module ``home`` that makes the card of an object. ``text`` is
    the one that makes its ``repr``, where that is not the class's own.

    >>> import stretto as st
    >>> print(st.make_graph(lambda x: x + 1)(1.0)._repr_html_())  # doctest: +ELLIPSIS
    <div class="stretto"><style>...<b>Program function</b> ...
    """

    def _repr_html_(self: Any) -> str:
        return core.cards.html_of(getattr(importlib.import_module(home), card)(self))

    def __rich__(self: Any) -> Any:
        return core.cards.renderable_of(getattr(importlib.import_module(home), card)(self))

    def __repr__(self: Any) -> str:
        assert text is not None
        return getattr(importlib.import_module(home), text)(self)

    methods = [_repr_html_, __rich__] + ([] if text is None else [__repr__])

    def decorate(cls: C) -> C:
        for method in methods:
            setattr(cls, method.__name__, method)
        return cls

    return decorate


brief = shown("stretto._engine.core.cards", "card_of", "text_of")
"""Decorates a class of named fields with trees of arrays, whose ``repr`` is short."""


def exports(name: str, names: str = "", extra: str = "") -> None:
    """Give a public package or module its names, each loaded when it is first asked for.

    ``names`` lists them after the modules that have them:

        if TYPE_CHECKING:
            from package import solids as solids
            from package.shapes import *

        exports(__name__, ".: solids .shapes: circle square")

    Type checkers, editors and import-linter read the imports; ``tools/make_exports.py`` writes the
    names that they stand for, and a test compares the two. A leading point stands for the package,
    whose own modules follow a point alone. What is imported above the call is public as well. A
    module calls ``exports(__name__)`` at its end and has what its ``__all__`` says.

    The package gets ``__getattr__``, ``__dir__`` and ``__all__``. A name that it lacks is an error
    that says what to write instead; see ``migration``. Modules that are not listed are private, and
    loaded when they are asked for too: ``from package import solids`` at the top of a file loads
    no module of ``solids`` before ``solids.edges.length()`` is called.

    Args:
        name: of the package or module that is being loaded: its ``__name__``.
        names: a module and a colon, then the names that it has; and so on.
        extra: the package without which its modules cannot be loaded, and the extra of Stretto
            that brings it, which are called the same.

    >>> import stretto
    >>> "nn" in dir(stretto), "nn" in stretto.__all__, stretto.nn.__name__
    (True, True, 'stretto.nn')
    """
    module = sys.modules[name]
    namespace = module.__dict__
    homes: dict[str, str] = {}
    home = ""
    for word in names.split():
        if word[-1] == ":":
            home = name + word[:-1] if word[0] == "." else word[:-1]
        else:
            homes[word] = home

    def get(attribute: str) -> Any:
        if attribute == "__all__":
            return [name for name in listed() if not name.startswith("_")]
        home = homes.get(attribute)
        if home is None or home == f"{name}.":
            value = _module_within(module, attribute, extra)
        else:
            value = getattr(_load(home, extra), attribute)
        namespace[attribute] = guard(value) if attribute in homes else value
        return value

    def listed() -> list[str]:
        if "__all__" in namespace:
            return sorted(namespace["__all__"])
        ready = {name for name, x in namespace.items() if not isinstance(x, ModuleType)}
        return sorted({*ready, *homes} - _MACHINERY)

    namespace["__getattr__"], namespace["__dir__"] = guard(get), listed
    for attribute, value in [*namespace.items()]:
        hidden = attribute in _MACHINERY or attribute.startswith("_")
        if not (hidden or isinstance(value, ModuleType)):
            guard(value)


_MACHINERY = {"TYPE_CHECKING", "exports", "__getattr__", "__dir__"}


def _module_within(package: ModuleType, name: str, extra: str) -> ModuleType:
    """Import a module of a package that is asked for as its attribute."""
    path = f"{package.__name__}.{name}"
    reason = None
    if not name.startswith("_"):  # Python and tools ask for such names, and need no reasons
        try:
            if "__path__" in vars(package):
                return _load(path, extra)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
        reason = core.migration.of_package(package.__name__, name)
    problem = f"module {package.__name__!r} has no attribute {name!r}"
    raise AttributeError(problem + (f": {reason}" if reason else ""), name=name, obj=package)


def _load(name: str, extra: str) -> ModuleType:
    """Import a module; where its package is missing, say which extra of Stretto brings it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not extra or error.name != extra:
            raise
        raise ModuleNotFoundError(
            f"this needs the package {extra}: pip install 'stretto[{extra}]'", name=extra
        ) from error
