"""Recurrent layers over whole sequences, ``RNN``, ``LSTM``, ``GRU``, and their cells of one step.

Arguments, parameters, shapes and initial distributions are PyTorch's. Where PyTorch takes a packed
sequence, these take a padded one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from stretto._engine.core.functions import described, described_like
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, Tree
from stretto.nn import functional as F
from stretto.nn import init
from stretto.nn.functional.checks import check_features, key_or_next, positive, probability, refuse
from stretto.nn.module import Module
from stretto.random.keys import split

_recurrent = described(
    {
        "input_size": "the features of the input.",
        "hidden_size": "the features of the state.",
        "bias": "whether there are biases.",
        "key": "the key to draw the parameters from; by default the ambient stream's next one.",
        "dtype": "the dtype of the parameters, by default the default float.",
        "num_layers": "how many layers are stacked.",
        "batch_first": "whether inputs are (batch, length, features) rather than (length, batch,\n"
        "        features).",
        "dropout": "the probability of dropout between layers, in train mode.",
        "bidirectional": "whether each layer also runs from the end to the beginning.",
    }
)
"""Complete the docstring of a recurrent layer."""


def register_uniform(
    layer: Module,
    shapes: dict[str, tuple[int, ...]],
    hidden_size: int,
    key: Key | None,
    dtype: DTypeLike | None,
) -> None:
    """Register parameters of these names and shapes, uniform within ±1/√hidden_size."""
    bound = 1 / math.sqrt(hidden_size)
    keys = split(key_or_next(key, type(layer).__name__), len(shapes))
    for (name, shape), k in zip(shapes.items(), keys, strict=True):
        layer.register_parameter(name, init.uniform(k, shape, -bound, bound, dtype))


def check_nonlinearity(caller: str, nonlinearity: str) -> None:
    """Raise ``ValueError`` unless it is ``tanh`` or ``relu``."""
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"{caller}: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")


class _Cell(Module):
    """Hold what cells share: sizes and parameters, and how many gates there are."""

    _gates: ClassVar[int] = 1
    weight_ih: Array
    weight_hh: Array
    bias_ih: Array | None
    bias_hh: Array | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        positive(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = self._gates * hidden_size
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
        """Return the sizes."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


@_recurrent
class RNNCell(_Cell):
    """Compute one step of ``RNN``: ``h' = tanh(W x + b + U h + c)``.

    Parameters are ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh``; all begin uniform
    within ±1/√hidden_size.

    Args:
        nonlinearity: ``"tanh"`` or ``"relu"``.

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
        super().__init__(input_size, hidden_size, bias, key=key, dtype=dtype)
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


@_recurrent
class LSTMCell(_Cell):
    """Compute one step of ``LSTM``.

    Parameters are ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh``; all begin uniform
    within ±1/√hidden_size. Weights have the rows of the gates input, forget, cell and output.

    Raises:
        ValueError: sizes do not fit.

    As PyTorch's ``nn.LSTMCell``.

    >>> import stretto as st
    >>> cell = st.nn.LSTMCell(3, 4, key=st.random.PRNGKey(0))
    >>> h, c = cell(st.numpy.ones((2, 3)))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    _gates = 4

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


@_recurrent
class GRUCell(_Cell):
    """Compute one step of ``GRU``.

    Parameters are ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh``; all begin uniform
    within ±1/√hidden_size. Weights have the rows of the gates reset, update and new.

    Raises:
        ValueError: sizes do not fit.

    As PyTorch's ``nn.GRUCell``.

    >>> import stretto as st
    >>> cell = st.nn.GRUCell(3, 4, key=st.random.PRNGKey(0))
    >>> cell(st.numpy.ones(3)).shape
    (4,)
    """

    _gates = 3

    @described_like(RNNCell.forward)
    def forward(self, input: ArrayLike, hx: ArrayLike | None = None) -> Array:
        """Compute the step."""
        return self._step(F.gru_cell, input, hx)


class _Recurrent(Module):
    """Hold what layers over whole sequences share: sizes, gates, parameters, and the call."""

    _gates: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        caller = type(self).__name__
        positive(caller, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                f"{caller}: proj_size must be from 0 to hidden_size {hidden_size}, got {proj_size}"
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = probability(dropout, caller, "dropout")
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        out, rows = proj_size or hidden_size, self._gates * hidden_size
        shapes: dict[str, tuple[int, ...]] = {}
        for i in range(num_layers):
            features = out * (1 + bidirectional) if i else input_size
            for end in self._ends(i):
                shapes[f"weight_ih{end}"] = (rows, features)
                shapes[f"weight_hh{end}"] = (rows, out)
                if bias:
                    shapes[f"bias_ih{end}"] = shapes[f"bias_hh{end}"] = (rows,)
                if proj_size:
                    shapes[f"weight_hr{end}"] = (proj_size, hidden_size)
        register_uniform(self, shapes, hidden_size, key, dtype)

    def _ends(self, layer: int) -> list[str]:
        """Return how the names of a layer's parameters end, one per direction."""
        return [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.bidirectional]

    def _weights(self) -> list[Array]:
        """Return the parameters in the order that the functions take."""
        names = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if self.bias else [])]
        names += ["weight_hr"] if self.proj_size else []
        ends = [end for i in range(self.num_layers) for end in self._ends(i)]
        return [getattr(self, f"{name}{end}") for end in ends for name in names]

    def _run(
        self,
        function: Callable[..., Any],
        input: ArrayLike,
        hx: ArrayLike | tuple[ArrayLike, ArrayLike] | None,
        key: Key | None,
    ) -> Tree:
        x = check_features(self, input, self.input_size)
        if x.ndim not in (2, 3):
            order = "batch, length" if self.batch_first else "length, batch"
            refuse(self, f"({order}, {self.input_size} features), or without the batch", x)
        if self.training and self.num_layers > 1 and 0 < self.dropout < 1:
            key = key_or_next(key, type(self).__name__)
        return function(
            x,
            hx,
            self._weights(),
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
            key=key,
        )

    def extra_repr(self) -> str:
        """Return the sizes, and settings that are not the default."""
        out = f"{self.input_size}, {self.hidden_size}"
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0.0),
            ("bidirectional", False),
        ):
            value = getattr(self, name)
            out += f", {name}={value}" if value != default else ""
        return out


