"""Names for annotations: what functions take as arrays, dtypes, shapes, axes and keys.

``Array`` is the class of arrays, which lies some layers above: this is the one place that names it
from below, for type checkers alone. Traced values are instances of it as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from stretto._engine.core.interpreter import Value

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
