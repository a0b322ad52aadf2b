"""The compiled extension, where it was built: the hot paths of small calls, in C.

Layer 1 (core). ``native`` is the module ``stretto._native``, or None where it could not be built,
or ``STRETTO_NATIVE=0`` says to do without. Whatever uses it has a twin in Python that gives the
same results, and the same tests run with both.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

__all__ = ["native"]


_REVISION = 5
"""Of the extension that this package calls; one built from another source is not used."""


def _load() -> Any:
    if os.environ.get("STRETTO_NATIVE") == "0":
        return None
    try:
        found = importlib.import_module("stretto._native")
    except ImportError:
        return None
    return found if found.REVISION == _REVISION else None


native: Any = _load()