@_recurrent
class RNN(_Recurrent):
    """Run Elman's network over sequences.

    Each step is ``h' = tanh(W x + b + U h + c)``. Parameters are ``weight_ih_l0`` (W),
    ``weight_hh_l0`` (U), ``bias_ih_l0``, ``bias_hh_l0``, then those with ``_reverse``, and so on
    for each layer; all begin uniform within ±1/√hidden_size.

    Args:
        nonlinearity: ``"tanh"`` or ``"relu"``.

    Raises:
        TypeError: ``dropout`` is not a number.
        ValueError: sizes do not fit, or a setting is not one of those above.

    As PyTorch's ``nn.RNN``. Source: Elman, Finding Structure in Time, 1990.

    >>> import stretto as st
    >>> layer = st.nn.RNN(3, 4, key=st.random.PRNGKey(0))
    >>> outputs, last = layer(st.numpy.ones((5, 2, 3)))
    >>> outputs.shape, last.shape
    ((5, 2, 4), (1, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        check_nonlinearity("RNN", nonlinearity)
        settings = (num_layers, bias, batch_first, dropout, bidirectional)
        super().__init__(input_size, hidden_size, *settings, key=key, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(
        self, input: ArrayLike, hx: ArrayLike | None = None, *, key: Key | None = None
    ) -> tuple[Array, Array]:
        """Run the network.

        Args:
            input: (length, batch, input_size), with ``batch_first`` (batch, length, input_size), or
                (length, input_size).
            hx: the initial states (layers × directions, batch, hidden_size); zeros by default.
            key: the key of dropout; by default the ambient stream's next one.

        Returns:
            The last layer's outputs, those of both directions side by side, in the order of
            ``input``; and the last states.

        Raises:
            RuntimeError: dropout has no key to draw from.
            ValueError: shapes do not fit.
        """
        return self._run(F.rnn_tanh if self.nonlinearity == "tanh" else F.rnn_relu, input, hx, key)


@_recurrent
class LSTM(_Recurrent):
    """Run long short-term memory over sequences.

    Each step is ``c' = σ(f) c + σ(i) tanh(g)``, ``h' = σ(o) tanh(c')``, where i, f, g and o are the
    four parts of ``W x + b + U h + c``. Parameters are named as those of ``RNN``; weights have the
    rows of the four gates.

    Args:
        proj_size: the size to which ``weight_hr_l0`` and so on project ``h``; 0 for none.

    Raises:
        TypeError: ``dropout`` is not a number.
        ValueError: sizes do not fit.

    As PyTorch's ``nn.LSTM``. Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997.

    >>> import stretto as st
    >>> layer = st.nn.LSTM(3, 4, bidirectional=True, key=st.random.PRNGKey(0))
    >>> outputs, (h, c) = layer(st.numpy.ones((5, 2, 3)))
    >>> outputs.shape, h.shape, c.shape
    ((5, 2, 8), (2, 2, 4), (2, 2, 4))
    """

    _gates = 4

    @described_like(RNN.forward)
    def forward(
        self,
        input: ArrayLike,
        hx: tuple[ArrayLike, ArrayLike] | None = None,
        *,
        key: Key | None = None,
    ) -> tuple[Array, tuple[Array, Array]]:
        """Run the network.

        Args:
            hx: the initial states (layers × directions, batch, proj_size or hidden_size) and cells
                (layers × directions, batch, hidden_size); zeros by default.

        Returns:
            The last layer's outputs, those of both directions side by side, in the order of
            ``input``; and the last states and cells.

        """
        out, h, c = self._run(F.lstm, input, hx, key)
        return out, (h, c)


@_recurrent
class GRU(_Recurrent):
    """Run gated recurrent units over sequences.

    Each step is ``h' = (1 - z) n + z h``, with ``r`` and ``z`` sigmoids of their parts of ``W x + b
    + U h + c``, and ``n = tanh(W x + b + r (U h + c))`` of the third. Parameters are named as those
    of ``RNN``; weights have the rows of the gates reset, update and new.

    Raises:
        TypeError: ``dropout`` is not a number.
        ValueError: sizes do not fit.

    As PyTorch's ``nn.GRU``. Source: Cho et al., Learning Phrase Representations using RNN
    Encoder-Decoder, 2014.

    >>> import stretto as st
    >>> layer = st.nn.GRU(3, 4, batch_first=True, key=st.random.PRNGKey(0))
    >>> outputs, last = layer(st.numpy.ones((2, 5, 3)))
    >>> outputs.shape, last.shape
    ((2, 5, 4), (1, 2, 4))
    """

    _gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        settings = (num_layers, bias, batch_first, dropout, bidirectional)
        super().__init__(input_size, hidden_size, *settings, key=key, dtype=dtype)

    @described_like(RNN.forward)
    def forward(
        self, input: ArrayLike, hx: ArrayLike | None = None, *, key: Key | None = None
    ) -> tuple[Array, Array]:
        """Run the network."""
        return self._run(F.gru, input, hx, key)
