"""The exceptions of this package, each named after what went wrong.

Each also derives from the built-in exception that Python would raise in its place, so that code
that catches those works.
"""

from __future__ import annotations

from typing import Any


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


class PerturbationError(StrettoError, TypeError):
    """A derivative by something that a custom rule gives none by; the message says by what."""


class ForwardModeError(MissingRuleError, TypeError):
    """A forward derivative of a function whose rule gives only the reverse one."""


class ProgramError(StrettoError):
    """A program is not well formed: the checker found it, and the fault is in a pass."""


class NonFiniteError(StrettoError, FloatingPointError):
    """An operation made NaN or infinity, under ``config.debug_nans`` or ``config.debug_infs``.

    Args:
        fault: says which, and where; see ``core/faults``. It is an attribute, too.
    """

    def __init__(self, fault: Any) -> None:
        super().__init__(fault)
        self.fault = fault


class RefError(StrettoError, TypeError, ValueError):
    """A mutable reference was used where it cannot be: the message says where to use its value."""


class RecompilationWarning(UserWarning):
    """One jitted function was compiled again and again; the message says what differed."""
