"""NumPy's floating-point error states, entered for the length of one call.

Layer 1 (core). ``np.errstate`` costs more than a small operation. A context of ``contextvars`` in
which the state was set once costs a third of it, but a thread may not enter one that it is in
already, as it would where a finalizer, a signal handler or a callback runs in the midst of a call:
there ``np.errstate`` serves. In C where the extension was built.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core.native import native

__all__ = ["ErrorState"]


class _Quiet:
    """Calls a function in a context, or ``nested`` with it while the thread is in it already."""

    __slots__ = ("_busy", "_context", "_nested")

    def __init__(self, context: contextvars.Context, nested: Callable[..., Any]) -> None:
        self._context = context
        self._nested = nested
        self._busy = False

    def __call__(self, f: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self._busy:
            return self._nested(f, *args, **options)
        # An interrupt between this line and the next leaves it set: later calls are only slower.
        self._busy = True
        try:
            return self._context.run(f, *args, **options)
        finally:
            self._busy = False


_Run: Any = _Quiet if native is None else native.Quiet


class ErrorState(threading.local):
    """What NumPy does at floating-point errors, as ``np.errstate`` takes it.

    ``run(f, *args, **options)`` calls a function under it, in any thread and at any depth.

    >>> import numpy as np
    >>> ErrorState(divide="ignore").run(np.divide, 1.0, 0.0)
    np.float64(inf)
    """

    def __init__(self, **handling: Any) -> None:
        def nested(f: Callable[..., Any], *args: Any, **options: Any) -> Any:
            with np.errstate(**handling):
                return f(*args, **options)

        context = contextvars.Context()
        context.run(np.seterr, **handling)
        self.run = _Run(context, nested)
