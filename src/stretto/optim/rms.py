"""Updates over the root of sums or means of their squares, element by element: RMSProp and kin."""

from __future__ import annotations

from typing import Any, NamedTuple

import stretto.numpy as snp
from stretto._engine.core.lazy import brief
from stretto._engine.core.typing import Array, Tree
from stretto._engine.ops.powers import rsqrt
from stretto.optim.base import GradientTransformationExtraArgs, Scalar, transformation
from stretto.optim.leaves import (
    check,
    filled,
    first_count,
    leafwise,
    running_mean,
    safe_increment,
    squared,
    unbias,
)
from stretto.optim.naming import caller_of

__all__ = [
    "ScaleByAdaDeltaState",
    "ScaleByRStdDevState",
    "ScaleByRStdDevWithCountState",
    "ScaleByRmsState",
    "ScaleByRmsWithCountState",
    "ScaleByRssState",
    "scale_by_adadelta",
    "scale_by_rms",
    "scale_by_rss",
    "scale_by_stddev",
]


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
        nu = filled(params, initial_scale, real_only=True)
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


@transformation
def scale_by_stddev(
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """g / √(v − m² + eps), with running means m of g and v of g²: ``rmsprop`` with ``centered``.

    Args:
        eps: added to v, or to its root.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

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
        mu, nu = filled(params), filled(params, initial_scale, real_only=True)
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
        return ScaleByRssState(filled(params, start, real_only=True))

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
        return ScaleByAdaDeltaState(filled(params, real_only=True), filled(params, real_only=True))

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
