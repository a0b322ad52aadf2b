"""Losses of logits and probabilities against classes, and of alignments (``ctc_loss``).

Names, arguments and defaults are those of PyTorch's ``torch.nn.functional``, without the deprecated
``size_average`` and ``reduce``. A class is picked by a gather, whose derivative is a comparison: so
the backward pass is one over the logits, without a scatter, also under ``vmap``.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, is_inexact, kind_of
from stretto._engine.core.typing import ArrayLike
from stretto._engine.higher_order.custom_derivatives import custom_jvp
from stretto._engine.higher_order.scan import scan
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import expand_dims, squeeze
from stretto._engine.ops.shape import concatenate, rev
from stretto._engine.xla.array import Array
from stretto.nn.functional.checks import (
    as_float,
    check_known,
    check_range,
    classes_of,
    loss,
    pair,
    reduce_losses,
)
from stretto.numpy.normalized import log_softmax, softplus


def _class_axis(caller: str, x: Array) -> int:
    if not x.ndim:
        raise ValueError(f"{caller}: input must have an axis of classes, got {x.type}")
    return min(1, x.ndim - 1)


def _weights(caller: str, x: Array, weight: ArrayLike | None, axis: int) -> Array | None:
    """Return the weights of classes, along the class axis of ``x``; None for none."""
    if weight is None:
        return None
    values = as_float(weight, caller, "weight")
    if values.shape != (x.shape[axis],):
        raise ValueError(
            f"{caller}: expected weight to have one element for each of {x.shape[axis]} "
            f"classes, got {values.type}"
        )
    return values.reshape(tuple(-1 if d == axis else 1 for d in range(x.ndim)))


@partial(custom_jvp, nondiff_argnums=(2,))
def _pick(x: Array, t: Array, axis: int) -> Array:
    """Return the element of ``x`` at each class; any for a class out of range."""
    if not x.shape[axis]:
        return snp.zeros(t.shape, x.dtype)
    at = expand_dims(t, axis)
    return squeeze(take_along_axis(x, at, axis, mode="clip", wrap_negative=False), axis)


@_pick.defjvp
def _pick_jvp(
    axis: int, primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return the element of ``dx``, as a sum over the classes, whose transpose is no scatter."""
    x, t = primals
    here = snp.equal(expand_dims(t, axis), broadcasted_iota(t.dtype, x.shape, axis))
    return _pick(x, t, axis), snp.sum(snp.where(here, tangents[0], 0.0), axis)


@custom_jvp
def _exponentials(x: Array, counted: Array) -> Array:
    """Return ``exp(x)``, whose derivatives read ``x`` only where it counts: NaN times 0 is NaN."""
    return snp.exp(x)


# d exp(x) = exp(x) dx
_exponentials.defjvps(lambda dx, out, x, counted: dx * snp.where(counted, out, 0.0), None)


_FEW = 32
"""Up to how many classes a sure one's loss keeps its digits: a sum of all classes but one is no
kernel of a library, and of 30,000 classes takes three times as long as the sum of all."""


def _behind(x: Array, t: Array, counted: Array, axis: int) -> Array:
    """Return ``-log softmax(x)`` at each target's class, by how far the others are ahead of it.

    It is log(1 + exp(z)) with z = log sum exp(others) - x[t]. Where the class is sure, it is small,
    and so is its slope; the sum over all classes rounds to the target's exponential there.
    """
    here = snp.equal(expand_dims(t, axis), broadcasted_iota(t.dtype, x.shape, axis))
    if x.shape[axis] == 2:
        ahead = snp.sum(snp.where(here, rev(x, [axis]) - x, 0.0), axis)
        return softplus(snp.where(counted, ahead, 0.0))
    at_target = snp.sum(snp.where(here, x, 0.0), axis)
    others = snp.where(here, -np.inf, x)
    # Their own maximum, so that no sum is small: the second derivative has its inverse square.
    top = stop_gradient(snp.max(others, axis, keepdims=True, initial=-np.inf))
    top = snp.where(snp.isfinite(top), top, 0.0)
    rest = snp.sum(_exponentials(others - top, expand_dims(counted, axis)), axis)
    alone = snp.logical_or(snp.equal(rest, 0), snp.logical_not(counted))
    ahead = snp.log(snp.where(alone, 1.0, rest)) + (squeeze(top, axis) - at_target)
    return snp.where(alone, 0.0, softplus(snp.where(alone, 0.0, ahead)))


