"""Layers that are losses of classes: cross-entropies, divergences, alignments.

Each calls its function of ``functional.classification_losses`` or ``functional.ctc``; weights are
buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn import functional as F
from stretto.nn.function_layers import Loss

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CrossEntropyLoss",
    "KLDivLoss",
    "NLLLoss",
]


class CrossEntropyLoss(Loss):
    """Take ``-log_softmax(input)`` of the target, a class or probabilities of classes.

    Inputs are logits (C,), (N, C) or (N, C, d1, ...); targets integers without the class axis, or
    probabilities in the shape of the input. The mean is over the sum of the targets' weights.

    Args:
        weight: a factor for each class, (classes,); kept as a buffer.
        ignore_index: the class whose targets do not count.
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


class NLLLoss(Loss):
    """Take ``-input`` of the target's class, for logarithms of probabilities.

    Shapes and the mean are those of ``CrossEntropyLoss``, for targets that are classes.

    Args:
        weight: a factor for each class, (classes,); kept as a buffer.
        ignore_index: the class whose targets do not count.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        IndexError: a class is known to be out of range; traced, its loss is NaN.
        ValueError: ``reduction`` is unknown, or shapes do not fit.

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


class BCELoss(Loss):
    """Take the cross-entropy of probabilities of two classes.

    The loss is ``-(t log x + (1 - t) log(1 - x))``, with logarithms of at least -100.

    Args:
        weight: factors that broadcast to the input; kept as a buffer.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, shapes differ, or an input is known not to be
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


class BCEWithLogitsLoss(Loss):
    """Take ``BCELoss`` of ``sigmoid(input)``, exact for all inputs.

    Args:
        weight: factors that broadcast to the input; kept as a buffer.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        pos_weight: factors for the part of targets of 1, which broadcast to the input; kept as a
            buffer.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

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


class KLDivLoss(Loss):
    """Take the Kullback-Leibler divergence from logarithms of probabilities to probabilities.

    The loss is ``t (log t - input)``, and 0 where ``t`` is 0.

    Args:
        reduction: ``"none"``, ``"mean"``, ``"sum"``, or ``"batchmean"``, the sum over the batch's
            size.
        log_target: whether targets are logarithms too.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

    As PyTorch's ``nn.KLDivLoss``.

    >>> import stretto as st
    >>> logs = st.numpy.log(st.numpy.array([[0.5, 0.5]]))
    >>> st.nn.KLDivLoss(reduction="batchmean")(logs, st.numpy.array([[1.0, 0.0]])).round(3)
    Array(0.693, dtype=float32)
    """

    function = staticmethod(F.kl_div)
    settings = ("reduction", "log_target")
    reductions = (*Loss.reductions, "batchmean")

    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target


class CTCLoss(Loss):
    """Take the negative logarithm of the probability of labels, over all alignments.

    Args:
        blank: the class that stands for no label.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        zero_infinity: whether infinite losses, of targets too long for their input, become 0.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

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
        return self._call(log_probs, targets, input_lengths, target_lengths)
