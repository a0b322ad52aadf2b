"""Sizes that are known while the program runs, as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core import sizes
from stretto._engine.core.primitive import ZERO_DERIVATIVE, Primitive, Refused
from stretto._engine.core.sizes import Size
from stretto._engine.core.types import ArrayType, array_type, default_dtype
from stretto._engine.ops.convert import convert

_KNOWN_LATER = Refused("the size is known only where the program is given a bucket")


class SizeOf(Primitive):
    """A size as a weak integer of this dtype."""

    light = True
    size: Size
    dtype: np.dtype = np.dtype(np.int32)
    reference = _KNOWN_LATER
    lower = _KNOWN_LATER
    jvp = ZERO_DERIVATIVE
    transpose = Refused("it has no operand")

    def infer(self) -> ArrayType:
        return array_type((), self.dtype, True)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(), None

    def padded(self, at: Any) -> Any:
        """The true size: an int64 where the bucket's may be too great for an int32."""
        size = at.exact(self.size)
        return convert(size, max(size.type.dtype, self.dtype), True)


sizes._VALUE.append(lambda size: SizeOf(size, default_dtype("int"))())
