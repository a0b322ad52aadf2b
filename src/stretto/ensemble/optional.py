"""Import packages that need not be installed, when their turn comes; and make matplotlib's axes.

``plots``, ``training/fitted`` and ``training/loggers`` use these functions.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def first_of(modules: tuple[str, ...], caller: str, install: str) -> ModuleType:
    """Return the first of these modules that is installed.

    Raises ``ModuleNotFoundError``, which says what to install, where none is.
    """
    for name in modules:
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    names = " or ".join(dict.fromkeys(name.partition(".")[0] for name in modules))
    raise ModuleNotFoundError(f"{caller} needs {names}: pip install {install}")


def axes_of(ax: Axes | None, caller: str) -> Axes:
    """Return the axes given, or those of a new figure.

    Raises ``ModuleNotFoundError`` where matplotlib is not installed.
    """
    if ax is not None:
        return ax
    pyplot: Any = first_of(("matplotlib.pyplot",), caller, "'stretto[plots]'")
    return pyplot.subplots(layout="constrained")[1]
