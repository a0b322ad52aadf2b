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
    BooleanIndexError as BooleanIndexError, ConfigError as ConfigError,
    ContractionError as ContractionError, DonatedArrayError as DonatedArrayError,
    EscapedTracerError as EscapedTracerError, ExportError as ExportError,
    ForkedProcessError as ForkedProcessError,
    ForwardModeError as ForwardModeError, LostProcessError as LostProcessError,
    MissingRuleError as MissingRuleError, NonFiniteError as NonFiniteError,
    PerturbationError as PerturbationError, ProgramError as ProgramError,
    RecompilationWarning as RecompilationWarning, RefError as RefError, SizeError as SizeError,
    StrettoError as StrettoError, TracedValueError as TracedValueError,
    TypePromotionError as TypePromotionError, UnboundAxisError as UnboundAxisError,
)  # fmt: skip
from stretto._engine.core.lazy import exports

ConcretizationTypeError = TracedValueError
TracerArrayConversionError = TracedValueError
TracerBoolConversionError = TracedValueError
TracerIntegerConversionError = TracedValueError
NonConcreteBooleanIndexError = BooleanIndexError
UnexpectedTracerError = EscapedTracerError

exports(__name__)
