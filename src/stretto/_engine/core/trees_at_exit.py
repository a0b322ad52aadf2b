"""Import optree so that trees stay known until the interpreter ends.

Optree has Python forget all classes of nodes, lists and dictionaries included, at ``atexit``.
Handlers run in the reverse order of their registration, so one that a user registered before this
package was imported, such as one that saves a last checkpoint, would find every tree a leaf. What
optree would forget there is freed by the end of the process as well. This comes before all other
modules, since whoever imports optree first has its handlers registered.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any


def _import_optree() -> None:
    register, thread = atexit.register, threading.get_ident()

    def register_others(handler: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        # Those of its extension, which are pybind11's, have no names; other threads have their own.
        unnamed = isinstance(handler, BuiltinFunctionType) and not handler.__name__
        if unnamed and threading.get_ident() == thread:
            return handler
        return register(handler, *args, **kwargs)

    try:
        atexit.register = register_others
        import optree  # noqa: F401, PLC0415 (here alone its handlers can be left out)
    finally:
        atexit.register = register


_import_optree()
