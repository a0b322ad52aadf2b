"""Losses of numbers against numbers: squares, absolute values, likelihoods.

Names, arguments and defaults are those of PyTorch's ``torch.nn.functional``, without the deprecated
``size_average`` and ``reduce``. ``input`` and ``target`` have one shape: other shapes are refused,
not broadcast. Each returns the losses themselves, their mean or their sum, as ``reduction`` says.
"""

from __future__ import annotations

import math

import stretto.numpy as snp
from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.custom_derivatives import custom_jvp
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.convert import rounded_once
from stretto._engine.ops.layout import expand_dims
from stretto.nn.functional.checks import (
    as_float,
    check_known,
    explains_keywords,
    loss,
    pair,
    reduce_losses,
    same_shape,
)


def _reduce_weighted(loss: Array, weight: ArrayLike | None, reduction: str, caller: str) -> Array:
    """Return the reduction of weighted losses; their mean is over the sum of the weights."""
    if weight is None:
        return reduce_losses(loss, reduction, caller)
    weights = as_float(weight, caller, "weight")
    same_shape(caller, input=loss, weight=weights)
    if reduction == "mean":
        return snp.sum(loss * weights) / snp.sum(weights)
    return reduce_losses(loss * weights, reduction, caller)


@loss
@rounded_once
def mse_loss(
    input: ArrayLike, target: ArrayLike, *, reduction: str = "mean", weight: ArrayLike | None = None
) -> Array:
    """Square the differences: ``(input - target)**2``.

    Args:
        input: predictions, of any shape.
        target: what ``input`` should be, of the same shape.
        weight: factors of the shape of ``input``; a mean is over their sum.

    Raises:
        TypeError: losses are complex.
        ValueError: shapes differ, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.mse_loss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.nn.functional.mse_loss(snp.array([1.0, 3.0]), snp.array([0.0, 0.0]))
    Array(5., dtype=float32)
    """
    x, y = pair("mse_loss", input, target)
    return _reduce_weighted(snp.square(x - y), weight, reduction, "mse_loss")


@loss
@rounded_once
@described_like(mse_loss)
def l1_loss(
    input: ArrayLike, target: ArrayLike, *, reduction: str = "mean", weight: ArrayLike | None = None
) -> Array:
    """Take the magnitudes of differences: ``|input - target|``, with a derivative of 0 at 0.

    Raises:
        ValueError: shapes differ, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.l1_loss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.nn.functional.l1_loss(snp.array([1.0, 3.0]), snp.array([0.0, 0.0]), reduction="none")
    Array([1., 3.], dtype=float32)
    """
    x, y = pair("l1_loss", input, target)
    return _reduce_weighted(snp.abs(x - y), weight, reduction, "l1_loss")


@loss
@rounded_once
def smooth_l1_loss(
    input: ArrayLike, target: ArrayLike, *, reduction: str = "mean", beta: float = 1.0
) -> Array:
    """Square small differences, and take the magnitudes of large ones.

    The loss is ``d**2 / (2 beta)`` for differences ``d`` below ``beta``, otherwise ``|d| - beta /
    2``.

    Args:
        input: predictions, of any shape.
        target: what ``input`` should be, of the same shape.
        beta: where the two meet.

    Raises:
        ValueError: shapes differ, ``beta`` is negative, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.smooth_l1_loss``. Source: Girshick, Fast R-CNN, 2015.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = snp.array([0.5, 3.0])
    >>> st.nn.functional.smooth_l1_loss(x, snp.zeros(2), reduction="none")
    Array([0.125, 2.5  ], dtype=float32)
    """
    caller = "smooth_l1_loss"
    if beta < 0:
        raise ValueError(f"{caller}: beta must not be negative, got {beta!r}")
    x, y = pair(caller, input, target)
    d = snp.abs(x - y)
    if beta:
        d = snp.where(snp.less(d, beta), snp.square(x - y) * (0.5 / beta), d - 0.5 * beta)
    return reduce_losses(d, reduction, caller)


