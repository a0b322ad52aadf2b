"""Connectionist temporal classification: the probability of labels over all alignments.

Names, arguments and defaults are those of PyTorch's ``torch.nn.functional``.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.types import ArrayType, kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.scan import scan
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import expand_dims
from stretto.nn.functional.arguments import as_float
from stretto.nn.functional.checks import check_known, reduced

__all__ = ["ctc_loss"]

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
    """Targets one after another as the rows of a matrix."""
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
    places = np.minimum(starts[:, None] + steps, max(targets.shape[0] - 1, 0))
    return snp.take(targets, places, 0) if targets.shape[0] else snp.zeros(places.shape, np.int32)


def _log_add(*terms: Array) -> Array:
    """The logarithm of the sum of exponentials; -inf, with derivatives of 0, where all are."""
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
    batched = x.ndim == 3
    if not batched:
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
    place = snp.arange(width, dtype=end.dtype)[None]
    labels = concatenate([snp.repeat(t, 2, 1), full((batch, 1), blank, t.dtype)], 1)
    labels = snp.where(snp.logical_and(place % 2 == 1, snp.less(place, end)), labels, blank)
    new = snp.not_equal(labels[:, 2:], labels[:, :-2])
    skips = snp.logical_and(place[:, 2:] % 2 == 1, new)
    emitted = snp.take_along_axis(x, snp.broadcast_to(labels, (steps, batch, width)), 2)
    one, two = (full((batch, n), -math.inf, x.dtype) for n in (1, 2))

    def step(logs: Array, now: tuple[Array, Array]) -> tuple[Array, None]:
        emitted, i = now
        near = concatenate([one, logs[:, :-1]], 1)
        far = concatenate([two, snp.where(skips, logs[:, :-2], -math.inf)], 1)[:, :width]
        moved = _log_add(logs, near, far) + emitted
        return snp.where(expand_dims(snp.less(i, of_input), 1), moved, logs), None

    start = snp.where(place == 0, 0.0, full((batch, width), -math.inf, x.dtype))
    last, _ = scan(step, start, (emitted, snp.arange(steps)))
    at_blank = snp.sum(snp.where(snp.equal(place, end), last, 0.0), 1)
    at_label = snp.sum(snp.where(snp.equal(place, end - 1), last, 0.0), 1)
    at_label = snp.where(snp.equal(of_target, 0), -math.inf, at_label)
    loss = -_log_add(at_blank, at_label)
    if zero_infinity:
        loss = snp.where(snp.isinf(loss), 0.0, loss)
    if reduction == "mean":
        loss = loss / convert(snp.maximum(of_target, 1), loss.dtype)
    return reduced(loss if batched or reduction != "none" else loss[0], reduction, _CALLER)
