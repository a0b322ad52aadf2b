"""The exceptions of this package, help for unknown names, and NumPy's floating-point error states.

Each exception is named after what went wrong, and derives from the built-in one that Python would
raise in its place too, so that code that catches those works. Where the user names something in a
string or a keyword (settings, static arguments, options), ``refuse_unknown`` lists the known names
and guesses which was meant.

NumPy's error states are entered for the length of one call. ``np.errstate`` costs more than a small
operation does. Running in a ``contextvars`` context in which the state was set once costs a third
of that. But a thread cannot enter a context that it is already in, which a finalizer, a signal
handler or a callback in the middle of a call would do; those fall back to ``np.errstate``. The C
extension has its own version of ``_Quiet``.
"""

from __future__ import annotations

import contextvars
import difflib
import inspect
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from stretto._engine.native import native


class StrettoError(Exception):
    """The base of every error that only Stretto raises."""


class ConfigError(StrettoError, ValueError, AttributeError):
    """A setting has no such name, or does not take such a value."""


class TracedValueError(StrettoError, TypeError):
    """A traced value was used where Python needs a concrete one."""


class TypePromotionError(StrettoError, TypeError, ValueError):
    """The dtypes of arguments have no common dtype, or one could be reached only with a loss."""


class ContractionError(StrettoError, TypeError, ValueError):
    """Axes along which two arrays are to be multiplied and summed have different sizes."""


class BooleanIndexError(TracedValueError, IndexError):
    """A traced boolean mask was used as an index: the shape of the result would depend on it."""


class SizeError(TracedValueError):
    """Python needs to know a size that is known only while the program runs."""


class EscapedTracerError(StrettoError, TypeError):
    """A traced value outlived the call that traced it."""


class DonatedArrayError(StrettoError, RuntimeError):
    """An array was used after a jitted call had taken its memory, or after it was deleted."""


class ForkedProcessError(StrettoError, RuntimeError):
    """A forked child needs XLA, whose threads stayed with the process that it was forked from."""


class LostProcessError(StrettoError, RuntimeError):
    """Processes that work together cannot go on: one of them has ended, or does not answer."""


class UnboundAxisError(StrettoError, NameError):
    """A collective names an axis that no ``vmap`` around it has."""


class MissingRuleError(StrettoError, NotImplementedError):
    """A primitive refuses a transformation; the message says why, and what to use."""


class ExportError(StrettoError, NotImplementedError):
    """A program has an operation that the format of the file cannot say."""


class PerturbationError(StrettoError, TypeError):
    """A derivative by something that a custom rule gives none by; the message says by what."""


class ForwardModeError(MissingRuleError, TypeError):
    """A forward derivative of a function whose rule gives only the reverse one."""


class ProgramError(StrettoError):
    """A program is not well formed: the checker found it, and the fault is in a pass."""


class NonFiniteError(StrettoError, FloatingPointError):
    """An operation made NaN or infinity, under ``config.debug_nans`` or ``config.debug_infs``.

    Args:
        fault: says which, and where; see ``eager/checked``. It is an attribute, too.
    """

    def __init__(self, fault: Any) -> None:
        super().__init__(fault)
        self.fault = fault


class RefError(StrettoError, TypeError, ValueError):
    """A mutable reference was used where it cannot be: the message says where to use its value."""


class RecompilationWarning(UserWarning):
    """One jitted function was compiled again and again; the message says what differed."""


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` is a misspelling or an abbreviation of, if there is one.

    >>> meant("lr", ["b1", "learning_rate"]), meant("weigth_decay", ["weight_decay"])
    ('learning_rate', 'weight_decay')
    """
    names = list(known)
    matches = difflib.get_close_matches(name, names)
    return matches[0] if matches else next((n for n in names if _abbreviates(name, n)), None)


def _abbreviates(short: str, name: str) -> bool:
    """Say whether both begin alike, and the short one's letters occur in the name in order.

    As ``lr`` does in ``learning_rate``.
    """
    letters = iter(name)
    return short[:1] == name[:1] != "" and all(c in letters for c in short)


def refuse_unknown(
    caller: str, what: str, names: Iterable[str], function: Callable[..., Any], function_name: str
) -> None:
    """Raise ``TypeError`` for the first name that is not a parameter of the function."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    for name in names:
        if name not in parameters:
            guess = meant(name, parameters)
            raise TypeError(
                f"{caller}: {function_name} has no {what} {name!r}"
                f"{'' if guess is None else f' (did you mean {guess!r}?)'}; it has "
                f"{', '.join(parameters)}"
            )


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
