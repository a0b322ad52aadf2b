"""A mark on values that ``vmap`` maps: along which axis the examples lie, for finding faults.

``autodiff/vmap`` leaves them while ``config.debug_nans`` or ``debug_infs`` is set, and
``eager/checked`` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.primitive import CARRIED, Primitive
from stretto._engine.core.types import ArrayType


class Example(Primitive):
    """The operand, whose examples lie along this axis."""

    padded = CARRIED

    light = True
    axis: int
    keeps_zeros = True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        return range(out.ndim)

    def infer(self, x: ArrayType) -> ArrayType:
        return x

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x

    def lower(self, b: Any, x: Any) -> Any:
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (dx,) = primals, tangents
        return self(x), self(dx)

    def transpose(self, ct: Any, x: Any) -> tuple[Any]:
        return (self(ct),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The axis is one further, if the new one is in front of it."""
        (x,), (axis,) = args, axes
        assert axis is not None
        return Example(self.axis + (axis <= self.axis))(x), axis
