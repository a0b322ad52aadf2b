"""Recurrent cells, one step each: ``RNNCell``, ``LSTMCell``, ``GRUCell``.

Arguments, parameters, shapes and initial distributions are PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, Tree
from stretto.nn import functional as F
from stretto.nn import init
from stretto.nn.functional.checks import key_or_next
from stretto.nn.inputs import check_features, positive, refuse
from stretto.nn.module import Module
from stretto.random.keys import split

__all__ = [
    "GRUCell",
    "LSTMCell",
    "RNNCell",
]


def register_uniform(
    layer: Module,
    shapes: dict[str, tuple[int, ...]],
    hidden_size: int,
    key: Key | None,
    dtype: DTypeLike | None,
) -> None:
    """Parameters of these names and shapes, uniform within ±1/√hidden_size."""
    bound = 1 / math.sqrt(hidden_size)
    keys = split(key_or_next(key, type(layer).__name__), len(shapes))
    for (name, shape), k in zip(shapes.items(), keys, strict=True):
        layer.register_parameter(name, init.uniform(k, shape, -bound, bound, dtype))


def check_nonlinearity(caller: str, nonlinearity: str) -> None:
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"{caller}: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")


class _Cell(Module):
    """What cells share: sizes and parameters."""

    weight_ih: Array
    weight_hh: Array
    bias_ih: Array | None
    bias_hh: Array | None

    def __init__(
        self,
        gates: int,
        input_size: int,
        hidden_size: int,
        bias: bool,
        key: Key | None,
        dtype: DTypeLike | None,
    ) -> None:
        super().__init__()
        positive(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = gates * hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, input_size),
            "weight_hh": (rows, hidden_size),
        }
        biases = ("bias_ih", "bias_hh")
        if bias:
            shapes |= dict.fromkeys(biases, (rows,))
        register_uniform(self, shapes, hidden_size, key, dtype)
        if not bias:
            for name in biases:
                self.register_parameter(name, None)

    def _step(
        self,
        function: Callable[..., Any],
        input: ArrayLike,
        hx: ArrayLike | tuple[ArrayLike, ArrayLike] | None,
    ) -> Tree:
        x = check_features(self, input, self.input_size)
        if x.ndim > 2:
            refuse(self, f"(batch, {self.input_size} features), or without the batch", x)
        return function(x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    """Compute one step of ``RNN``: ``h' = tanh(W x + b + U h + c)``.

    Parameters are ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh``; all begin uniform
    within ±1/√hidden_size.

    Args:
        input_size: the features of the input.
        hidden_size: the features of the state.
        bias: whether there are biases.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        ValueError: sizes do not fit, or ``nonlinearity`` is unknown.

    As PyTorch's ``nn.RNNCell``.

    >>> import stretto as st
    >>> cell = st.nn.RNNCell(3, 4, key=st.random.PRNGKey(0))
    >>> cell(st.numpy.ones((2, 3))).shape
    (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_nonlinearity("RNNCell", nonlinearity)
        super().__init__(1, input_size, hidden_size, bias, key, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: ArrayLike, hx: ArrayLike | None = None) -> Array:
        """Compute the step.

        Args:
            input: (batch, input_size), or (input_size,).
            hx: the state (batch, hidden_size), or (hidden_size,); zeros by default.

        Returns:
            The next state, in the shape of ``hx``.

        Raises:
            ValueError: shapes do not fit.
        """
        tanh = self.nonlinearity == "tanh"
        return self._step(F.rnn_tanh_cell if tanh else F.rnn_relu_cell, input, hx)


class LSTMCell(_Cell):
    """Compute one step of ``LSTM``.

    Parameters are ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh``; all begin uniform
    within ±1/√hidden_size. Weights have the rows of the gates input, forget, cell and output.

    Args:
        input_size: the features of the input.
        hidden_size: the features of the state.
        bias: whether there are biases.
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        ValueError: sizes do not fit.

    As PyTorch's ``nn.LSTMCell``.

    >>> import stretto as st
    >>> cell = st.nn.LSTMCell(3, 4, key=st.random.PRNGKey(0))
    >>> h, c = cell(st.numpy.ones((2, 3)))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(4, input_size, hidden_size, bias, key, dtype)

    def forward(
        self, input: ArrayLike, hx: tuple[ArrayLike, ArrayLike] | None = None
    ) -> tuple[Array, Array]:
        """Compute the step.

        Args:
            input: (batch, input_size), or (input_size,).
            hx: the state and the cell, each (batch, hidden_size) or (hidden_size,); zeros by
                default.

        Returns:
            The next state and the next cell.

        Raises:
            ValueError: shapes do not fit.
        """
        return self._step(F.lstm_cell, input, hx)


class GRUCell(_Cell):
    """Compute one step of ``GRU``.

    Parameters are ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh``; all begin uniform
    within ±1/√hidden_size. Weights have the rows of the gates reset, update and new.

    Args:
        input_size: the features of the input.
        hidden_size: the features of the state.
        bias: whether there are biases.
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        ValueError: sizes do not fit.

    As PyTorch's ``nn.GRUCell``.

    >>> import stretto as st
    >>> cell = st.nn.GRUCell(3, 4, key=st.random.PRNGKey(0))
    >>> cell(st.numpy.ones(3)).shape
    (4,)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(3, input_size, hidden_size, bias, key, dtype)

    def forward(self, input: ArrayLike, hx: ArrayLike | None = None) -> Array:
        """Compute the step.

        Args:
            input: (batch, input_size), or (input_size,).
            hx: the state (batch, hidden_size), or (hidden_size,); zeros by default.

        Returns:
            The next state, in the shape of ``hx``.

        Raises:
            ValueError: shapes do not fit.
        """
        return self._step(F.gru_cell, input, hx)
