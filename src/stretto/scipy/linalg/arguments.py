"""Conversion to complex numbers, for functions of matrices computed by the complex Schur form.

Next, read ``factorisations``.
"""

from __future__ import annotations

import numpy as np

from stretto._engine.core.typing import Array
from stretto._engine.ops.convert import convert

__all__ = ["as_complex"]


def as_complex(x: Array) -> Array:
    """Floating-point numbers as complex ones of the same precision."""
    return convert(x, np.result_type(x.dtype, np.complex64))
