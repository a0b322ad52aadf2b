"""Layers that are activation functions in pieces: ``ReLU`` and its relatives.

Names, arguments, defaults and meanings are PyTorch's; each calls its function of
``functional.piecewise_activations`` with its settings. ``inplace`` is accepted and changes nothing,
as arrays never change.
"""

from __future__ import annotations

from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto.nn import functional as F
from stretto.nn.function_layers import FunctionLayer, InPlace
from stretto.nn.init import constant
from stretto.nn.inputs import positive
from stretto.nn.module import Module
from stretto.nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "Softshrink",
    "Threshold",
]


# Without settings


class ReLU(InPlace):
    """Take ``max(x, 0)`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.ReLU``.

    >>> import stretto as st
    >>> st.nn.ReLU()(st.numpy.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """

    function = staticmethod(F.relu)


class ReLU6(InPlace):
    """Take ``min(max(x, 0), 6)`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.ReLU6``.

    >>> import stretto as st
    >>> st.nn.ReLU6()(st.numpy.array([-1.0, 8.0])).round(3)
    Array([0., 6.], dtype=float32)
    """

    function = staticmethod(F.relu6)


class SELU(InPlace):
    """Take ``elu``, scaled so that deep networks keep mean 0 and variance 1.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.SELU``.

    >>> import stretto as st
    >>> st.nn.SELU()(st.numpy.array([1.0])).round(3)
    Array([1.051], dtype=float32)
    """

    function = staticmethod(F.selu)


class Hardswish(InPlace):
    """Take ``x * relu6(x + 3) / 6`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.Hardswish``.

    >>> import stretto as st
    >>> st.nn.Hardswish()(st.numpy.array([-3.0, 3.0])).round(3)
    Array([-0.,  3.], dtype=float32)
    """

    function = staticmethod(F.hardswish)


class Hardsigmoid(InPlace):
    """Take ``relu6(x + 3) / 6`` of each element.

    Args:
        inplace: ignored, as arrays never change.

    As PyTorch's ``nn.Hardsigmoid``.

    >>> import stretto as st
    >>> st.nn.Hardsigmoid()(st.numpy.array([0.0, 9.0])).round(3)
    Array([0.5, 1. ], dtype=float32)
    """

    function = staticmethod(F.hardsigmoid)


# With settings


class LeakyReLU(FunctionLayer):
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


class ELU(FunctionLayer):
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


class CELU(FunctionLayer):
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


class Hardtanh(FunctionLayer):
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


class Threshold(FunctionLayer):
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


class Softshrink(FunctionLayer):
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


class Hardshrink(FunctionLayer):
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
