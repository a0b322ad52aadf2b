"""Packages that need not be installed, imported when their turn comes.

Used by ``plots``, and by ``training/fitted`` and ``training/loggers``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["first_of"]


def first_of(modules: tuple[str, ...], caller: str, install: str) -> ModuleType:
    """The first of these modules that is installed.

    Raises ``ModuleNotFoundError``, which says what to install, where none is.
    """
    for name in modules:
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    names = " or ".join(dict.fromkeys(name.partition(".")[0] for name in modules))
    raise ModuleNotFoundError(f"{caller} needs {names}: pip install {install}")
