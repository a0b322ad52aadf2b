"""The C extension, where it was built: the hot paths of small calls.

``native`` is the module ``_native`` of this package, or None if it could not be built or
``STRETTO_NATIVE=0`` turns it off; ``WITHOUT`` then says why. Everything that uses it has a Python
twin that gives the same results, and the same tests run with both.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import Any

_REVISION = 11
"""The revision that this package calls; an extension built from another source is not used."""

_REMEDY = (
    "With a C compiler and Python's headers there, "
    "pip install --force-reinstall --no-deps --no-cache-dir builds it; "
    "STRETTO_NATIVE=0 goes without it silently"
)


def _check_threads() -> None:
    """Raise ``ImportError`` where threads run Python at once: no table here is safe from that."""
    # Python below 3.13 has no such builds.
    takes_turns: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
    if not takes_turns:
        raise ImportError(
            "stretto: expected a Python with its global interpreter lock, got the free-threaded "
            f"build of Python {sys.version_info[0]}.{sys.version_info[1]} with the lock off, which "
            "is not supported: set PYTHON_GIL=1, or start it as python -X gil=1, or use the build "
            "with the lock (without the t)"
        )


def _load() -> tuple[Any, str]:
    """Load the module: it, and nothing more to say; or None, and why."""
    if os.environ.get("STRETTO_NATIVE") == "0":
        return None, "STRETTO_NATIVE=0 turns it off"
    try:
        module = importlib.import_module("stretto._engine.native._native")
    except ModuleNotFoundError:
        if "free-threading build" in sys.version:
            return None, "free-threaded builds of Python are not supported by it"
        return None, "it was not built for this Python"
    except ImportError as error:
        return None, f"it cannot be loaded ({error})"
    if module.REVISION != _REVISION:
        return None, "it was built from another version of the package"
    return module, ""


def _warn(why: str) -> None:
    """Say it once, where it was not asked for: results are the same, and slower."""
    warnings.warn(
        f"the extension in C of stretto is not used, so small operations take about twice as long: "
        f"{why}. {_REMEDY}.",
        RuntimeWarning,
        stacklevel=2,
    )


_check_threads()
native, WITHOUT = _load()

if native is None and os.environ.get("STRETTO_NATIVE") != "0":
    _warn(WITHOUT)
