"""The memory of Adafactor: mean squares of a matrix by its rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.argument_leaves import values_of_tree
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import brief
from stretto._engine.core.types import real_dtype
from stretto._engine.core.typing import Array, Shape, Tree
from stretto._engine.ops.convert import convert
from stretto._engine.ops.powers import rsqrt
from stretto.numpy.arguments import weakly_inexact
from stretto.optim.base import GradientTransformationExtraArgs, Scalar, transformation
from stretto.optim.leaves import (
    check,
    columns,
    first_count,
    need_params,
    running_mean,
    safe_increment,
    squared,
    wide,
)
from stretto.optim.naming import caller_of

__all__ = ["FactoredState", "scale_by_factored_rms"]


@brief
class FactoredState(NamedTuple):
    """``count``, the updates done, int32, and mean squares: a single zero where not used.

    ``v_row`` and ``v_col`` lack the largest and the second largest axis of a factored parameter;
    ``v`` is for parameters that are not factored.
    """

    count: Array
    v_row: Tree
    v_col: Tree
    v: Array


@transformation
def scale_by_factored_rms(
    factored: bool = True,
    decay_rate: Scalar = 0.8,
    step_offset: Scalar = 0,
    min_dim_size_to_factor: int = 128,
    epsilon: Scalar = 1e-30,
    decay_rate_fn: Callable[[Any, Any], Any] | None = None,
) -> GradientTransformationExtraArgs:
    """g / √v, with v of a matrix the product of mean squares of its rows and columns.

    Over the two largest axes of a parameter, v = r cᵀ / mean(r), with running means r and c of
    g² + epsilon along each. At update t from 0, the past weighs 1 − (t + 1) to the power
    −decay_rate. A parameter with a further axis of members must be transformed by
    ``per_member``, so that the members are not taken for rows.

    Args:
        factored: False keeps v itself for all parameters.
        decay_rate: how fast the weight of the past grows to 1.
        step_offset: how many past updates not to count, when fine-tuning a trained model.
        min_dim_size_to_factor: the size that both axes must have at least.
        epsilon: added to the squares.
        decay_rate_fn: from the number of updates done and ``decay_rate`` to the weight of the past.

    Raises:
        ValueError: ``update`` is called without parameters, or a number is out of its range.

    Source: Shazeer and Stern, "Adafactor", 2018, algorithm 4.

    >>> import stretto.numpy as snp
    >>> tx = scale_by_factored_rms(min_dim_size_to_factor=2)
    >>> params = {"w": snp.ones((3, 2))}
    >>> state = tx.init(params)
    >>> state.v_row["w"].shape, state.v_col["w"].shape
    ((2,), (3,))
    >>> tx.update({"w": snp.full((3, 2), 4.0)}, state, params)[0]["w"][0]
    Array([1., 1.], dtype=float32)
    """
    caller = caller_of("scale_by_factored_rms")
    check(caller, least=0, decay_rate=decay_rate, epsilon=epsilon)
    weight_of_past = _power_decay if decay_rate_fn is None else decay_rate_fn

    def axes_of(shape: Shape) -> tuple[int, int] | None:
        if not factored or len(shape) < 2:
            return None
        *_, second, largest = np.argsort(shape, kind="stable")
        return None if shape[second] < min_dim_size_to_factor else (int(second), int(largest))

    def init(params: Tree) -> FactoredState:
        leaves, spec = values_of_tree(params, caller, "params")
        return _state(first_count(), spec, [_nothing_yet(x, axes_of(x.shape)) for x in leaves])

    def update(
        updates: Tree, state: FactoredState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, FactoredState]:
        need_params(params, caller)
        columns(caller, {"updates": updates, "params": params})
        trees = {f"state.{name}": getattr(state, name) for name in ("v_row", "v_col", "v")}
        (leaves, *before), spec = columns(caller, {"updates": updates} | trees, shapes=False)
        past = weight_of_past(state.count - step_offset, decay_rate)
        news, squares = [], []
        for path, g, *old in zip(tree.paths(updates), leaves, *before, strict=True):
            g = as_value(g, caller, f"updates{path}")
            axes = axes_of(g.shape)
            for x, y, name in zip(old, _nothing_yet(g, axes), trees, strict=True):
                if x.shape != y.shape:
                    raise ValueError(
                        f"{caller}: {name}{path} has shape {x.shape}, but for updates{path} of "
                        f"shape {g.shape} it must have {y.shape}"
                    )
            new, *after = _scaled(wide(g), [wide(x) for x in old], axes, past, epsilon)
            news.append(convert(new, g.dtype))
            squares.append([convert(x, y.dtype) for x, y in zip(after, old, strict=True)])
        return tree.unflatten(spec, news), _state(safe_increment(state.count), spec, squares)

    return GradientTransformationExtraArgs(init, update)


def _power_decay(count: Array, decay_rate: Scalar) -> Array:
    """1 − (t + 1) to the power −decay_rate (Adafactor, section 7.2)."""
    return 1 - (weakly_inexact(count) + 1.0) ** -decay_rate


def _nothing_yet(x: Array, axes: tuple[int, int] | None) -> list[Array]:
    """Mean squares before the first update: by rows, by columns, whole."""
    dtype, unused = real_dtype(x.dtype), (1,)
    if axes is None:
        return [snp.zeros(shape, dtype) for shape in (unused, unused, x.shape)]
    without = [tuple(n for d, n in enumerate(x.shape) if d != axis) for axis in reversed(axes)]
    return [snp.zeros(shape, dtype) for shape in (*without, unused)]


def _scaled(
    g: Array, before: list[Array], axes: tuple[int, int] | None, past: Array, epsilon: Scalar
) -> list[Array]:
    """The new update, and the new mean squares."""
    square = squared(g) + epsilon
    row, column, whole = before
    if axes is None:
        whole = running_mean(past, whole, square)
        return [g * rsqrt(whole), row, column, whole]
    second, largest = axes
    row = running_mean(past, row, snp.mean(square, axis=largest))
    column = running_mean(past, column, snp.mean(square, axis=second))
    # v = r cᵀ / mean(r): the scale is 1/√(r / mean(r)) · 1/√c
    of_mean = snp.mean(row, axis=second - (second > largest), keepdims=True)
    by_row = snp.expand_dims(rsqrt(row / of_mean), largest)
    return [g * by_row * snp.expand_dims(rsqrt(column), second), row, column, whole]


def _state(count: Array, spec: Tree, squares: list[list[Array]]) -> FactoredState:
    rows, columns_, wholes = zip(*squares, strict=True) if squares else ((), (), ())
    return FactoredState(count, *[tree.unflatten(spec, x) for x in (rows, columns_, wholes)])
