"""Packages that only the demo needs, imported when their turn comes."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from stretto.demo.errors import DemoError

__all__ = ["require"]


def require(module: str, package: str, purpose: str) -> ModuleType:
    """Return the module, or raise an error that says what it is for and how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise DemoError(
            f"{purpose} needs the package {package}: pip install 'stretto[demo]'"
        ) from error
