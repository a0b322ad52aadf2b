"""Updates times a number, plus decayed weights or noise, within bounds, and over or times norms.

Bounds are by value, by norm, by leaf and by unit; norms are of parameters, or of the updates
themselves. A norm is of all members of an ensemble, or of one leaf of all: with an axis of members,
``per_member(clip_by_global_norm(1.0))`` gives each member its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import stretto.numpy as snp
from stretto._engine.api.argument_leaves import values_of_tree
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value
from stretto._engine.core.lazy import brief
from stretto._engine.core.typing import Array, Key, Tree
from stretto._engine.ops.exponential import root_of_squares
from stretto.numpy.arguments import weakly_inexact
from stretto.optim.base import (
    EmptyState,
    GradientTransformationExtraArgs,
    Mask,
    Scalar,
    ScalarOrSchedule,
    Schedule,
    caller_of,
    check,
    first_count,
    first_key,
    identity,
    leafwise,
    making,
    need_params,
    safe_increment,
    squared,
    stateless,
    transformation,
    wide,
)
from stretto.optim.combining import masked
from stretto.random.distributions import normal
from stretto.random.keys import split
from stretto.tree.sums import without_overflow

__all__ = ["AddNoiseState", "ScaleByScheduleState", "WeightDecaySchedule", "adaptive_grad_clip",
           "add_decayed_weights", "add_noise", "clip", "clip_by_block_rms", "clip_by_global_norm",
           "global_norm", "scale", "scale_by_learning_rate", "scale_by_param_block_rms",
           "scale_by_schedule", "scale_by_trust_ratio"]  # fmt: skip


@brief
class ScaleByScheduleState(NamedTuple):
    """``count``, the updates done, int32."""

    count: Array


@brief
class WeightDecaySchedule(NamedTuple):
    """``count``, the updates done, int32."""

    count: Array


@brief
class AddNoiseState(NamedTuple):
    """``count``, the updates done, int32; ``rng_key``, the words of the next noise's key."""

    count: Array
    rng_key: Array


@transformation
def scale(step_size: Scalar) -> GradientTransformationExtraArgs:
    """Multiply the updates by a number.

    Args:
        step_size: a number or an array of rank 0.

    Raises:
        ValueError: an array has axes (see ``per_member``).

    >>> import stretto.numpy as snp
    >>> scale(-0.5).update({"w": snp.ones(2)}, scale(-0.5).init(None))[0]
    {'w': Array([-0.5, -0.5], dtype=float32)}
    """
    caller = caller_of("scale")
    check(caller, step_size=step_size)
    return stateless(lambda updates, params: _times(caller, updates, step_size))


def _times(caller: str, updates: Tree, factor: Scalar) -> Tree:
    return leafwise(caller, lambda g: g * factor, updates)[0]


@transformation
def scale_by_schedule(step_size_fn: Schedule) -> GradientTransformationExtraArgs:
    """Multiply the updates by ``step_size_fn(count)``, of the number of updates done before.

    Args:
        step_size_fn: a schedule.

    >>> import stretto.numpy as snp
    >>> tx = scale_by_schedule(lambda count: 1 / (count + 1))
    >>> state = tx.init(None)
    >>> for _ in range(2):
    ...     updates, state = tx.update({"w": snp.ones(1)}, state)
    >>> updates, state
    ({'w': Array([0.5], dtype=float32)}, ScaleByScheduleState(count=Array(2, dtype=int32)))
    """
    return _scheduled("scale_by_schedule", step_size_fn)


def _scheduled(caller: str, schedule: Schedule, sign: int = 1) -> GradientTransformationExtraArgs:
    def init(params: Tree) -> ScaleByScheduleState:
        return ScaleByScheduleState(first_count())

    def update(
        updates: Tree, state: ScaleByScheduleState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, ScaleByScheduleState]:
        new = _times(caller, updates, sign * schedule(state.count))
        return new, ScaleByScheduleState(safe_increment(state.count))

    return GradientTransformationExtraArgs(init, update)


@transformation
def scale_by_learning_rate(
    learning_rate: ScalarOrSchedule, *, flip_sign: bool = True
) -> GradientTransformationExtraArgs:
    """Multiply the updates by minus the learning rate, so that adding them descends.

    Args:
        flip_sign: False leaves out the minus.

    Raises:
        TypeError: ``learning_rate`` is None.
        ValueError: the learning rate is negative; or an array with axes, see ``per_member``.

    >>> import stretto.numpy as snp
    >>> tx = scale_by_learning_rate(0.5)
    >>> tx.update({"w": snp.ones(2)}, tx.init(None))[0]
    {'w': Array([-0.5, -0.5], dtype=float32)}
    """
    caller = caller_of("scale_by_learning_rate")
    check(caller, least=0, schedules=True, learning_rate=learning_rate)
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        return _scheduled(caller, learning_rate, sign)
    return stateless(lambda updates, params: _times(caller, updates, sign * learning_rate))


