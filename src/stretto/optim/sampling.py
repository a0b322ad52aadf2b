"""Samplers: optimizers whose steps are draws of the posterior, by gradients of batches with noise.

Each takes the gradient of the *mean* negative log likelihood over a batch, as ``fit`` gives it, and
samples from exp(−U / T) with U(θ) = N × mean loss + δ ‖θ‖² / 2, for N examples and a prior of
precision δ. A loss that is a sum would count each example N times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.lazy import brief
from stretto._engine.core.typing import Array, Key, Tree
from stretto.optim.base import (
    GradientTransformationExtraArgs,
    Scalar,
    ScalarOrSchedule,
    caller_of,
    check,
    fill_like,
    first_count,
    leafwise,
    need_params,
    optimizer,
    safe_increment,
)
from stretto.random import PRNGKey, normal, split, streams
from stretto.random.keys import as_key

__all__ = ["SamplerState", "psgld", "sghmc", "sgld"]


@brief
class SamplerState(NamedTuple):
    """``count``, the updates done, int32; ``rng_key``, the next noise's key; ``moment``, a tree.

    The velocity of ``sghmc``, the mean square of gradients of ``psgld``, nothing of ``sgld``.
    """

    count: Array
    rng_key: Array
    moment: Tree


_Rule = Callable[..., Any]


def _sampler(
    name: str,
    learning_rate: ScalarOrSchedule,
    data_size: Scalar,
    prior_precision: Scalar,
    temperature: ScalarOrSchedule,
    key: Key | int | None,
    rule: _Rule,
    has_moment: bool,
) -> GradientTransformationExtraArgs:
    """Return a sampler: ``rule(h, T, gradient of U, mean gradient, noise, moment)`` of a leaf."""
    caller = caller_of(name)
    check(caller, above=0, schedules=True, learning_rate=learning_rate)
    check(caller, least=1, data_size=data_size)
    check(caller, least=0, prior_precision=prior_precision)
    check(caller, least=0, schedules=True, temperature=temperature)

    def init(params: Tree) -> SamplerState:
        chosen = streams.next_key(caller) if key is None else key
        first = PRNGKey(chosen) if isinstance(chosen, int) else as_key(chosen, caller)
        moment = fill_like(params, 0.0) if has_moment else ()
        return SamplerState(first_count(), first, moment)

    def update(
        updates: Tree, state: SamplerState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, SamplerState]:
        del extra
        need_params(params, caller)
        now = [x(state.count) if callable(x) else x for x in (learning_rate, temperature)]
        next_key, own = split(state.rng_key)
        leaves = tree.leaves(updates)
        keys = iter(split(own, len(leaves)) if leaves else ())

        def leaf(g: Array, *rest: Array) -> Tree:
            *moment, x = rest
            noise = normal(next(keys), g.shape, g.dtype)
            return rule(*now, data_size * g + prior_precision * x, g, noise, *moment)

        moments = {"moment": state.moment} if has_moment else {}
        out, *new = leafwise(caller, leaf, updates, moments, params)
        moment = new[0] if has_moment else ()
        return out, SamplerState(safe_increment(state.count), next_key, moment)

    return GradientTransformationExtraArgs(init, update)


@optimizer
def sgld(
    learning_rate: ScalarOrSchedule,
    *,
    data_size: Scalar,
    prior_precision: Scalar = 0.0,
    temperature: ScalarOrSchedule = 1.0,
    key: Key | int | None = None,
) -> GradientTransformationExtraArgs:
    """Stochastic gradient Langevin dynamics: θ ← θ − h ∇U + √(2 h T) ξ.

    Steps are small, h below 2 over the largest curvature of U, which grows with the data: 1/N and
    less. What is sampled is wider than the target by h/4 of the curvature, and by the noise of
    batches.

    Args:
        learning_rate: h, positive; or a schedule.
        data_size: N, the number of examples that the mean loss is over.
        prior_precision: δ, of the prior N(0, 1/δ) of each weight.
        temperature: T; 0 draws nothing. A number or a schedule, such as
            ``cyclical_temperature_schedule``.
        key: a PRNG key or a seed; None draws one from the ambient stream when the state is made.
            In ``fit`` one key is that of all members, which then move alike where their weights
            do: give each its own, ``fit(..., sgld, hyperparams={"key": keys, ...})``.

    Raises:
        ValueError: a number is out of range.

    Source: Welling and Teh, "Bayesian learning via stochastic gradient Langevin dynamics", 2011,
    with h for ε/2.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = sgld(0.1, data_size=1, temperature=0.0, prior_precision=1.0, key=0)
    >>> params = {"w": snp.ones(2)}
    >>> updates, state = tx.update({"w": snp.ones(2)}, tx.init(params), params)
    >>> updates["w"]
    Array([-0.2, -0.2], dtype=float32)
    """

    def rule(h: Array, t: Array, slope: Array, _: Array, noise: Array) -> Array:
        return snp.sqrt(2 * h * t) * noise - h * slope

    return _sampler(
        "sgld", learning_rate, data_size, prior_precision, temperature, key, rule, False
    )


@optimizer
def sghmc(
    learning_rate: ScalarOrSchedule,
    *,
    data_size: Scalar,
    prior_precision: Scalar = 0.0,
    friction: Scalar = 1.0,
    temperature: ScalarOrSchedule = 1.0,
    key: Key | int | None = None,
) -> GradientTransformationExtraArgs:
    """Stochastic gradient Hamiltonian Monte Carlo: first the velocity, then the position.

    v ← (1 − α h) v − h ∇U + √(2 α h T) ξ, then θ ← θ + h v. With the position moved by the
    velocity before, chains are too wide, and diverge at larger steps.

    Args:
        learning_rate: h, positive; or a schedule.
        data_size: N, the number of examples that the mean loss is over.
        prior_precision: δ, of the prior N(0, 1/δ) of each weight.
        friction: α, positive: how soon the velocity is forgotten; α h is below 1.
        temperature: T; 0 draws nothing. A number or a schedule.
        key: as for ``sgld``.

    Raises:
        ValueError: a number is out of range.

    Source: Chen, Fox and Guestrin, "Stochastic gradient Hamiltonian Monte Carlo", 2014
    (arXiv:1402.4102), equation 13.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = sghmc(0.1, data_size=1, temperature=0.0, key=0)
    >>> params = {"w": snp.ones(2)}
    >>> updates, state = tx.update({"w": snp.ones(2)}, tx.init(params), params)
    >>> updates["w"], state.moment["w"]
    (Array([-0.01, -0.01], dtype=float32), Array([-0.1, -0.1], dtype=float32))
    """
    caller = caller_of("sghmc")
    check(caller, above=0, friction=friction)
    numbers: list[Any] = [friction, learning_rate]
    if not any([callable(x) or isinstance(x, Tracer) for x in numbers]) and (
        numbers[0] * numbers[1] >= 1
    ):
        raise ValueError(
            f"{caller}: friction × learning_rate must be below 1, got "
            f"{friction!r} × {learning_rate!r}; take smaller steps, or less friction"
        )

    def rule(
        h: Array, t: Array, slope: Array, _: Array, noise: Array, v: Array
    ) -> tuple[Array, Array]:
        kick = snp.sqrt(2 * friction * h * t) * noise - h * slope
        speed: Any = (1 - friction * h) * v + kick
        return h * speed, speed

    return _sampler(
        "sghmc", learning_rate, data_size, prior_precision, temperature, key, rule, True
    )


@optimizer
def psgld(
    learning_rate: ScalarOrSchedule,
    *,
    data_size: Scalar,
    prior_precision: Scalar = 0.0,
    decay: Scalar = 0.99,
    eps: Scalar = 1e-5,
    temperature: ScalarOrSchedule = 1.0,
    key: Key | int | None = None,
) -> GradientTransformationExtraArgs:
    """Langevin dynamics preconditioned as by RMSprop: θ ← θ − h G ∇U + √(2 h T G) ξ.

    G = 1 / (λ + √V) with V the running mean of squares of the mean gradient, this one included. The
    derivative of G, Γ in the source, is left out, as is common: it is small where V changes slowly.

    Args:
        learning_rate: h, positive; or a schedule.
        data_size: N, the number of examples that the mean loss is over.
        prior_precision: δ, of the prior N(0, 1/δ) of each weight.
        decay: of V, at least 0 and below 1.
        eps: λ, positive.
        temperature: T; 0 draws nothing. A number or a schedule.
        key: as for ``sgld``.

    Raises:
        ValueError: a number is out of range.

    Source: Li, Chen, Carlson and Carin, "Preconditioned stochastic gradient Langevin dynamics for
    deep neural networks", 2016 (arXiv:1512.07666), algorithm 1, with h for ε/2.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = psgld(0.1, data_size=1, decay=0.0, temperature=0.0, key=0)
    >>> params = {"w": snp.ones(2)}
    >>> updates, state = tx.update({"w": snp.array([2.0, 4.0])}, tx.init(params), params)
    >>> updates["w"].round(4)
    Array([-0.1, -0.1], dtype=float32)
    """
    caller = caller_of("psgld")
    check(caller, least=0, below=1, decay=decay)
    check(caller, above=0, eps=eps)

    def rule(
        h: Array, t: Array, slope: Array, g: Array, noise: Array, v: Array
    ) -> tuple[Array, Array]:
        mean: Any = decay * v + (1 - decay) * snp.square(g)
        scale = 1 / (eps + snp.sqrt(mean))
        return snp.sqrt(2 * h * t * scale) * noise - h * scale * slope, mean

    return _sampler(
        "psgld", learning_rate, data_size, prior_precision, temperature, key, rule, True
    )
