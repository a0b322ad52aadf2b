"""Layers that are smooth activation functions, and softmax along an axis.

Each calls its function of ``functional.smooth_activations`` or ``functional.softmaxes``.
"""

from __future__ import annotations

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn import functional as F
from stretto.nn.function_layers import FunctionLayer, InPlace
from stretto.nn.inputs import refuse
from stretto.nn.module import Module

__all__ = [
    "GELU",
    "GLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softsign",
    "Tanh",
    "Tanhshrink",
]


class SiLU(InPlace):
    """Take ``x * sigmoid(x)`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.SiLU``.

    >>> import stretto as st
    >>> st.nn.SiLU()(st.numpy.array([1.0])).round(3)
    Array([0.731], dtype=float32)
    """

    function = staticmethod(F.silu)


class Mish(InPlace):
    """Take ``x * tanh(softplus(x))`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.Mish``.

    >>> import stretto as st
    >>> st.nn.Mish()(st.numpy.array([1.0])).round(3)
    Array([0.865], dtype=float32)
    """

    function = staticmethod(F.mish)


class Sigmoid(FunctionLayer):
    """Take ``1 / (1 + exp(-x))`` of each element.

    As PyTorch's ``nn.Sigmoid``.

    >>> import stretto as st
    >>> st.nn.Sigmoid()(st.numpy.array([0.0])).round(3)
    Array([0.5], dtype=float32)
    """

    function = staticmethod(F.sigmoid)


class LogSigmoid(FunctionLayer):
    """Take ``log(sigmoid(x))`` of each element.

    As PyTorch's ``nn.LogSigmoid``.

    >>> import stretto as st
    >>> st.nn.LogSigmoid()(st.numpy.array([0.0])).round(3)
    Array([-0.693], dtype=float32)
    """

    function = staticmethod(F.logsigmoid)


class Tanh(FunctionLayer):
    """Take the hyperbolic tangent of each element.

    As PyTorch's ``nn.Tanh``.

    >>> import stretto as st
    >>> st.nn.Tanh()(st.numpy.array([0.0])).round(3)
    Array([0.], dtype=float32)
    """

    function = staticmethod(F.tanh)


class Tanhshrink(FunctionLayer):
    """Take ``x - tanh(x)`` of each element.

    As PyTorch's ``nn.Tanhshrink``.

    >>> import stretto as st
    >>> st.nn.Tanhshrink()(st.numpy.array([1.0])).round(3)
    Array([0.238], dtype=float32)
    """

    function = staticmethod(F.tanhshrink)


class Softsign(FunctionLayer):
    """Take ``x / (1 + |x|)`` of each element.

    As PyTorch's ``nn.Softsign``.

    >>> import stretto as st
    >>> st.nn.Softsign()(st.numpy.array([1.0, -3.0])).round(3)
    Array([ 0.5 , -0.75], dtype=float32)
    """

    function = staticmethod(F.softsign)


class GELU(FunctionLayer):
    """Multiply each element by the normal distribution's cumulative function of it.

    Args:
        approximate: ``"none"`` for the exact function, ``"tanh"`` for one that is faster.

    Raises:
        ValueError: ``approximate`` is unknown; on the call.

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


class Softplus(FunctionLayer):
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


# Along an axis


class GLU(FunctionLayer):
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


class Softmax(FunctionLayer):
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


class Softmin(FunctionLayer):
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


class LogSoftmax(FunctionLayer):
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
