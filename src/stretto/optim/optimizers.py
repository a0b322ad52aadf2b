"""Optimizers: SGD, Adam's family, RMSProp and sums of squares, Lion, layer-wise ones, Adafactor.

Each is a ``chain`` of transformations, the last of which is the learning rate. Errors carry its
name (``making``); arguments that the parts call otherwise are checked here.
"""

from __future__ import annotations

import numpy as np

from stretto._engine.core.boundary import bounded
from stretto._engine.core.typing import DTypeLike, Key
from stretto.optim import moments
from stretto.optim.base import (
    GradientTransformationExtraArgs,
    Mask,
    Scalar,
    ScalarOrSchedule,
    check,
    check_dtype,
    identity,
    making,
    optimizer,
    transformation,
)
from stretto.optim.combining import chain, masked
from stretto.optim.scaling import (
    add_decayed_weights,
    add_noise,
    clip_by_block_rms,
    scale,
    scale_by_learning_rate,
    scale_by_param_block_rms,
    scale_by_trust_ratio,
)

__all__ = ["adabelief", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamaxw", "adamw",
           "amsgrad", "lamb", "lars", "lion", "nadam", "nadamw", "noisy_sgd", "radam", "rmsprop",
           "sgd", "yogi"]  # fmt: skip


def _decay_and_scale(
    step: GradientTransformationExtraArgs,
    weight_decay: ScalarOrSchedule,
    mask: Mask | None,
    learning_rate: ScalarOrSchedule,
) -> GradientTransformationExtraArgs:
    """Let parameters decay beside a step, at the rate of both."""
    return chain(
        step, add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate)
    )


