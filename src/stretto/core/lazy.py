"""Modules that are loaded when first used, because loading them costs more than most programs need.

Layer 1 (core).
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["LazyModule"]


class LazyModule:
    """Stands for a module of a dependency; imports it when an attribute is first asked for.

    >>> LazyModule("math").pi > 3
    True
    """

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        self.__dict__[attribute] = value
        return value
