"""Layers without spatial axes: ``Linear``, ``Bilinear``, ``Identity``.

Arguments, attributes, shapes and initial distributions are PyTorch's.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto.nn import init
from stretto.nn.functional.affine import bilinear, linear
from stretto.nn.inputs import check_features, positive, two_keys
from stretto.nn.module import Module, Parameter

_T = TypeVar("_T")


class Linear(Module):
    """Map the last axis by a matrix, and add a bias.

    The output is ``input @ weight.T + bias``. ``weight`` is (out_features, in_features), ``bias``
    (out_features,) or None; both begin uniform within ±1/√in_features.

    Args:
        in_features: the size of the input's last axis.
        out_features: the size of the output's last axis.
        bias: whether there is a bias.
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        RuntimeError: ``key`` is None inside a transformation that began after the ambient stream.
        ValueError: a size is not a positive integer, or an input has another last axis.

    As PyTorch's ``nn.Linear``.

    >>> import stretto as st
    >>> layer = st.nn.Linear(3, 2, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((5, 3))).shape
    (5, 2)
    """

    weight: Array
    bias: Array | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        positive("Linear", in_features=in_features, out_features=out_features)
        self.in_features = in_features
        self.out_features = out_features
        weight_key, bias_key = two_keys(key, "Linear")
        bound = 1 / math.sqrt(in_features)
        shape = (out_features, in_features)
        self.weight = Parameter(init.uniform(weight_key, shape, -bound, bound, dtype))
        values = init.uniform(bias_key, (out_features,), -bound, bound, dtype) if bias else None
        self.register_parameter("bias", values)

    def forward(self, input: ArrayLike) -> Array:
        """Map the features.

        Args:
            input: (..., in_features).

        Returns:
            (..., out_features).

        Raises:
            ValueError: the last axis of ``input`` has another size.
        """
        return linear(check_features(self, input, self.in_features), self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """Map two inputs together: a product of both with a tensor, and a bias.

    Output k is the sum of ``input1[i] * weight[k, i, j] * input2[j]``, plus ``bias[k]``. ``weight``
    is (out_features, in1_features, in2_features), ``bias`` (out_features,) or None; both begin
    uniform within ±1/√in1_features.

    Args:
        in1_features: the size of the first input's last axis.
        in2_features: the size of the second input's last axis.
        out_features: the size of the output's last axis.
        bias: whether there is a bias.
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        ValueError: a size is not a positive integer, or the inputs do not fit.

    As PyTorch's ``nn.Bilinear``.

    >>> import stretto as st
    >>> layer = st.nn.Bilinear(3, 4, 2, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((5, 3)), st.numpy.ones((5, 4))).shape
    (5, 2)
    """

    weight: Array
    bias: Array | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        sizes = {"in1_features": in1_features, "in2_features": in2_features}
        positive("Bilinear", **sizes, out_features=out_features)
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        weight_key, bias_key = two_keys(key, "Bilinear")
        bound = 1 / math.sqrt(in1_features)
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(init.uniform(weight_key, shape, -bound, bound, dtype))
        values = init.uniform(bias_key, (out_features,), -bound, bound, dtype) if bias else None
        self.register_parameter("bias", values)

    def forward(self, input1: ArrayLike, input2: ArrayLike) -> Array:
        """Map both inputs.

        Args:
            input1: (..., in1_features).
            input2: (..., in2_features), with the same leading axes.

        Returns:
            (..., out_features).

        Raises:
            ValueError: the last axis of an input has another size.
        """
        x = check_features(self, input1, self.in1_features, "input1")
        y = check_features(self, input2, self.in2_features, "input2")
        return bilinear(x, y, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Identity(Module):
    """Return the input itself, whatever arguments the layer was made with.

    Args:
        *args: ignored.
        **kwargs: ignored.

    As PyTorch's ``nn.Identity``.

    >>> import stretto as st
    >>> st.nn.Identity(54, unused=True)(st.numpy.ones(2))
    Array([1., 1.], dtype=float32)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: _T) -> _T:
        """Return the input.

        Args:
            input: anything.

        Returns:
            The same.
        """
        return input
