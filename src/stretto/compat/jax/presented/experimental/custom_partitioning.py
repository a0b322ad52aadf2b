"""``jax.experimental.custom_partitioning``: functions whose partitioning is their author's.

Here XLA partitions them as it does any function, so that they compute the same; what the author
says of shardings is taken, and not followed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]


class CompoundFactor(tuple[Any, ...]):
    """The factors that one axis is the product of."""

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        """Of the factors' names."""
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The factor, or factors, of each axis of an array."""

    __slots__ = ()

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        """Of the names for each axis."""
        return super().__new__(cls, dim_mappings)


class _Rule(NamedTuple):
    operand_mappings: tuple[ArrayMapping, ...]
    result_mappings: tuple[ArrayMapping, ...]
    factor_sizes: dict[str, Any]


def SdyShardingRule(
    operand_mappings: tuple[ArrayMapping, ...],
    result_mappings: tuple[ArrayMapping, ...],
    **factor_sizes: Any,
) -> _Rule:
    """Which axes of operands and results are split together."""
    return _Rule(operand_mappings, result_mappings, factor_sizes)


class custom_partitioning:
    """A function whose partitioning its author may define.

    Args:
        fun: the function.
        static_argnums: positions of arguments that are passed as they are.
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Any = ()) -> None:
        functools.update_wrapper(self, fun)
        self.fun, self.static_argnums = fun, static_argnums

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        **factors: Any,
    ) -> Callable[..., Any]:
        """Take the author's rules, which XLA is not told."""
        del infer_sharding_from_operands, propagate_user_sharding, decode_shardings
        del sharding_rule, factors
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.fun(*args, **kwargs)
