"""Dropout layers: elements, or whole channels, set to 0 at random in train mode.

Names, arguments and meanings are PyTorch's. A call draws from its ``key=``, or else from the
ambient stream (``nn.keys``). Next, read ``attention``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto.nn import functional as F
from stretto.nn.functional.checks import key_or_next, probability
from stretto.nn.module import Module

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _Dropping(Module):
    """What dropout layers share: the probability, and the key."""

    function: ClassVar[Callable[..., Any]]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p = probability(p, type(self).__name__)

    def forward(self, input: ArrayLike, *, key: Key | None = None) -> Array:
        """The input with parts dropped in train mode, else as it is."""
        if self.training and 0 < self.p < 1:
            key = key_or_next(key, type(self).__name__)
        return type(self).function(input, self.p, self.training, key=key)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class Dropout(_Dropping):
    """In train mode each element is 0 with probability ``p``, else divided by ``1 - p``.

    Raises ``ValueError`` for a ``p`` that is no probability, and when called ``RuntimeError`` where
    there is no key to draw from.

    >>> import stretto as st
    >>> drop = st.nn.Dropout(0.5)
    >>> drop(st.numpy.ones(4), key=st.random.PRNGKey(1))
    Array([2., 0., 2., 0.], dtype=float32)
    >>> drop.eval()(st.numpy.ones(4))
    Array([1., 1., 1., 1.], dtype=float32)
    """

    function = staticmethod(F.dropout)


class Dropout1d(_Dropping):
    """``Dropout`` of whole channels of an input (N, C, L) or (C, L)."""

    function = staticmethod(F.dropout1d)


class Dropout2d(_Dropping):
    """``Dropout`` of whole channels of an input (N, C, H, W) or (C, H, W)."""

    function = staticmethod(F.dropout2d)


class Dropout3d(_Dropping):
    """``Dropout`` of whole channels of an input (N, C, D, H, W) or (C, D, H, W)."""

    function = staticmethod(F.dropout3d)


class AlphaDropout(_Dropping):
    """Elements at ``SELU``'s lower limit with probability ``p``; mean and variance are kept."""

    function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Dropping):
    """``AlphaDropout`` of whole channels of an input (N, C, ...)."""

    function = staticmethod(F.feature_alpha_dropout)
