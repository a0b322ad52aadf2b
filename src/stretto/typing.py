"""``stretto.typing``: names for annotations.

``ArrayLike`` is what functions take as an array, ``DTypeLike`` what they take as a dtype.

>>> from stretto.typing import ArrayLike
>>> import stretto.numpy as snp
>>> def double(x: ArrayLike):
...     return snp.multiply(x, 2)
>>> double(3)
Array(6, dtype=int32, weak_type=True)
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from stretto._engine.core.interpreter import Value

__all__ = ["ArrayLike", "DTypeLike", "SupportsDType"]


class SupportsDType(Protocol):
    """Anything with a dtype."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        ...


ArrayLike = Value | np.ndarray | np.generic | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype | SupportsDType
