"""The greatest and least elements that approximate search asks for, found exactly."""

from __future__ import annotations

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import comparison
from stretto._engine.ops.arithmetic import negative
from stretto._engine.ops.comparison import ne, select
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.layout import canonical_axis
from stretto._engine.ops.sort import top_k

__all__ = ["approx_max_k", "approx_min_k"]


def _check_arguments(
    caller: str, operand: ArrayLike, k: int, dimension: int, recall_target: float, override: int
) -> tuple[Array, int]:
    x = as_value(operand, caller, "operand")
    if kind_of(x.dtype) != "float":
        raise TypeError(f"{caller}: operand must be of real floats, got {x.type}")
    if not 0 < recall_target <= 1:
        raise ValueError(
            f"{caller}: recall_target must be above 0 and at most 1, got {recall_target}"
        )
    axis = canonical_axis(dimension, x.ndim, caller)
    if override != -1 and override < x.shape[axis]:
        raise ValueError(
            f"{caller}: reduction_input_size_override must be -1 or at least the size of axis "
            f"{axis} of {x.type}, got {override}"
        )
    if not 0 <= integer(k, caller, "k") <= x.shape[axis]:
        raise ValueError(
            f"{caller}: k must be from 0 to the size of axis {axis} of {x.type}, got {k}"
        )
    return x, axis


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Find the greatest elements along an axis, or most of them.

    Here all are found, which meets every ``recall_target``; the last two arguments have no
    effect.

    Args:
        operand: an array of real floats.
        k: how many.
        reduction_dimension: the axis, negative from the end.
        recall_target: the share of them that must be found, above 0 and at most 1.
        reduction_input_size_override: the size of the whole that ``operand`` is a part of, or -1.
        aggregate_to_topk: whether no more than ``k`` may be returned.

    Returns:
        The elements, falling, and their int32 indices; NaN counts as greatest.

    Raises:
        TypeError: ``operand`` is not of real floats.
        ValueError: ``k`` is more than the size of the axis, or a target or size has no meaning.

    Source: Chern et al., "TPU-KNN: K nearest neighbor search at peak FLOP/s", NeurIPS 2022.

    >>> import stretto as st
    >>> st.lax.approx_max_k(st.numpy.array([3.0, 1.0, 2.0]), 2)
    (Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32))
    """
    caller = "approx_max_k"
    x, axis = _check_arguments(
        caller, operand, k, reduction_dimension, recall_target, reduction_input_size_override
    )
    return top_k(x, k, axis=axis)


@described_like(approx_max_k)
def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Find the least elements along an axis, or most of them.

    Here all are found, which meets every ``recall_target``; the last two arguments have no
    effect.

    Returns:
        The elements, rising, and their int32 indices; NaN comes last.

    Source: Chern et al., "TPU-KNN: K nearest neighbor search at peak FLOP/s", NeurIPS 2022.

    >>> import stretto as st
    >>> st.lax.approx_min_k(st.numpy.array([3.0, 1.0, 2.0]), 2)
    (Array([1., 2.], dtype=float32), Array([1, 2], dtype=int32))
    """
    caller = "approx_min_k"
    x, axis = _check_arguments(
        caller, operand, k, reduction_dimension, recall_target, reduction_input_size_override
    )
    key = select(ne(x, x), comparison.full_like(x, float("inf")), x)
    _, order = top_k(negative(key), k, axis=axis)
    return take_along_axis(x, order, axis, "promise_in_bounds", wrap_negative=False), order
