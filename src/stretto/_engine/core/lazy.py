"""What is loaded when first used, because loading it costs more than most programs need.

``LazyModule`` stands for a module inside another, ``LazyMethod`` for a method of a class; ``shown``
gives a class the methods by which notebooks and rich show its objects; ``imports_on_demand`` makes
the imports of a package wait until their names are asked for.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn, TypeVar

from stretto._engine.core.guarded import guard

C = TypeVar("C", bound=type)


class LazyModule:
    """Stands for a module; imports it when an attribute is first asked for.

    One that imports a package which only an extra of Stretto brings says so by ``extra``, the name
    of both; where the package is missing, the error then says how to install it.

    >>> LazyModule("math").pi > 3
    True
    """

    def __init__(self, name: str, extra: str = "") -> None:
        self.__dict__["_name"] = name
        self.__dict__["_extra"] = extra

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # what tools ask of any object
            raise AttributeError(attribute)
        try:
            module = importlib.import_module(self._name)
        except ModuleNotFoundError as error:
            if not self._extra or error.name != self._extra:
                raise
            raise ModuleNotFoundError(
                f"this needs the package {self._extra}: pip install 'stretto[{self._extra}]'",
                name=self._extra,
            ) from error
        value = getattr(module, attribute)
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
    """Decorate a class whose objects notebooks and rich show by a card; see ``core/showing``.

    ``card`` is the function of the module ``home`` that makes the card of an object. ``text`` is
    the one that makes its ``repr``, where that is not the class's own.

    >>> import stretto as st
    >>> print(st.make_graph(lambda x: x + 1)(1.0)._repr_html_())  # doctest: +ELLIPSIS
    <div class="stretto"><style>...<b>Program function</b> ...
    """

    def _repr_html_(self: Any) -> str:
        return _html.html_of(getattr(importlib.import_module(home), card)(self))

    def __rich__(self: Any) -> Any:
        return _terminal.renderable_of(getattr(importlib.import_module(home), card)(self))

    def __repr__(self: Any) -> str:
        assert text is not None
        return getattr(importlib.import_module(home), text)(self)

    methods = [_repr_html_, __rich__] + ([] if text is None else [__repr__])

    def decorate(cls: C) -> C:
        for method in methods:
            setattr(cls, method.__name__, method)
        return cls

    return decorate


_html = LazyModule("stretto._engine.core.showing.html")
_terminal = LazyModule("stretto._engine.core.showing.terminal")

brief = shown("stretto._engine.core.showing.cards", "card_of", "text_of")
"""Decorates a class of named fields with trees of arrays, whose ``repr`` is short."""


@contextmanager
def imports_on_demand(package: str, absent: Mapping[str, str] | None = None) -> Iterator[None]:
    """Make the imports in the block wait until their names are asked for.

    In a package's ``__init__``,

        with imports_on_demand(__name__):
            from package import solids as solids
            from package.shapes import circle as circle, square as square
            from package.colours import *

    is all that there is to say: type checkers and people read imports, and the package gets its
    ``__getattr__``, ``__dir__`` and ``__all__`` from them. A module of the package itself is named
    like ``solids``. ``as`` with the same name makes a name public, as in any typed package. The
    names of a star are not known before its module is loaded, which happens when a name is asked
    for that no other import has, or when all names are.

    ``__all__`` and ``dir`` have what the block imports and what the package imported before it, but
    not the modules that it comes from. ``absent`` has names that users of other packages may look
    for, and what to say of them; ``migration`` has PyTorch's.

    >>> import stretto
    >>> "nn" in dir(stretto), "nn" in stretto.__all__, stretto.nn.__name__
    (True, True, 'stretto.nn')
    """
    module = sys.modules[package]
    namespace = module.__dict__
    homes: dict[str, str] = {}
    stars: list[str] = []
    loaded = dict(namespace)
    with _imports_replaced(namespace, homes, stars):
        yield
    for name in homes:
        del namespace[name]
        if name in loaded:
            namespace[name] = loaded[name]
    reasons = {name: why for names, why in (absent or {}).items() for name in names.split()}

    def get(name: str) -> Any:
        if name == "__all__":
            return [name for name in names() if not name.startswith("_")]
        home = homes.get(name)
        if home is None and not name.startswith("_"):
            home = next((x for x in stars if name in importlib.import_module(x).__all__), None)
        if home is None:
            raise _not_there(module, name, reasons.get(name))
        if home == package:
            value = importlib.import_module(f"{package}.{name}")
        else:
            value = getattr(importlib.import_module(home), name)
        namespace[name] = guard(value)
        return value

    def names() -> list[str]:
        ready = {name for name, x in namespace.items() if not isinstance(x, ModuleType)}
        starred = [name for home in stars for name in importlib.import_module(home).__all__]
        return sorted({*ready, *homes, *starred} - _MACHINERY)

    namespace["__getattr__"], namespace["__dir__"] = guard(get), names
    for name, value in loaded.items():
        if not (name.startswith("_") or isinstance(value, ModuleType)):
            guard(value)


_MACHINERY = {"imports_on_demand", "__getattr__", "__dir__"}


def no_attribute(package: str) -> Callable[[str], NoReturn]:
    """The ``__getattr__`` of a module whose imports do not wait: it says what to write instead.

    >>> import stretto.nn.init
    >>> no_attribute("stretto.nn.init")("zeros_")
    Traceback (most recent call last):
    AttributeError: module 'stretto.nn.init' has no attribute 'zeros_': use `model...
    """
    module = sys.modules[package]

    def get(name: str) -> NoReturn:
        raise _not_there(module, name, None)

    guard(module)
    return guard(get)


def _not_there(module: ModuleType, name: str, reason: str | None) -> AttributeError:
    """The error for a name that a module does not have."""
    reason = reason or _migration.of_package(module.__name__, name)
    problem = f"module {module.__name__!r} has no attribute {name!r}"
    return AttributeError(problem + (f": {reason}" if reason else ""), name=name, obj=module)


_migration = LazyModule("stretto._engine.core.migration")

_one_at_a_time = threading.RLock()


@contextmanager
def _imports_replaced(
    namespace: dict[str, Any], homes: dict[str, str], stars: list[str]
) -> Iterator[None]:
    """Let the imports of the module with this namespace load nothing, but be written down.

    Python asks ``builtins.__import__`` at each import statement. Another stands there meanwhile,
    through which the imports of all other modules, in whatever thread, pass.
    """

    def note(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if globals is not namespace or not noting:
            return load(name, globals, locals, fromlist, level)  # type: ignore[arg-type]
        assert fromlist and not level, "the block has lines of the form: from module import name"
        if "*" in fromlist:
            stars.append(name)
            return SimpleNamespace(__all__=())
        homes.update(dict.fromkeys(fromlist, name))
        return SimpleNamespace(**dict.fromkeys(fromlist))

    noting = True
    with _one_at_a_time:
        load, builtins.__import__ = builtins.__import__, note
        try:
            yield
        finally:
            noting = False
            if builtins.__import__ is note:
                builtins.__import__ = load
