"""Losses of logits and probabilities against classes.

Names, arguments and defaults are those of PyTorch's ``torch.nn.functional``, without its outdated
``size_average`` and ``reduce``. A class is picked by comparing and adding up, not by gathering: so
forward and back are one pass over the logits each, and stay so under ``vmap``. Next, read
``margin_losses``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.control.custom_jvp import custom_jvp
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import ArrayLike
from stretto._engine.ops.broadcast import expand_dims, of_rank
from stretto._engine.ops.convert import convert
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.runtime.array import Array
from stretto.nn import functions
from stretto.nn.functional.arguments import as_float
from stretto.nn.functional.checks import check_known, classes_of, pair, reduced

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "kl_div",
    "nll_loss",
]


def _check_range(who: str, target: Any, count: int, ignore_index: int) -> None:
    if target.__class__ is Array:
        host = target.to_host()
        wrong = (host != ignore_index) & ((host < 0) | (host >= count))
        if wrong.any():
            raise IndexError(
                f"{who}: target has class {host[wrong][0]} at {np.argwhere(wrong)[0].tolist()}, "
                f"but the input has {count} classes, numbered from 0"
            )


def _class_axis(who: str, x: Any) -> int:
    if not x.ndim:
        raise ValueError(f"{who}: input must have an axis of classes, got {x.type}")
    return min(1, x.ndim - 1)


def _weights(who: str, x: Any, weight: Any, axis: int) -> Any:
    """The weights of classes, along the class axis of ``x``; None for none."""
    if weight is None:
        return None
    weight = as_float(weight, who, "weight")
    if weight.shape != (x.shape[axis],):
        raise ValueError(
            f"{who}: expected weight to have one element for each of {x.shape[axis]} classes, got "
            f"{weight.type}"
        )
    return weight.reshape(tuple(-1 if d == axis else 1 for d in range(x.ndim)))


def _index_loss(
    who: str,
    logs: Any,
    target: Any,
    weight: Any,
    ignore_index: int,
    reduction: str,
    smoothing: float = 0.0,
) -> Any:
    """The negative of the target's logarithm, smoothed; NaN where no such class is."""
    axis = _class_axis(who, logs)
    count = logs.shape[axis]
    t = classes_of(who, logs, target, axis)
    weight = _weights(who, logs, weight, axis)
    _check_range(who, t, count, ignore_index)
    counted = snp.not_equal(t, ignore_index)
    inside = snp.logical_and(snp.greater_equal(t, 0), snp.less(t, count))
    here = snp.equal(expand_dims(t, axis), broadcasted_iota(t.dtype, logs.shape, axis))
    weighted = logs if weight is None else logs * weight
    loss = -snp.sum(snp.where(here, weighted, 0.0), axis)
    if smoothing:
        # (1 - s) of the target's, and s of the mean over classes
        loss = (1 - smoothing) * loss - smoothing / count * snp.sum(weighted, axis)
    loss = snp.where(counted, snp.where(inside, loss, np.nan), 0.0)
    if reduction != "mean":
        return reduced(loss, reduction, who)
    if weight is None:
        total = convert(snp.sum(counted), loss.dtype)
    else:
        of_target = snp.sum(snp.where(here, weight, 0.0), axis)
        total = snp.sum(snp.where(counted, of_target, 0.0))
    return snp.sum(loss) / total


def _read(x: Any, t: Any, axis: int, ignore_index: int) -> Any:
    """``x`` with zeros where the target is ignored: what is there may be NaN or infinite."""
    if t.__class__ is Array and not (t.to_host() == ignore_index).any():
        return x
    return snp.where(expand_dims(snp.not_equal(t, ignore_index), axis), x, 0.0)


def nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Array:
    """``-weight[t] * input[t]`` for logarithms of probabilities, and a class ``t`` for each.

    ``input`` is (C,), (N, C) or (N, C, d1, ...), ``target`` integers without the class axis,
    ``weight`` (C,). Targets that are ``ignore_index`` count nothing, and the mean is over the sum
    of the others' weights.

    Raises ``ValueError`` where shapes do not fit, ``IndexError`` for a class that is known to be
    out of range; traced, the loss is then NaN.

    >>> import stretto as st, stretto.numpy as snp
    >>> logs = snp.log(snp.array([[0.5, 0.5], [0.25, 0.75]]))
    >>> st.nn.functional.nll_loss(logs, snp.array([0, 1]), reduction="none").round(3)
    Array([0.693, 0.288], dtype=float32)
    """
    x = as_float(input, "nll_loss")
    return _index_loss("nll_loss", x, target, weight, ignore_index, reduction)


def cross_entropy(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """``-weight[t] * log_softmax(input)[t]``, for classes, or for probabilities their mean.

    ``input`` has logits, (C,), (N, C) or (N, C, d1, ...); ``target`` integers without the class
    axis, or probabilities in the shape of ``input``; ``weight`` is (C,). Targets that are
    ``ignore_index`` count nothing, and the mean is over the sum of the others' weights; with
    probabilities it is over their number. ``label_smoothing`` mixes that much of a uniform
    distribution in.

    Raises ``ValueError`` where shapes or settings do not fit, ``IndexError`` for a class that is
    known to be out of range; traced, the loss is then NaN. Source: Szegedy et al., Rethinking the
    Inception Architecture, 2016, for smoothing.

    >>> import stretto as st, stretto.numpy as snp
    >>> logits = snp.array([[0.0, 0.0], [2.0, 0.0]])
    >>> st.nn.functional.cross_entropy(logits, snp.array([0, 1]), reduction="none").round(3)
    Array([0.693, 2.127], dtype=float32)
    >>> st.nn.functional.cross_entropy(logits, snp.array([[1.0, 0.0], [0.5, 0.5]])).round(3)
    Array(0.91, dtype=float32)
    """
    who = "cross_entropy"
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"{who}: label_smoothing must be from 0 to 1, got {label_smoothing!r}")
    x, t = as_float(input, who), as_value(target, who, "target")
    axis = _class_axis(who, x)
    if t.shape != x.shape or not is_inexact(t.dtype):
        t = classes_of(who, x, t, axis)
        logs = functions.log_softmax(_read(x, t, axis, ignore_index), axis)
        return _index_loss(who, logs, t, weight, ignore_index, reduction, label_smoothing)
    if ignore_index >= 0:
        raise ValueError(
            f"{who}: ignore_index is for targets that are classes, but target is probabilities "
            f"{t.type}, got ignore_index={ignore_index}"
        )
    logs = functions.log_softmax(x, axis)
    if label_smoothing:
        t = t * (1 - label_smoothing) + label_smoothing / x.shape[axis]
    weight = _weights(who, x, weight, axis)
    loss = -snp.sum(logs * t if weight is None else logs * t * weight, axis)
    return reduced(loss, reduction, who)