def _smooths(smoothing: float | Array) -> bool:
    """Say whether labels are smoothed: also by a number that is not known yet."""
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
    """Return the negative logarithm at the target's class; NaN for a class out of range.

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
        loss = -_pick(x, t, axis) * of_target
    elif not is_size(count) and count <= _FEW and not _smooths(smoothing):
        loss = _behind(x, t, counted, axis) * of_target
    else:
        # log softmax(x) = x - top - log_total, of which only x is as large as the logits
        top = stop_gradient(snp.max(x, axis, keepdims=True, initial=None if x.size else -np.inf))
        shifted = x - top
        total = snp.sum(_exponentials(shifted, expand_dims(counted, axis)), axis)
        log_total = snp.log(snp.where(counted, total, 1.0))
        loss = (log_total - (_pick(x, t, axis) - squeeze(top, axis))) * of_target
        if _smooths(smoothing):
            # (1 - s) of the target's, and s of the mean over classes
            if weights is None:
                every = snp.sum(shifted, axis) - count * log_total
            else:
                every = snp.sum(shifted * weights, axis) - snp.sum(weights) * log_total
            loss = (1 - smoothing) * loss - smoothing / count * every
    loss = snp.where(counted, snp.where(inside, loss, np.nan), 0.0)
    if reduction != "mean":
        return reduce_losses(loss, reduction, caller)
    if weights is None:
        divisor = convert(snp.sum(counted), loss.dtype)
    else:
        divisor = snp.sum(snp.where(counted, of_target, 0.0))
    return snp.sum(loss) / divisor


@loss
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


@loss
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
        label_smoothing: how much of a uniform distribution to mix into the targets; a number, or
            a scalar, such as a hyperparameter of each member.

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
    logs = log_softmax(x, axis)
    if _smooths(label_smoothing):
        t = t * (1 - label_smoothing) + label_smoothing / x.shape[axis]
    weight = _weights(caller, x, weight, axis)
    loss = -snp.sum(logs * t if weight is None else logs * t * weight, axis)
    return reduce_losses(loss, reduction, caller)


# Two classes

_LEAST_LOG = -100.0
_LEAST_VARIANCE = 1e-12


def _limit_log(x: Array) -> Array:
    return snp.maximum(snp.log(x), _LEAST_LOG)


@custom_jvp
def _binary(x: Array, t: Array) -> Array:
    """Return ``-(t log x + (1 - t) log(1 - x))``, each logarithm at least -100, as in PyTorch."""
    return -(t * _limit_log(x) + (1 - t) * snp.maximum(snp.log1p(-x), _LEAST_LOG))


# d/dx = (x - t) / (x (1 - x)), finite at both ends.
_binary.defjvps(
    lambda dx, out, x, t: dx * ((x - t) / snp.maximum(x * (1 - x), _LEAST_VARIANCE)),
    lambda dt, out, x, t: dt * (snp.maximum(snp.log1p(-x), _LEAST_LOG) - _limit_log(x)),
)


@loss
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
    return reduce_losses(loss, reduction, caller)


@loss
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
        pos_weight: factors for the part of targets of 1, which broadcast to ``input``; 1 by
            default.

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
    return reduce_losses(loss, reduction, caller)


@loss
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
        return reduce_losses(loss, reduction, caller)
    if not loss.ndim:
        raise ValueError(f"{caller}: reduction 'batchmean' needs a batch axis, got {x.type}")
    return snp.sum(loss) / loss.shape[0]


_CALLER = "ctc_loss"


def _lengths(name: str, lengths: ArrayLike | Sequence[int], count: int, most: int) -> Array:
    listed = isinstance(lengths, (tuple, list))
    counts = snp.asarray(lengths) if listed else as_value(lengths, _CALLER, name)
    if kind_of(counts.dtype) not in ("int", "uint") or counts.shape != (count,):
        raise ValueError(f"{_CALLER}: expected {name} as {count} integers, got {counts.type}")
    inside = snp.logical_and(snp.greater_equal(counts, 0), snp.less_equal(counts, most))
    check_known(inside, f"{_CALLER}: {name} must be from 0 to {most}")
    return counts


def _rows(targets: Array, lengths: Array) -> Array:
    """Return targets one after another as the rows of a matrix."""
    if isinstance(lengths, Tracer):
        raise TracedValueError(
            f"{_CALLER}: targets one after another, {targets.type}, need target_lengths that are "
            f"not traced; give targets as rows, (batch, longest)"
        )
    counts = np.asarray(lengths)
    if counts.sum() != targets.shape[0]:
        raise ValueError(
            f"{_CALLER}: target_lengths add up to {counts.sum()}, but there are {targets.shape[0]} "
            f"targets"
        )
    steps = np.arange(max(int(counts.max(initial=0)), 1))
    starts = np.cumsum(counts) - counts
    indices = np.minimum(starts[:, None] + steps, max(targets.shape[0] - 1, 0))
    return snp.take(targets, indices, 0) if targets.shape[0] else snp.zeros(indices.shape, np.int32)


def _log_add(*terms: Array) -> Array:
    """Take ``log(sum(exp))`` of the terms; -inf, with derivatives of 0, where all are."""
    top = functools.reduce(snp.maximum, map(stop_gradient, terms))
    none = snp.isneginf(top)
    top = snp.where(none, 0.0, top)
    total = functools.reduce(operator.add, [snp.exp(t - top) for t in terms])
    return snp.where(none, -math.inf, snp.log(snp.where(none, 1.0, total)) + top)


def _check(x: ArrayType, targets: ArrayType, blank: int) -> None:
    if not 0 <= blank < x.shape[-1]:
        raise ValueError(f"{_CALLER}: blank must be a class of {x}, got {blank}")
    rows = targets.ndim == 2 and targets.shape[0] == x.shape[1]
    if kind_of(targets.dtype) not in ("int", "uint") or not (rows or targets.ndim == 1):
        raise ValueError(
            f"{_CALLER}: expected targets as integers (batch, longest), or one after another, for "
            f"log_probs {x}; got {targets}"
        )


@rounded_once
def ctc_loss(
    log_probs: ArrayLike,
    targets: ArrayLike,
    input_lengths: ArrayLike | Sequence[int],
    target_lengths: ArrayLike | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Array:
    """Take ``-log p(targets)``, summed over all ways to spread the targets over the steps.

    The mean is over the batch, each loss divided by its target's length.

    Args:
        log_probs: logarithms of probabilities (T, N, C), or (T, C).
        targets: classes other than ``blank``, (N, S), (S,) without N, or those of all examples one
            after another.
        input_lengths: how many steps of each example count, (N,).
        target_lengths: how many targets of each example count, (N,).
        blank: the class that stands for no label.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        zero_infinity: whether infinite losses, of targets too long for their input, become 0.

    Returns:
        A scalar, or a loss for each example where ``reduction`` is ``"none"``.

    Raises:
        TracedValueError: targets come one after another, and ``target_lengths`` is traced.
        ValueError: shapes or lengths do not fit, ``blank`` is not a class, or ``reduction`` is
            unknown.

    As PyTorch's ``nn.functional.ctc_loss``. Source: Graves et al., Connectionist Temporal
    Classification, 2006.

    >>> import stretto as st, stretto.numpy as snp
    >>> logs = snp.log(snp.full((2, 1, 2), 0.5))
    >>> loss = st.nn.functional.ctc_loss(logs, snp.array([[1]]), [2], [1], reduction="sum")
    >>> snp.exp(-loss).round(3)
    Array(0.75, dtype=float32)
    """
    x, t = as_float(log_probs, _CALLER, "log_probs"), as_value(targets, _CALLER, "targets")
    if x.ndim not in (2, 3):
        raise ValueError(f"{_CALLER}: expected log_probs (time, batch, classes), got {x.type}")
    add_batch_axis = x.ndim == 3
    if not add_batch_axis:
        x, t = snp.expand_dims(x, 1), snp.expand_dims(t, 0)
        input_lengths = snp.reshape(snp.asarray(input_lengths), (1,))
        target_lengths = snp.reshape(snp.asarray(target_lengths), (1,))
    _check(x.type, t.type, blank)
    steps, batch, _ = x.shape
    of_input = _lengths("input_lengths", input_lengths, batch, steps)
    of_target = _lengths("target_lengths", target_lengths, batch, t.shape[-1])
    if t.ndim == 1:
        t = _rows(t, of_target)

    # States: blank, label, blank, label, ..., blank. A state is reached from itself, from the one
    # before, and, unless it is blank or its label repeats, from the one before that.
    width = 2 * t.shape[1] + 1
    end = expand_dims(2 * of_target, 1)
    position = snp.arange(width, dtype=end.dtype)[None]
    labels = concatenate([snp.repeat(t, 2, 1), full((batch, 1), blank, t.dtype)], 1)
    labels = snp.where(snp.logical_and(position % 2 == 1, snp.less(position, end)), labels, blank)
    new = snp.not_equal(labels[:, 2:], labels[:, :-2])
    skips = snp.logical_and(position[:, 2:] % 2 == 1, new)
    emitted = snp.take_along_axis(x, snp.broadcast_to(labels, (steps, batch, width)), 2)
    one, two = (full((batch, n), -math.inf, x.dtype) for n in (1, 2))

    def step(logs: Array, now: tuple[Array, Array]) -> tuple[Array, None]:
        emitted, i = now
        near = concatenate([one, logs[:, :-1]], 1)
        far = concatenate([two, snp.where(skips, logs[:, :-2], -math.inf)], 1)[:, :width]
        moved = _log_add(logs, near, far) + emitted
        return snp.where(expand_dims(snp.less(i, of_input), 1), moved, logs), None

    start = snp.where(position == 0, 0.0, full((batch, width), -math.inf, x.dtype))
    last, _ = scan(step, start, (emitted, snp.arange(steps)))
    at_blank = snp.sum(snp.where(snp.equal(position, end), last, 0.0), 1)
    at_label = snp.sum(snp.where(snp.equal(position, end - 1), last, 0.0), 1)
    at_label = snp.where(snp.equal(of_target, 0), -math.inf, at_label)
    loss = -_log_add(at_blank, at_label)
    if zero_infinity:
        loss = snp.where(snp.isinf(loss), 0.0, loss)
    if reduction == "mean":
        loss = loss / convert(snp.maximum(of_target, 1), loss.dtype)
    return reduce_losses(
        loss if add_batch_axis or reduction != "none" else loss[0], reduction, _CALLER
    )
