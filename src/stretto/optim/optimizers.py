"""Optimizers: SGD, RMSProp and the sums of squares, Lion, layer-wise ones, Adafactor.

Each is a ``chain`` of transformations, whose errors carry its name (``making``); arguments that the
parts call otherwise are checked here. Adam's family is in ``adams``.
"""

from __future__ import annotations

import numpy as np

from stretto._engine.core.boundary import bounded
from stretto._engine.core.typing import DTypeLike, Key
from stretto.optim.base import (
    GradientTransformationExtraArgs,
    Mask,
    Scalar,
    ScalarOrSchedule,
    identity,
    making,
    optimizer,
    transformation,
)
from stretto.optim.combining import chain, masked
from stretto.optim.leaves import check, check_dtype
from stretto.optim.moments import scale_by_adam
from stretto.optim.momentum import ema, scale_by_lion, trace
from stretto.optim.rms import (
    scale_by_adadelta,
    scale_by_factored_rms,
    scale_by_rms,
    scale_by_rss,
    scale_by_stddev,
)
from stretto.optim.scaling import add_decayed_weights, add_noise, scale, scale_by_learning_rate
from stretto.optim.update_norms import (
    clip_by_block_rms,
    scale_by_param_block_rms,
    scale_by_trust_ratio,
)

__all__ = [
    "adadelta",
    "adafactor",
    "adagrad",
    "lamb",
    "lars",
    "lion",
    "noisy_sgd",
    "rmsprop",
    "sgd",
]


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
        identity() if momentum is None else trace(momentum, nesterov, accumulator_dtype),
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
        key: a PRNG key or a seed; None draws one from the ambient stream when the state is made.
            For members of their own noise: ``per_member(noisy_sgd, learning_rate=..., key=keys)``.

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
        scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate)
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
        scale_by_adadelta(rho, eps),
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
    scaled = scale_by_stddev if centered else scale_by_rms
    return chain(
        scaled(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        scale_by_learning_rate(learning_rate),
        identity() if momentum is None else trace(momentum, nesterov),
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
    return chain(
        scale_by_lion(b1, b2, mu_dtype),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
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
        scale_by_adam(b1, b2, eps, eps_root),
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
        trace(momentum, nesterov),
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
            scale_by_factored_rms(factored, decay_rate, decay_offset, min_dim_size_to_factor, eps)
        ]
        if clipping_threshold is not None:
            parts.append(clip_by_block_rms(clipping_threshold))
        if learning_rate is not None:
            parts.append(scale_by_learning_rate(learning_rate, flip_sign=False))
        if multiply_by_parameter_scale:
            parts.append(scale_by_param_block_rms())
        if momentum is not None:
            parts.append(ema(momentum, debias=False, accumulator_dtype=dtype_momentum))
        if weight_decay_rate is not None:
            parts.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
        return chain(*parts, scale(-1))

    return making(caller, whole)
