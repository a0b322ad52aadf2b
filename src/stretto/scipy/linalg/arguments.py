"""Arguments as values, under their names in errors; and as complex numbers, for Schur forms."""

from __future__ import annotations

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.convert import convert

__all__ = ["as_complex", "values_of"]


def values_of(caller: str, **arguments: ArrayLike) -> list[Array]:
    """The arguments as values; errors name the one that is not an array."""
    return [as_value(x, caller, name) for name, x in arguments.items()]


def as_complex(x: Array) -> Array:
    """Floating-point numbers as complex ones of the same precision."""
    return convert(x, np.result_type(x.dtype, np.complex64))
