"""What is loaded when first used, because loading it costs more than most programs need.

Layer 1 (core). ``LazyModule`` stands for a module inside another, ``LazyMethod`` for a method of a
class; ``names_on_demand`` gives a package names that it does not load before they are asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

__all__ = ["LazyMethod", "LazyModule", "names_on_demand"]


class LazyModule:
    """Stands for a module; imports it when an attribute is first asked for.

    >>> LazyModule("math").pi > 3
    True
    """

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, attribute: str) -> Any:
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
        function = getattr(importlib.import_module(self._home), self._function)
        setattr(self._owner, self._name, function)
        return function if instance is None else function.__get__(instance, owner)


_MACHINERY = {"TYPE_CHECKING", "names_on_demand", "__getattr__", "__dir__"}


def names_on_demand(
    package: str, table: Mapping[str, str], absent: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, for names that are loaded when first used.

    ``table`` says which module each name is in: ``{"package.shapes": "circle square"}`` does what
    ``from package.shapes import circle, square`` would. The package's own modules are listed under
    its own name: ``{"package": "shapes"}``. A type checker is told the same by imports under
    ``if TYPE_CHECKING``. ``dir`` gives these names and those that are loaded already, without the
    modules that they come from.

    ``absent`` has names that users of other packages may look for, and what to say of them.

    >>> import stretto
    >>> "nn" in dir(stretto), stretto.nn.__name__
    (True, 'stretto.nn')
    """
    reasons = {name: why for names, why in (absent or {}).items() for name in names.split()}
    homes = {name: home for home, names in table.items() for name in names.split()}
    module = sys.modules[package]
    namespace = module.__dict__

    def get(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            problem = f"module {package!r} has no attribute {name!r}"
            if name in reasons:
                problem += f": {reasons[name]}"
            raise AttributeError(problem, name=name, obj=module)
        if home == package:
            return importlib.import_module(f"{package}.{name}")
        value = namespace[name] = getattr(importlib.import_module(home), name)
        return value

    def names() -> list[str]:
        loaded = {name for name, x in namespace.items() if not isinstance(x, ModuleType)}
        return sorted({*loaded, *homes, *namespace.get("__all__", ())} - _MACHINERY)

    return get, names
