"""Losses. PyTorch's numbers for the reduction are 0 for none, 1 for the mean, 2 for the sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stretto.numpy as snp
from stretto.nn import functional as F

__all__ = ["TABLE"]

_REDUCTIONS = ("none", "mean", "sum")


def _simple(loss: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """A loss of input, target and a reduction; ``names`` are what comes after it."""

    def reduced(x: Any, target: Any, reduction: int = 1, *more: Any, **how: Any) -> Any:
        how |= dict(zip(names, more, strict=False))
        return loss(x, target, reduction=_REDUCTIONS[reduction], **how)

    return reduced


def _weighted(loss: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, target, weight=None, reduction=1: loss(
        x, target, weight, reduction=_REDUCTIONS[reduction]
    )


def _cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    return F.cross_entropy(
        x,
        target,
        weight,
        reduction=_REDUCTIONS[reduction],
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )


def _negative_log_likelihood(
    x: Any, target: Any, weight: Any, reduction: int, ignore_index: int
) -> tuple[Any, Any]:
    """The loss, and the sum of the weights that it was divided by."""
    loss = F.nll_loss(
        x, target, weight, reduction=_REDUCTIONS[reduction], ignore_index=ignore_index
    )
    if reduction == 0:
        return loss, snp.zeros((), x.dtype)
    counts = target != ignore_index
    weights = (
        counts if weight is None else snp.where(counts, weight[snp.where(counts, target, 0)], 0)
    )
    return loss, snp.sum(weights).astype(x.dtype)


def _with_logits(
    x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Any:
    return F.binary_cross_entropy_with_logits(
        x, target, weight, pos_weight=pos_weight, reduction=_REDUCTIONS[reduction]
    )


TABLE: dict[str, Callable[..., Any]] = {
    "aten.binary_cross_entropy.default": _weighted(F.binary_cross_entropy),
    "aten.binary_cross_entropy_with_logits.default": _with_logits,
    "aten.cross_entropy_loss.default": _cross_entropy,
    "aten.huber_loss.default": _simple(F.huber_loss, "delta"),
    "aten.kl_div.default": _simple(F.kl_div, "log_target"),
    "aten.l1_loss.default": _simple(F.l1_loss),
    "aten.mse_loss.default": _simple(F.mse_loss),
    # PyTorch's decomposition counts the first class in place of each that is not there.
    "aten.multilabel_margin_loss.default": _simple(F.multilabel_margin_loss),
    "aten.nll_loss_forward.default": _negative_log_likelihood,
    "aten.nll_loss2d_forward.default": _negative_log_likelihood,
    "aten.smooth_l1_loss.default": _simple(F.smooth_l1_loss, "beta"),
    "aten.soft_margin_loss.default": _simple(F.soft_margin_loss),
    "stretto.cross_entropy_loss.default": _cross_entropy,
    "stretto.nll_loss_nd.default": lambda *args: _negative_log_likelihood(*args)[0],
}
