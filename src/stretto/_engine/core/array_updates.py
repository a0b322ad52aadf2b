"""Types of indices and of ``x.at[index]``, for type checkers and editors.

The functions are in ``numpy/indexing.py``; nothing imports this module at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

if TYPE_CHECKING:
    from types import EllipsisType

    from stretto._engine.core.typing import Array, ArrayLike, ShardingLike

Index: TypeAlias = "ArrayLike | slice[Any, Any, Any] | EllipsisType | Sequence[Any] | None"
"""An index of an array: a number, slice, array, ``...``, None, or a tuple of these."""


class UpdateOptions(TypedDict, total=False):
    """The keywords of the methods of ``x.at[index]``."""

    mode: str | None
    indices_are_sorted: bool
    unique_indices: bool
    wrap_negative_indices: bool
    out_sharding: ShardingLike | None


class At:
    """``x.at``, to be indexed."""

    def __getitem__(self, index: Index) -> IndexUpdate: ...


class IndexUpdate:
    """``x.at[index]``: each method gives a copy of ``x`` changed there; ``get`` reads.

    ``mode`` says what to do about places out of bounds.
    """

    def get(
        self,
        *,
        mode: str | None = None,
        fill_value: ArrayLike | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        wrap_negative_indices: bool = True,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        """``x[index]``, or ``fill_value`` for places out of bounds."""
        ...

    def set(self, values: ArrayLike, **options: Unpack[UpdateOptions]) -> Array:
        """``x[index] = values``."""
        ...

    def add(self, values: ArrayLike, **options: Unpack[UpdateOptions]) -> Array:
        """``x[index] += values``, with repeated places added up."""
        ...

    def subtract(self, values: ArrayLike, **options: Unpack[UpdateOptions]) -> Array:
        """``x[index] -= values``."""
        ...

    def multiply(self, values: ArrayLike, **options: Unpack[UpdateOptions]) -> Array:
        """``x[index] *= values``."""
        ...

    def mul(self, values: ArrayLike, **options: Unpack[UpdateOptions]) -> Array:
        """``x[index] *= values``."""
        ...

    def divide(self, values: ArrayLike, **options: Unpack[UpdateOptions]) -> Array:
        """``x[index] /= values``; integers become floats."""
        ...

    def power(self, values: ArrayLike, **options: Unpack[UpdateOptions]) -> Array:
        """``x[index] **= values``."""
        ...

    def min(self, values: ArrayLike, **options: Unpack[UpdateOptions]) -> Array:
        """``x[index] = minimum(x[index], values)``."""
        ...

    def max(self, values: ArrayLike, **options: Unpack[UpdateOptions]) -> Array:
        """``x[index] = maximum(x[index], values)``."""
        ...

    def apply(self, func: Callable[[Array], ArrayLike], **options: Unpack[UpdateOptions]) -> Array:
        """``x[index] = func(x[index])``."""
        ...
