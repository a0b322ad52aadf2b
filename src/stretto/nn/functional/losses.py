"""Losses of numbers against numbers and of distances; losses with margins; ``cosine_similarity``.

Names, arguments and defaults are those of PyTorch's ``torch.nn.functional``, without the deprecated
``size_average`` and ``reduce``. Where ``input`` and ``target`` must have one shape, other shapes
are refused, not broadcast. Each loss returns the losses themselves, their mean or their sum, as
``reduction`` says. A norm's derivative at 0 is 0.
"""

from __future__ import annotations

import math

import stretto.numpy as snp
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.custom_derivatives import custom_jvp
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.convert import rounded_once
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import canonical_axis, expand_dims
from stretto.nn.functional.activations import relu
from stretto.nn.functional.checks import (
    as_float,
    check_known,
    classes_of,
    explains_keywords,
    loss,
    pair,
    positive_part,
    reduce_losses,
    same_shape,
)
from stretto.numpy.linalg.systems import vector_norm
from stretto.numpy.normalized import softplus


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
                f"with size 1 there, or be a number; got {v.type}"
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


@explains_keywords
@rounded_once
def pairwise_distance(
    x1: ArrayLike, x2: ArrayLike, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Array:
    """Take the p-norm of ``x1 - x2 + eps`` along the last axis.

    Args:
        x1: vectors along the last axis.
        x2: vectors along the last axis; the others broadcast.
        p: the norm, not negative.
        eps: what is added to differences.
        keepdim: whether the last axis stays, with size 1.

    Returns:
        The distances.

    Raises:
        ValueError: ``p`` is negative, there is no axis, or shapes do not broadcast.

    As PyTorch's ``nn.functional.pairwise_distance``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, y = snp.array([[3.0, 4.0]]), snp.zeros((1, 2))
    >>> st.nn.functional.pairwise_distance(x, y).round(3)
    Array([5.], dtype=float32)
    """
    caller = "pairwise_distance"
    x, y = as_float(x1, caller, "x1"), as_float(x2, caller, "x2")
    return _distance(caller, x, y, p, eps, keepdim)


def _distance(
    caller: str, x: Array, y: Array, p: float, eps: float, keepdim: bool = False
) -> Array:
    """Return the p-norm of ``x - y + eps`` along the last axis."""
    if p < 0:
        raise ValueError(f"{caller}: p must not be negative, got {p!r}")
    shape = broadcast_shapes(caller, x.shape, y.shape)
    if not shape:
        raise ValueError(
            f"{caller}: expected vectors along the last axis, got {x.type} and {y.type}"
        )
    difference = of_rank(x, len(shape)) - of_rank(y, len(shape)) + eps
    return vector_norm(difference, axis=-1, keepdims=keepdim, ord=p)


@explains_keywords
@rounded_once
def cosine_similarity(x1: ArrayLike, x2: ArrayLike, dim: int = 1, eps: float = 1e-8) -> Array:
    """Take the cosine of the angle between vectors: their product, divided by both norms.

    Args:
        x1: vectors along ``dim``.
        x2: vectors along ``dim``; both broadcast.
        dim: the axis, of the shape to which they broadcast.
        eps: the least norm.

    Returns:
        The cosines, without the axis ``dim``.

    Raises:
        ValueError: ``dim`` is out of bounds, or shapes do not broadcast.

    As PyTorch's ``nn.functional.cosine_similarity``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, y = snp.array([[3.0, 4.0]]), snp.array([[1.0, 0.0]])
    >>> st.nn.functional.cosine_similarity(x, y).round(3)
    Array([0.6], dtype=float32)
    """
    caller = "cosine_similarity"
    x, y = as_float(x1, caller, "x1"), as_float(x2, caller, "x2")
    shape = broadcast_shapes(caller, x.shape, y.shape)
    axis = canonical_axis(dim, len(shape), caller)
    x, y = snp.broadcast_to(x, shape), snp.broadcast_to(y, shape)
    # Only x is divided before the product, which keeps it finite where the norms overflow.
    x = x / snp.maximum(vector_norm(x, axis=axis, keepdims=True), eps)
    return snp.sum(x * y, axis) / snp.maximum(vector_norm(y, axis=axis), eps)


_SMALLEST_SQUARE = 1e-12


@loss
@rounded_once
def cosine_embedding_loss(
    input1: ArrayLike,
    input2: ArrayLike,
    target: ArrayLike,
    margin: float = 0.0,
    *,
    reduction: str = "mean",
) -> Array:
    """Take ``1 - cos`` of vectors whose target is 1, and ``max(0, cos - margin)`` where it is -1.

    Args:
        input1: vectors (N, D) or (D,).
        input2: vectors of the same shape.
        target: 1 or -1, (N,) or ().
        margin: the cosine that costs nothing where the target is -1.

    Raises:
        ValueError: shapes do not fit, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.cosine_embedding_loss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, y = snp.array([[3.0, 4.0]]), snp.array([[1.0, 0.0]])
    >>> st.nn.functional.cosine_embedding_loss(x, y, snp.array([1])).round(3)
    Array(0.4, dtype=float32)
    """
    caller = "cosine_embedding_loss"
    x, y = as_float(input1, caller, "input1"), as_float(input2, caller, "input2")
    t = as_float(target, caller, "target")
    if x.shape != y.shape or x.ndim not in (1, 2) or t.shape != x.shape[:-1]:
        raise ValueError(
            f"{caller}: expected two inputs (N, D) with a target (N,), or (D,) with a target "
            f"(); got {x.type} and {y.type} with {t.type}"
        )
    squares = [snp.sum(snp.square(v), -1) + _SMALLEST_SQUARE for v in (x, y)]
    cos = snp.sum(x * y, -1) / snp.sqrt(squares[0] * squares[1])
    together = snp.where(snp.equal(t, 1), 1 - cos, 0.0)
    apart = snp.where(snp.equal(t, -1), positive_part(cos - margin), 0.0)
    return reduce_losses(together + apart, reduction, caller)


@loss
@explains_keywords
@rounded_once
def triplet_margin_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Array:
    """Take ``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, d a p-norm's distance.

    Args:
        anchor: vectors along the last axis; the others broadcast.
        positive: vectors to be near.
        negative: vectors to be far.
        margin: the margin.
        p: the norm, not negative.
        eps: what is added to differences.
        swap: whether the negative's distance is the smaller of those from anchor and positive.

    Raises:
        ValueError: ``p`` is negative, shapes do not broadcast, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.triplet_margin_loss``. Source: Balntas et al., Learning Shallow
    Convolutional Feature Descriptors with Triplet Losses, 2016.

    >>> import stretto as st, stretto.numpy as snp
    >>> a, p, n = snp.zeros((1, 2)), snp.array([[3.0, 4.0]]), snp.array([[0.0, 2.0]])
    >>> st.nn.functional.triplet_margin_loss(a, p, n).round(3)
    Array(4., dtype=float32)
    """
    caller = "triplet_margin_loss"
    x, y, z = (
        as_float(anchor, caller, "anchor"),
        as_float(positive, caller, "positive"),
        as_float(negative, caller, "negative"),
    )
    near, far = _distance(caller, x, y, p, eps), _distance(caller, x, z, p, eps)
    if swap:
        far = snp.minimum(far, _distance(caller, y, z, p, eps))
    return reduce_losses(positive_part(near - far + margin), reduction, caller)


@loss
@rounded_once
def hinge_embedding_loss(
    input: ArrayLike, target: ArrayLike, margin: float = 1.0, *, reduction: str = "mean"
) -> Array:
    """Take ``x`` where the target is 1, and ``max(0, margin - x)`` where it is -1.

    Args:
        input: distances, of any shape.
        target: 1 or -1, of the same shape.
        margin: how large is large enough.

    Raises:
        ValueError: shapes differ, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.hinge_embedding_loss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, t = snp.array([0.25, 0.25]), snp.array([1, -1])
    >>> st.nn.functional.hinge_embedding_loss(x, t, reduction="none")
    Array([0.25, 0.75], dtype=float32)
    """
    x, t = pair("hinge_embedding_loss", input, target)
    # Another target counts as both. A choice, not a sum, so that one array is added up.
    apart = positive_part(margin - x)
    loss = snp.where(snp.equal(t, 1), x, snp.where(snp.equal(t, -1), apart, apart + x))
    return reduce_losses(loss, reduction, "hinge_embedding_loss")


@loss
@rounded_once
def margin_ranking_loss(
    input1: ArrayLike,
    input2: ArrayLike,
    target: ArrayLike,
    margin: float = 0.0,
    *,
    reduction: str = "mean",
) -> Array:
    """Take ``max(0, margin - target * (input1 - input2))``: one of two is to exceed the other.

    Args:
        input1: the first inputs.
        input2: the second inputs, which broadcast with the first.
        target: 1 where ``input1`` is to be the greater, -1 where ``input2`` is.
        margin: the margin.

    Raises:
        ValueError: shapes do not broadcast, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.margin_ranking_loss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> one, other = snp.array([1.0, 1.0]), snp.array([3.0, 3.0])
    >>> st.nn.functional.margin_ranking_loss(one, other, snp.array([1, -1]), reduction="none")
    Array([2., 0.], dtype=float32)
    """
    caller = "margin_ranking_loss"
    x, y = as_float(input1, caller, "input1"), as_float(input2, caller, "input2")
    t = as_float(target, caller, "target")
    return reduce_losses(positive_part(margin - t * (x - y)), reduction, caller)


@loss
@rounded_once
def soft_margin_loss(input: ArrayLike, target: ArrayLike, *, reduction: str = "mean") -> Array:
    """Take ``log(1 + exp(-target * input))`` for targets 1 and -1, without overflow.

    Args:
        input: scores, of any shape.
        target: 1 or -1, of the same shape.

    Raises:
        ValueError: shapes differ, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.soft_margin_loss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, t = snp.array([0.0, 100.0]), snp.array([1, -1])
    >>> st.nn.functional.soft_margin_loss(x, t, reduction="none").round(3)
    Array([  0.693, 100.   ], dtype=float32)
    """
    x, t = pair("soft_margin_loss", input, target)
    return reduce_losses(softplus(-t * x), reduction, "soft_margin_loss")


def _rows(caller: str, input: ArrayLike) -> Array:
    """Return the input as a value, (N, C) or (C,)."""
    x = as_float(input, caller)
    if x.ndim not in (1, 2):
        raise ValueError(f"{caller}: expected an input (N, C) or (C,), got {x.type}")
    return x


@loss
@rounded_once
def multi_margin_loss(
    input: ArrayLike,
    target: ArrayLike,
    p: int = 1,
    margin: float = 1.0,
    weight: ArrayLike | None = None,
    *,
    reduction: str = "mean",
) -> Array:
    """Ask for the target's class to exceed the others by a margin.

    The loss is ``weight[t]`` times the sum of ``max(0, margin - x[t] + x[i])**p`` over other
    classes i, divided by C.

    Args:
        input: scores (N, C) or (C,).
        target: the classes, (N,) or ().
        p: 1 or 2.
        margin: the margin.
        weight: a factor for each class, (C,).

    Raises:
        ValueError: ``p`` or ``reduction`` is not one of those above, or shapes do not fit.

    As PyTorch's ``nn.functional.multi_margin_loss``. Source: Crammer and Singer, On the Algorithmic
    Implementation of Multiclass Kernel-based Vector Machines, 2001.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = snp.array([0.0, 0.5, 2.0])
    >>> st.nn.functional.multi_margin_loss(x, snp.array(1))
    Array(1., dtype=float32)
    """
    caller = "multi_margin_loss"
    if p not in (1, 2):
        raise ValueError(f"{caller}: p must be 1 or 2, got {p!r}")
    x = _rows(caller, input)
    axis = x.ndim - 1
    t = expand_dims(classes_of(caller, x, target, axis), axis)
    here = snp.equal(t, broadcasted_iota(t.dtype, x.shape, axis))
    own = snp.sum(snp.where(here, x, 0.0), axis, keepdims=True)
    over = snp.where(here, 0.0, relu(margin - own + x))
    if p == 2:
        over = snp.square(over)
    loss = snp.mean(over, axis)
    if weight is not None:
        weight = as_float(weight, caller, "weight")
        if weight.shape != x.shape[axis:]:
            raise ValueError(
                f"{caller}: expected weight to have one element for each of {x.shape[axis]} "
                f"classes, got {weight.type}"
            )
        loss = loss * snp.sum(snp.where(here, weight, 0.0), axis)
    return reduce_losses(loss, reduction, caller)


@loss
@rounded_once
def multilabel_margin_loss(
    input: ArrayLike, target: ArrayLike, *, reduction: str = "mean"
) -> Array:
    """Ask for all targets' classes to exceed the others by 1.

    The loss is the sum of ``max(0, 1 - x[t] + x[i])`` over targets t and other classes i, divided
    by C.

    Args:
        input: scores (N, C) or (C,).
        target: integers of the same shape: the classes of each row, followed by -1.

    Raises:
        ValueError: shapes differ, ``target`` is not integer, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.multilabel_margin_loss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, t = snp.array([0.1, 0.2, 0.4, 0.8]), snp.array([3, 0, -1, 1])
    >>> st.nn.functional.multilabel_margin_loss(x, t).round(3)
    Array(0.85, dtype=float32)
    """
    caller = "multilabel_margin_loss"
    x, t = _rows(caller, input), as_value(target, caller, "target")
    if t.shape != x.shape or kind_of(t.dtype) not in ("int", "uint"):
        raise ValueError(
            f"{caller}: expected target as integer classes in the shape of input {x.type}, got "
            f"{t.type}"
        )
    count = x.shape[-1]
    listed = snp.cumsum(snp.less(t, 0), -1) == 0  # before the first -1
    classes = broadcasted_iota(t.dtype, (*t.shape, count), t.ndim)
    named = snp.logical_and(snp.expand_dims(listed, -1), snp.expand_dims(t, -1) == classes)
    own = snp.sum(snp.where(named, snp.expand_dims(x, -2), 0.0), -1, keepdims=True)
    over = relu(1 - own + snp.expand_dims(x, -2))
    others = snp.logical_not(snp.any(named, -2, keepdims=True))
    counted = snp.logical_and(snp.expand_dims(listed, -1), others)
    return reduce_losses(
        snp.sum(snp.where(counted, over, 0.0), (-2, -1)) / count, reduction, caller
    )


@loss
@rounded_once
def multilabel_soft_margin_loss(
    input: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, reduction: str = "mean"
) -> Array:
    """Average the binary cross-entropy of logits over classes.

    Args:
        input: logits (N, C) or (C,).
        target: 0 or 1, of the same shape.
        weight: a factor for each class, (C,).

    Raises:
        ValueError: shapes differ, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.multilabel_soft_margin_loss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, t = snp.zeros((1, 2)), snp.array([[1.0, 0.0]])
    >>> st.nn.functional.multilabel_soft_margin_loss(x, t).round(3)
    Array(0.693, dtype=float32)
    """
    caller = "multilabel_soft_margin_loss"
    x, t = pair(caller, input, target)
    loss = t * softplus(-x) + (1 - t) * softplus(x)
    if weight is not None:
        loss = loss * of_rank(as_float(weight, caller, "weight"), loss.ndim)
    return reduce_losses(snp.mean(loss, -1), reduction, caller)
