"""Dropout layers: elements, or whole channels, set to 0 at random in train mode.

Names, arguments and meanings are PyTorch's. A call draws from its ``key=``, or else from the
ambient stream (``nn.keys``).
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
        """Drop parts of the input in train mode; otherwise return it.

        Args:
            input: an array, of the shape that the layer says.
            key: the key to draw from; by default the ambient stream's next one.

        Returns:
            The same shape; integers become floats.
        """
        if self.training and 0 < self.p < 1:
            key = key_or_next(key, type(self).__name__)
        return type(self).function(input, self.p, self.training, key=key)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class Dropout(_Dropping):
    """Set each element to 0 with probability ``p``, and divide the others by ``1 - p``.

    In evaluation mode the output is the input.

    Args:
        p: the probability, a Python number.
        inplace: ignored, as arrays never change.

    Raises:
        RuntimeError: a call has no key to draw from.
        TypeError: ``p`` is not a number.
        ValueError: ``p`` is not from 0 to 1.

    As PyTorch's ``nn.Dropout``. Source: Srivastava et al., Dropout: A Simple Way to Prevent Neural
    Networks from Overfitting, 2014.

    >>> import stretto as st
    >>> drop = st.nn.Dropout(0.5)
    >>> drop(st.numpy.ones(4), key=st.random.PRNGKey(1))
    Array([2., 0., 2., 0.], dtype=float32)
    >>> drop.eval()(st.numpy.ones(4))
    Array([1., 1., 1., 1.], dtype=float32)
    """

    function = staticmethod(F.dropout)


class Dropout1d(_Dropping):
    """Drop whole channels of signals (N, C, L) or (C, L).

    In evaluation mode the output is the input.

    Args:
        p: the probability, a Python number.
        inplace: ignored, as arrays never change.

    Raises:
        RuntimeError: a call has no key to draw from.
        TypeError: ``p`` is not a number.
        ValueError: ``p`` is not from 0 to 1, or an input has another rank.

    As PyTorch's ``nn.Dropout1d``.

    >>> import stretto as st
    >>> st.nn.Dropout1d()(st.numpy.ones((2, 4)), key=st.random.PRNGKey(1)).shape
    (2, 4)
    """

    function = staticmethod(F.dropout1d)


class Dropout2d(_Dropping):
    """Drop whole channels of images (N, C, H, W) or (C, H, W).

    In evaluation mode the output is the input.

    Args:
        p: the probability, a Python number.
        inplace: ignored, as arrays never change.

    Raises:
        RuntimeError: a call has no key to draw from.
        TypeError: ``p`` is not a number.
        ValueError: ``p`` is not from 0 to 1, or an input has another rank.

    As PyTorch's ``nn.Dropout2d``.

    >>> import stretto as st
    >>> st.nn.Dropout2d()(st.numpy.ones((2, 4, 4)), key=st.random.PRNGKey(1)).shape
    (2, 4, 4)
    """

    function = staticmethod(F.dropout2d)


class Dropout3d(_Dropping):
    """Drop whole channels of volumes (N, C, D, H, W) or (C, D, H, W).

    In evaluation mode the output is the input.

    Args:
        p: the probability, a Python number.
        inplace: ignored, as arrays never change.

    Raises:
        RuntimeError: a call has no key to draw from.
        TypeError: ``p`` is not a number.
        ValueError: ``p`` is not from 0 to 1, or an input has another rank.

    As PyTorch's ``nn.Dropout3d``.

    >>> import stretto as st
    >>> st.nn.Dropout3d()(st.numpy.ones((2, 2, 2, 2)), key=st.random.PRNGKey(1)).shape
    (2, 2, 2, 2)
    """

    function = staticmethod(F.dropout3d)


class AlphaDropout(_Dropping):
    """Set elements to ``SELU``'s lower limit with probability ``p``; keep mean and variance.

    In evaluation mode the output is the input.

    Args:
        p: the probability, a Python number.
        inplace: ignored, as arrays never change.

    Raises:
        RuntimeError: a call has no key to draw from.
        TypeError: ``p`` is not a number.
        ValueError: ``p`` is not from 0 to 1.

    As PyTorch's ``nn.AlphaDropout``. Source: Klambauer et al., Self-Normalizing Neural Networks,
    2017.

    >>> import stretto as st
    >>> st.nn.AlphaDropout()(st.numpy.ones((2, 4)), key=st.random.PRNGKey(1)).shape
    (2, 4)
    """

    function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Dropping):
    """Apply ``AlphaDropout`` to whole channels of inputs (N, C, ...).

    In evaluation mode the output is the input.

    Args:
        p: the probability, a Python number.
        inplace: ignored, as arrays never change.

    Raises:
        RuntimeError: a call has no key to draw from.
        TypeError: ``p`` is not a number.
        ValueError: ``p`` is not from 0 to 1, or an input has another rank.

    As PyTorch's ``nn.FeatureAlphaDropout``.

    >>> import stretto as st
    >>> st.nn.FeatureAlphaDropout()(st.numpy.ones((2, 3, 4)), key=st.random.PRNGKey(1)).shape
    (2, 3, 4)
    """

    function = staticmethod(F.feature_alpha_dropout)
