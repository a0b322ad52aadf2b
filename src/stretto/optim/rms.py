"""Updates over the root of sums or means of their squares: RMSProp, Adafactor and kin.

The memory of Adafactor: mean squares of a matrix by its rows and columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.argument_leaves import values_of_tree
from stretto._engine.core import tree
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import brief
from stretto._engine.core.types import real_dtype
from stretto._engine.core.typing import Array, Shape, Tree
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import rsqrt
from stretto.numpy.arguments import weakly_inexact
from stretto.optim.base import (
    GradientTransformationExtraArgs,
    Scalar,
    caller_of,
    check,
    columns,
    fill_like,
    first_count,
    leafwise,
    need_params,
    running_mean,
    safe_increment,
    squared,
    transformation,
    unbias,
    wide,
)

__all__ = ["FactoredState", "ScaleByAdaDeltaState", "ScaleByRStdDevState",
           "ScaleByRStdDevWithCountState", "ScaleByRmsState", "ScaleByRmsWithCountState",
           "ScaleByRssState", "scale_by_adadelta", "scale_by_factored_rms", "scale_by_rms",
           "scale_by_rss", "scale_by_stddev"]  # fmt: skip


@brief
class ScaleByRmsState(NamedTuple):
    """``nu``, the means of squares."""

    nu: Tree


@brief
class ScaleByRmsWithCountState(NamedTuple):
    """``count``, the updates done, int32; ``nu``, the means of squares."""

    count: Array
    nu: Tree


@brief
class ScaleByRStdDevState(NamedTuple):
    """``mu``, the means; ``nu``, the means of squares."""

    mu: Tree
    nu: Tree


@brief
class ScaleByRStdDevWithCountState(NamedTuple):
    """``count``, the updates done, int32; ``mu``, means; ``nu``, means of squares."""

    count: Array
    mu: Tree
    nu: Tree


@brief
class ScaleByRssState(NamedTuple):
    """``sum_of_squares``, the sums of squares."""

    sum_of_squares: Tree


@brief
class ScaleByAdaDeltaState(NamedTuple):
    """``e_g``, the means of squared gradients; ``e_x``, of squared updates."""

    e_g: Tree
    e_x: Tree


def _inverse_root(v: Array, eps: Scalar, eps_in_sqrt: bool) -> Array:
    return rsqrt(v + eps) if eps_in_sqrt else 1 / (snp.sqrt(v) + eps)


@transformation
def scale_by_rms(
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """g / √(v + eps) with v ← decay · v + (1 − decay) · g²; see ``rmsprop``.

    Args:
        eps: added to v, or to its root.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    >>> import stretto.numpy as snp
    >>> tx = scale_by_rms(decay=0.75)
    >>> updates, _ = tx.update({"w": snp.array([5.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([2.], dtype=float32)
    """
    caller = caller_of("scale_by_rms")
    check(caller, least=0, below=1, decay=decay)
    check(caller, least=0, eps=eps, initial_scale=initial_scale)

    def init(params: Tree) -> Tree:
        nu = fill_like(params, initial_scale, real_only=True)
        return (
            ScaleByRmsWithCountState(first_count(), nu)
            if bias_correction
            else (ScaleByRmsState(nu))
        )

    def update(updates: Tree, state: Tree, params: Tree = None, **extra: Any) -> tuple[Tree, Tree]:
        count: Any = safe_increment(state.count) if bias_correction else None
        correction = unbias(decay, count) if bias_correction else 1

        def rule(g: Array, v: Array) -> tuple[Array, Array]:
            v = running_mean(decay, v, squared(g))
            return g * _inverse_root(v * correction, eps, eps_in_sqrt), v

        new, nu = leafwise(caller, rule, updates, {"nu": state.nu})
        after = ScaleByRmsWithCountState(count, nu) if bias_correction else ScaleByRmsState(nu)
        return new, after

    return GradientTransformationExtraArgs(init, update)


@described_like(scale_by_rms)
def scale_by_stddev(
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """g / √(v − m² + eps), with running means m of g and v of g²: ``rmsprop`` with ``centered``.

    >>> import stretto.numpy as snp
    >>> tx = scale_by_stddev(decay=0.5)
    >>> updates, _ = tx.update({"w": snp.array([5.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([2.], dtype=float32)
    """
    caller = caller_of("scale_by_stddev")
    check(caller, least=0, below=1, decay=decay)
    check(caller, least=0, eps=eps, initial_scale=initial_scale)

    def init(params: Tree) -> Tree:
        mu, nu = fill_like(params), fill_like(params, initial_scale, real_only=True)
        if bias_correction:
            return ScaleByRStdDevWithCountState(first_count(), mu, nu)
        return ScaleByRStdDevState(mu, nu)

    def update(updates: Tree, state: Tree, params: Tree = None, **extra: Any) -> tuple[Tree, Tree]:
        count: Any = safe_increment(state.count) if bias_correction else None
        correction = unbias(decay, count) if bias_correction else 1

        def rule(g: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
            m = running_mean(decay, m, g)
            v = running_mean(decay, v, squared(g))
            # Negative only by rounding (Jensen's inequality).
            variance = snp.maximum(v * correction - squared(m * correction), 0)
            return g * _inverse_root(variance, eps, eps_in_sqrt), m, v

        moments = {"mu": state.mu, "nu": state.nu}
        new, mu, nu = leafwise(caller, rule, updates, moments)
        if bias_correction:
            return new, ScaleByRStdDevWithCountState(count, mu, nu)
        return new, ScaleByRStdDevState(mu, nu)

    return GradientTransformationExtraArgs(init, update)


@transformation
def scale_by_rss(
    initial_accumulator_value: Scalar = 0.1, eps: Scalar = 1e-7
) -> GradientTransformationExtraArgs:
    """g / √(s + eps) with s the sum of squares so far, 0 where that is 0; see ``adagrad``.

    Args:
        eps: added to s.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    >>> import stretto.numpy as snp
    >>> tx = scale_by_rss(initial_accumulator_value=0.0)
    >>> updates, _ = tx.update({"w": snp.array([5.0, 0.0])}, tx.init({"w": snp.zeros(2)}))
    >>> snp.round(updates["w"], 3)
    Array([1., 0.], dtype=float32)
    """
    caller = caller_of("scale_by_rss")
    start = initial_accumulator_value
    check(caller, least=0, initial_accumulator_value=start, eps=eps)

    def init(params: Tree) -> ScaleByRssState:
        return ScaleByRssState(fill_like(params, start, real_only=True))

    def update(
        updates: Tree, state: ScaleByRssState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, ScaleByRssState]:
        def rule(g: Array, s: Array) -> tuple[Array, Array]:
            s = s + squared(g)
            some = s > 0
            return snp.where(some, g * rsqrt(snp.where(some, s, 1) + eps), 0), s

        sums = {"sum_of_squares": state.sum_of_squares}
        new, s = leafwise(caller, rule, updates, sums)
        return new, ScaleByRssState(s)

    return GradientTransformationExtraArgs(init, update)


@transformation
def scale_by_adadelta(rho: Scalar = 0.9, eps: Scalar = 1e-6) -> GradientTransformationExtraArgs:
    """g · √(x + eps) / √(v + eps), with running means v of g² and x of squared updates.

    See ``adadelta``.

    Args:
        eps: added to both means.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    >>> import stretto.numpy as snp
    >>> tx = scale_by_adadelta()
    >>> updates, _ = tx.update({"w": snp.array([5.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 5)
    Array([0.00316], dtype=float32)
    """
    caller = caller_of("scale_by_adadelta")
    check(caller, least=0, below=1, rho=rho)
    check(caller, least=0, eps=eps)

    def init(params: Tree) -> ScaleByAdaDeltaState:
        return ScaleByAdaDeltaState(
            fill_like(params, real_only=True), fill_like(params, real_only=True)
        )

    def update(
        updates: Tree, state: ScaleByAdaDeltaState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, ScaleByAdaDeltaState]:
        def rule(g: Array, v: Array, x: Array) -> tuple[Array, Array, Array]:
            v = running_mean(rho, v, squared(g))
            new = g * (snp.sqrt(x + eps) / snp.sqrt(v + eps))
            return new, v, running_mean(rho, x, squared(new))

        moments = {"e_g": state.e_g, "e_x": state.e_x}
        new, e_g, e_x = leafwise(caller, rule, updates, moments)
        return new, ScaleByAdaDeltaState(e_g, e_x)

    return GradientTransformationExtraArgs(init, update)


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
            new, *after = _scale_by_rows_and_columns(
                wide(g), [wide(x) for x in old], axes, past, epsilon
            )
            news.append(convert(new, g.dtype))
            squares.append([convert(x, y.dtype) for x, y in zip(after, old, strict=True)])
        return tree.unflatten(spec, news), _state(safe_increment(state.count), spec, squares)

    return GradientTransformationExtraArgs(init, update)


def _power_decay(count: Array, decay_rate: Scalar) -> Array:
    """Return 1 − (t + 1) to the power −decay_rate (Adafactor, section 7.2)."""
    return 1 - (weakly_inexact(count) + 1.0) ** -decay_rate


def _nothing_yet(x: Array, axes: tuple[int, int] | None) -> list[Array]:
    """Return mean squares before the first update: by rows, by columns, whole."""
    dtype, unused = real_dtype(x.dtype), (1,)
    if axes is None:
        return [snp.zeros(shape, dtype) for shape in (unused, unused, x.shape)]
    without = [tuple(n for d, n in enumerate(x.shape) if d != axis) for axis in reversed(axes)]
    return [snp.zeros(shape, dtype) for shape in (*without, unused)]


def _scale_by_rows_and_columns(
    g: Array, before: list[Array], axes: tuple[int, int] | None, past: Array, epsilon: Scalar
) -> list[Array]:
    """Return the new update, and the new mean squares."""
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
