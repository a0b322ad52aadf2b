"""``jax.dtypes``."""

from stretto._engine.core.types import is_inexact
from stretto.compat.jax.naming import names_of

__all__ = ["DType", "ExtendedDType", "bfloat16", "supports_inf"]

import numpy as np
from ml_dtypes import bfloat16

DType = np.dtype
ExtendedDType = type("ExtendedDType", (), {"__doc__": "Dtypes that are not of numbers."})


def supports_inf(dtype: object) -> bool:
    """Whether a dtype has infinities."""
    number = np.dtype(dtype)  # type: ignore[call-overload]
    return is_inexact(number) and bool(np.isinf(np.asarray(np.inf).astype(number)))


__getattr__, __dir__ = names_of("stretto.dtypes")
