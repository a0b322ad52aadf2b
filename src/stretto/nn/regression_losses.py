"""Layers that are losses of numbers: squares, magnitudes, likelihoods.

Names, arguments, defaults and meanings are those of PyTorch's losses, without the deprecated
``size_average`` and ``reduce``; each calls its function of ``functional.regression_losses`` with
its settings.
"""

from __future__ import annotations

from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn import functional as F
from stretto.nn.function_layers import Loss

__all__ = [
    "GaussianNLLLoss",
    "HuberLoss",
    "L1Loss",
    "MSELoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
]


class MSELoss(Loss):
    """Square the differences: ``(input - target)**2``.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

    As PyTorch's ``nn.MSELoss``.

    >>> import stretto as st
    >>> st.nn.MSELoss()(st.numpy.ones(3), st.numpy.zeros(3))
    Array(1., dtype=float32)
    """

    function = staticmethod(F.mse_loss)


class L1Loss(Loss):
    """Take the magnitudes of differences: ``|input - target|``.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

    As PyTorch's ``nn.L1Loss``.

    >>> import stretto as st
    >>> st.nn.L1Loss()(st.numpy.array([1.0, -3.0]), st.numpy.zeros(2))
    Array(2., dtype=float32)
    """

    function = staticmethod(F.l1_loss)


class SmoothL1Loss(Loss):
    """Square small differences, and take the magnitudes of large ones.

    The loss is ``d**2 / (2 beta)`` for differences ``d`` below ``beta``, otherwise ``|d| - beta /
    2``.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        beta: where the two meet; not negative.

    Raises:
        ValueError: ``reduction`` is unknown, ``beta`` is negative, or shapes differ.

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


class HuberLoss(Loss):
    """Square small differences, and take multiples of large ones.

    The loss is ``d**2 / 2`` for differences ``d`` up to ``delta``, otherwise ``delta (|d| - delta /
    2)``.

    Args:
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.
        delta: where the two meet; positive.

    Raises:
        ValueError: ``reduction`` is unknown, ``delta`` is not positive, or shapes differ.

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


class GaussianNLLLoss(Loss):
    """Take the negative logarithm of a normal density of given mean and variance.

    The loss is ``(log v + (input - target)**2 / v) / 2``, where ``v`` is ``var``, at least ``eps``.

    Args:
        full: whether to add ``log(2 pi) / 2``.
        eps: the least variance.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, shapes do not fit, or a variance is known to be
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
        return self._call(input, target, var)


class PoissonNLLLoss(Loss):
    """Take the negative logarithm of Poisson probabilities.

    The loss is ``exp(input) - target * input``, or ``input - target * log(input + eps)``.

    Args:
        log_input: whether the input is the logarithm of the rate, rather than the rate.
        full: whether to add Stirling's approximation of the constant term.
        eps: what is added to a rate before its logarithm is taken.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: ``reduction`` is unknown, or shapes do not fit.

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