@transformation
def add_decayed_weights(
    weight_decay: ScalarOrSchedule = 0.0, mask: Mask | None = None
) -> GradientTransformationExtraArgs:
    """Add ``weight_decay`` times the parameters to the updates.

    ``update`` needs ``params``, unless the decay is the number 0.

    Raises:
        ValueError: the decay is negative; ``update`` is called without parameters.

    Source: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019, where it comes
    after the adaptive scaling.

    >>> import stretto.numpy as snp
    >>> tx = add_decayed_weights(0.1)
    >>> params = {"w": snp.array([10.0])}
    >>> tx.update({"w": snp.ones(1)}, tx.init(params), params)[0]
    {'w': Array([2.], dtype=float32)}
    """
    caller = caller_of("add_decayed_weights")
    check(caller, least=0, schedules=True, weight_decay=weight_decay)
    if not callable(weight_decay) and not isinstance(weight_decay, Value) and weight_decay == 0:
        return identity()

    def init(params: Tree) -> Tree:
        return WeightDecaySchedule(first_count()) if callable(weight_decay) else EmptyState()

    def update(updates: Tree, state: Tree, params: Tree = None, **extra: Any) -> tuple[Tree, Tree]:
        need_params(params, caller)
        decay = weight_decay
        if callable(weight_decay):
            decay = weight_decay(state.count)
            state = WeightDecaySchedule(safe_increment(state.count))
        return leafwise(caller, lambda g, p: g + decay * p, updates, params=params)[0], state

    tx = GradientTransformationExtraArgs(init, update)
    return tx if mask is None else making(caller, lambda: masked(tx, mask))


@transformation
def add_noise(
    eta: Scalar, gamma: Scalar, key: Key | int | None = None
) -> GradientTransformationExtraArgs:
    """Add to the updates normal noise of variance ``eta / tᵞ`` at update t = 1, 2, ….

    Args:
        eta: the variance at the first update.
        gamma: how fast it falls.
        key: a PRNG key or a seed; None draws one from the ambient stream when the state is made.

    Raises:
        ValueError: ``eta`` or ``gamma`` is negative.

    Source: Neelakantan et al., "Adding gradient noise improves learning for very deep networks",
    2015, equation 1 with t from 1.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = add_noise(0.01, 0.55, st.random.PRNGKey(0))
    >>> updates, state = tx.update({"w": snp.zeros(2)}, tx.init(None))
    >>> bool(snp.all(updates["w"] != 0)), state.count
    (True, Array(1, dtype=int32))
    """
    caller = caller_of("add_noise")
    check(caller, least=0, eta=eta, gamma=gamma)

    def init(params: Tree) -> AddNoiseState:
        return AddNoiseState(first_count(), first_key(key, caller))

    def update(
        updates: Tree, state: AddNoiseState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, AddNoiseState]:
        count = safe_increment(state.count)
        deviation = (eta / weakly_inexact(count) ** gamma) ** 0.5
        next_key, own = split(state.rng_key)
        leaves = tree.leaves(updates)
        keys = iter(split(own, len(leaves)) if leaves else ())

        def rule(g: Array) -> Array:
            return g + deviation * normal(next(keys), g.shape, g.dtype)

        return leafwise(caller, rule, updates)[0], AddNoiseState(count, next_key)

    return GradientTransformationExtraArgs(init, update)


def global_norm(updates: Tree) -> Array:
    """Return the Euclidean norm of all elements of all leaves.

    Args:
        updates: a tree of arrays.

    Returns:
        An array of rank 0, of at least float32; 0 without leaves. At 0 its derivative is 0.

    As ``stretto.tree.norm``, which needs a leaf.

    >>> import stretto.numpy as snp
    >>> global_norm({"a": snp.array([3.0]), "b": snp.array([4.0])})
    Array(5., dtype=float32)
    """
    return norm_of("global_norm", updates)


def norm_of(caller: str, updates: Tree) -> Array:
    """Return ``global_norm``, for a caller whose name its messages begin with."""
    root, unit = scaled_norm(caller, updates)
    return root if unit is None else root / unit


def scaled_norm(caller: str, updates: Tree) -> tuple[Array, Array | None]:
    """Return the norm in a unit, and the unit: 1, or None, unless the squares overflow."""
    leaves = [wide(x) for x in values_of_tree(updates, caller, "updates")[0]]

    def squares(unit: Array | None) -> Array:
        scaled = leaves if unit is None else [x * unit for x in leaves]
        return sum([snp.sum(squared(x)) for x in scaled], snp.zeros(()))

    total, unit = without_overflow(squares)
    return root_of_squares(total), unit


