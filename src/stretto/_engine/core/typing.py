"""Names for annotations: arrays, dtypes, shapes, axes, keys, indices, and ``x.at[index]``.

``Array`` is the class of arrays, which lies some layers above: this is the one place that names it
from below, for type checkers alone. Traced values are instances of it as well. The functions of
``x.at[index]`` are in ``numpy/indexing.py``; here are their types, for type checkers and editors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, Unpack

import numpy as np

from stretto._engine.core.interpreter import Value

if TYPE_CHECKING:
    from types import EllipsisType

if TYPE_CHECKING:
    from stretto._engine.core.mesh import PartitionSpec
    from stretto._engine.core.shardings import Sharding
    from stretto._engine.xla.array import Array

    ShardingLike: TypeAlias = Sharding | PartitionSpec
    """An argument that is a sharding; a ``PartitionSpec`` is over the mesh in use."""
else:
    Array, ShardingLike = Value, object


class SupportsDType(Protocol):
    """Anything with a dtype."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        ...


ArrayLike: TypeAlias = Value | np.ndarray | np.generic | bool | int | float | complex
"""An argument that is an array: one of ours or NumPy's, or a Python number."""

DType: TypeAlias = np.dtype
"""The type of ``x.dtype``."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
"""An argument that is a dtype: a name, a scalar class, a dtype, or something that has one."""

Shape: TypeAlias = tuple[int, ...]
"""The sizes of the axes."""

ShapeLike: TypeAlias = int | Sequence[int]
"""An argument that is a shape."""

Axis: TypeAlias = int | None
"""One axis, negative from the end, or all."""

Axes: TypeAlias = int | Sequence[int] | None
"""One axis, several, or all."""

Key: TypeAlias = Array
"""A key of random numbers, as ``random.key`` and ``random.PRNGKey`` make them."""

Tree: TypeAlias = Any
"""A tree of arrays: containers in containers, or one array; no narrower type says that.

Where the type of a result is that of an argument, a type variable says more."""


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
