"""Arguments of laws: types to draw at random, and short names for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import ml_dtypes
import numpy as np

from stretto._engine.core.lazy import exports
from stretto._engine.core.types import kind_of

__all__ = ["TypeOf", "b1", "bf16", "c64", "c128", "f16", "f32", "f64", "i8", "i32", "u32"]


@dataclasses.dataclass(frozen=True)
class TypeOf:
    """An argument drawn at random: its dtype and shape, and the range to draw from.

    ``f32(2, 3)`` and its like make one.

    Args:
        dtype: the dtype.
        shape: the sizes of the axes.
        low: the least number; of unsigned integers at least 0.
        high: the greatest; of integers up to 3 more.

    >>> from stretto.laws import TypeOf
    >>> import numpy as np
    >>> str(TypeOf(np.dtype("float32"), (2, 3)))
    'float32[2, 3]'
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0

    def within(self, low: float, high: float) -> TypeOf:
        """Return the same type, to be drawn from another range.

        Args:
            low: the least number.
            high: the greatest.

        Returns:
            The type.
        """
        return dataclasses.replace(self, low=low, high=high)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw an array of this type.

        Args:
            rng: the source of the numbers.

        Returns:
            The array, of this dtype and shape.
        """
        kind = kind_of(self.dtype)
        if kind == "bool":
            return rng.random(self.shape) < 0.5
        if kind in ("int", "uint"):
            low = max(int(self.low), 0) if kind == "uint" else int(self.low)
            return np.asarray(rng.integers(low, int(self.high) + 4, self.shape)).astype(self.dtype)
        x = rng.uniform(self.low, self.high, self.shape)
        if kind == "complex":
            x = x + 1j * rng.uniform(self.low, self.high, self.shape)
        return np.asarray(x).astype(self.dtype)

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


def _maker(short: str, name: str) -> Callable[..., TypeOf]:
    dtype = np.dtype(getattr(ml_dtypes, name, name))

    def make(*shape: int) -> TypeOf:
        return TypeOf(dtype, shape)

    make.__doc__ = f"""Make an argument of dtype {name} that is drawn at random.

    Args:
        *shape: the sizes of the axes.

    Returns:
        The argument, drawn from -2 to 2; its method ``within`` sets another range.

    >>> from stretto import laws
    >>> str(laws.{short}(2, 3))
    '{name}[2, 3]'
    """
    return make


b1 = _maker("b1", "bool")


i8, i32, u32 = _maker("i8", "int8"), _maker("i32", "int32"), _maker("u32", "uint32")


bf16, f16 = _maker("bf16", "bfloat16"), _maker("f16", "float16")


f32, f64 = _maker("f32", "float32"), _maker("f64", "float64")


c64, c128 = _maker("c64", "complex64"), _maker("c128", "complex128")

exports(__name__)
