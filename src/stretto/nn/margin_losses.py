"""Layers that are losses with margins, and distances.

Each calls its function of ``functional.margin_losses`` or ``functional.distances``.
"""

from __future__ import annotations

from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn import functional as F
from stretto.nn.function_layers import Loss
from stretto.nn.module import Module

__all__ = [
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "PairwiseDistance",
    "SoftMarginLoss",
    "TripletMarginLoss",
]


class MultiMarginLoss(Loss):
    """Ask for the target's class to exceed the others by a margin.

    The loss is the sum of ``max(0, margin - x[t] + x[i])**p`` over other classes i, divided by the
    number of classes.

    Args:
        p: 1 or 2.
        margin: the margin.
        weight: a factor for each class, (classes,); kept as a buffer.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``p`` or ``reduction`` is not one of those above, or shapes do not fit.

    As PyTorch's ``nn.MultiMarginLoss``.

    >>> import stretto as st
    >>> st.nn.MultiMarginLoss()(st.numpy.array([0.0, 0.5, 2.0]), st.numpy.array(1))
    Array(1., dtype=float32)
    """

    function = staticmethod(F.multi_margin_loss)
    settings = ("p", "margin", "weight", "reduction")

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: ArrayLike | None = None,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.p = p
        self.margin = margin
        self.register_buffer("weight", weight)


class MultiLabelMarginLoss(Loss):
    """Ask for all targets' classes to exceed the others by 1.

    The loss is the sum of ``max(0, 1 - x[t] + x[i])`` over targets t and other classes i, divided
    by the number of classes. Targets are the classes of each row, followed by -1.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

    As PyTorch's ``nn.MultiLabelMarginLoss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.nn.MultiLabelMarginLoss()(snp.array([0.1, 0.2, 0.4]), snp.array([2, -1, 0])).round(3)
    Array(0.5, dtype=float32)
    """

    function = staticmethod(F.multilabel_margin_loss)


class MultiLabelSoftMarginLoss(Loss):
    """Average ``BCEWithLogitsLoss`` over classes.

    Args:
        weight: a factor for each class, (classes,); kept as a buffer.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

    As PyTorch's ``nn.MultiLabelSoftMarginLoss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.nn.MultiLabelSoftMarginLoss()(snp.zeros((1, 2)), snp.array([[1.0, 0.0]])).round(3)
    Array(0.693, dtype=float32)
    """

    function = staticmethod(F.multilabel_soft_margin_loss)
    settings = ("weight", "reduction")

    def __init__(self, weight: ArrayLike | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class SoftMarginLoss(Loss):
    """Take ``log(1 + exp(-target * input))`` for targets 1 and -1.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

    As PyTorch's ``nn.SoftMarginLoss``.

    >>> import stretto as st
    >>> st.nn.SoftMarginLoss()(st.numpy.zeros(1), st.numpy.ones(1)).round(3)
    Array(0.693, dtype=float32)
    """

    function = staticmethod(F.soft_margin_loss)


class HingeEmbeddingLoss(Loss):
    """Ask for distances to be small where the target is 1, and large where it is -1.

    The loss is ``x`` where the target is 1, and ``max(0, margin - x)`` where it is -1.

    Args:
        margin: how large is large enough.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

    As PyTorch's ``nn.HingeEmbeddingLoss``.

    >>> import stretto as st
    >>> st.nn.HingeEmbeddingLoss(reduction="none")(st.numpy.full(2, 0.25), st.numpy.array([1, -1]))
    Array([0.25, 0.75], dtype=float32, weak_type=True)
    """

    function = staticmethod(F.hinge_embedding_loss)
    settings = ("margin", "reduction")

    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin


class MarginRankingLoss(Loss):
    """Ask for one of two inputs to exceed the other by a margin.

    The loss is ``max(0, margin - target * (input1 - input2))``.

    Args:
        margin: the margin.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

    As PyTorch's ``nn.MarginRankingLoss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.nn.MarginRankingLoss()(snp.ones(1), snp.array([3.0]), snp.ones(1))
    Array(2., dtype=float32)
    """

    function = staticmethod(F.margin_ranking_loss)
    settings = ("margin", "reduction")

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

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


# Distances


class CosineEmbeddingLoss(MarginRankingLoss):
    """Ask for vectors to point the same way where the target is 1, and not to where it is -1.

    The loss is ``1 - cos`` where the target is 1, and ``max(0, cos - margin)`` where it is -1.
    Inputs are (N, D) or (D,), targets (N,) or ().

    Args:
        margin: the cosine that costs nothing where the target is -1.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

    As PyTorch's ``nn.CosineEmbeddingLoss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, y = snp.array([[3.0, 4.0]]), snp.array([[1.0, 0.0]])
    >>> st.nn.CosineEmbeddingLoss()(x, y, snp.array([1])).round(3)
    Array(0.4, dtype=float32)
    """

    function = staticmethod(F.cosine_embedding_loss)


class TripletMarginLoss(Loss):
    """Ask for an anchor to be nearer to a positive than to a negative, by a margin.

    The loss is ``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, d the p-norm's
    distance.

    Args:
        margin: the margin.
        p: the norm.
        eps: what is added to differences.
        swap: whether the negative's distance is the smaller of those from anchor and positive.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

    As PyTorch's ``nn.TripletMarginLoss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> a, p, n = snp.zeros((1, 2)), snp.array([[3.0, 4.0]]), snp.array([[0.0, 2.0]])
    >>> st.nn.TripletMarginLoss()(a, p, n).round(3)
    Array(4., dtype=float32)
    """

    function = staticmethod(F.triplet_margin_loss)
    settings = ("margin", "p", "eps", "swap", "reduction")

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

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