@bounded
@optimizer
def sgd(
    learning_rate: ScalarOrSchedule,
    momentum: Scalar | None = None,
    nesterov: bool = False,
    accumulator_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Stochastic gradient descent: −learning_rate · g, or · (g + momentum · the sum before).

    Args:
        momentum: the share of the sum of past gradients that stays; None keeps no sum.
        nesterov: Nesterov's momentum.

    Raises:
        ValueError: a number is negative, an array has axes (see ``per_member``), or ``nesterov``
            without momentum.
        TypeError: ``accumulator_dtype`` is not floating.

    Source: Robbins and Monro, 1951; Polyak, 1964; Sutskever et al., "On the importance of
    initialization and momentum in deep learning", 2013.

    >>> import stretto as st, stretto.numpy as snp
    >>> params = {"w": snp.array([1.0, -2.0])}
    >>> tx = sgd(0.1, momentum=0.9)
    >>> state = tx.init(params)
    >>> for _ in range(2):
    ...     updates, state = tx.update({"w": snp.ones(2)}, state, params)
    ...     params = st.optim.apply_updates(params, updates)
    >>> params
    {'w': Array([ 0.71, -2.29], dtype=float32)}
    """
    if nesterov and momentum is None:
        raise ValueError("sgd: nesterov=True needs a momentum, such as momentum=0.9")
    check("sgd", least=0, optional=True, momentum=momentum)
    check_dtype("sgd", accumulator_dtype=accumulator_dtype)
    return chain(
        identity() if momentum is None else moments.trace(momentum, nesterov, accumulator_dtype),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def noisy_sgd(
    learning_rate: ScalarOrSchedule,
    eta: Scalar = 0.01,
    gamma: Scalar = 0.55,
    key: Key | int | None = None,
) -> GradientTransformationExtraArgs:
    """SGD with normal noise of variance ``eta / tᵞ`` on the gradients of update t = 1, 2, ….

    Args:
        eta: the variance at the first update.
        gamma: how fast it falls.
        key: a PRNG key or a seed; None draws one from the ambient stream when the state is made,
            in ``fit`` from its key. Each member of ``per_member``, and of ``fit``, draws its own.

    Raises:
        ValueError: a number is negative, or an array has axes.

    Source: Neelakantan et al., "Adding gradient noise improves learning for very deep networks",
    2015.

    >>> import stretto as st, stretto.numpy as snp
    >>> tx = noisy_sgd(0.1, key=st.random.PRNGKey(0))
    >>> updates, state = tx.update({"w": snp.ones(2)}, tx.init(None))
    >>> bool(snp.all(snp.abs(updates["w"] + 0.1) < 0.1))
    True
    """
    return chain(add_noise(eta, gamma, key), scale_by_learning_rate(learning_rate))


@bounded
@optimizer
def adagrad(
    learning_rate: ScalarOrSchedule, initial_accumulator_value: Scalar = 0.1, eps: Scalar = 1e-7
) -> GradientTransformationExtraArgs:
    """−learning_rate · g / √(s + eps), with s the sum of squares so far.

    Args:
        eps: added to s.

    Raises:
        ValueError: a number is negative, or an array has axes (see ``per_member``).

    Source: Duchi, Hazan and Singer, "Adaptive subgradient methods", 2011.

    >>> import stretto.numpy as snp
    >>> tx = adagrad(0.1, initial_accumulator_value=0.0)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.1], dtype=float32)
    """
    return chain(
        moments.scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate)
    )


@bounded
@optimizer
def adadelta(
    learning_rate: ScalarOrSchedule | None = None,
    rho: Scalar = 0.9,
    eps: Scalar = 1e-6,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: Mask | None = None,
) -> GradientTransformationExtraArgs:
    """−learning_rate · g · √(x + eps) / √(v + eps), with running means of squares.

    v is that of the gradients, x that of the updates before the learning rate.

    Args:
        learning_rate: a number, an array of rank 0 or a schedule; None is 1, as in the paper.
        eps: added to both means.
        weight_decay: added to the gradients, times the parameters.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    Source: Zeiler, "ADADELTA", 2012, algorithm 1.

    >>> import stretto.numpy as snp
    >>> tx = adadelta(1.0)
    >>> params = {"w": snp.zeros(1)}
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init(params), params)
    >>> snp.round(updates["w"], 5)
    Array([-0.00316], dtype=float32)
    """
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        moments.scale_by_adadelta(rho, eps),
        scale_by_learning_rate(1.0 if learning_rate is None else learning_rate),
    )


@bounded
@optimizer
def rmsprop(
    learning_rate: ScalarOrSchedule,
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: Scalar | None = None,
    nesterov: bool = False,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """−learning_rate · g / √(v + eps), with v the running mean of squares.

    Args:
        eps: added to v, or to its root.
        eps_in_sqrt: False for √v + eps, as in PyTorch.
        centered: take the variance, v less the square of the running mean.
        momentum: of the updates, after the learning rate; None for none.
        nesterov: Nesterov's momentum.

    Raises:
        ValueError: a number is out of its range, an array has axes (see ``per_member``), or
            ``nesterov`` without momentum.

    Source: Tieleman and Hinton, lecture 6.5 of "Neural networks for machine learning", 2012;
    centred, Graves, "Generating sequences with recurrent neural networks", 2013.

    >>> import stretto.numpy as snp
    >>> tx = rmsprop(0.1, decay=0.75)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.2], dtype=float32)
    """
    if nesterov and momentum is None:
        raise ValueError("rmsprop: nesterov=True needs a momentum, such as momentum=0.9")
    check("rmsprop", least=0, optional=True, momentum=momentum)
    scaled = moments.scale_by_stddev if centered else moments.scale_by_rms
    return chain(
        scaled(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        scale_by_learning_rate(learning_rate),
        identity() if momentum is None else moments.trace(momentum, nesterov),
    )


@optimizer
def lion(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.99,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-3,
    mask: Mask | None = None,
) -> GradientTransformationExtraArgs:
    """−learning_rate · (sign(b1 · m + (1 − b1) · g) + weight_decay · p).

    Every element moves by the learning rate, which is to be three to ten times smaller than Adam's.
    ``update`` needs ``params``.

    Args:
        b1: the weight of the momentum m in the update.
        b2: the weight of the past in m.

    Raises:
        ValueError: a number is out of its range, an array has axes (see ``per_member``), or
            ``update`` is called without parameters.

    Source: Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2.

    >>> import stretto.numpy as snp
    >>> tx = lion(0.1, weight_decay=0.5)
    >>> params = {"w": snp.array([10.0])}
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init(params), params)
    >>> snp.round(updates["w"], 3)
    Array([-0.6], dtype=float32)
    """
    return _decay_and_scale(
        moments.scale_by_lion(b1, b2, mu_dtype), weight_decay, mask, learning_rate
    )


@optimizer
def lamb(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-6,
    eps_root: Scalar = 0.0,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: Mask | None = None,
) -> GradientTransformationExtraArgs:
    """AdamW's direction of each leaf, as long as the leaf itself, times −learning_rate.

    ``update`` needs ``params``; with an axis of members, use ``per_member(lamb(...))``.

    Raises:
        ValueError: as ``adamw``.

    Source: You et al., "Large batch optimization for deep learning", 2020, algorithm 2.

    >>> import stretto.numpy as snp
    >>> tx = lamb(0.1)
    >>> params = {"w": snp.array([3.0, 4.0])}
    >>> updates, _ = tx.update({"w": snp.array([1.0, 2.0])}, tx.init(params), params)
    >>> snp.round(updates["w"], 3)  # of length 0.5, a tenth of that of w
    Array([-0.354, -0.354], dtype=float32)
    """
    return chain(
        moments.scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_trust_ratio(),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def lars(
    learning_rate: ScalarOrSchedule,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: Mask = True,
    trust_coefficient: Scalar = 0.001,
    eps: Scalar = 0.0,
    trust_ratio_mask: Mask = True,
    momentum: Scalar = 0.9,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """SGD with momentum whose step is a fixed share of the length of each leaf.

    ``update`` needs ``params``; with an axis of members, use ``per_member(lars(...))``.

    Args:
        weight_decay: added to the gradients, times the parameters.
        trust_coefficient: the share.
        eps: added to the length of the update.
        trust_ratio_mask: the leaves whose length counts; see ``masked``.
        momentum: the share of the sum of past updates that stays.
        nesterov: Nesterov's momentum.

    Raises:
        ValueError: a number is negative, an array has axes, or ``update`` is called without
            parameters.

    Source: You, Gitman and Ginsburg, "Large batch training of convolutional networks", 2017,
    algorithm 1.

    >>> import stretto.numpy as snp
    >>> tx = lars(1.0)
    >>> params = {"w": snp.array([3.0, 4.0])}
    >>> updates, _ = tx.update({"w": snp.array([2.0, 0.0])}, tx.init(params), params)
    >>> snp.round(updates["w"], 5)
    Array([-0.005,  0.   ], dtype=float32)
    """
    check("lars", least=0, momentum=momentum)
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        masked(
            scale_by_trust_ratio(trust_coefficient=trust_coefficient, eps=eps), trust_ratio_mask
        ),
        scale_by_learning_rate(learning_rate),
        moments.trace(momentum, nesterov),
    )


@transformation
def adafactor(
    learning_rate: ScalarOrSchedule | None = None,
    min_dim_size_to_factor: int = 128,
    decay_rate: Scalar = 0.8,
    decay_offset: int = 0,
    multiply_by_parameter_scale: bool = True,
    clipping_threshold: Scalar = 1.0,
    momentum: Scalar | None = None,
    dtype_momentum: DTypeLike = np.float32,
    weight_decay_rate: ScalarOrSchedule | None = None,
    eps: Scalar = 1e-30,
    factored: bool = True,
    weight_decay_mask: Mask | None = None,
) -> GradientTransformationExtraArgs:
    """Adam without its first moment, and with the second kept by rows and columns.

    ``update`` needs ``params``; with an axis of members, use ``per_member(adafactor(...))``.

    Args:
        learning_rate: a number, an array of rank 0 or a schedule; None is 1.
        min_dim_size_to_factor: see ``scale_by_factored_rms``, as for ``decay_rate``, ``eps`` and
            ``factored``.
        decay_rate: how fast the weight of the past grows to 1.
        decay_offset: how many past updates not to count.
        multiply_by_parameter_scale: times the root mean square of each parameter.
        clipping_threshold: the largest root mean square of a leaf's updates; None for any.
        momentum: the weight of the past in a running mean of updates; None for none.
        dtype_momentum: the dtype of that mean.
        weight_decay_rate: the parameters times this are taken off; the learning rate does not
            scale it.
        eps: added to squared gradients.
        factored: False keeps the second moment whole.

    Raises:
        ValueError: a number is out of its range, an array has axes, or ``update`` is called
            without parameters.

    Source: Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost",
    2018, algorithm 4; with a learning rate that is not relative to the step.

    >>> import stretto.numpy as snp
    >>> tx = adafactor(0.1)
    >>> params = {"w": snp.array([2.0, 2.0])}
    >>> updates, _ = tx.update({"w": snp.array([3.0, -3.0])}, tx.init(params), params)
    >>> snp.round(updates["w"], 3)
    Array([-0.2,  0.2], dtype=float32)
    """
    caller = "adafactor"
    check(caller, least=0, eps=eps)
    check(caller, least=0, schedules=True, optional=True, weight_decay_rate=weight_decay_rate)
    check(caller, least=0, below=1, optional=True, momentum=momentum)
    check_dtype(caller, dtype_momentum=dtype_momentum)
    check(caller, above=0, optional=True, clipping_threshold=clipping_threshold)

    def whole() -> GradientTransformationExtraArgs:
        parts = [
            moments.scale_by_factored_rms(
                factored, decay_rate, decay_offset, min_dim_size_to_factor, eps
            )
        ]
        if clipping_threshold is not None:
            parts.append(clip_by_block_rms(clipping_threshold))
        if learning_rate is not None:
            parts.append(scale_by_learning_rate(learning_rate, flip_sign=False))
        if multiply_by_parameter_scale:
            parts.append(scale_by_param_block_rms())
        if momentum is not None:
            parts.append(moments.ema(momentum, debias=False, accumulator_dtype=dtype_momentum))
        if weight_decay_rate is not None:
            parts.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
        return chain(*parts, scale(-1))

    return making(caller, whole)


@bounded
@optimizer
def adam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam: −learning_rate · m̂ / (√(v̂ + eps_root) + eps).

    m and v are running means of the gradients and of their squares, and m̂ and v̂ those over 1 −
    b1ᵗ and 1 − b2ᵗ.

    Args:
        nesterov: take m̂ of the step to come, as ``nadam``.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1; with
    ``nesterov``, Dozat, "Incorporating Nesterov momentum into Adam", 2016.

    >>> import stretto as st, stretto.numpy as snp
    >>> params = {"w": snp.array([1.0, -2.0])}
    >>> tx = adam(0.1)
    >>> state = tx.init(params)
    >>> grads = st.grad(lambda p: snp.sum(p["w"] ** 2))(params)
    >>> updates, state = tx.update(grads, state, params)
    >>> snp.round(st.optim.apply_updates(params, updates)["w"], 3)
    Array([ 0.9, -1.9], dtype=float32)
    """
    return chain(
        moments.scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


@bounded
@optimizer
def adamw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Mask | None = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam with decoupled weight decay: −learning_rate · (Adam's direction + weight_decay · p).

    ``update`` needs ``params``.

    Args:
        weight_decay: a number, an array of rank 0 or a schedule. PyTorch's default is 0.01.

    Raises:
        ValueError: as ``adam``; or ``update`` is called without parameters.

    Source: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019, algorithm 2.

    >>> import stretto.numpy as snp
    >>> tx = adamw(0.1, weight_decay=0.5)
    >>> params = {"w": snp.array([10.0])}
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init(params), params)
    >>> snp.round(updates["w"], 3)
    Array([-0.6], dtype=float32)
    """
    return _decay_and_scale(
        moments.scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        weight_decay,
        mask,
        learning_rate,
    )


@bounded
@optimizer
def nadam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """``adam`` with Nesterov's look ahead.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    Source: Dozat, "Incorporating Nesterov momentum into Adam", 2016, with b1 the same at all steps.

    >>> import stretto.numpy as snp
    >>> tx = nadam(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.147], dtype=float32)
    """
    return adam(learning_rate, b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)


@optimizer
def nadamw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Mask | None = None,
    *,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """``adamw`` with Nesterov's look ahead; ``update`` needs ``params``.

    Raises:
        ValueError: as for ``adamw``.

    >>> import stretto.numpy as snp
    >>> tx = nadamw(0.1, weight_decay=0.0)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.147], dtype=float32)
    """
    return adamw(
        learning_rate, b1, b2, eps, eps_root, mu_dtype, weight_decay, mask, nesterov=nesterov
    )


@optimizer
def amsgrad(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    bias_correction_mu: bool = True,
    bias_correction_nu: bool = True,
) -> GradientTransformationExtraArgs:
    """Adam whose v̂ never falls.

    Raises:
        ValueError: as ``adam``.

    Source: Reddi, Kale and Kumar, "On the convergence of Adam and beyond", 2018, algorithm 2, which
    has no corrections: give False for both.

    >>> import stretto.numpy as snp
    >>> tx = amsgrad(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.1], dtype=float32)
    """
    return chain(
        moments.scale_by_amsgrad(
            b1, b2, eps, eps_root, mu_dtype, bias_correction_mu, bias_correction_nu
        ),
        scale_by_learning_rate(learning_rate),
    )


@bounded
@optimizer
def radam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    threshold: Scalar = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Rectified Adam, which scales by v̂ only where that is known well enough.

    Args:
        threshold: from which length ρ of the mean v̂ counts as known; at least 4.

    Raises:
        ValueError: as ``adam``, or the threshold is below 4.

    Source: Liu et al., "On the variance of the adaptive learning rate and beyond", 2020, algorithm
    2.

    >>> import stretto.numpy as snp
    >>> tx = radam(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.3], dtype=float32)
    """
    return chain(
        moments.scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


@bounded
@optimizer
def adamax(
    learning_rate: ScalarOrSchedule, b1: Scalar = 0.9, b2: Scalar = 0.999, eps: Scalar = 1e-8
) -> GradientTransformationExtraArgs:
    """Adam with the infinity norm of past gradients in place of the root of v̂.

    Args:
        b2: the weight of the past in the norm.
        eps: added to the size of the gradient.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 2.

    >>> import stretto.numpy as snp
    >>> tx = adamax(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.1], dtype=float32)
    """
    return chain(moments.scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


@optimizer
def adamaxw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Mask | None = None,
) -> GradientTransformationExtraArgs:
    """``adamax`` with decoupled weight decay; ``update`` needs ``params``.

    Args:
        b2: the weight of the past in the norm.
        eps: added to the size of the gradient.

    Raises:
        ValueError: as for ``adamw``.

    >>> import stretto.numpy as snp
    >>> tx = adamaxw(0.1, weight_decay=0.5)
    >>> params = {"w": snp.array([10.0])}
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init(params), params)
    >>> snp.round(updates["w"], 3)
    Array([-0.6], dtype=float32)
    """
    return _decay_and_scale(moments.scale_by_adamax(b1, b2, eps), weight_decay, mask, learning_rate)


@optimizer
def adabelief(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-16,
    eps_root: Scalar = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam with the running mean of (g − m)² in place of that of g².

    Args:
        eps_root: added to v, the epsilon of the paper.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    Source: Zhuang et al., "AdaBelief optimizer", 2020, algorithm 2.

    >>> import stretto.numpy as snp
    >>> tx = adabelief(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.111], dtype=float32)
    """
    return chain(
        moments.scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def yogi(
    learning_rate: ScalarOrSchedule, b1: Scalar = 0.9, b2: Scalar = 0.999, eps: Scalar = 1e-3
) -> GradientTransformationExtraArgs:
    """Adam whose v moves by a share of g² up or down, and so forgets large gradients slowly.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    Source: Zaheer et al., "Adaptive methods for nonconvex optimization", 2018, algorithm 2.

    >>> import stretto.numpy as snp
    >>> tx = yogi(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.1], dtype=float32)
    """
    return chain(moments.scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))
