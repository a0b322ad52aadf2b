"""From values that are the same along a named axis to values that vary along it, and back.

In the program of one part of a ``shard_map`` every value is either the same for all parts along an
axis of the mesh, or varies. These operations go between the two, so that each is linear in the
right way: what is the same has one cotangent, what varies has one for each part.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.collective.primitives import Collective, Total
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.layout import move_to_front, reshape
from stretto._engine.ops.shape import slice_in_dim


class PVary(Collective):
    """A value that is the same for all, for each of them."""

    name = "pvary"

    def infer(self, x: ArrayType) -> ArrayType:
        return x

    def across(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        """The value as it is."""
        return x, axis

    def lower(self, b: Any, x: Any) -> Any:
        return x

    def transpose(self, ct: Any, x: Any) -> tuple[Any, ...]:
        """y_i = x for each i, hence x' = sum_i y'_i."""
        return (PSumSame(self.axis, self.size)(ct),)


class PSumSame(Total):
    """The sum over all of a value that varies: one value, the same for all."""

    name = "psum_same"

    def transpose(self, ct: Any, x: Any) -> tuple[Any, ...]:
        """y = sum_i x_i, hence x'_i = y'."""
        return (PVary(self.axis, self.size)(ct),)


class PSame(Collective):
    """The one value of a value that varies by name alone, being equal for all."""

    name = "psame"

    def infer(self, x: ArrayType) -> ArrayType:
        return x

    def across(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        """That of the first."""
        if axis is None:
            return x, None
        first = slice_in_dim(move_to_front(x, axis), 0, 1)
        return reshape(first, first.shape[1:]), None

    def lower(self, b: Any, x: Any) -> Any:
        return x

    def transpose(self, ct: Any, x: Any) -> tuple[Any, ...]:
        """y = sum_i x_i / n, of equal x_i, hence x'_i = y' / n."""
        return (PVary(self.axis, self.size)(ct / full_like(ct, self.size)),)