def norm_along(
    x: Array, axis: int | Sequence[int] | None = None, keepdims: bool = False, average: bool = False
) -> Array:
    """Return the norm of a leaf over axes, or the root mean square; its slope at 0 is 0.

    Over some of the axes, they stay: ``keepdims``.
    """
    add_up = snp.mean if average else snp.sum

    def squares(unit: Array | None) -> Array:
        scaled = x if unit is None else wide(x) * unit
        return add_up(squared(scaled), axis=axis, keepdims=keepdims)

    total, unit = without_overflow(squares)
    root = root_of_squares(total)
    return root if unit is None else root / unit


@transformation
def scale_by_trust_ratio(
    min_norm: Scalar = 0.0, trust_coefficient: Scalar = 1.0, eps: Scalar = 0.0
) -> GradientTransformationExtraArgs:
    """Multiply each leaf by ``trust_coefficient`` · ‖p‖ / (‖g‖ + eps), or by 1 where a norm is 0.

    Args:
        min_norm: the least norm; smaller ones count as this.
        trust_coefficient: a factor of the ratio.
        eps: added to the norm of the update.

    Raises:
        ValueError: ``update`` is called without parameters, or a number is negative.

    Source: You, Gitman and Ginsburg, "Large batch training of convolutional networks" (LARS), 2017;
    You et al., "Large batch optimization for deep learning" (LAMB), 2020.

    >>> import stretto.numpy as snp
    >>> tx = scale_by_trust_ratio()
    >>> params = {"w": snp.array([3.0, 4.0])}
    >>> tx.update({"w": snp.array([0.0, 0.5])}, tx.init(params), params)[0]
    {'w': Array([0., 5.], dtype=float32)}
    """
    caller = caller_of("scale_by_trust_ratio")
    check(caller, least=0, min_norm=min_norm, trust_coefficient=trust_coefficient, eps=eps)

    def rule(g: Array, p: Array) -> Array:
        of_p, of_g = (snp.maximum(norm_along(x), min_norm) for x in (p, g))
        zero = (of_p == 0) | (of_g == 0)
        ratio = trust_coefficient * of_p / snp.where(zero, 1, of_g + eps)
        return g * snp.where(zero, 1, ratio)

    def f(updates: Tree, params: Tree) -> Tree:
        need_params(params, caller)
        return leafwise(caller, rule, updates, params=params)[0]

    return stateless(f)


@transformation
def scale_by_param_block_rms(min_scale: Scalar = 1e-3) -> GradientTransformationExtraArgs:
    """Multiply each leaf by the root mean square of its parameter.

    Args:
        min_scale: the least factor.

    Raises:
        ValueError: ``update`` is called without parameters, or ``min_scale`` is negative.

    Source: Shazeer and Stern, "Adafactor", 2018, section 8.

    >>> import stretto.numpy as snp
    >>> tx = scale_by_param_block_rms()
    >>> params = {"w": snp.array([2.0, 2.0])}
    >>> tx.update({"w": snp.ones(2)}, tx.init(params), params)[0]
    {'w': Array([2., 2.], dtype=float32)}
    """
    caller = caller_of("scale_by_param_block_rms")
    check(caller, least=0, min_scale=min_scale)

    def f(updates: Tree, params: Tree) -> Tree:
        need_params(params, caller)
        scaled = lambda g, p: g * snp.maximum(norm_along(p, average=True), min_scale)
        return leafwise(caller, scaled, updates, params=params)[0]

    return stateless(f)


@transformation
def clip(max_delta: Scalar) -> GradientTransformationExtraArgs:
    """Keep each element between −``max_delta`` and ``max_delta``.

    Args:
        max_delta: the largest size of an element.

    Raises:
        ValueError: ``max_delta`` is negative.

    >>> import stretto.numpy as snp
    >>> tx = clip(1.0)
    >>> tx.update({"w": snp.array([-3.0, 0.5])}, tx.init(None))[0]
    {'w': Array([-1. ,  0.5], dtype=float32)}
    """
    check("clip", least=0, max_delta=max_delta)
    bounded = lambda g: snp.minimum(snp.maximum(g, -max_delta), max_delta)
    return stateless(lambda updates, params: leafwise("clip", bounded, updates)[0])


