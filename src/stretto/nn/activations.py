"""Layers that are activation functions, softmax along an axis, and dropout.

Names, arguments, defaults and meanings are PyTorch's; each calls its function of ``functional``.
``inplace`` is accepted and changes nothing, as arrays never change. Dropout sets elements, or whole
channels, to 0 at random in train mode: a call draws from its ``key=``, or else from the ambient
stream (``nn.keys``).
"""

from __future__ import annotations

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto.nn import functional as F
from stretto.nn.function_layers import FunctionLayer, InPlace, Plain, applies
from stretto.nn.functional.checks import key_or_next, positive, probability, refuse
from stretto.nn.init import constant
from stretto.nn.module import Module, Parameter

# In pieces


@applies(F.relu)
class ReLU(InPlace): ...


@applies(F.relu6)
class ReLU6(InPlace): ...


@applies(F.selu)
class SELU(InPlace): ...


@applies(F.hardswish)
class Hardswish(InPlace): ...


@applies(F.hardsigmoid)
class Hardsigmoid(InPlace): ...


@applies(F.leaky_relu)
class LeakyReLU(FunctionLayer):
    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(negative_slope=negative_slope)


@applies(F.elu)
class ELU(FunctionLayer):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha)


@applies(F.celu)
class CELU(FunctionLayer):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha)


@applies(F.hardtanh)
class Hardtanh(FunctionLayer):
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(min_val=min_val, max_val=max_val)


@applies(F.threshold)
class Threshold(FunctionLayer):
    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold=threshold, value=value)


@applies(F.softshrink)
class Softshrink(FunctionLayer):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


@applies(F.hardshrink)
class Hardshrink(FunctionLayer):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


# Smooth


@applies(F.silu)
class SiLU(InPlace): ...


@applies(F.mish)
class Mish(InPlace): ...


@applies(F.sigmoid)
class Sigmoid(Plain): ...


@applies(F.logsigmoid)
class LogSigmoid(Plain): ...


@applies(F.tanh)
class Tanh(Plain): ...


@applies(F.tanhshrink)
class Tanhshrink(Plain): ...


@applies(F.softsign)
class Softsign(Plain): ...


@applies(F.gelu)
class GELU(FunctionLayer):
    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate=approximate)


@applies(F.softplus)
class Softplus(FunctionLayer):
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=beta, threshold=threshold)


# Along an axis


@applies(F.glu)
class GLU(FunctionLayer):
    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


@applies(F.softmax)
class Softmax(FunctionLayer):
    def __init__(self, dim: int) -> None:
        super().__init__(dim=dim)


@applies(F.softmin)
class Softmin(FunctionLayer):
    def __init__(self, dim: int) -> None:
        super().__init__(dim=dim)


@applies(F.log_softmax)
class LogSoftmax(FunctionLayer):
    def __init__(self, dim: int) -> None:
        super().__init__(dim=dim)


class Softmax2d(Module):
    """Take ``softmax`` over the channels of images.

    Raises:
        ValueError: an input has another rank.

    As PyTorch's ``nn.Softmax2d``.

    >>> import stretto as st
    >>> st.nn.Softmax2d()(st.numpy.zeros((2, 1, 1))).ravel()
    Array([0.5, 0.5], dtype=float32)
    """

    def forward(self, input: ArrayLike) -> Array:
        """Apply the function.

        Args:
            input: (N, C, H, W) or (C, H, W).

        Returns:
            The same shape, with channels that add up to 1 in each place.
        """
        x = as_value(input, "Softmax2d", "input")
        if x.ndim not in (3, 4):
            refuse(self, "(batch, channels, height, width), or the same without the batch", x)
        return F.softmax(x, -3)


# With parameters, or at random


class PReLU(Module):
    """Keep positive elements, and multiply the others by slopes that are trained.

    Args:
        num_parameters: the number of slopes: 1, or one for each channel (axis 1).
        init: what the slopes begin as.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        ValueError: ``num_parameters`` is not positive, or an input has another number of channels.

    As PyTorch's ``nn.PReLU``. Source: He et al., Delving Deep into Rectifiers, 2015.

    >>> import stretto as st
    >>> st.nn.PReLU()(st.numpy.array([-4.0, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """

    weight: Array

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, *, dtype: DTypeLike | None = None
    ) -> None:
        super().__init__()
        positive("PReLU", num_parameters=num_parameters)
        self.num_parameters = num_parameters
        self.weight = Parameter(constant((num_parameters,), init, dtype))

    def forward(self, input: ArrayLike) -> Array:
        """Apply the function.

        Args:
            input: (N, C, ...), or any shape with one slope.

        Returns:
            The same shape; integers become floats.
        """
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the number of slopes."""
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """Keep positive elements, and multiply the others by slopes, random in train mode.

    In evaluation mode each slope is the mean of the two limits.

    Args:
        lower: the least slope.
        upper: the greatest slope.
        inplace: ignored, as arrays never change.

    Raises:
        RuntimeError: a call has no key to draw from.
        ValueError: ``lower`` exceeds ``upper``; on the call.

    As PyTorch's ``nn.RReLU``. Source: Xu et al., Empirical Evaluation of Rectified Activations,
    2015.

    >>> import stretto as st
    >>> st.nn.RReLU(0.25, 0.75).eval()(st.numpy.array([-4.0, 2.0]))
    Array([-2.,  2.], dtype=float32)
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper

    def forward(self, input: ArrayLike, *, key: Key | None = None) -> Array:
        """Apply the function.

        Args:
            input: an array of any shape.
            key: the key to draw from; by default the ambient stream's next one.

        Returns:
            The same shape; integers become floats.
        """
        return F.rrelu(input, self.lower, self.upper, self.training, key=key)

    def extra_repr(self) -> str:
        """Return the bounds."""
        return f"lower={self.lower}, upper={self.upper}"


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
