"""Samplers of posteriors, as optimizers: Langevin dynamics, with momentum, preconditioned; IVON.

The target has the density exp(−U(θ) / T), with the energy

    U(θ) = data_size · mean loss + prior_precision · ‖θ‖² / 2

of a loss that is the mean over the examples of a batch of −log p(y | x, θ) in nats, as ``fit``
takes it. A loss that is a sum over the batch would count every example as often as a batch has
examples; one without its 1/σ² would have the posterior of another noise. The prior is normal, about
0, and is not tempered apart from the likelihood.

Steps are those of U, which is data_size times as steep as the mean loss, and learning rates are
smaller than those of SGD by that factor. The noise of mini-batches comes on top of the noise that
is added, and is not subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.boundary import bounded
from stretto._engine.core.functions import described
from stretto._engine.core.interpreter import Value
from stretto._engine.core.lazy import brief
from stretto._engine.core.types import kind_of, promote
from stretto._engine.core.typing import Array, Key, Tree
from stretto._engine.ops.convert import convert
from stretto.optim.base import (
    GradientTransformationExtraArgs,
    Scalar,
    ScalarOrSchedule,
    VariationalTransformation,
    check,
    fill_like,
    first_count,
    first_key,
    leafwise,
    need_params,
    optimizer,
    running_mean,
    safe_increment,
    unbias,
    wide,
)
from stretto.random.distributions import normal
from stretto.random.keys import as_key, fold_in

__all__ = ["IVONState", "PSGLDState", "SGHMCState", "SGLDState", "ivon", "psgld", "sghmc", "sgld"]


@brief
class SGLDState(NamedTuple):
    """``count``, the updates done, int32; ``rng_key``, the words of the key of all noise."""

    count: Array
    rng_key: Array


@brief
class SGHMCState(NamedTuple):
    """``count`` and ``rng_key`` as in ``SGLDState``; ``velocity``, a tree like the parameters."""

    count: Array
    rng_key: Array
    velocity: Tree


@brief
class PSGLDState(NamedTuple):
    """``count`` and ``rng_key`` as in ``SGLDState``; ``nu``, the mean of squared gradients."""

    count: Array
    rng_key: Array
    nu: Tree


@brief
class IVONState(NamedTuple):
    """``count``, the updates done, int32; ``mu``, the mean of gradients; ``hess``, the curvature.

    ``hess`` is the diagonal of the Hessian of the mean loss, as estimated: weights have the
    variance 1 / (data_size · hess + prior_precision).
    """

    count: Array
    mu: Tree
    hess: Tree


_of_sampler = described(
    {
        "data_size": "the number of training examples, which the mean loss is multiplied by.",
        "prior_precision": "1/variance of the normal prior of each weight, about 0.",
        "temperature": "T, a number, an array of rank 0 or a schedule; 0 adds no noise.",
        "key": """a PRNG key or a seed; None draws one from the ambient stream when the state is
            made, in ``fit`` from its key. Each member of ``per_member``, and of ``fit``, draws
            its own noise.""",
    }
)


def _check_target(caller: str, data_size: Scalar, prior_precision: Scalar) -> None:
    """Refuse a posterior without examples, or of a negative precision."""
    check(caller, above=0, data_size=data_size)
    check(caller, least=0, prior_precision=prior_precision)


def _at(x: ScalarOrSchedule, count: Array) -> Any:  # noqa: ANN401 (a number or an array)
    """Return the value of a number or of a schedule, at a count of updates."""
    return x(count) if callable(x) else x


def _standard_normals(caller: str, key: Array, updates: Tree) -> Iterator[Array]:
    """Draw a standard normal array for each leaf, from one stream of numbers."""
    leaves = tree.leaves(updates)
    types = [x.dtype for x in map(_wide_value, leaves)]
    if any(kind_of(t) == "complex" for t in types):
        raise TypeError(
            f"{caller}: a complex parameter has no noise here; keep its real and imaginary parts "
            f"as two arrays"
        )
    # One draw of all: a small network has many leaves, and each draw a cost of its own.
    sizes = [math.prod(np.shape(x)) for x in leaves]
    dtype = promote([(t, False) for t in types])[0] if types else np.dtype(np.float32)
    flat = normal(key, (sum(sizes),), dtype)
    start = 0
    for x, size, own in zip(leaves, sizes, types, strict=True):
        yield convert(flat[start : start + size].reshape(np.shape(x)), own)
        start += size


def _wide_value(x: Array) -> Array:
    return wide(snp.asarray(x))


def _noise(caller: str, state: Any, updates: Tree) -> Iterator[Array]:  # noqa: ANN401 (any state)
    """Return the noise of an update, leaf by leaf: of its number and the key alone."""
    return _standard_normals(caller, fold_in(state.rng_key, state.count), updates)


@bounded
@optimizer
@_of_sampler
def sgld(
    learning_rate: ScalarOrSchedule,
    *,
    data_size: Scalar,
    prior_precision: Scalar = 1.0,
    temperature: ScalarOrSchedule = 1.0,
    key: Key | int | None = None,
) -> GradientTransformationExtraArgs:
    """Stochastic gradient Langevin dynamics: θ ← θ − h ∇U + √(2hT) ξ, with h the learning rate.

    U = data_size · mean loss + prior_precision · ‖θ‖²/2, of a loss in nats that is a **mean** over
    the batch, as ``fit`` takes it; with a sum in its place weights would vary far too little. h is
    half of the step of papers that write h/2 ∇U. A normal target of precision a is
    sampled with variance T / (a (1 − ha/2)), and not at all where ha ≥ 2.

    Args:
        learning_rate: h, a number, an array of rank 0 or a schedule, such as
            ``cyclical_schedule``.

    Raises:
        ValueError: ``data_size`` is not positive, another number is negative, an array
            has axes (see ``per_member``), or ``update`` is called without parameters.
        TypeError: a parameter is complex.

    Source: Welling and Teh, "Bayesian learning via stochastic gradient Langevin dynamics", 2011;
    cycles as in Zhang et al., "Cyclical stochastic gradient MCMC", 2020.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = sgld(1e-2, data_size=100, key=0)
    >>> params = {"w": snp.zeros(100_000)}
    >>> updates, state = tx.update({"w": snp.zeros(100_000)}, tx.init(params), params)
    >>> round(float(snp.std(updates["w"])), 2), round((2 * 1e-2) ** 0.5, 2)
    (0.14, 0.14)
    """
    caller = "sgld"
    _check_target(caller, data_size, prior_precision)
    check(caller, least=0, schedules=True, learning_rate=learning_rate, temperature=temperature)

    def init(params: Tree) -> SGLDState:
        return SGLDState(first_count(), first_key(key, caller))

    def update(
        updates: Tree, state: SGLDState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, SGLDState]:
        need_params(params, caller)
        h, t = _at(learning_rate, state.count), _at(temperature, state.count)
        noise = _noise(caller, state, updates)

        def rule(g: Array, p: Array) -> Array:
            return (2 * h * t) ** 0.5 * next(noise) - h * (data_size * g + prior_precision * p)

        new = leafwise(caller, rule, updates, params=params)[0]
        return new, SGLDState(safe_increment(state.count), state.rng_key)

    return GradientTransformationExtraArgs(init, update)


@bounded
@optimizer
@_of_sampler
def sghmc(
    learning_rate: ScalarOrSchedule,
    *,
    data_size: Scalar,
    prior_precision: Scalar = 1.0,
    friction: Scalar,
    temperature: ScalarOrSchedule = 1.0,
    key: Key | int | None = None,
) -> GradientTransformationExtraArgs:
    """Stochastic gradient Hamiltonian Monte Carlo, with the momentum stepped before the position.

    v ← (1 − αh) v − h ∇U + √(2αhT) ξ; θ ← θ + h v, with h the learning rate and α the friction.
    U = data_size · mean loss + prior_precision · ‖θ‖²/2, of a loss in nats that is a **mean** over
    the batch, as ``fit`` takes it. v begins at 0. As the position takes the new momentum, a normal
    target is sampled with a variance that is right to order h², up to steps at which plain Euler
    diverges.

    Args:
        learning_rate: h, a number, an array of rank 0 or a schedule, such as
            ``cyclical_schedule``. αh is the share of momentum that a step loses; it is 1 at most.
        friction: α; momentum lasts for 1/(αh) steps.

    Raises:
        ValueError: ``data_size`` is not positive, ``friction`` is not positive or times
            the learning rate above 1, another number is negative, an array has axes (see
            ``per_member``), or ``update`` is called without parameters. Where the learning rate is
            a schedule or an array, αh above 1 gives NaN, at which ``fit`` ends the member.
        TypeError: a parameter is complex.

    Source: Chen, Fox and Guestrin, "Stochastic gradient Hamiltonian Monte Carlo", 2014; Ma, Chen
    and Fox, "A complete recipe for stochastic gradient MCMC", 2015.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = sghmc(0.1, data_size=1, friction=1.0, temperature=0.0, prior_precision=0.0, key=0)
    >>> params, grads = snp.ones(1), snp.ones(1)
    >>> state = tx.init(params)
    >>> for _ in range(2):
    ...     updates, state = tx.update(grads, state, params)
    ...     print(updates)
    [-0.01]
    [-0.019]
    """
    caller = "sghmc"
    _check_target(caller, data_size, prior_precision)
    check(caller, above=0, friction=friction)
    check(caller, least=0, schedules=True, learning_rate=learning_rate, temperature=temperature)
    rate: Any = learning_rate
    lost = None if callable(rate) or isinstance(rate, Value) else np.asarray(friction * rate)
    if lost is not None and lost > 1:
        raise ValueError(
            f"sghmc: friction times learning_rate must be at most 1, the share of momentum that a "
            f"step loses, got {friction} · {learning_rate} = {lost:.4g}; with all of it lost, sgld "
            f"is the simpler sampler"
        )

    def init(params: Tree) -> SGHMCState:
        return SGHMCState(first_count(), first_key(key, caller), fill_like(params))

    def update(
        updates: Tree, state: SGHMCState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, SGHMCState]:
        need_params(params, caller)
        h, t = _at(learning_rate, state.count), _at(temperature, state.count)
        lost = friction * h
        kept = 1 - lost
        if isinstance(lost, Value):
            kept = snp.where(lost > 1, np.nan, kept)
        noise = _noise(caller, state, updates)

        def rule(g: Array, v: Array, p: Array) -> tuple[Array, Array]:
            force = data_size * g + prior_precision * p
            v = kept * v - h * force + (2 * lost * t) ** 0.5 * next(noise)
            return h * v, v

        new, velocity = leafwise(caller, rule, updates, {"velocity": state.velocity}, params)
        return new, SGHMCState(safe_increment(state.count), state.rng_key, velocity)

    return GradientTransformationExtraArgs(init, update)


@bounded
@optimizer
@_of_sampler
def psgld(
    learning_rate: ScalarOrSchedule,
    *,
    data_size: Scalar,
    prior_precision: Scalar = 1.0,
    decay: Scalar = 0.99,
    eps: Scalar = 1e-5,
    temperature: ScalarOrSchedule = 1.0,
    key: Key | int | None = None,
) -> GradientTransformationExtraArgs:
    """Langevin dynamics with RMSProp's steps: θ ← θ − h G ∇U + √(2hTG) ξ, G = 1 / (√s + eps).

    s ← decay · s + (1 − decay) · g², of the gradient g of the mean loss. U is that of ``sgld``,
    of a loss in nats that is a **mean** over the batch.

    The term Γ of the source, Σⱼ ∂Gᵢⱼ/∂θⱼ, is left out, all of it: it needs third derivatives. It
    falls with 1 − decay; what is left is a bias of the samples that a smaller ``learning_rate``
    does not remove, and a ``decay`` near 1 does.

    Args:
        learning_rate: h, a number, an array of rank 0 or a schedule.
        decay: the weight of the past in s, which begins at 0.
        eps: added to √s; weights that get no gradient take steps of h / eps.

    Raises:
        ValueError: ``data_size`` is not positive, ``eps`` is not positive, another
            number is negative, ``decay`` is not below 1, an array has axes (see ``per_member``),
            or ``update`` is called without parameters.
        TypeError: a parameter is complex.

    Source: Li et al., "Preconditioned stochastic gradient Langevin dynamics for deep neural
    networks", 2016, with h for ε/2.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = psgld(0.1, data_size=1, decay=0.0, temperature=0.0, prior_precision=0.0, key=0)
    >>> params = snp.zeros(2)
    >>> tx.update(snp.array([3.0, -0.5]), tx.init(params), params)[0].round(3)
    Array([-0.1,  0.1], dtype=float32)
    """
    caller = "psgld"
    _check_target(caller, data_size, prior_precision)
    check(caller, least=0, below=1, decay=decay)
    check(caller, above=0, eps=eps)
    check(caller, least=0, schedules=True, learning_rate=learning_rate, temperature=temperature)

    def init(params: Tree) -> PSGLDState:
        return PSGLDState(first_count(), first_key(key, caller), fill_like(params))

    def update(
        updates: Tree, state: PSGLDState, params: Tree = None, **extra: Any
    ) -> tuple[Tree, PSGLDState]:
        need_params(params, caller)
        h, t = _at(learning_rate, state.count), _at(temperature, state.count)
        noise = _noise(caller, state, updates)

        def rule(g: Array, s: Array, p: Array) -> tuple[Array, Array]:
            s = running_mean(decay, s, g * g)
            step = h / (snp.sqrt(s) + eps)
            force = data_size * g + prior_precision * p
            return snp.sqrt(2 * t * step) * next(noise) - step * force, s

        new, nu = leafwise(caller, rule, updates, {"nu": state.nu}, params)
        return new, PSGLDState(safe_increment(state.count), state.rng_key, nu)

    return GradientTransformationExtraArgs(init, update)


@bounded
@optimizer
@_of_sampler
def ivon(
    learning_rate: ScalarOrSchedule,
    *,
    data_size: Scalar,
    prior_precision: Scalar = 1.0,
    b1: Scalar = 0.9,
    b2: Scalar = 0.99999,
    hess_init: Scalar = 1.0,
) -> VariationalTransformation:
    """Improved variational online Newton: a normal posterior of each weight, at the cost of Adam.

    The parameters are the means of weights, 1 / (data_size · hess + prior_precision) their
    variances, with ``hess`` in the state. ``ivon(...).sample(state, params, key)`` draws weights;
    **the gradient must be taken there**, and ``update`` told so, by ``at=``: without, it refuses.
    ``fit`` does both by itself, with a draw for each member and step; its ensemble has the means.
    The loss is in nats, and a **mean** over the batch.

    With δ = prior_precision / data_size, σ² = 1 / (data_size · (hess + δ)), and θ the weights drawn
    about the means m: ĥ = g (θ − m) / σ²; mu ← b1 mu + (1 − b1) g;
    hess ← b2 hess + (1 − b2) ĥ + (1 − b2)² (hess − ĥ)² / (2 (hess + δ));
    m ← m − learning_rate · (mu / (1 − b1ᵗ) + δ m) / (hess + δ), with the new hess.

    Args:
        learning_rate: a number, an array of rank 0 or a schedule; that of a Newton step. Where
            ``hess`` is small at first, the paper multiplies it by hess_init + δ.
        b1: the weight of the past in mu.
        b2: the weight of the past in hess: with 1 − b2 ≪ 1 / (number of steps), variances stay what
            ``hess_init`` makes them; where it is large they are noisy and too small.
        hess_init: hess before the first update, positive.

    Raises:
        ValueError: ``data_size`` is not positive, a number is negative or out of range,
            an array has axes (see ``per_member``), or ``update`` is called without parameters or
            without ``at=``.
        TypeError: a parameter is complex.

    Source: Shen et al., "Variational learning is effective for large deep networks", 2024,
    algorithm 1, with one draw a step.

    >>> import stretto as st, stretto.numpy as snp
    >>> loss = lambda w: 2.0 * snp.sum((w - 1.0) ** 2)  # the Hessian is 4
    >>> tx = st.optim.ivon(0.1, data_size=10, b2=0.99, prior_precision=1e-3)
    >>> params = snp.zeros(3)
    >>> @st.jit
    ... def step(carry, key):
    ...     params, state = carry
    ...     drawn = tx.sample(state, params, key)
    ...     updates, state = tx.update(st.grad(loss)(drawn), state, params, at=drawn)
    ...     return (st.optim.apply_updates(params, updates), state), None
    >>> keys = st.random.split(st.random.key(0), 1000)
    >>> (params, state), _ = st.lax.scan(step, (params, tx.init(params)), keys)
    >>> bool(snp.all(abs(params - 1) < 0.2)), bool(snp.all(abs(state.hess - 4) < 2))
    (True, True)
    """
    caller = "ivon"
    _check_target(caller, data_size, prior_precision)
    check(caller, least=0, below=1, b1=b1, b2=b2)
    check(caller, above=0, hess_init=hess_init)
    check(caller, least=0, schedules=True, learning_rate=learning_rate)
    delta = prior_precision / data_size

    def init(params: Tree) -> IVONState:
        return IVONState(first_count(), fill_like(params), fill_like(params, hess_init))

    def update(
        updates: Tree, state: IVONState, params: Tree = None, *, at: Tree = None, **extra: Any
    ) -> tuple[Tree, IVONState]:
        need_params(params, caller)
        if at is None:
            raise ValueError(
                "ivon: its update needs at=, the weights that the gradient was taken at: drawn = "
                "tx.sample(state, params, key), then tx.update(grads, state, params, at=drawn). "
                "fit does so for an optimizer that is ivon(...) itself, not a part of a chain, and "
                "for weights that each member has of its own: give another shared_optimizer="
            )
        count = safe_increment(state.count)
        rate, correction = _at(learning_rate, state.count), unbias(b1, count)

        def rule(g: Array, mu: Array, hess: Array, m: Array, at: Array) -> tuple[Array, ...]:
            estimate = g * (at - m) * (data_size * (hess + delta))
            mu = running_mean(b1, mu, g)
            bend = ((1 - b2) * (hess - estimate)) ** 2 / (2 * (hess + delta))
            hess = running_mean(b2, hess, estimate) + bend
            return -rate * (mu * correction + delta * m) / (hess + delta), mu, hess

        moments = {"mu": state.mu, "hess": state.hess}
        new, mu, hess = leafwise(caller, rule, updates, moments, params, at=at)
        return new, IVONState(count, mu, hess)

    def sample(state: IVONState, params: Tree, key: Key) -> Tree:
        noise = _standard_normals(caller, as_key(key, caller), params)

        def rule(m: Array, hess: Array) -> Array:
            return m + next(noise) / snp.sqrt(data_size * (hess + delta))

        return leafwise(caller, rule, params, params=state.hess)[0]

    return VariationalTransformation(init, update, sample)
