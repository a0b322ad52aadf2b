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
        """The function of the input."""
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
    """``max(x, 0)``.

    >>> import stretto as st
    >>> st.nn.ReLU()(st.numpy.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """

    function = staticmethod(F.relu)


class ReLU6(_InPlace):
    """``min(max(x, 0), 6)``."""

    function = staticmethod(F.relu6)


class SELU(_InPlace):
    """``elu`` scaled so that deep networks keep mean 0 and variance 1."""

    function = staticmethod(F.selu)


class SiLU(_InPlace):
    """``x * sigmoid(x)``."""

    function = staticmethod(F.silu)


class Mish(_InPlace):
    """``x * tanh(softplus(x))``."""

    function = staticmethod(F.mish)


class Hardswish(_InPlace):
    """``x * relu6(x + 3) / 6``."""

    function = staticmethod(F.hardswish)


class Hardsigmoid(_InPlace):
    """``relu6(x + 3) / 6``."""

    function = staticmethod(F.hardsigmoid)


class Sigmoid(_Activation):
    """``1 / (1 + exp(-x))``."""

    function = staticmethod(F.sigmoid)


class LogSigmoid(_Activation):
    """``log(sigmoid(x))``."""

    function = staticmethod(F.logsigmoid)


class Tanh(_Activation):
    """The hyperbolic tangent."""

    function = staticmethod(F.tanh)


class Tanhshrink(_Activation):
    """``x - tanh(x)``."""

    function = staticmethod(F.tanhshrink)


class Softsign(_Activation):
    """``x / (1 + |x|)``."""

    function = staticmethod(F.softsign)


# With settings


class LeakyReLU(_Activation):
    """``x`` where it is positive, else ``negative_slope * x``.

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
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""

    function = staticmethod(F.elu)
    settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha


class CELU(_Activation):
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``."""

    function = staticmethod(F.celu)
    settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha


class GELU(_Activation):
    """``x`` times the normal distribution's cumulative function, exact or with ``"tanh"`` in it.

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
    """``log(1 + exp(beta * x)) / beta``; ``x`` itself where ``beta * x`` exceeds ``threshold``."""

    function = staticmethod(F.softplus)
    settings = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold


class Hardtanh(_Activation):
    """``x`` kept between ``min_val`` and ``max_val``."""

    function = staticmethod(F.hardtanh)
    settings = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val


class Threshold(_Activation):
    """``x`` where it is greater than ``threshold``, else ``value``."""

    function = staticmethod(F.threshold)
    settings = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value


class Softshrink(_Activation):
    """``x`` brought nearer to 0 by ``lambd``, and 0 where it is no farther than that."""

    function = staticmethod(F.softshrink)
    settings = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


class Hardshrink(_Activation):
    """``x``, but 0 where it is no farther from 0 than ``lambd``."""

    function = staticmethod(F.hardshrink)
    settings = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


# Along an axis


class GLU(_Activation):
    """The first half of ``x`` along ``dim`` times ``sigmoid`` of the second."""

    function = staticmethod(F.glu)
    settings = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_Activation):
    """``exp(x) / sum(exp(x))`` along ``dim``, which has to be given.

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
    """``softmax(-x)`` along ``dim``, which has to be given."""

    function = staticmethod(F.softmin)
    settings = ("dim",)

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim


class LogSoftmax(_Activation):
    """``x - log(sum(exp(x)))`` along ``dim``, which has to be given."""

    function = staticmethod(F.log_softmax)
    settings = ("dim",)

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim


class Softmax2d(Module):
    """``softmax`` over the channels of images (N, C, H, W) or (C, H, W).

    Raises ``ValueError`` for another rank.
    """

    def forward(self, input: ArrayLike) -> Array:
        """The images with channels that add up to 1 in each place."""
        x = as_value(input, "Softmax2d", "input")
        if x.ndim not in (3, 4):
            refuse(self, "(batch, channels, height, width), or the same without the batch", x)
        return F.softmax(x, -3)


# With parameters, or at random


class PReLU(Module):
    """``x`` where it is positive, else ``weight * x``, with a weight that is trained.

    ``weight`` has one element, or one for each of ``num_parameters`` channels, axis 1; all begin as
    ``init``. Raises ``ValueError`` for an input with another number of channels.

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
        """The function of the input."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """How many weights."""
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """``x`` where it is positive, else ``x`` times a slope between ``lower`` and ``upper``.

    In train mode each element's slope is drawn, from ``key=`` of the call or the ambient stream;
    else it is the mean of the two.

    >>> import stretto as st
    >>> st.nn.RReLU(0.25, 0.75).eval()(st.numpy.array([-4.0, 2.0]))
    Array([-2.,  2.], dtype=float32)
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper

    def forward(self, input: ArrayLike, *, key: Key | None = None) -> Array:
        """The function of the input."""
        return F.rrelu(input, self.lower, self.upper, self.training, key=key)

    def extra_repr(self) -> str:
        """The bounds."""
        return f"lower={self.lower}, upper={self.upper}"
