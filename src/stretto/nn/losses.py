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
        """The loss."""
        return self._of(input, target)

    def extra_repr(self) -> str:
        """The settings that are not arrays."""
        names = [n for n in self.settings if self._roles.get(n) == "static"]
        return ", ".join(f"{n}={getattr(self, n)!r}" for n in names)


# Numbers


class MSELoss(_Loss):
    """``(input - target)**2``.

    >>> import stretto as st
    >>> st.nn.MSELoss()(st.numpy.ones(3), st.numpy.zeros(3))
    Array(1., dtype=float32)
    """

    function = staticmethod(F.mse_loss)


class L1Loss(_Loss):
    """``|input - target|``."""

    function = staticmethod(F.l1_loss)


class SmoothL1Loss(_Loss):
    """``d**2 / (2 beta)`` for differences ``d`` below ``beta``, else ``|d| - beta / 2``."""

    function = staticmethod(F.smooth_l1_loss)
    settings = ("reduction", "beta")

    def __init__(self, *, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta


class HuberLoss(_Loss):
    """``d**2 / 2`` for differences ``d`` up to ``delta``, else ``delta (|d| - delta / 2)``."""

    function = staticmethod(F.huber_loss)
    settings = ("reduction", "delta")

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta


class GaussianNLLLoss(_Loss):
    """The negative logarithm of a normal density whose mean and variance are given.

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
        """The loss of means ``input`` and variances ``var``."""
        return self._of(input, target, var)


class PoissonNLLLoss(_Loss):
    """The negative logarithm of Poisson probabilities, of rates or their logarithms."""

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
    """``-log_softmax(input)`` of the target, a class or probabilities of classes.

    ``weight``, one number for each class, is a buffer. Shapes, reductions and errors are those of
    ``functional.cross_entropy``.

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
    """``-input`` of the target's class, for logarithms of probabilities."""

    function = staticmethod(F.nll_loss)
    settings = ("weight", "ignore_index", "reduction")

    def __init__(
        self, weight: ArrayLike | None = None, *, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index


class BCELoss(_Loss):
    """``-(t log x + (1 - t) log(1 - x))`` for probabilities ``x``, times ``weight``, a buffer."""

    function = staticmethod(F.binary_cross_entropy)
    settings = ("weight", "reduction")

    def __init__(self, weight: ArrayLike | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class BCEWithLogitsLoss(_Loss):
    """``BCELoss`` of ``sigmoid(x)``, exact for all ``x``; ``pos_weight`` multiplies ``t``'s part.

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
    """``t (log t - input)`` for probabilities ``t`` and logarithms of probabilities ``input``.

    The reduction ``"batchmean"`` gives the divergence by its definition.
    """

    function = staticmethod(F.kl_div)
    settings = ("reduction", "log_target")

    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target


class CTCLoss(_Loss):
    """The negative logarithm of the probability of a sequence of labels, over all alignments.

    Shapes, reductions and errors are those of ``functional.ctc_loss``.
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
        """The loss of logarithms of probabilities (time, batch, classes)."""
        return self._of(log_probs, targets, input_lengths, target_lengths)


# Margins


class MultiMarginLoss(_Loss):
    """The sum of ``max(0, margin - x[t] + x[i])**p`` over other classes ``i``, by their number."""

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
    """The sum of ``max(0, 1 - x[t] + x[i])`` over targets ``t`` and other classes ``i``, by C."""

    function = staticmethod(F.multilabel_margin_loss)


class MultiLabelSoftMarginLoss(_Loss):
    """The mean over classes of ``BCEWithLogitsLoss``, each class times its ``weight``, a buffer."""

    function = staticmethod(F.multilabel_soft_margin_loss)
    settings = ("weight", "reduction")

    def __init__(self, weight: ArrayLike | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))`` for targets 1 and -1."""

    function = staticmethod(F.soft_margin_loss)


class HingeEmbeddingLoss(_Loss):
    """``x`` where the target is 1, and ``max(0, margin - x)`` where it is -1."""

    function = staticmethod(F.hinge_embedding_loss)
    settings = ("margin", "reduction")

    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin


class MarginRankingLoss(_Loss):
    """``max(0, margin - target * (input1 - input2))``."""

    function = staticmethod(F.margin_ranking_loss)
    settings = ("margin", "reduction")

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: ArrayLike, input2: ArrayLike, target: ArrayLike) -> Array:
        """The loss; a target of 1 asks for ``input1`` to be the greater."""
        return self._of(input1, input2, target)


# Distances


class CosineEmbeddingLoss(MarginRankingLoss):
    """``1 - cos`` of two vectors whose target is 1, ``max(0, cos - margin)`` where it is -1."""

    function = staticmethod(F.cosine_embedding_loss)


class TripletMarginLoss(_Loss):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` of distances by the p-norm."""

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
        """The loss."""
        return self._of(anchor, positive, negative)


class PairwiseDistance(Module):
    """The p-norm of ``x1 - x2 + eps`` along the last axis.

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
        """The distances."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along ``dim``.

    >>> import stretto as st
    >>> st.nn.CosineSimilarity()(st.numpy.ones((1, 2)), st.numpy.array([[3.0, 4.0]])).round(2)
    Array([0.99], dtype=float32)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: ArrayLike, x2: ArrayLike) -> Array:
        """The similarities."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
