"""Layers that are activation functions.

Names, arguments, defaults and meanings are PyTorch's; each calls the function of ``functional``
with its settings. ``inplace`` is taken and changes nothing, as arrays never change. Next, read
``losses``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto.nn import functional as F
from stretto.nn.init import constant
from stretto.nn.inputs import positive, refuse
from stretto.nn.module import Module, Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Activation(Module):
    """A function of the input and of settings, which are attributes."""

    function: ClassVar[Callable[..., Any]]
    settings: ClassVar[tuple[str, ...]] = ()

    def forward(self, input: ArrayLike) -> Array:
        """Apply the function.

        Args:
            input: an array, of any shape unless the layer says otherwise.

        Returns:
            The values.
        """
        return type(self).function(input, **{name: getattr(self, name) for name in self.settings})

    def extra_repr(self) -> str:
        """The settings."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.settings)


class _InPlace(_Activation):
    """One without settings, which in PyTorch may write over its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


# Without settings


class ReLU(_InPlace):
    """Take ``max(x, 0)`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.ReLU``.

    >>> import stretto as st
    >>> st.nn.ReLU()(st.numpy.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """

    function = staticmethod(F.relu)


class ReLU6(_InPlace):
    """Take ``min(max(x, 0), 6)`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.ReLU6``.

    >>> import stretto as st
    >>> st.nn.ReLU6()(st.numpy.array([-1.0, 8.0])).round(3)
    Array([0., 6.], dtype=float32)
    """

    function = staticmethod(F.relu6)


class SELU(_InPlace):
    """Take ``elu``, scaled so that deep networks keep mean 0 and variance 1.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.SELU``.

    >>> import stretto as st
    >>> st.nn.SELU()(st.numpy.array([1.0])).round(3)
    Array([1.051], dtype=float32)
    """

    function = staticmethod(F.selu)


class SiLU(_InPlace):
    """Take ``x * sigmoid(x)`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.SiLU``.

    >>> import stretto as st
    >>> st.nn.SiLU()(st.numpy.array([1.0])).round(3)
    Array([0.731], dtype=float32)
    """

    function = staticmethod(F.silu)


class Mish(_InPlace):
    """Take ``x * tanh(softplus(x))`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.Mish``.

    >>> import stretto as st
    >>> st.nn.Mish()(st.numpy.array([1.0])).round(3)
    Array([0.865], dtype=float32)
    """

    function = staticmethod(F.mish)


class Hardswish(_InPlace):
    """Take ``x * relu6(x + 3) / 6`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.Hardswish``.

    >>> import stretto as st
    >>> st.nn.Hardswish()(st.numpy.array([-3.0, 3.0])).round(3)
    Array([-0.,  3.], dtype=float32)
    """

    function = staticmethod(F.hardswish)


class Hardsigmoid(_InPlace):
    """Take ``relu6(x + 3) / 6`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.Hardsigmoid``.

    >>> import stretto as st
    >>> st.nn.Hardsigmoid()(st.numpy.array([0.0, 9.0])).round(3)
    Array([0.5, 1. ], dtype=float32)
    """

    function = staticmethod(F.hardsigmoid)


class Sigmoid(_Activation):
    """Take ``1 / (1 + exp(-x))`` of each element.

    As PyTorch's ``nn.Sigmoid``.

    >>> import stretto as st
    >>> st.nn.Sigmoid()(st.numpy.array([0.0])).round(3)
    Array([0.5], dtype=float32)
    """

    function = staticmethod(F.sigmoid)


class LogSigmoid(_Activation):
    """Take ``log(sigmoid(x))`` of each element.

    As PyTorch's ``nn.LogSigmoid``.

    >>> import stretto as st
    >>> st.nn.LogSigmoid()(st.numpy.array([0.0])).round(3)
    Array([-0.693], dtype=float32)
    """

    function = staticmethod(F.logsigmoid)


class Tanh(_Activation):
    """Take the hyperbolic tangent of each element.

    As PyTorch's ``nn.Tanh``.

    >>> import stretto as st
    >>> st.nn.Tanh()(st.numpy.array([0.0])).round(3)
    Array([0.], dtype=float32)
    """

    function = staticmethod(F.tanh)


class Tanhshrink(_Activation):
    """Take ``x - tanh(x)`` of each element.

    As PyTorch's ``nn.Tanhshrink``.

    >>> import stretto as st
    >>> st.nn.Tanhshrink()(st.numpy.array([1.0])).round(3)
    Array([0.238], dtype=float32)
    """

    function = staticmethod(F.tanhshrink)


class Softsign(_Activation):
    """Take ``x / (1 + |x|)`` of each element.

    As PyTorch's ``nn.Softsign``.

    >>> import stretto as st
    >>> st.nn.Softsign()(st.numpy.array([1.0, -3.0])).round(3)
    Array([ 0.5 , -0.75], dtype=float32)
    """

    function = staticmethod(F.softsign)


# With settings


class LeakyReLU(_Activation):
    """Keep positive elements, and multiply the others by ``negative_slope``.

    Args:
        negative_slope: the slope.
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.LeakyReLU``.

    >>> import stretto as st
    >>> st.nn.LeakyReLU(0.5)(st.numpy.array([-1.0, 2.0]))
    Array([-0.5,  2. ], dtype=float32)
    """

    function = staticmethod(F.leaky_relu)
    settings = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope


class ELU(_Activation):
    """Keep positive elements, and take ``alpha * (exp(x) - 1)`` of the others.

    Args:
        alpha: minus the limit for large negative elements.
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.ELU``.

    >>> import stretto as st
    >>> st.nn.ELU()(st.numpy.array([-1.0, 2.0])).round(3)
    Array([-0.632,  2.   ], dtype=float32)
    """

    function = staticmethod(F.elu)
    settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha


class CELU(_Activation):
    """Keep positive elements, and take ``alpha * (exp(x / alpha) - 1)`` of the others.

    Args:
        alpha: minus the limit for large negative elements.
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.CELU``.

    >>> import stretto as st
    >>> st.nn.CELU()(st.numpy.array([-1.0, 2.0])).round(3)
    Array([-0.632,  2.   ], dtype=float32)
    """

    function = staticmethod(F.celu)
    settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha


class GELU(_Activation):
    """Multiply each element by the normal distribution's cumulative function of it.

    Args:
        approximate: ``"none"`` for the exact function, ``"tanh"`` for one that is faster.

    Raises:
        ValueError: ``approximate`` is another word; on the call.

    As PyTorch's ``nn.GELU``.

    >>> import stretto as st
    >>> st.nn.GELU("tanh")(st.numpy.array([1.0])).round(4)
    Array([0.8412], dtype=float32)
    """

    function = staticmethod(F.gelu)
    settings = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate


class Softplus(_Activation):
    """Take ``log(1 + exp(beta * x)) / beta`` of each element.

    Args:
        beta: how sharp the corner is.
        threshold: beyond this, ``beta * x`` counts as so large that the value is ``x`` itself.

    As PyTorch's ``nn.Softplus``.

    >>> import stretto as st
    >>> st.nn.Softplus()(st.numpy.array([0.0, 100.0])).round(3)
    Array([  0.693, 100.   ], dtype=float32)
    """

    function = staticmethod(F.softplus)
    settings = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold


class Hardtanh(_Activation):
    """Keep each element between ``min_val`` and ``max_val``.

    Args:
        min_val: the lower limit.
        max_val: the upper limit.
        inplace: ignored, as arrays never change.

    Raises:
        ValueError: ``min_val`` exceeds ``max_val``; on the call.

    As PyTorch's ``nn.Hardtanh``.

    >>> import stretto as st
    >>> st.nn.Hardtanh()(st.numpy.array([-2.0, 0.5])).round(3)
    Array([-1. ,  0.5], dtype=float32)
    """

    function = staticmethod(F.hardtanh)
    settings = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val


class Threshold(_Activation):
    """Keep elements greater than ``threshold``, and replace the others by ``value``.

    Args:
        threshold: the threshold.
        value: what stands in place of the others.
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.Threshold``.

    >>> import stretto as st
    >>> st.nn.Threshold(1.0, -7.0)(st.numpy.array([0.5, 2.0])).round(3)
    Array([-7.,  2.], dtype=float32)
    """

    function = staticmethod(F.threshold)
    settings = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value


class Softshrink(_Activation):
    """Move each element towards 0 by ``lambd``, and to 0 where it is no farther than that.

    Args:
        lambd: by how much, not negative.

    Raises:
        ValueError: ``lambd`` is negative; on the call.

    As PyTorch's ``nn.Softshrink``.

    >>> import stretto as st
    >>> st.nn.Softshrink()(st.numpy.array([-2.0, 0.25])).round(3)
    Array([-1.5,  0. ], dtype=float32)
    """

    function = staticmethod(F.softshrink)
    settings = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


class Hardshrink(_Activation):
    """Keep each element, but 0 where it is no farther from 0 than ``lambd``.

    Args:
        lambd: the distance.

    As PyTorch's ``nn.Hardshrink``.

    >>> import stretto as st
    >>> st.nn.Hardshrink()(st.numpy.array([-2.0, 0.25])).round(3)
    Array([-2.,  0.], dtype=float32)
    """

    function = staticmethod(F.hardshrink)
    settings = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


# Along an axis


class GLU(_Activation):
    """Multiply the first half along ``dim`` by ``sigmoid`` of the second half.

    Args:
        dim: the axis, of even size.

    Raises:
        ValueError: an input's size along ``dim`` is odd.

    As PyTorch's ``nn.GLU``.

    >>> import stretto as st
    >>> st.nn.GLU()(st.numpy.array([3.0, 0.0])).round(3)
    Array([1.5], dtype=float32)
    """

    function = staticmethod(F.glu)
    settings = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_Activation):
    """Take ``exp(x) / sum(exp(x))`` along an axis.

    Args:
        dim: the axis.

    Raises:
        ValueError: ``dim`` is out of an input's bounds.

    As PyTorch's ``nn.Softmax``.

    >>> import stretto as st
    >>> st.nn.Softmax(dim=1)(st.numpy.zeros((1, 4)))
    Array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)
    """

    function = staticmethod(F.softmax)
    settings = ("dim",)

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim


class Softmin(_Activation):
    """Take ``softmax(-x)`` along an axis.

    Args:
        dim: the axis.

    Raises:
        ValueError: ``dim`` is out of an input's bounds.

    As PyTorch's ``nn.Softmin``.

    >>> import stretto as st
    >>> st.nn.Softmin(0)(st.numpy.array([0.0, 0.0])).round(3)
    Array([0.5, 0.5], dtype=float32)
    """

    function = staticmethod(F.softmin)
    settings = ("dim",)

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim


class LogSoftmax(_Activation):
    """Take ``x - log(sum(exp(x)))`` along an axis.

    Args:
        dim: the axis.

    Raises:
        ValueError: ``dim`` is out of an input's bounds.

    As PyTorch's ``nn.LogSoftmax``.

    >>> import stretto as st
    >>> st.nn.LogSoftmax(0)(st.numpy.array([0.0, 0.0])).round(3)
    Array([-0.693, -0.693], dtype=float32)
    """

    function = staticmethod(F.log_softmax)
    settings = ("dim",)

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim


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
        """How many weights."""
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
        """The bounds."""
        return f"lower={self.lower}, upper={self.upper}"