# Two classes

_LEAST_LOG = -100.0
_LEAST_VARIANCE = 1e-12


def _limited_log(x: Any) -> Any:
    return snp.maximum(snp.log(x), _LEAST_LOG)


@custom_jvp
def _binary(x: Any, t: Any) -> Any:
    """``-(t log x + (1 - t) log(1 - x))``, each logarithm at least -100, as PyTorch has it."""
    return -(t * _limited_log(x) + (1 - t) * snp.maximum(snp.log1p(-x), _LEAST_LOG))


# d/dx = (x - t) / (x (1 - x)), finite at both ends.
_binary.defjvps(
    lambda dx, out, x, t: dx * ((x - t) / snp.maximum(x * (1 - x), _LEAST_VARIANCE)),
    lambda dt, out, x, t: dt * (snp.maximum(snp.log1p(-x), _LEAST_LOG) - _limited_log(x)),
)


def binary_cross_entropy(
    input: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, reduction: str = "mean"
) -> Array:
    """``-(t log x + (1 - t) log(1 - x))`` for probabilities ``x``, times ``weight``.

    The logarithms are at least -100, and derivatives finite. From logits use
    ``binary_cross_entropy_with_logits``, which is exact.

    Raises ``ValueError`` where shapes differ, and for an input that is known not to be from 0 to 1;
    traced, the loss is then NaN.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, t = snp.array([0.5, 0.0]), snp.array([1.0, 1.0])
    >>> st.nn.functional.binary_cross_entropy(x, t, reduction="none").round(3)
    Array([  0.693, 100.   ], dtype=float32)
    """
    who = "binary_cross_entropy"
    x, t = pair(who, input, target)
    inside = snp.logical_and(snp.greater_equal(x, 0), snp.less_equal(x, 1))
    check_known(
        inside, f"{who}: input must be probabilities from 0 to 1; for logits use {who}_with_logits"
    )
    loss = _binary(x, t)
    if weight is not None:
        loss = loss * of_rank(as_float(weight, who, "weight"), loss.ndim)
    return reduced(loss, reduction, who)


def binary_cross_entropy_with_logits(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    reduction: str = "mean",
    pos_weight: ArrayLike | None = None,
) -> Array:
    """``-(p t log sigmoid(x) + (1 - t) log(1 - sigmoid(x)))`` for logits ``x``, times ``weight``.

    ``p`` is ``pos_weight``, by default 1; it and ``weight`` broadcast to ``input``.

    Raises ``ValueError`` where the shapes of ``input`` and ``target`` differ.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, t = snp.array([0.0, 100.0]), snp.array([1.0, 0.0])
    >>> st.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none").round(3)
    Array([  0.693, 100.   ], dtype=float32)
    """
    who = "binary_cross_entropy_with_logits"
    x, t = pair(who, input, target)
    # log(1 - sigmoid(x)) = log sigmoid(x) - x
    scale: Any = 1.0
    if pos_weight is not None:
        scale = 1 + (of_rank(as_float(pos_weight, who, "pos_weight"), t.ndim) - 1) * t
    loss = (1 - t) * x + scale * functions.softplus(-x)
    if weight is not None:
        loss = loss * of_rank(as_float(weight, who, "weight"), loss.ndim)
    return reduced(loss, reduction, who)


def kl_div(
    input: ArrayLike, target: ArrayLike, *, reduction: str = "mean", log_target: bool = False
) -> Array:
    """``t (log t - input)`` for probabilities ``t`` and logarithms of probabilities ``input``.

    With ``log_target`` the target is logarithms too. Where ``t`` is 0, so is the loss. The
    reduction ``"batchmean"`` divides the sum by the first size, which makes it the divergence by
    its definition; ``"mean"`` divides by the number of elements.

    Raises ``ValueError`` where shapes differ. Source: Kullback and Leibler, On Information and
    Sufficiency, 1951.

    >>> import stretto as st, stretto.numpy as snp
    >>> logs, t = snp.log(snp.array([[0.5, 0.5]])), snp.array([[1.0, 0.0]])
    >>> st.nn.functional.kl_div(logs, t, reduction="batchmean").round(3)
    Array(0.693, dtype=float32)
    """
    who = "kl_div"
    x, t = pair(who, input, target)
    if log_target:
        loss = snp.exp(t) * (t - x)
    else:
        none = snp.equal(t, 0)
        loss = snp.where(none, 0.0, t * snp.log(snp.where(none, 1.0, t))) - t * x
    if reduction != "batchmean":
        return reduced(loss, reduction, who)
    if not loss.ndim:
        raise ValueError(f"{who}: reduction 'batchmean' needs a batch axis, got {x.type}")
    return snp.sum(loss) / loss.shape[0]
