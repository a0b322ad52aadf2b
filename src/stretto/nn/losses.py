"""Layers that are losses and distances.

Names, arguments, defaults and meanings are PyTorch's, without its outdated ``size_average`` and
``reduce``; each calls the function of ``functional`` with its settings, and weights are buffers.
Next, read ``dropout``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn import functional as F
from stretto.nn.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PairwiseDistance",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
]


class _Loss(Module):
    """A function of the call's arguments and of settings, which are attributes."""

    function: ClassVar[Callable[..., Any]]
    settings: ClassVar[tuple[str, ...]] = ("reduction",)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        allowed = ("none", "mean", "sum") + ("batchmean",) * (type(self) is KLDivLoss)
        if reduction not in allowed:
            raise ValueError(
                f"{type(self).__name__}: reduction must be one of {', '.join(allowed)}; got "
                f"{reduction!r}"
            )
        self.reduction = reduction

    def _of(self, *arguments: Any) -> Any:
        settings = {name: getattr(self, name) for name in self.settings}
        return type(self).function(*arguments, **settings)

    def forward(self, input: ArrayLike, target: ArrayLike) -> Array:
        """Compute the loss.

        Args:
            input: what the model gives.
            target: what it should give.

        Returns:
            A scalar, or each loss where ``reduction`` is ``"none"``.
        """
        return self._of(input, target)

    def extra_repr(self) -> str:
        """The settings that are not arrays."""
        names = [n for n in self.settings if self._roles.get(n) == "static"]
        return ", ".join(f"{n}={getattr(self, n)!r}" for n in names)


# Numbers


class MSELoss(_Loss):
    """Square the differences: ``(input - target)**2``.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

    As PyTorch's ``nn.MSELoss``.

    >>> import stretto as st
    >>> st.nn.MSELoss()(st.numpy.ones(3), st.numpy.zeros(3))
    Array(1., dtype=float32)
    """

    function = staticmethod(F.mse_loss)


class L1Loss(_Loss):
    """Take the magnitudes of differences: ``|input - target|``.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

    As PyTorch's ``nn.L1Loss``.

    >>> import stretto as st
    >>> st.nn.L1Loss()(st.numpy.array([1.0, -3.0]), st.numpy.zeros(2))
    Array(2., dtype=float32)
    """

    function = staticmethod(F.l1_loss)


