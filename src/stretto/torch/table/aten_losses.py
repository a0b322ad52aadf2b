"""Losses. PyTorch's numbers for the reduction are 0 for none, 1 for the mean, 2 for the sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stretto.numpy as snp
from stretto._engine.higher_order.custom_derivatives import custom_jvp
from stretto.nn import functional as F
from stretto.torch.slopes import binary_cross_entropy

_REDUCTIONS = ("none", "mean", "sum")


def _simple(loss: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """A loss of input, target and a reduction; ``names`` are what comes after it."""

    def reduced(x: Any, target: Any, reduction: int = 1, *more: Any, **how: Any) -> Any:
        how |= dict(zip(names, more, strict=False))
        return loss(x, target, reduction=_REDUCTIONS[reduction], **how)

    return reduced


def _binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    loss = binary_cross_entropy(x, target)
    loss = loss if weight is None else loss * weight
    return [lambda x: x, snp.mean, snp.sum][reduction](loss)


def _multilabel_margin(x: Any, target: Any, reduction: int) -> tuple[Any, Any]:
    """The loss, and which classes are among the targets."""
    if not x.ndim:
        loss, among = _multilabel_margin(x[None], target[None], reduction)
        return loss, among[0]
    loss = F.multilabel_margin_loss(x, target, reduction=_REDUCTIONS[reduction])
    counts = snp.cumprod(target >= 0, -1, dtype=snp.int32) > 0
    here = snp.arange(x.shape[-1]) == target[..., None]
    return loss, snp.any(here & counts[..., None], -2).astype(x.dtype)


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


@custom_jvp
def _with_slope(value: Any, other: Any) -> Any:
    return value


_with_slope.defjvps(lambda dv, out, v, o: dv, lambda do, out, v, o: do)


def _connectionist(
    x: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Any, None]:
    """The loss of each example; what PyTorch keeps beside it is None.

    Its gradient is PyTorch's, which takes ``x`` for logarithms of probabilities that add up to 1:
    the sum of these is part of it.
    """
    if targets.ndim == 1 and x.shape[1] == 1:
        targets = targets[None]
    of_input, of_target = [snp.asarray(n).reshape(-1) for n in (input_lengths, target_lengths)]
    loss = F.ctc_loss(x, targets, of_input, of_target, blank, reduction="none")
    counted = snp.arange(x.shape[0])[:, None] < of_input
    total = snp.sum(snp.where(counted[..., None], snp.exp(x), 0), (0, 2))
    loss = _with_slope(loss, total)
    return snp.where(snp.isinf(loss), 0, loss) if zero_infinity else loss, None


TABLE: dict[str, Callable[..., Any]] = {
    "aten.binary_cross_entropy.default": _binary_cross_entropy,
    "aten.binary_cross_entropy_with_logits.default": _with_logits,
    "aten.cross_entropy_loss.default": _cross_entropy,
    "aten._ctc_loss.default": _connectionist,
    "aten._ctc_loss.Tensor": _connectionist,
    "aten.huber_loss.default": _simple(F.huber_loss, "delta"),
    "aten.kl_div.default": _simple(F.kl_div, "log_target"),
    "aten.l1_loss.default": _simple(F.l1_loss),
    "aten.mse_loss.default": _simple(F.mse_loss),
    "aten.multilabel_margin_loss_forward.default": _multilabel_margin,
    "aten.nll_loss_forward.default": _negative_log_likelihood,
    "aten.nll_loss2d_forward.default": _negative_log_likelihood,
    "aten.smooth_l1_loss.default": _simple(F.smooth_l1_loss, "beta"),
    "aten.soft_margin_loss.default": _simple(F.soft_margin_loss),
    "stretto.cross_entropy_loss.default": _cross_entropy,
    "stretto.nll_loss_nd.default": lambda *args: _negative_log_likelihood(*args)[0],
}
