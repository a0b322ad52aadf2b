"""Dropout layers: elements, or whole channels, set to 0 at random in train mode.

Names, arguments and meanings are PyTorch's. A call draws from its ``key=``, or else from the
ambient stream (``nn.keys``).
"""

from __future__ import annotations

from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto.nn import functional as F
from stretto.nn.function_layers import FunctionLayer, applies
from stretto.nn.functional.checks import key_or_next, probability

_EVAL = "In evaluation mode the output is the input."


class _Dropping(FunctionLayer):
    """A function with a probability and a key."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__(p=probability(p, type(self).__name__))

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


@applies(F.dropout, _EVAL)
class Dropout(_Dropping): ...


@applies(F.dropout1d, _EVAL)
class Dropout1d(_Dropping): ...


@applies(F.dropout2d, _EVAL)
class Dropout2d(_Dropping): ...


@applies(F.dropout3d, _EVAL)
class Dropout3d(_Dropping): ...


@applies(F.alpha_dropout, _EVAL)
class AlphaDropout(_Dropping): ...


@applies(F.feature_alpha_dropout, _EVAL)
class FeatureAlphaDropout(_Dropping): ...