class SmoothL1Loss(_Loss):
    """Square small differences, and take the magnitudes of large ones.

    The loss is ``d**2 / (2 beta)`` for differences ``d`` below ``beta``, otherwise ``|d| - beta /
    2``.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        beta: where the two meet; not negative.

    Raises:
        ValueError: ``reduction`` is another word, ``beta`` is negative, or shapes differ.

    As PyTorch's ``nn.SmoothL1Loss``.

    >>> import stretto as st
    >>> st.nn.SmoothL1Loss(reduction="none")(st.numpy.array([0.5, 3.0]), st.numpy.zeros(2))
    Array([0.125, 2.5  ], dtype=float32)
    """

    function = staticmethod(F.smooth_l1_loss)
    settings = ("reduction", "beta")

    def __init__(self, *, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta


class HuberLoss(_Loss):
    """Square small differences, and take multiples of large ones.

    The loss is ``d**2 / 2`` for differences ``d`` up to ``delta``, otherwise ``delta (|d| - delta /
    2)``.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        delta: where the two meet; positive.

    Raises:
        ValueError: ``reduction`` is another word, ``delta`` is not positive, or shapes differ.

    As PyTorch's ``nn.HuberLoss``.

    >>> import stretto as st
    >>> st.nn.HuberLoss("none", 2.0)(st.numpy.array([1.0, 3.0]), st.numpy.zeros(2))
    Array([0.5, 4. ], dtype=float32)
    """

    function = staticmethod(F.huber_loss)
    settings = ("reduction", "delta")

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta


class GaussianNLLLoss(_Loss):
    """Take the negative logarithm of a normal density of given mean and variance.

    The loss is ``(log v + (input - target)**2 / v) / 2``, where ``v`` is ``var``, at least ``eps``.

    Args:
        full: whether to add ``log(2 pi) / 2``.
        eps: the least variance.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is another word, shapes do not fit, or a variance is known to be
            negative.

    As PyTorch's ``nn.GaussianNLLLoss``.

    >>> import stretto as st
    >>> x, one = st.numpy.array([3.0]), st.numpy.ones(1)
    >>> st.nn.GaussianNLLLoss()(x, one, one)
    Array(2., dtype=float32)
    """

    function = staticmethod(F.gaussian_nll_loss)
    settings = ("reduction", "full", "eps")

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

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
        return self._of(input, target, var)


class PoissonNLLLoss(_Loss):
    """Take the negative logarithm of Poisson probabilities.

    The loss is ``exp(input) - target * input``, or ``input - target * log(input + eps)``.

    Args:
        log_input: whether the input is the logarithm of the rate, rather than the rate.
        full: whether to add Stirling's approximation of the constant term.
        eps: what is added to a rate before its logarithm is taken.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

    As PyTorch's ``nn.PoissonNLLLoss``.

    >>> import stretto as st
    >>> st.nn.PoissonNLLLoss()(st.numpy.zeros(1), st.numpy.array([2.0]))
    Array(1., dtype=float32)
    """

    function = staticmethod(F.poisson_nll_loss)
    settings = ("reduction", "log_input", "full", "eps")

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        *,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps


# Classes


class CrossEntropyLoss(_Loss):
    """Take ``-log_softmax(input)`` of the target, a class or probabilities of classes.

    Inputs are logits (C,), (N, C) or (N, C, d1, ...); targets integers without the class axis, or
    probabilities in the shape of the input. The mean is over the sum of the targets' weights.

    Args:
        weight: a factor for each class, (classes,); kept as a buffer.
        ignore_index: the class whose targets count nothing.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        label_smoothing: how much of a uniform distribution to mix into the targets, from 0 to 1.

    Raises:
        IndexError: a class is known to be out of range; traced, its loss is NaN.
        ValueError: a setting is not one of those above, or shapes do not fit.

    As PyTorch's ``nn.CrossEntropyLoss``.

    >>> import stretto as st
    >>> loss = st.nn.CrossEntropyLoss()
    >>> loss(st.numpy.zeros((3, 4)), st.numpy.array([0, 1, 3])).round(3)
    Array(1.386, dtype=float32)
    """

    function = staticmethod(F.cross_entropy)
    settings = ("weight", "ignore_index", "reduction", "label_smoothing")

    def __init__(
        self,
        weight: ArrayLike | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing


class NLLLoss(_Loss):
    """Take ``-input`` of the target's class, for logarithms of probabilities.

    Shapes and the mean are those of ``CrossEntropyLoss``, for targets that are classes.

    Args:
        weight: a factor for each class, (classes,); kept as a buffer.
        ignore_index: the class whose targets count nothing.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        IndexError: a class is known to be out of range; traced, its loss is NaN.
        ValueError: ``reduction`` is another word, or shapes do not fit.

    As PyTorch's ``nn.NLLLoss``.

    >>> import stretto as st
    >>> logs = st.numpy.log(st.numpy.array([[0.5, 0.5]]))
    >>> st.nn.NLLLoss()(logs, st.numpy.array([1])).round(3)
    Array(0.693, dtype=float32)
    """

    function = staticmethod(F.nll_loss)
    settings = ("weight", "ignore_index", "reduction")

    def __init__(
        self, weight: ArrayLike | None = None, *, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index


class BCELoss(_Loss):
    """Take the cross-entropy of probabilities of two classes.

    The loss is ``-(t log x + (1 - t) log(1 - x))``, with logarithms of at least -100.

    Args:
        weight: factors that broadcast to the input; kept as a buffer.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is another word, shapes differ, or an input is known not to be
            from 0 to 1.

    As PyTorch's ``nn.BCELoss``.

    >>> import stretto as st
    >>> st.nn.BCELoss()(st.numpy.array([0.5]), st.numpy.ones(1)).round(3)
    Array(0.693, dtype=float32)
    """

    function = staticmethod(F.binary_cross_entropy)
    settings = ("weight", "reduction")

    def __init__(self, weight: ArrayLike | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class BCEWithLogitsLoss(_Loss):
    """Take ``BCELoss`` of ``sigmoid(input)``, exact for all inputs.

    Args:
        weight: factors that broadcast to the input; kept as a buffer.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        pos_weight: factors for the part of targets of 1, which broadcast to the input; kept as a
            buffer.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

    As PyTorch's ``nn.BCEWithLogitsLoss``.

    >>> import stretto as st
    >>> st.nn.BCEWithLogitsLoss()(st.numpy.zeros(3), st.numpy.ones(3)).round(3)
    Array(0.693, dtype=float32)
    """

    function = staticmethod(F.binary_cross_entropy_with_logits)
    settings = ("weight", "reduction", "pos_weight")

    def __init__(
        self,
        weight: ArrayLike | None = None,
        *,
        reduction: str = "mean",
        pos_weight: ArrayLike | None = None,
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)


class KLDivLoss(_Loss):
    """Take the Kullback-Leibler divergence from logarithms of probabilities to probabilities.

    The loss is ``t (log t - input)``, and 0 where ``t`` is 0.

    Args:
        reduction: ``"none"``, ``"mean"``, ``"sum"``, or ``"batchmean"``, the sum over the batch's
            size.
        log_target: whether targets are logarithms too.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

    As PyTorch's ``nn.KLDivLoss``.

    >>> import stretto as st
    >>> logs = st.numpy.log(st.numpy.array([[0.5, 0.5]]))
    >>> st.nn.KLDivLoss(reduction="batchmean")(logs, st.numpy.array([[1.0, 0.0]])).round(3)
    Array(0.693, dtype=float32)
    """

    function = staticmethod(F.kl_div)
    settings = ("reduction", "log_target")

    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target


class CTCLoss(_Loss):
    """Take the negative logarithm of the probability of labels, over all alignments.

    Args:
        blank: the class that stands for no label.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        zero_infinity: whether infinite losses, of targets too long for their input, become 0.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

    As PyTorch's ``nn.CTCLoss``. Source: Graves et al., Connectionist Temporal Classification, 2006.

    >>> import stretto as st, stretto.numpy as snp
    >>> logs = snp.log(snp.full((2, 1, 2), 0.5))
    >>> st.nn.CTCLoss()(logs, snp.array([[1]]), [2], [1]).round(3)
    Array(0.288, dtype=float32)
    """

    function = staticmethod(F.ctc_loss)
    settings = ("blank", "reduction", "zero_infinity")

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

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
        return self._of(log_probs, targets, input_lengths, target_lengths)


# Margins


class MultiMarginLoss(_Loss):
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


class MultiLabelMarginLoss(_Loss):
    """Ask for all targets' classes to exceed the others by 1.

    The loss is the sum of ``max(0, 1 - x[t] + x[i])`` over targets t and other classes i, divided
    by the number of classes. Targets are the classes of each row, followed by -1.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

    As PyTorch's ``nn.MultiLabelMarginLoss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.nn.MultiLabelMarginLoss()(snp.array([0.1, 0.2, 0.4]), snp.array([2, -1, 0])).round(3)
    Array(0.5, dtype=float32)
    """

    function = staticmethod(F.multilabel_margin_loss)


class MultiLabelSoftMarginLoss(_Loss):
    """Average ``BCEWithLogitsLoss`` over classes.

    Args:
        weight: a factor for each class, (classes,); kept as a buffer.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

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


class SoftMarginLoss(_Loss):
    """Take ``log(1 + exp(-target * input))`` for targets 1 and -1.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

    As PyTorch's ``nn.SoftMarginLoss``.

    >>> import stretto as st
    >>> st.nn.SoftMarginLoss()(st.numpy.zeros(1), st.numpy.ones(1)).round(3)
    Array(0.693, dtype=float32)
    """

    function = staticmethod(F.soft_margin_loss)


class HingeEmbeddingLoss(_Loss):
    """Ask for distances to be small where the target is 1, and large where it is -1.

    The loss is ``x`` where the target is 1, and ``max(0, margin - x)`` where it is -1.

    Args:
        margin: how large is large enough.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

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


class MarginRankingLoss(_Loss):
    """Ask for one of two inputs to exceed the other by a margin.

    The loss is ``max(0, margin - target * (input1 - input2))``.

    Args:
        margin: the margin.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

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
        return self._of(input1, input2, target)


# Distances


class CosineEmbeddingLoss(MarginRankingLoss):
    """Ask for vectors to point the same way where the target is 1, and not to where it is -1.

    The loss is ``1 - cos`` where the target is 1, and ``max(0, cos - margin)`` where it is -1.
    Inputs are (N, D) or (D,), targets (N,) or ().

    Args:
        margin: the cosine that costs nothing where the target is -1.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is another word, or shapes do not fit.

    As PyTorch's ``nn.CosineEmbeddingLoss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, y = snp.array([[3.0, 4.0]]), snp.array([[1.0, 0.0]])
    >>> st.nn.CosineEmbeddingLoss()(x, y, snp.array([1])).round(3)
    Array(0.4, dtype=float32)
    """

    function = staticmethod(F.cosine_embedding_loss)


class TripletMarginLoss(_Loss):
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
        ValueError: ``reduction`` is another word, or shapes do not fit.

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
        return self._of(anchor, positive, negative)


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