@transformation
def clip_by_global_norm(max_norm: Scalar) -> GradientTransformationExtraArgs:
    """Multiply all updates by one factor, so that their norm is at most ``max_norm``.

    Args:
        max_norm: the largest Euclidean norm of all elements of all leaves.

    Raises:
        ValueError: ``max_norm`` is negative.

    Source: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks",
    2013, algorithm 1.

    >>> import stretto.numpy as snp
    >>> tx = clip_by_global_norm(1.0)
    >>> tx.update({"a": snp.array([3.0]), "b": snp.array([4.0])}, tx.init(None))[0]
    {'a': Array([0.6], dtype=float32), 'b': Array([0.8], dtype=float32)}
    """
    caller = "clip_by_global_norm"
    check(caller, least=0, max_norm=max_norm)

    def f(updates: Tree, params: Tree) -> Tree:
        root, unit = scaled_norm(caller, updates)
        within = root <= (max_norm if unit is None else max_norm * unit)
        factor = snp.where(within, 1, max_norm / snp.where(within, 1, root))
        if unit is None:
            return leafwise(caller, lambda g: g * factor, updates)[0]
        # In this order, for the product of both factors may be below what floats hold.
        shrunk = snp.where(within, 1, unit)
        return leafwise(caller, lambda g: g * shrunk * factor, updates)[0]

    return stateless(f)


@transformation
def clip_by_block_rms(threshold: Scalar) -> GradientTransformationExtraArgs:
    """Divide each leaf by max(1, its root mean square / ``threshold``).

    Args:
        threshold: the largest root mean square of a leaf.

    Raises:
        ValueError: ``threshold`` is not positive.

    Source: Shazeer and Stern, "Adafactor", 2018, section 6.

    >>> import stretto.numpy as snp
    >>> tx = clip_by_block_rms(1.0)
    >>> tx.update({"w": snp.array([2.0, -2.0])}, tx.init(None))[0]
    {'w': Array([ 1., -1.], dtype=float32)}
    """
    caller = caller_of("clip_by_block_rms")
    check(caller, above=0, threshold=threshold)

    def rule(g: Array) -> Array:
        return g / snp.maximum(1, norm_along(g, average=True) / threshold)

    return stateless(lambda updates, params: leafwise(caller, rule, updates)[0])


@transformation
def adaptive_grad_clip(
    clipping: Scalar, eps: Scalar = 1e-3, axis: int | Sequence[int] | None = None
) -> GradientTransformationExtraArgs:
    """Scale each unit's updates so that their norm is at most ``clipping`` times its parameters'.

    A unit is a whole vector; what lies along the first axis of an array with two or three, such as
    a matrix (inputs, outputs); what lies along all axes but the last of one with four or five, such
    as a kernel (height, width, inputs, outputs).

    Args:
        clipping: the largest ratio of norms.
        eps: the least norm of parameters; smaller ones count as this.
        axis: the axes within a unit; None as described. PyTorch's layers have outputs first: for
            them give the axes after the first.

    Raises:
        ValueError: ``update`` is called without parameters, a number is negative, or ``axis`` is
            None and a leaf has more than five axes.

    Source: Brock et al., "High-performance large-scale image recognition without normalization",
    2021, equation 3.

    >>> import stretto.numpy as snp
    >>> tx = adaptive_grad_clip(0.1)
    >>> params = {"w": snp.array([[3.0, 3.0], [4.0, 4.0]])}  # two columns of norm 5
    >>> updates, _ = tx.update({"w": snp.array([[1.0, 0.25], [0.0, 0.0]])}, (), params)
    >>> updates["w"][0]
    Array([0.5 , 0.25], dtype=float32)
    """
    caller = "adaptive_grad_clip"
    check(caller, least=0, clipping=clipping, eps=eps)

    def rule(g: Array, p: Array) -> Array:
        within = _axes_within(p.shape) if axis is None else axis
        of_g, of_p = (norm_along(x, within, keepdims=True) for x in (g, p))
        largest = clipping * snp.maximum(of_p, eps)
        factor = largest / snp.maximum(of_g, 1e-6)
        return g * snp.where(of_g < largest, 1, factor)

    def f(updates: Tree, params: Tree) -> Tree:
        need_params(params, caller)
        for path, x in zip(tree.paths(params, "params"), tree.leaves(params), strict=True):
            if axis is None and snp.ndim(x) > 5:
                raise ValueError(
                    f"{caller}: {path} has shape {snp.shape(x)}; give axis for more than 5 axes"
                )
        return leafwise(caller, rule, updates, params=params)[0]

    return stateless(f)


def _axes_within(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes that are summed for the norm of a unit."""
    if len([n for n in shape if n != 1]) <= 1:
        return tuple(range(len(shape)))
    return (0,) if len(shape) <= 3 else tuple(range(len(shape) - 1))
