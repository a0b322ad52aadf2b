"""Updates scaled by running means of gradients and of their squares: momentum, Lion, Adam's kin.

With b1 and b2 the weights of the past, Adam and its kin keep m ← b1 · m + (1 − b1) · g, and most
v ← b2 · v + (1 − b2) · g²; m̂ and v̂ are these over 1 − b1ᵗ and 1 − b2ᵗ, which corrects for their
beginning at zero (Kingma and Ba, 2015, section 3). Then those over the root of sums or means of
squares alone: RMSProp, Adafactor and kin. Adafactor keeps the mean squares of a matrix by its rows
and columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.argument_leaves import values_of_tree
from stretto._engine.core import tree
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import brief
from stretto._engine.core.types import real_dtype
from stretto._engine.core.typing import Array, DTypeLike, Shape, Tree
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import rsqrt
from stretto.numpy.arguments import weakly_inexact
from stretto.optim.base import (
    GradientTransformationExtraArgs,
    Scalar,
    caller_of,
    check,
    check_dtype,
    columns,
    fill_like,
    first_count,
    leafwise,
    log_decay,
    need_params,
    running_mean,
    safe_increment,
    squared,
    transformation,
    unbias,
    wide,
)

__all__ = ["EmaState", "FactoredState", "ScaleByAdaDeltaState", "ScaleByAdamState",
           "ScaleByAmsgradState", "ScaleByBeliefState", "ScaleByLionState", "ScaleByRStdDevState",
           "ScaleByRStdDevWithCountState", "ScaleByRmsState", "ScaleByRmsWithCountState",
           "ScaleByRssState", "TraceState", "ema", "scale_by_adadelta", "scale_by_adam",
           "scale_by_adamax", "scale_by_amsgrad", "scale_by_belief", "scale_by_factored_rms",
           "scale_by_lion", "scale_by_radam", "scale_by_rms", "scale_by_rss", "scale_by_stddev",
           "scale_by_yogi", "trace"]  # fmt: skip


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
    """Replace updates by their decayed sum: mₜ = gₜ + decay · mₜ₋₁.

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
        return TraceState(fill_like(params, dtype=accumulator_dtype))

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
    """Replace updates by their exponential mean: mₜ = decay · mₜ₋₁ + (1 − decay) · gₜ.

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
        return EmaState(first_count(), fill_like(params, dtype=accumulator_dtype))

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
    """Take the sign of the momentum before this step, mixed with the gradient.

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
        return ScaleByLionState(first_count(), fill_like(params, dtype=mu_dtype))

    def update(
        updates: Tree, state: ScaleByLionState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, ScaleByLionState]:
        def rule(g: Array, m: Array) -> tuple[Array, Array]:
            return sign(running_mean(b1, m, g), smooth_beta), running_mean(b2, m, g)

        new, mu = leafwise(caller, rule, updates, {"mu": state.mu})
        return new, ScaleByLionState(safe_increment(state.count), mu)

    return GradientTransformationExtraArgs(init, update)


@brief
class ScaleByAdamState(NamedTuple):
    """``count``, the updates done, int32; ``mu``, means of gradients; ``nu``, means of squares."""

    count: Array
    mu: Tree
    nu: Tree


@brief
class ScaleByAmsgradState(NamedTuple):
    """Adam's ``count``, ``mu`` and ``nu``; ``nu_max``, the largest means of squares so far."""

    count: Array
    mu: Tree
    nu: Tree
    nu_max: Tree


@brief
class ScaleByBeliefState(NamedTuple):
    """``count``, ``mu`` as Adam's; ``nu``, the means of squared surprises."""

    count: Array
    mu: Tree
    nu: Tree


