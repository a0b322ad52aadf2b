"""Layers that are losses, and distances.

Names, arguments, defaults and meanings are those of PyTorch's, without the deprecated
``size_average`` and ``reduce``; each calls its function of ``functional``. Weights are buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn import functional as F
from stretto.nn.function_layers import Loss, PlainLoss, applies
from stretto.nn.module import Module

# Of numbers: squares, magnitudes, likelihoods


@applies(F.mse_loss)
class MSELoss(PlainLoss): ...


@applies(F.l1_loss)
class L1Loss(PlainLoss): ...


@applies(F.smooth_l1_loss)
class SmoothL1Loss(Loss):
    def __init__(self, *, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction, beta=beta)


@applies(F.huber_loss)
class HuberLoss(Loss):
    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction, delta=delta)


@applies(F.gaussian_nll_loss)
class GaussianNLLLoss(Loss):
    settings = ("reduction", "full", "eps")

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction, full=full, eps=eps)

    def forward(self, input: ArrayLike, target: ArrayLike, var: ArrayLike) -> Array:
        """Compute the loss.

        Args:
            input: the means.
            target: the observations, of the same shape.
            var: the variances, of the same shape, without its last axis, with size 1 there, or a
                number.

        Returns:
            A scalar, or each loss where ``reduction`` is ``"none"``.
        """
        return self._call(input, target, var)


@applies(F.poisson_nll_loss)
class PoissonNLLLoss(Loss):
    settings = ("reduction", "log_input", "full", "eps")

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        *,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction, log_input=log_input, full=full, eps=eps)


# Of classes: cross-entropies, divergences, alignments


@applies(F.cross_entropy)
class CrossEntropyLoss(Loss):
    def __init__(
        self,
        weight: ArrayLike | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            reduction, weight=weight, ignore_index=ignore_index, label_smoothing=label_smoothing
        )


@applies(F.nll_loss)
class NLLLoss(Loss):
    def __init__(
        self, weight: ArrayLike | None = None, *, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction, weight=weight, ignore_index=ignore_index)


@applies(F.binary_cross_entropy)
class BCELoss(Loss):
    def __init__(self, weight: ArrayLike | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction, weight=weight)


@applies(F.binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(Loss):
    def __init__(
        self,
        weight: ArrayLike | None = None,
        *,
        reduction: str = "mean",
        pos_weight: ArrayLike | None = None,
    ) -> None:
        super().__init__(reduction, weight=weight, pos_weight=pos_weight)


@applies(F.kl_div)
class KLDivLoss(Loss):
    reductions = (*Loss.reductions, "batchmean")

    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction, log_target=log_target)


@applies(F.ctc_loss)
class CTCLoss(Loss):
    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction, blank=blank, zero_infinity=zero_infinity)

    def forward(
        self,
        log_probs: ArrayLike,
        targets: ArrayLike,
        input_lengths: ArrayLike | Sequence[int],
        target_lengths: ArrayLike | Sequence[int],
    ) -> Array:
        """Compute the loss.

        Args:
            log_probs: logarithms of probabilities (time, batch, classes), or without the batch.
            targets: classes (batch, longest), or those of all examples one after another.
            input_lengths: how many steps of each example count, (batch,).
            target_lengths: how many targets of each example count, (batch,).

        Returns:
            A scalar, or a loss for each example where ``reduction`` is ``"none"``.
        """
        return self._call(log_probs, targets, input_lengths, target_lengths)


# With margins, and distances


@applies(F.multi_margin_loss)
class MultiMarginLoss(Loss):
    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: ArrayLike | None = None,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction, p=p, margin=margin, weight=weight)


@applies(F.multilabel_margin_loss)
class MultiLabelMarginLoss(PlainLoss): ...


@applies(F.multilabel_soft_margin_loss)
class MultiLabelSoftMarginLoss(Loss):
    def __init__(self, weight: ArrayLike | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction, weight=weight)


@applies(F.soft_margin_loss)
class SoftMarginLoss(PlainLoss): ...


@applies(F.hinge_embedding_loss)
class HingeEmbeddingLoss(Loss):
    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction, margin=margin)


@applies(F.margin_ranking_loss)
class MarginRankingLoss(Loss):
    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction, margin=margin)

    def forward(self, input1: ArrayLike, input2: ArrayLike, target: ArrayLike) -> Array:
        """Compute the loss.

        Args:
            input1: the first inputs.
            input2: the second inputs.
            target: 1 or -1: which of the two is the first in rank, or for ``CosineEmbeddingLoss``
                whether they are alike.

        Returns:
            A scalar, or each loss where ``reduction`` is ``"none"``.
        """
        return self._call(input1, input2, target)


@applies(F.cosine_embedding_loss)
class CosineEmbeddingLoss(MarginRankingLoss): ...


@applies(F.triplet_margin_loss)
class TripletMarginLoss(Loss):
    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction, margin=margin, p=p, eps=eps, swap=swap)

    def forward(self, anchor: ArrayLike, positive: ArrayLike, negative: ArrayLike) -> Array:
        """Compute the loss.

        Args:
            anchor: vectors along the last axis.
            positive: vectors to be near.
            negative: vectors to be far.

        Returns:
            A scalar, or each loss where ``reduction`` is ``"none"``.
        """
        return self._call(anchor, positive, negative)


class PairwiseDistance(Module):
    """Take the p-norm of ``x1 - x2 + eps`` along the last axis.

    Args:
        p: the norm, not negative.
        eps: what is added to differences.
        keepdim: whether the last axis stays, with size 1.

    Raises:
        ValueError: ``p`` is negative, or shapes do not broadcast.

    As PyTorch's ``nn.PairwiseDistance``.

    >>> import stretto as st
    >>> st.nn.PairwiseDistance()(st.numpy.zeros((1, 2)), st.numpy.array([[3.0, 4.0]])).round(3)
    Array([5.], dtype=float32)
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: ArrayLike, x2: ArrayLike) -> Array:
        """Compute the distances.

        Args:
            x1: vectors along the last axis.
            x2: vectors along the last axis; the others broadcast.

        Returns:
            The distances, without the last axis unless ``keepdim``.
        """
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """Take the cosine of the angle between vectors along an axis.

    Args:
        dim: the axis, of the shape to which both inputs broadcast.
        eps: the least norm.

    Raises:
        ValueError: ``dim`` is out of bounds, or shapes do not broadcast.

    As PyTorch's ``nn.CosineSimilarity``.

    >>> import stretto as st
    >>> st.nn.CosineSimilarity()(st.numpy.ones((1, 2)), st.numpy.array([[3.0, 4.0]])).round(2)
    Array([0.99], dtype=float32)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: ArrayLike, x2: ArrayLike) -> Array:
        """Compute the similarities.

        Args:
            x1: vectors along ``dim``.
            x2: vectors along ``dim``; the others broadcast.

        Returns:
            The cosines, without the axis ``dim``.
        """
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
