"""``jax.typing``: what functions take as arrays and as dtypes."""

from typing import Any, TypeAlias

import numpy as np

from stretto.compat.jax.types import Array
from stretto.typing import DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]

ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
Shape: TypeAlias = tuple[int, ...]
ExtendedDType: TypeAlias = Any
