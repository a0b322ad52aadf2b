"""Arguments of linear algebra: arrays of floats, not weakly typed.

Next, read ``factorisations``.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.linalg.family import check_matrix

__all__ = ["floats", "matrices", "same_floats", "systems"]


def floats(caller: str, x: Any, argument: str = "a") -> Any:
    """The value, with integers and booleans as the default float."""
    x = as_value(x, caller, argument)
    return convert(x, inexact_dtype(x.dtype))


def matrices(caller: str, x: Any, argument: str = "a", square: bool = False) -> Any:
    """The same for matrices, square if so asked; raises as ``check_matrix`` does."""
    x = floats(caller, x, argument)
    check_matrix(caller, x.type, square)
    return x


def same_floats(caller: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two values of one floating dtype, each of its own shape."""
    x, y = promote_dtypes(caller, x, y)
    return floats(caller, x), floats(caller, y)


def systems(caller: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Both in one dtype, a vector as a column; and whether it was a vector."""
    a, b = same_floats(caller, a, b)
    matrices(caller, a, square=True)
    vector = b.ndim == 1
    if not b.ndim or b.shape[0 if vector else -2] != a.shape[-1]:
        raise ValueError(
            f"{caller}: b must have {a.shape[-1]} rows, as a has: got a: {a.type} and b: {b.type}"
        )
    return a, expand_dims(b, 1) if vector else b, vector
