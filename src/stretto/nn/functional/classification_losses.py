"""Losses of logits and probabilities against classes.

Names, arguments and defaults are those of PyTorch's ``torch.nn.functional``, without the deprecated
``size_average`` and ``reduce``. A class is picked by a gather, whose derivative is a comparison: so
the backward pass is one over the logits, without a scatter, also under ``vmap``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import is_inexact, kind_of
from stretto._engine.core.typing import ArrayLike
from stretto._engine.higher_order.custom_jvp import custom_jvp
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.index.along_axis import take_along_axis
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import expand_dims, squeeze
from stretto._engine.ops.shape import rev
from stretto._engine.xla.array import Array
from stretto.nn import functions
from stretto.nn.functional.arguments import as_float
from stretto.nn.functional.checks import check_known, check_range, classes_of, pair, reduced

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "kl_div",
    "nll_loss",
]


def _class_axis(caller: str, x: Array) -> int:
    if not x.ndim:
        raise ValueError(f"{caller}: input must have an axis of classes, got {x.type}")
    return min(1, x.ndim - 1)


def _weights(caller: str, x: Array, weight: ArrayLike | None, axis: int) -> Array | None:
    """The weights of classes, along the class axis of ``x``; None for none."""
    if weight is None:
        return None
    values = as_float(weight, caller, "weight")
    if values.shape != (x.shape[axis],):
        raise ValueError(
            f"{caller}: expected weight to have one element for each of {x.shape[axis]} "
            "classes, got "
            f"{values.type}"
        )
    return values.reshape(tuple(-1 if d == axis else 1 for d in range(x.ndim)))


@partial(custom_jvp, nondiff_argnums=(2,))
def _picked(x: Array, t: Array, axis: int) -> Array:
    """The element of ``x`` at each class; any for a class out of range."""
    if not x.shape[axis]:
        return snp.zeros(t.shape, x.dtype)
    at = expand_dims(t, axis)
    return squeeze(take_along_axis(x, at, axis, mode="clip", wrap_negative=False), axis)


@_picked.defjvp
def _picked_jvp(
    axis: int, primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    """The element of ``dx``, as a sum over the classes, whose transpose is no scatter."""
    x, t = primals
    here = snp.equal(expand_dims(t, axis), broadcasted_iota(t.dtype, x.shape, axis))
    return _picked(x, t, axis), snp.sum(snp.where(here, tangents[0], 0.0), axis)


@custom_jvp
def _exponentials(x: Array, counted: Array) -> Array:
    """``exp(x)``, whose derivatives read ``x`` only where it counts: NaN times 0 is NaN."""
    return snp.exp(x)


# d exp(x) = exp(x) dx
_exponentials.defjvps(lambda dx, out, x, counted: dx * snp.where(counted, out, 0.0), None)


_FEW = 32
"""Up to how many classes a sure one's loss keeps its digits: a sum of all classes but one is no
kernel of a library, and of 30,000 classes takes three times as long as the sum of all."""


def _behind(x: Array, t: Array, counted: Array, axis: int) -> Array:
    """``-log softmax(x)`` at each target's class, by how far the others are ahead of it.

    It is log(1 + exp(z)) with z = log sum exp(others) - x[t]. Where the class is sure, it is small,
    and so is its slope; the sum over all classes rounds to the target's exponential there.
    """
    here = snp.equal(expand_dims(t, axis), broadcasted_iota(t.dtype, x.shape, axis))
    if x.shape[axis] == 2:
        ahead = snp.sum(snp.where(here, rev(x, [axis]) - x, 0.0), axis)
        return functions.softplus(snp.where(counted, ahead, 0.0))
    at_target = snp.sum(snp.where(here, x, 0.0), axis)
    others = snp.where(here, -np.inf, x)
    # Their own maximum, so that no sum is small: the second derivative has its inverse square.
    top = stop_gradient(snp.max(others, axis, keepdims=True, initial=-np.inf))
    top = snp.where(snp.isfinite(top), top, 0.0)
    rest = snp.sum(_exponentials(others - top, expand_dims(counted, axis)), axis)
    alone = snp.logical_or(snp.equal(rest, 0), snp.logical_not(counted))
    ahead = snp.log(snp.where(alone, 1.0, rest)) + (squeeze(top, axis) - at_target)
    return snp.where(alone, 0.0, functions.softplus(snp.where(alone, 0.0, ahead)))


def _smooths(smoothing: float | Array) -> bool:
    """Whether labels are smoothed: also by a number that is not known yet."""
    return isinstance(smoothing, Array) or bool(smoothing)


def _index_loss(
    caller: str,
    x: Array,
    target: ArrayLike,
    weight: ArrayLike | None,
    ignore_index: int,
    reduction: str,
    smoothing: float | Array | None = None,
) -> Array:
    """The negative logarithm at the target's class; NaN for a class out of range.

    ``x`` are logits, and the loss is smoothed; or, without ``smoothing``, logarithms.
    """
    axis = _class_axis(caller, x)
    count = x.shape[axis]
    t = classes_of(caller, x, target, axis)
    weights = _weights(caller, x, weight, axis)
    check_range(caller, t, count, ignore_index)
    if t.dtype.itemsize < 4 or kind_of(t.dtype) == "uint":  # so that all numbers below fit
        t = convert(t, np.dtype(np.int32))
    counted = snp.not_equal(t, ignore_index)
    inside = snp.logical_and(snp.greater_equal(t, 0), snp.less(t, count))
    of_target: Any = 1
    if weights is not None and count:
        of_target = snp.take(weights, t, mode="clip")
    if smoothing is None:
        loss = -_picked(x, t, axis) * of_target
    elif not is_size(count) and count <= _FEW and not _smooths(smoothing):
        loss = _behind(x, t, counted, axis) * of_target
    else:
        # log softmax(x) = x - top - log_total, of which only x is as large as the logits
        top = stop_gradient(snp.max(x, axis, keepdims=True, initial=None if x.size else -np.inf))
        shifted = x - top
        total = snp.sum(_exponentials(shifted, expand_dims(counted, axis)), axis)
        log_total = snp.log(snp.where(counted, total, 1.0))
        loss = (log_total - (_picked(x, t, axis) - squeeze(top, axis))) * of_target
        if _smooths(smoothing):
            # (1 - s) of the target's, and s of the mean over classes
            if weights is None:
                every = snp.sum(shifted, axis) - count * log_total
            else:
                every = snp.sum(shifted * weights, axis) - snp.sum(weights) * log_total
            loss = (1 - smoothing) * loss - smoothing / count * every
    loss = snp.where(counted, snp.where(inside, loss, np.nan), 0.0)
    if reduction != "mean":
        return reduced(loss, reduction, caller)
    if weights is None:
        divisor = convert(snp.sum(counted), loss.dtype)
    else:
        divisor = snp.sum(snp.where(counted, of_target, 0.0))
    return snp.sum(loss) / divisor


@rounded_once
def nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Array:
    """Take ``-weight[t] * input[t]`` of logarithms of probabilities, with a class t for each.

    The mean is over the sum of the targets' weights.

    Args:
        input: logarithms of probabilities (C,), (N, C) or (N, C, d1, ...).
        target: integers, of that shape without the class axis.
        weight: a factor for each class, (C,).
        ignore_index: the class whose targets do not count.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Returns:
        A scalar, or each loss where ``reduction`` is ``"none"``.

    Raises:
        IndexError: a class is known to be out of range; traced, its loss is NaN.
        ValueError: shapes do not fit, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.nll_loss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> logs = snp.log(snp.array([[0.5, 0.5], [0.25, 0.75]]))
    >>> st.nn.functional.nll_loss(logs, snp.array([0, 1]), reduction="none").round(3)
    Array([0.693, 0.288], dtype=float32)
    """
    x = as_float(input, "nll_loss")
    return _index_loss("nll_loss", x, target, weight, ignore_index, reduction)


@rounded_once
def cross_entropy(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float | Array = 0.0,
) -> Array:
    """Take ``-weight[t] * log_softmax(input)[t]``, or its mean over probabilities of classes.

    The mean is over the sum of the targets' weights; with probabilities, over the number of
    targets.

    Args:
        input: logits (C,), (N, C) or (N, C, d1, ...).
        target: integers, of that shape without the class axis; or probabilities, of that shape.
        weight: a factor for each class, (C,).
        ignore_index: the class whose targets do not count.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        label_smoothing: how much of a uniform distribution to mix into the targets; a number, or
            a scalar, such as a hyperparameter of each member.

    Returns:
        A scalar, or each loss where ``reduction`` is ``"none"``.

    Raises:
        IndexError: a class is known to be out of range; traced, its loss is NaN.
        ValueError: shapes do not fit, ``label_smoothing`` is not from 0 to 1, ``ignore_index``
            comes with probabilities, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.cross_entropy``. Source: Szegedy et al., Rethinking the Inception
    Architecture, 2016, for smoothing.

    >>> import stretto as st, stretto.numpy as snp
    >>> logits = snp.array([[0.0, 0.0], [2.0, 0.0]])
    >>> st.nn.functional.cross_entropy(logits, snp.array([0, 1]), reduction="none").round(3)
    Array([0.693, 2.127], dtype=float32)
    >>> st.nn.functional.cross_entropy(logits, snp.array([[1.0, 0.0], [0.5, 0.5]])).round(3)
    Array(0.91, dtype=float32)
    """
    caller = "cross_entropy"
    check_known(
        snp.logical_and(snp.greater_equal(label_smoothing, 0), snp.less_equal(label_smoothing, 1)),
        f"{caller}: label_smoothing must be from 0 to 1, got {label_smoothing!r}",
    )
    x, t = as_float(input, caller), as_value(target, caller, "target")
    axis = _class_axis(caller, x)
    if t.shape != x.shape or not is_inexact(t.dtype):
        return _index_loss(caller, x, t, weight, ignore_index, reduction, label_smoothing)
    if ignore_index >= 0:
        raise ValueError(
            f"{caller}: ignore_index is for targets that are classes, but target is probabilities "
            f"{t.type}, got ignore_index={ignore_index}"
        )
    logs = functions.log_softmax(x, axis)
    if _smooths(label_smoothing):
        t = t * (1 - label_smoothing) + label_smoothing / x.shape[axis]
    weight = _weights(caller, x, weight, axis)
    loss = -snp.sum(logs * t if weight is None else logs * t * weight, axis)
    return reduced(loss, reduction, caller)


# Two classes

_LEAST_LOG = -100.0
_LEAST_VARIANCE = 1e-12


def _limited_log(x: Array) -> Array:
    return snp.maximum(snp.log(x), _LEAST_LOG)


@custom_jvp
def _binary(x: Array, t: Array) -> Array:
    """``-(t log x + (1 - t) log(1 - x))``, each logarithm at least -100, as in PyTorch."""
    return -(t * _limited_log(x) + (1 - t) * snp.maximum(snp.log1p(-x), _LEAST_LOG))


# d/dx = (x - t) / (x (1 - x)), finite at both ends.
_binary.defjvps(
    lambda dx, out, x, t: dx * ((x - t) / snp.maximum(x * (1 - x), _LEAST_VARIANCE)),
    lambda dt, out, x, t: dt * (snp.maximum(snp.log1p(-x), _LEAST_LOG) - _limited_log(x)),
)


@rounded_once
def binary_cross_entropy(
    input: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, reduction: str = "mean"
) -> Array:
    """Take the cross-entropy of probabilities of two classes.

    The loss is ``-(t log x + (1 - t) log(1 - x))``, with logarithms of at least -100, and finite
    derivatives. From logits use ``binary_cross_entropy_with_logits``, which is exact.

    Args:
        input: probabilities, of any shape.
        target: probabilities, of the same shape.
        weight: factors that broadcast to ``input``.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Returns:
        A scalar, or each loss where ``reduction`` is ``"none"``.

    Raises:
        ValueError: shapes differ, ``reduction`` is unknown, or an input is known not to be
            from 0 to 1 (traced, the loss is NaN).

    As PyTorch's ``nn.functional.binary_cross_entropy``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, t = snp.array([0.5, 0.0]), snp.array([1.0, 1.0])
    >>> st.nn.functional.binary_cross_entropy(x, t, reduction="none").round(3)
    Array([  0.693, 100.   ], dtype=float32)
    """
    caller = "binary_cross_entropy"
    x, t = pair(caller, input, target)
    inside = snp.logical_and(snp.greater_equal(x, 0), snp.less_equal(x, 1))
    check_known(
        inside,
        f"{caller}: input must be probabilities from 0 to 1; for logits use {caller}_with_logits",
    )
    loss = _binary(x, t)
    if weight is not None:
        loss = loss * of_rank(as_float(weight, caller, "weight"), loss.ndim)
    return reduced(loss, reduction, caller)


@rounded_once
def binary_cross_entropy_with_logits(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    reduction: str = "mean",
    pos_weight: ArrayLike | None = None,
) -> Array:
    """Take the cross-entropy of logits of two classes.

    The loss is ``-(p t log sigmoid(x) + (1 - t) log(1 - sigmoid(x)))``, where p is ``pos_weight``.

    Args:
        input: logits, of any shape.
        target: probabilities, of the same shape.
        weight: factors that broadcast to ``input``.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        pos_weight: factors for the part of targets of 1, which broadcast to ``input``; 1 by
            default.

    Returns:
        A scalar, or each loss where ``reduction`` is ``"none"``.

    Raises:
        ValueError: shapes differ, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.binary_cross_entropy_with_logits``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, t = snp.array([0.0, 100.0]), snp.array([1.0, 0.0])
    >>> st.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none").round(3)
    Array([  0.693, 100.   ], dtype=float32)
    """
    caller = "binary_cross_entropy_with_logits"
    x, t = pair(caller, input, target)
    # p t softplus(-x) + (1 - t) softplus(x), and softplus(x) = max(x, 0) + log(1 + exp(-|x|)):
    # terms of one sign, so that neither they nor their slopes cancel
    of_one = t
    if pos_weight is not None:
        of_one = of_rank(as_float(pos_weight, caller, "pos_weight"), t.ndim) * t
    positive = snp.greater(x, 0)
    ahead = snp.where(positive, (1 - t) * x, -(of_one * x))
    loss = ahead + (1 - t + of_one) * snp.log1p(snp.exp(snp.where(positive, -x, x)))
    if weight is not None:
        loss = loss * of_rank(as_float(weight, caller, "weight"), loss.ndim)
    return reduced(loss, reduction, caller)


@rounded_once
def kl_div(
    input: ArrayLike, target: ArrayLike, *, reduction: str = "mean", log_target: bool = False
) -> Array:
    """Take the Kullback-Leibler divergence from logarithms of probabilities to probabilities.

    The loss is ``t (log t - input)``, and 0 where ``t`` is 0.

    Args:
        input: logarithms of probabilities, of any shape.
        target: probabilities, of the same shape.
        reduction: ``"none"``, ``"mean"`` (over elements), ``"sum"``, or ``"batchmean"``, the sum
            over the first size, which is the divergence by its definition.
        log_target: whether ``target`` is logarithms too.

    Returns:
        A scalar, or each loss where ``reduction`` is ``"none"``.

    Raises:
        ValueError: shapes differ, ``reduction`` is unknown, or there is no batch for
            ``"batchmean"``.

    As PyTorch's ``nn.functional.kl_div``. Source: Kullback and Leibler, On Information and
    Sufficiency, 1951.

    >>> import stretto as st, stretto.numpy as snp
    >>> logs, t = snp.log(snp.array([[0.5, 0.5]])), snp.array([[1.0, 0.0]])
    >>> st.nn.functional.kl_div(logs, t, reduction="batchmean").round(3)
    Array(0.693, dtype=float32)
    """
    caller = "kl_div"
    x, t = pair(caller, input, target)
    if log_target:
        loss = snp.exp(t) * (t - x)
    else:
        none = snp.equal(t, 0)
        loss = snp.where(none, 0.0, t * snp.log(snp.where(none, 1.0, t))) - t * x
    if reduction != "batchmean":
        return reduced(loss, reduction, caller)
    if not loss.ndim:
        raise ValueError(f"{caller}: reduction 'batchmean' needs a batch axis, got {x.type}")
    return snp.sum(loss) / loss.shape[0]