def _two_moments(
    caller: str,
    rule_at: Callable[[Array], Callable[..., tuple[Array, ...]]],
    *,
    state_class: type = ScaleByAdamState,
    start: tuple[Scalar, Scalar] = (0.0, 0.0),
    mu_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Make one with a count and two moments; ``rule_at(t)`` is the rule of update t ≥ 1."""

    def init(params: Tree) -> Tree:
        mu = fill_like(params, start[0], mu_dtype)
        return state_class(first_count(), mu, fill_like(params, start[1], real_only=True))

    def update(updates: Tree, state: Tree, params: Tree = None, **extra: Any) -> tuple[Tree, Tree]:
        count = safe_increment(state.count)
        moments = {"mu": state.mu, "nu": state.nu}
        new, mu, nu = leafwise(caller, rule_at(count), updates, moments)
        return new, state_class(count, mu, nu)

    return GradientTransformationExtraArgs(init, update)


def _first_moment(
    b1: Scalar, count: Array, nesterov: bool
) -> Callable[[Array, Array], tuple[Array, Array]]:
    """Make the map of g and m to new m and m̂; with Nesterov's look ahead, m̂ of the next step."""
    now = unbias(b1, count)
    if not nesterov:

        def plain(g: Array, m: Array) -> tuple[Array, Array]:
            m = running_mean(b1, m, g)
            return m, m * now

        return plain
    ahead = unbias(b1, safe_increment(count))

    def looking_ahead(g: Array, m: Array) -> tuple[Array, Array]:
        m = running_mean(b1, m, g)
        return m, m * (b1 * ahead) + g * ((1 - b1) * now)

    return looking_ahead


@transformation
def scale_by_adam(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """m̂ / (√(v̂ + eps_root) + eps): Adam without its learning rate; see ``adam``.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    >>> import stretto.numpy as snp
    >>> tx = scale_by_adam()
    >>> updates, state = tx.update({"w": snp.array([5.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3), state.count
    (Array([1.], dtype=float32), Array(1, dtype=int32))
    """
    caller = caller_of("scale_by_adam")
    check(caller, least=0, below=1, b1=b1, b2=b2)
    check(caller, least=0, eps=eps, eps_root=eps_root)
    check_dtype(caller, mu_dtype=mu_dtype)

    def rule_at(count: Array) -> Callable[..., tuple[Array, ...]]:
        first, v_scale = _first_moment(b1, count, nesterov), unbias(b2, count)

        def rule(g: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
            m, m_hat = first(g, m)
            v = running_mean(b2, v, squared(g))
            return m_hat / (snp.sqrt(v * v_scale + eps_root) + eps), m, v

        return rule

    return _two_moments(caller, rule_at, mu_dtype=mu_dtype)


@transformation
def scale_by_amsgrad(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    bias_correction_mu: bool = True,
    bias_correction_nu: bool = True,
) -> GradientTransformationExtraArgs:
    """Adam with the largest v̂ so far in place of v̂; see ``amsgrad``.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    >>> import stretto.numpy as snp
    >>> tx = scale_by_amsgrad()
    >>> updates, _ = tx.update({"w": snp.array([5.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([1.], dtype=float32)
    """
    caller = caller_of("scale_by_amsgrad")
    check(caller, least=0, below=1, b1=b1, b2=b2)
    check(caller, least=0, eps=eps, eps_root=eps_root)
    check_dtype(caller, mu_dtype=mu_dtype)

    def init(params: Tree) -> ScaleByAmsgradState:
        mu, nu = fill_like(params, dtype=mu_dtype), fill_like(params, real_only=True)
        return ScaleByAmsgradState(first_count(), mu, nu, fill_like(params, real_only=True))

    def update(
        updates: Tree, state: ScaleByAmsgradState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, ScaleByAmsgradState]:
        count = safe_increment(state.count)
        m_scale = unbias(b1, count) if bias_correction_mu else 1
        v_scale = unbias(b2, count) if bias_correction_nu else 1

        def rule(g: Array, m: Array, v: Array, largest: Array) -> tuple[Array, Array, Array, Array]:
            m = running_mean(b1, m, g)
            v = running_mean(b2, v, squared(g))
            largest = snp.maximum(largest, v * v_scale)
            return m * m_scale / (snp.sqrt(largest + eps_root) + eps), m, v, largest

        moments = {"mu": state.mu, "nu": state.nu, "nu_max": state.nu_max}
        new, *rest = leafwise(caller, rule, updates, moments)
        return new, ScaleByAmsgradState(count, *rest)

    return GradientTransformationExtraArgs(init, update)


@transformation
def scale_by_adamax(
    b1: Scalar = 0.9, b2: Scalar = 0.999, eps: Scalar = 1e-8
) -> GradientTransformationExtraArgs:
    """m̂ / u with u ← max(b2 · u, |g| + eps), the infinity norm of the past; see ``adamax``.

    Args:
        b2: the weight of the past in u.
        eps: added to |g|.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    >>> import stretto.numpy as snp
    >>> tx = scale_by_adamax()
    >>> updates, _ = tx.update({"w": snp.array([5.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([1.], dtype=float32)
    """
    caller = caller_of("scale_by_adamax")
    check(caller, least=0, below=1, b1=b1, b2=b2)
    check(caller, least=0, eps=eps)

    def rule_at(count: Array) -> Callable[..., tuple[Array, ...]]:
        first = _first_moment(b1, count, nesterov=False)

        def rule(g: Array, m: Array, u: Array) -> tuple[Array, Array, Array]:
            m, m_hat = first(g, m)
            u = snp.maximum(snp.absolute(g) + eps, b2 * u)
            return m_hat / u, m, u

        return rule

    return _two_moments(caller, rule_at)


@transformation
def scale_by_radam(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    threshold: Scalar = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam times r, or m̂ alone in the first steps; see ``radam``.

    With ρ∞ = 2 / (1 − b2) − 1 and ρ = ρ∞ − 2t · b2ᵗ / (1 − b2ᵗ), where ρ reaches the threshold
    r² = (ρ − 4)(ρ − 2) ρ∞ / ((ρ∞ − 4)(ρ∞ − 2) ρ), and the update is m̂ before.

    Args:
        threshold: from which ρ v̂ counts as known; at least 4.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    >>> import stretto.numpy as snp
    >>> tx = scale_by_radam()
    >>> tx.update({"w": snp.array([5.0])}, tx.init({"w": snp.zeros(1)}))[0]
    {'w': Array([5.], dtype=float32)}
    """
    caller = caller_of("scale_by_radam")
    check(caller, least=0, below=1, b1=b1, b2=b2)
    check(caller, least=0, eps=eps, eps_root=eps_root)
    check(caller, least=4, threshold=threshold)  # below 4, r is not a real number
    limit = 2 / (1 - b2) - 1

    def rule_at(count: Array) -> Callable[..., tuple[Array, ...]]:
        first, v_scale = _first_moment(b1, count, nesterov), unbias(b2, count)
        t = weakly_inexact(count)
        rho = limit - 2 * t / snp.expm1(-t * log_decay(b2))
        certain = rho >= threshold
        safe = snp.where(
            certain, rho, threshold
        )  # so that no root of a negative number is taken where it is not used
        r = snp.sqrt((safe - 4) * (safe - 2) * limit / ((limit - 4) * (limit - 2) * safe))

        def rule(g: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
            m, m_hat = first(g, m)
            v = running_mean(b2, v, squared(g))
            adapted = r * m_hat / (snp.sqrt(v * v_scale + eps_root) + eps)
            return snp.where(certain, adapted, m_hat), m, v

        return rule

    return _two_moments(caller, rule_at)


@transformation
def scale_by_belief(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-16,
    eps_root: Scalar = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam with the mean of (g − m)², the surprise, in place of that of g²; see ``adabelief``.

    Args:
        eps_root: added to v.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    >>> import stretto.numpy as snp
    >>> tx = scale_by_belief()
    >>> updates, _ = tx.update({"w": snp.array([5.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([1.111], dtype=float32)
    """
    caller = caller_of("scale_by_belief")
    check(caller, least=0, below=1, b1=b1, b2=b2)
    check(caller, least=0, eps=eps, eps_root=eps_root)

    def rule_at(count: Array) -> Callable[..., tuple[Array, ...]]:
        first, v_scale = _first_moment(b1, count, nesterov), unbias(b2, count)

        def rule(g: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
            m, m_hat = first(g, m)
            v = running_mean(b2, v, squared(g - m)) + eps_root
            return m_hat / (snp.sqrt(v * v_scale) + eps), m, v

        return rule

    return _two_moments(caller, rule_at, state_class=ScaleByBeliefState)


@transformation
def scale_by_yogi(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-3,
    eps_root: Scalar = 0.0,
    initial_accumulator_value: Scalar = 1e-6,
) -> GradientTransformationExtraArgs:
    """Adam with v ← v − (1 − b2) · sign(v − g²) · g², which grows and shrinks alike; see ``yogi``.

    Args:
        initial_accumulator_value: m and v before the first update.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    >>> import stretto.numpy as snp
    >>> tx = scale_by_yogi()
    >>> updates, _ = tx.update({"w": snp.array([5.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([1.], dtype=float32)
    """
    caller = caller_of("scale_by_yogi")
    check(caller, least=0, below=1, b1=b1, b2=b2)
    start = initial_accumulator_value
    check(caller, least=0, eps=eps, eps_root=eps_root, initial_accumulator_value=start)

    def rule_at(count: Array) -> Callable[..., tuple[Array, ...]]:
        first, v_scale = _first_moment(b1, count, nesterov=False), unbias(b2, count)

        def rule(g: Array, m: Array, v: Array) -> tuple[Array, Array, Array]:
            m, m_hat = first(g, m)
            square = squared(g)
            v = v - (1 - b2) * snp.sign(v - square) * square
            return m_hat / (snp.sqrt(v * v_scale + eps_root) + eps), m, v

        return rule

    return _two_moments(caller, rule_at, start=(start, start))


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
