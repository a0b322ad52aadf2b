"""NumPy's floating-point error states, entered for the length of one call.

``np.errstate`` costs more than a small operation does. Running in a ``contextvars`` context in
which the state was set once costs a third of that. But a thread cannot enter a context that it is
already in, which a finalizer, a signal handler or a callback in the middle of a call would do;
those fall back to ``np.errstate``. The C extension has its own version of ``_Quiet``.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.native import native


class _Quiet:
    """Calls functions in a context; calls ``nested`` instead while the thread is already in it."""

    __slots__ = ("_busy", "_context", "_nested")

    def __init__(self, context: contextvars.Context, nested: Callable[..., Any]) -> None:
        self._context = context
        self._nested = nested
        self._busy = False

    def __call__(self, f: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self._busy:
            return self._nested(f, *args, **options)
        # An interrupt between this line and the next leaves it set, which makes later calls slower
        # and nothing worse.
        self._busy = True
        try:
            return self._context.run(f, *args, **options)
        finally:
            self._busy = False


_Run: Any = _Quiet if native is None else native.Quiet


class ErrorState(threading.local):
    """Say how NumPy treats floating-point errors; takes the options of ``np.errstate``.

    ``run(f, *args, **options)`` calls a function in this state, in any thread, also nested.

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
