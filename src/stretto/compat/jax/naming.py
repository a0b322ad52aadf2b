"""How a presented module has the names of a module of Stretto's, beside its own.

>>> from stretto.compat.jax.naming import names_of
>>> get, names = names_of("stretto.numpy")
>>> get("pi") > 3
True
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["names_of"]


def names_of(*homes: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module that has these modules' names.

    Args:
        *homes: the modules, the first that has a name first.
    """

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for home in homes[:-1]:
            try:
                return getattr(importlib.import_module(home), name)
            except AttributeError:
                continue
        return getattr(importlib.import_module(homes[-1]), name)

    def names() -> list[str]:
        return sorted({name for home in homes for name in dir(importlib.import_module(home))})

    return get, names
