"""Running sums and means of updates: momentum, exponential means, Lion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import stretto.numpy as snp
from stretto._engine.core.lazy import brief
from stretto._engine.core.typing import Array, DTypeLike, Tree
from stretto.optim.base import GradientTransformationExtraArgs, Scalar, caller_of, transformation
from stretto.optim.leaves import (
    check,
    check_dtype,
    filled,
    first_count,
    leafwise,
    running_mean,
    safe_increment,
    unbias,
)

__all__ = ["EmaState", "ScaleByLionState", "TraceState", "ema", "scale_by_lion", "trace"]


@brief
class TraceState(NamedTuple):
    """``trace``, the decayed sum of the updates."""

    trace: Tree


@brief
class EmaState(NamedTuple):
    """``count``, the updates done, int32; ``ema``, their exponential mean, before correction."""

    count: Array
    ema: Tree


@brief
class ScaleByLionState(NamedTuple):
    """``count``, the updates done, int32; ``mu``, the momentum."""

    count: Array
    mu: Tree


@transformation
def trace(
    decay: Scalar, nesterov: bool = False, accumulator_dtype: DTypeLike | None = None
) -> GradientTransformationExtraArgs:
    """The decayed sum of updates: mₜ = gₜ + decay · mₜ₋₁.

    Args:
        decay: the share of the sum that stays at each step.
        nesterov: give gₜ + decay · mₜ in place of mₜ.

    Raises:
        ValueError: ``decay`` is negative.

    Source: Polyak, "Some methods of speeding up the convergence of iteration methods", 1964;
    Sutskever et al., "On the importance of initialization and momentum", 2013.

    >>> import stretto.numpy as snp
    >>> tx = trace(0.5)
    >>> state = tx.init({"w": snp.zeros(1)})
    >>> for _ in range(2):
    ...     updates, state = tx.update({"w": snp.ones(1)}, state)
    >>> updates
    {'w': Array([1.5], dtype=float32)}
    """
    caller = caller_of("trace")
    check(caller, least=0, decay=decay)
    check_dtype(caller, accumulator_dtype=accumulator_dtype)

    def init(params: Tree) -> TraceState:
        return TraceState(filled(params, dtype=accumulator_dtype))

    def update(
        updates: Tree, state: TraceState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, TraceState]:
        def rule(g: Array, m: Array) -> tuple[Array, Array]:
            new = g + decay * m
            return (g + decay * new if nesterov else new), new

        new_updates, m = leafwise(caller, rule, updates, {"trace": state.trace})
        return new_updates, TraceState(m)

    return GradientTransformationExtraArgs(init, update)


@transformation
def ema(
    decay: Scalar, debias: bool = True, accumulator_dtype: DTypeLike | None = None
) -> GradientTransformationExtraArgs:
    """The exponential mean of the updates: mₜ = decay · mₜ₋₁ + (1 − decay) · gₜ.

    Given parameters in place of updates, it keeps their exponential mean (second example).

    Args:
        decay: the weight of the past, at least 0 and below 1.
        debias: divide by 1 − decayᵗ, so that the mean does not begin near zero (Kingma and Ba,
            "Adam", 2015, section 3).
        accumulator_dtype: the dtype of the mean; None is that of the parameters.

    Raises:
        ValueError: ``decay`` is out of its range.

    >>> import stretto.numpy as snp
    >>> tx = ema(0.5)
    >>> updates, state = tx.update({"w": snp.ones(1)}, tx.init({"w": snp.zeros(1)}))
    >>> updates, state.ema
    ({'w': Array([1.], dtype=float32)}, {'w': Array([0.5], dtype=float32)})

    >>> mean_of_params = ema(0.9)
    >>> params = {"w": snp.array([1.0])}
    >>> state = mean_of_params.init(params)
    >>> for _ in range(3):  # of a training loop
    ...     params = {"w": params["w"] + 1}
    ...     mean, state = mean_of_params.update(params, state)
    >>> snp.round(mean["w"], 3)
    Array([3.07], dtype=float32)
    """
    caller = caller_of("ema")
    check(caller, least=0, below=1, decay=decay)
    check_dtype(caller, accumulator_dtype=accumulator_dtype)

    def init(params: Tree) -> EmaState:
        return EmaState(first_count(), filled(params, dtype=accumulator_dtype))

    def update(
        updates: Tree, state: EmaState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, EmaState]:
        count = safe_increment(state.count)
        correction = unbias(decay, count) if debias else 1

        def rule(g: Array, m: Array) -> tuple[Array, Array]:
            mean = running_mean(decay, m, g)
            return mean * correction, mean

        new, mean = leafwise(caller, rule, updates, {"ema": state.ema})
        return new, EmaState(count, mean)

    return GradientTransformationExtraArgs(init, update)


_SIGNS: dict[str, Callable[[Array, Scalar], Array]] = {
    "hard": lambda x, beta: snp.sign(x),
    "smooth": lambda x, beta: snp.tanh(beta * x),
    "refined": lambda x, beta: snp.minimum(snp.maximum(x, -1), 1),
}


@transformation
def scale_by_lion(
    b1: Scalar = 0.9,
    b2: Scalar = 0.99,
    mu_dtype: DTypeLike | None = None,
    *,
    mode: Literal["hard", "smooth", "refined"] = "hard",
    smooth_beta: Scalar = 1.0,
) -> GradientTransformationExtraArgs:
    """The sign of the momentum before this step, mixed with the gradient.

    sign(b1 · m + (1 − b1) · g), and then m ← b2 · m + (1 − b2) · g.

    Args:
        b1: the weight of the momentum in the update.
        b2: the weight of the past in the momentum.
        mu_dtype: the dtype of the momentum; None is that of the parameters.
        mode: ``"hard"`` is the sign; ``"smooth"`` the hyperbolic tangent of ``smooth_beta`` times
            the mixture; ``"refined"`` the mixture itself, kept between −1 and 1.
        smooth_beta: how steep the tangent is.

    Raises:
        ValueError: ``b1`` or ``b2`` is not in [0, 1), or another mode.

    Source: Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2.

    >>> import stretto.numpy as snp
    >>> tx = scale_by_lion()
    >>> tx.update({"w": snp.array([-3.0, 0.2])}, tx.init({"w": snp.zeros(2)}))[0]
    {'w': Array([-1.,  1.], dtype=float32)}
    """
    caller = caller_of("scale_by_lion")
    check(caller, least=0, below=1, b1=b1, b2=b2)
    check(caller, above=0, smooth_beta=smooth_beta)
    check_dtype(caller, mu_dtype=mu_dtype)
    if mode not in _SIGNS:
        raise ValueError(f"scale_by_lion: mode must be one of {list(_SIGNS)}, got {mode!r}")
    sign = _SIGNS[mode]

    def init(params: Tree) -> ScaleByLionState:
        return ScaleByLionState(first_count(), filled(params, dtype=mu_dtype))

    def update(
        updates: Tree, state: ScaleByLionState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, ScaleByLionState]:
        def rule(g: Array, m: Array) -> tuple[Array, Array]:
            return sign(running_mean(b1, m, g), smooth_beta), running_mean(b2, m, g)

        new, mu = leafwise(caller, rule, updates, {"mu": state.mu})
        return new, ScaleByLionState(safe_increment(state.count), mu)

    return GradientTransformationExtraArgs(init, update)
