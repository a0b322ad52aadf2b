"""Updates scaled by running means of gradients and of their squares: momentum, Lion, Adam's kin.

With b1 and b2 the weights of the past, Adam and its kin keep m ← b1 · m + (1 − b1) · g, and most
v ← b2 · v + (1 − b2) · g²; m̂ and v̂ are these over 1 − b1ᵗ and 1 − b2ᵗ, which corrects for their
beginning at zero (Kingma and Ba, 2015, section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import stretto.numpy as snp
from stretto._engine.core.lazy import brief
from stretto._engine.core.typing import Array, DTypeLike, Tree
from stretto.numpy.arguments import weakly_inexact
from stretto.optim.base import (
    GradientTransformationExtraArgs,
    Scalar,
    caller_of,
    check,
    check_dtype,
    fill_like,
    first_count,
    leafwise,
    log_decay,
    running_mean,
    safe_increment,
    squared,
    transformation,
    unbias,
)

__all__ = ["EmaState", "ScaleByAdamState", "ScaleByAmsgradState", "ScaleByBeliefState",
           "ScaleByLionState", "TraceState", "ema", "scale_by_adam", "scale_by_adamax",
           "scale_by_amsgrad", "scale_by_belief", "scale_by_lion", "scale_by_radam",
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
