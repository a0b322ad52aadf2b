"""Updates times a number, plus decayed weights, plus noise."""

from __future__ import annotations

from typing import Any, NamedTuple

from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value
from stretto._engine.core.lazy import brief
from stretto._engine.core.typing import Array, Key, Tree
from stretto.numpy.arguments import weakly_inexact
from stretto.optim.base import (
    EmptyState,
    GradientTransformationExtraArgs,
    Mask,
    Scalar,
    ScalarOrSchedule,
    Schedule,
    caller_of,
    identity,
    making,
    stateless,
    transformation,
)
from stretto.optim.combining import masked
from stretto.optim.leaves import check, first_count, leafwise, need_params, safe_increment
from stretto.random import streams
from stretto.random.distributions import normal
from stretto.random.keys import PRNGKey, split

__all__ = [
    "AddNoiseState",
    "ScaleByScheduleState",
    "WeightDecaySchedule",
    "add_decayed_weights",
    "add_noise",
    "scale",
    "scale_by_learning_rate",
    "scale_by_schedule",
]


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
    """``count``, the updates done, int32; ``rng_key``, the next noise's key, uint32[2]."""

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
        chosen = streams.next_key(caller) if key is None else key
        return AddNoiseState(first_count(), PRNGKey(chosen) if isinstance(chosen, int) else chosen)

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
