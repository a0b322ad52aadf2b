"""What an initializer is, and how one is made.

``initializers`` and ``variance_scaling`` use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from stretto._engine.core.integers import sizes_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import kind_of, scalar_dtype
from stretto._engine.core.typing import Array, DTypeLike, Key, Shape, ShardingLike
from stretto._engine.ops.convert import convert
from stretto._engine.ops.sharding import laid_out
from stretto.numpy.dtypes import as_dtype
from stretto.random.arguments import rounded, wide

__all__ = ["Initializer", "dtype_or", "initializer", "scaled"]


class Initializer(Protocol):
    """A function of a key, a shape and a dtype, which gives an array."""

    def __call__(
        self,
        key: Key,
        shape: Sequence[int],
        dtype: DTypeLike | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        """Make an array.

        Args:
            key: the key to draw from.
            shape: the shape of the array.
            dtype: the dtype; by default the one that the initializer was made with.
            out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec``
                over the mesh in use.

        Returns:
            The array.
        """
        ...


def dtype_or(dtype: DTypeLike | None, default: DTypeLike | None = None) -> np.dtype:
    """The dtype of a call, or the initializer's; without either the default float."""
    choice = default if dtype is None else dtype
    return scalar_dtype(float) if choice is None else as_dtype(choice)


def initializer(
    name: str, default: DTypeLike | None, draw: Callable[[Key, Shape, np.dtype], Array]
) -> Initializer:
    """The initializer that draws arrays of a floating or complex dtype, by default this one."""
    caller = f"initializers.{name}"

    def init(
        key: Key,
        shape: Sequence[int],
        dtype: DTypeLike | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        if out_sharding is not None:
            return laid_out(init(key, shape, dtype), out_sharding, caller)
        target = dtype_or(dtype, default)
        if kind_of(target) not in ("float", "complex"):
            raise ValueError(f"{caller}: dtype must be floating or complex, got {target.name}")
        return rounded(draw(key, sizes_of(shape, caller), wide(target)), target)

    return init


def scaled(x: Array, factor: float | Array) -> Array:
    """The product, in the dtype of ``x``."""
    return x * convert(as_value(factor), x.dtype)
