"""The C extension, where it was built: the hot paths of small calls.

Layer 1 (core). ``native`` is the module ``stretto._native``, or None if it could not be built or
``STRETTO_NATIVE=0`` turns it off. Everything that uses it has a Python twin that gives the same
results, and the same tests run with both.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

__all__ = ["native"]


_REVISION = 6
"""The revision that this package calls; an extension built from another source is not used."""


def _load() -> Any:
    if os.environ.get("STRETTO_NATIVE") == "0":
        return None
    try:
        module = importlib.import_module("stretto._native")
    except ImportError:
        return None
    return module if module.REVISION == _REVISION else None


native: Any = _load()