@loss
@rounded_once
def huber_loss(
    input: ArrayLike,
    target: ArrayLike,
    *,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: ArrayLike | None = None,
) -> Array:
    """Square small differences, and take multiples of large ones.

    The loss is ``d**2 / 2`` for differences ``d`` up to ``delta``, otherwise ``delta (|d| - delta /
    2)``.

    Args:
        input: predictions, of any shape.
        target: what ``input`` should be, of the same shape.
        delta: where the two meet.
        weight: factors of the shape of ``input``.

    Raises:
        ValueError: shapes differ, ``delta`` is not positive, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.huber_loss``. Source: Huber, Robust Estimation of a Location
    Parameter, 1964.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = snp.array([1.0, 3.0])
    >>> st.nn.functional.huber_loss(x, snp.zeros(2), reduction="none", delta=2.0)
    Array([0.5, 4. ], dtype=float32)
    """
    if delta <= 0:
        raise ValueError(f"huber_loss: delta must be positive, got {delta!r}")
    x, y = pair("huber_loss", input, target)
    d = snp.abs(x - y)
    loss = snp.where(snp.less_equal(d, delta), 0.5 * snp.square(x - y), delta * (d - 0.5 * delta))
    if weight is not None:
        weight = as_float(weight, "huber_loss", "weight")
        same_shape("huber_loss", input=x, weight=weight)
        loss = loss * weight
    return reduce_losses(loss, reduction, "huber_loss")


@custom_jvp
def _at_least(x: Array, least: float) -> Array:
    """Return ``max(x, least)`` with the derivative of ``x``."""
    return snp.maximum(x, least)


_at_least.defjvps(lambda dx, out, x, least: dx, None)


@loss
@explains_keywords
@rounded_once
def gaussian_nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    var: ArrayLike,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Array:
    """Take the negative logarithm of a normal density of given mean and variance.

    The loss is ``(log v + (input - target)**2 / v) / 2``, where ``v`` is ``var``, at least ``eps``;
    that limit does not affect the derivative.

    Args:
        input: the means, of any shape.
        target: the observations, of the same shape.
        var: the variances, of the same shape, without its last axis, with size 1 there, or a
            number.
        full: whether to add ``log(2 pi) / 2``.
        eps: the least variance.

    Raises:
        ValueError: shapes do not fit, a variance is known to be negative, or ``reduction`` is
            unknown.

    As PyTorch's ``nn.functional.gaussian_nll_loss``. Source: Nix and Weigend, Estimating the Mean
    and Variance of the Target Probability Distribution, 1994.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.nn.functional.gaussian_nll_loss(snp.array([3.0]), snp.array([1.0]), snp.array([1.0]))
    Array(2., dtype=float32)
    """
    caller = "gaussian_nll_loss"
    x, y = pair(caller, input, target)
    v = as_float(var, caller, "var")
    if v.shape not in (x.shape, ()):
        if v.shape == x.shape[:-1]:
            v = expand_dims(v, v.ndim)
        elif v.shape != (*x.shape[:-1], 1):
            raise ValueError(
                f"{caller}: var must have the shape of input {x.type}, without its last axis or "
                "with "
                f"size 1 there, or be a number; got {v.type}"
            )
    check_known(snp.greater_equal(v, 0), f"{caller}: var must not be negative; use softplus or exp")
    v = _at_least(v, full_like(v, eps))
    loss = 0.5 * (snp.log(v) + snp.square(x - y) / v)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_losses(loss, reduction, caller)


@loss
@explains_keywords
@rounded_once
def poisson_nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Array:
    """Take the negative logarithm of Poisson probabilities.

    The loss is ``exp(input) - target * input``, or ``input - target * log(input + eps)``.

    Args:
        input: the rates or their logarithms, of any shape.
        target: the counts, of the same shape.
        log_input: whether ``input`` is the logarithm of the rate, rather than the rate.
        full: whether to add Stirling's ``t log t - t + log(2 pi t) / 2`` for targets above 1.
        eps: what is added to a rate before its logarithm is taken.

    Raises:
        ValueError: shapes differ, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.poisson_nll_loss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.nn.functional.poisson_nll_loss(snp.array([0.0]), snp.array([2.0]))
    Array(1., dtype=float32)
    """
    caller = "poisson_nll_loss"
    x, t = pair(caller, input, target)
    loss = snp.exp(x) - t * x if log_input else x - t * snp.log(x + eps)
    if full:
        large = snp.greater(t, 1)
        safe = snp.where(large, t, 1.0)
        stirling = safe * snp.log(safe) - safe + 0.5 * snp.log(2 * math.pi * safe)
        loss = loss + snp.where(large, stirling, 0.0)
    return reduce_losses(loss, reduction, caller)
