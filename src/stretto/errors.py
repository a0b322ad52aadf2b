"""``stretto.errors``: what can go wrong, each kind by name; also under the names of ``jax.errors``.

Several of JAX's names are one kind here, where the remedy is the same.

>>> import stretto as st
>>> try:
...     st.jit(lambda x: x if x > 0 else -x)(1.0)
... except st.errors.TracerBoolConversionError as error:
...     print(type(error).__name__)
TracedValueError
"""

from stretto._engine.core.errors import (
    BooleanIndexError,
    ConfigError,
    ContractionError,
    DonatedArrayError,
    EscapedTracerError,
    ForkedProcessError,
    ForwardModeError,
    LostProcessError,
    MissingRuleError,
    NonFiniteError,
    PerturbationError,
    ProgramError,
    RecompilationWarning,
    RefError,
    SizeError,
    StrettoError,
    TracedValueError,
    TypePromotionError,
    UnboundAxisError,
)
from stretto._engine.core.lazy import exports

__all__ = ["BooleanIndexError", "ConcretizationTypeError", "ConfigError",
           "ContractionError", "DonatedArrayError", "EscapedTracerError",
           "ForkedProcessError", "ForwardModeError", "LostProcessError",
           "MissingRuleError", "NonConcreteBooleanIndexError", "NonFiniteError",
           "PerturbationError", "ProgramError", "RecompilationWarning", "RefError",
           "SizeError", "StrettoError", "TracedValueError",
           "TracerArrayConversionError", "TracerBoolConversionError",
           "TracerIntegerConversionError", "TypePromotionError", "UnboundAxisError",
           "UnexpectedTracerError"]  # fmt: skip

ConcretizationTypeError = TracedValueError
TracerArrayConversionError = TracedValueError
TracerBoolConversionError = TracedValueError
TracerIntegerConversionError = TracedValueError
NonConcreteBooleanIndexError = BooleanIndexError
UnexpectedTracerError = EscapedTracerError

exports(__name__)
