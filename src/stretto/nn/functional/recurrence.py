"""Recurrent networks: Elman's, LSTM and GRU, over a whole sequence or one step.

Names, arguments, the order of gates and the shapes of weights are those of PyTorch's functions
``torch.lstm``, ``torch.lstm_cell`` and so on; ``recurrent_networks`` has what they share.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto.nn.functional.recurrent_networks import GRU, LSTM, RELU, TANH, cell, network

__all__ = [
    "gru",
    "gru_cell",
    "lstm",
    "lstm_cell",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
]


def rnn_tanh(
    input: ArrayLike,
    hx: ArrayLike | None,
    params: Sequence[ArrayLike],
    has_biases: bool = True,
    num_layers: int = 1,
    dropout: float = 0.0,
    train: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
    *,
    key: Key | None = None,
) -> tuple[Array, Array]:
    """Run Elman's network, ``h' = tanh(W x + b + U h + c)``, over sequences.

    Args:
        input: (L, N, features), (N, L, features) if ``batch_first``, or (L, features).
        hx: the initial states (layers × directions, N, hidden); zeros for None.
        params: for each layer, and in it for each direction, W (hidden, features), U (hidden,
            hidden), and with ``has_biases`` b and c (hidden,).
        has_biases: whether ``params`` has biases.
        num_layers: how many layers are stacked; each takes the outputs of the one before.
        dropout: the probability of dropout between layers while ``train``.
        train: whether there is dropout.
        bidirectional: whether each layer also runs from the end to the beginning.
        batch_first: whether the batch is the first axis.
        key: the key of dropout; by default the ambient stream's next one.

    Returns:
        The last layer's outputs, those of both directions side by side, and the last states.

    Raises:
        RuntimeError: dropout has no key to draw from.
        ValueError: shapes or the number of weights do not fit.

    As PyTorch's ``torch.rnn_tanh``. Source: Elman, Finding Structure in Time, 1990.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, w, u = snp.ones((2, 1)), snp.ones((1, 1)), snp.zeros((1, 1))
    >>> outputs, last = st.nn.functional.rnn_tanh(x, None, [w, u], has_biases=False)
    >>> outputs.round(3).tolist(), last.shape
    ([[0.7620000243186951], [0.7620000243186951]], (1, 1))
    """
    out, (h,) = network(
        TANH,
        input,
        hx,
        params,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
        key,
    )
    return out, h


def rnn_relu(
    input: ArrayLike,
    hx: ArrayLike | None,
    params: Sequence[ArrayLike],
    has_biases: bool = True,
    num_layers: int = 1,
    dropout: float = 0.0,
    train: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
    *,
    key: Key | None = None,
) -> tuple[Array, Array]:
    """Run Elman's network with ``relu``, ``h' = relu(W x + b + U h + c)``, over sequences.

    Args:
        input: (L, N, features), (N, L, features) if ``batch_first``, or (L, features).
        hx: the initial states (layers × directions, N, hidden); zeros for None.
        params: the weights, as for ``rnn_tanh``.
        has_biases: whether ``params`` has biases.
        num_layers: how many layers are stacked; each takes the outputs of the one before.
        dropout: the probability of dropout between layers while ``train``.
        train: whether there is dropout.
        bidirectional: whether each layer also runs from the end to the beginning.
        batch_first: whether the batch is the first axis.
        key: the key of dropout; by default the ambient stream's next one.

    Returns:
        The last layer's outputs, those of both directions side by side, and the last states.

    Raises:
        RuntimeError: dropout has no key to draw from.
        ValueError: shapes or the number of weights do not fit.

    As PyTorch's ``torch.rnn_relu``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, one = snp.ones((3, 1)), snp.ones((1, 1))
    >>> outputs, last = st.nn.functional.rnn_relu(x, None, [one, one], has_biases=False)
    >>> outputs.tolist()
    [[1.0], [2.0], [3.0]]
    """
    out, (h,) = network(
        RELU,
        input,
        hx,
        params,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
        key,
    )
    return out, h


def lstm(
    input: ArrayLike,
    hx: tuple[ArrayLike, ArrayLike] | None,
    params: Sequence[ArrayLike],
    has_biases: bool = True,
    num_layers: int = 1,
    dropout: float = 0.0,
    train: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
    *,
    key: Key | None = None,
) -> tuple[Array, Array, Array]:
    """Run long short-term memory over sequences.

    Args:
        input: (L, N, features), (N, L, features) if ``batch_first``, or (L, features).
        hx: the initial states and cells, each (layers × directions, N, hidden); zeros for None.
        params: as for ``rnn_tanh``, with the rows of four gates: input, forget, cell, output. A
            further weight (out, hidden) after each layer's others projects its outputs, which are
            its states.
        has_biases: whether ``params`` has biases.
        num_layers: how many layers are stacked; each takes the outputs of the one before.
        dropout: the probability of dropout between layers while ``train``.
        train: whether there is dropout.
        bidirectional: whether each layer also runs from the end to the beginning.
        batch_first: whether the batch is the first axis.
        key: the key of dropout; by default the ambient stream's next one.

    Returns:
        The last layer's outputs, the last states, and the last cells.

    Raises:
        RuntimeError: dropout has no key to draw from.
        ValueError: shapes or the number of weights do not fit.

    As PyTorch's ``torch.lstm``. Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997;
    Sak et al., Long Short-Term Memory Recurrent Neural Network Architectures, 2014, for
    projections.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, w, u = snp.ones((5, 3, 2)), snp.ones((16, 2)), snp.ones((16, 4))
    >>> outputs, h, c = st.nn.functional.lstm(x, None, [w, u], has_biases=False)
    >>> outputs.shape, h.shape, c.shape
    ((5, 3, 4), (1, 3, 4), (1, 3, 4))
    """
    out, (h, c) = network(
        LSTM,
        input,
        hx,
        params,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
        key,
    )
    return out, h, c


def gru(
    input: ArrayLike,
    hx: ArrayLike | None,
    params: Sequence[ArrayLike],
    has_biases: bool = True,
    num_layers: int = 1,
    dropout: float = 0.0,
    train: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
    *,
    key: Key | None = None,
) -> tuple[Array, Array]:
    """Run gated recurrent units over sequences.

    Args:
        input: (L, N, features), (N, L, features) if ``batch_first``, or (L, features).
        hx: the initial states (layers × directions, N, hidden); zeros for None.
        params: as for ``rnn_tanh``, with the rows of three gates: reset, update, new.
        has_biases: whether ``params`` has biases.
        num_layers: how many layers are stacked; each takes the outputs of the one before.
        dropout: the probability of dropout between layers while ``train``.
        train: whether there is dropout.
        bidirectional: whether each layer also runs from the end to the beginning.
        batch_first: whether the batch is the first axis.
        key: the key of dropout; by default the ambient stream's next one.

    Returns:
        The last layer's outputs, those of both directions side by side, and the last states.

    Raises:
        RuntimeError: dropout has no key to draw from.
        ValueError: shapes or the number of weights do not fit.

    As PyTorch's ``torch.gru``, whose reset gate multiplies after the product. Source: Cho et al.,
    Learning Phrase Representations using RNN Encoder-Decoder, 2014.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, w, u = snp.ones((5, 3, 2)), snp.ones((12, 2)), snp.ones((12, 4))
    >>> outputs, h = st.nn.functional.gru(x, None, [w, u], has_biases=False)
    >>> outputs.shape, h.shape
    ((5, 3, 4), (1, 3, 4))
    """
    out, (h,) = network(
        GRU,
        input,
        hx,
        params,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
        key,
    )
    return out, h


def rnn_tanh_cell(
    input: ArrayLike,
    hx: ArrayLike | None,
    w_ih: ArrayLike,
    w_hh: ArrayLike,
    b_ih: ArrayLike | None = None,
    b_hh: ArrayLike | None = None,
) -> Array:
    """Compute one step of ``rnn_tanh``.

    Args:
        input: (N, features), or (features,).
        hx: the state (N, hidden), or (hidden,); zeros for None.
        w_ih: (gates × hidden, features).
        w_hh: (gates × hidden, hidden).
        b_ih: (gates × hidden,), the bias of the input's product; None for none.
        b_hh: (gates × hidden,), that of the state's product; None for none.

    Returns:
        The next state.

    Raises:
        ValueError: shapes do not fit.

    As PyTorch's ``torch.rnn_tanh_cell``.

    >>> import stretto as st, stretto.numpy as snp
    >>> one = snp.ones((1, 1))
    >>> st.nn.functional.rnn_tanh_cell(one, None, one, one).round(3)
    Array([[0.762]], dtype=float32)
    """
    return cell(TANH, input, hx, w_ih, w_hh, b_ih, b_hh)[0]


def rnn_relu_cell(
    input: ArrayLike,
    hx: ArrayLike | None,
    w_ih: ArrayLike,
    w_hh: ArrayLike,
    b_ih: ArrayLike | None = None,
    b_hh: ArrayLike | None = None,
) -> Array:
    """Compute one step of ``rnn_relu``.

    Args:
        input: (N, features), or (features,).
        hx: the state (N, hidden), or (hidden,); zeros for None.
        w_ih: (gates × hidden, features).
        w_hh: (gates × hidden, hidden).
        b_ih: (gates × hidden,), the bias of the input's product; None for none.
        b_hh: (gates × hidden,), that of the state's product; None for none.

    Returns:
        The next state.

    Raises:
        ValueError: shapes do not fit.

    As PyTorch's ``torch.rnn_relu_cell``.

    >>> import stretto as st, stretto.numpy as snp
    >>> one = snp.ones((1, 1))
    >>> st.nn.functional.rnn_relu_cell(one, one, one, one)
    Array([[2.]], dtype=float32)
    """
    return cell(RELU, input, hx, w_ih, w_hh, b_ih, b_hh)[0]


def lstm_cell(
    input: ArrayLike,
    hx: tuple[ArrayLike, ArrayLike] | None,
    w_ih: ArrayLike,
    w_hh: ArrayLike,
    b_ih: ArrayLike | None = None,
    b_hh: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Compute one step of ``lstm``.

    Args:
        input: (N, features), or (features,).
        hx: the state and the cell, each (N, hidden) or (hidden,); zeros for None.
        w_ih: (gates × hidden, features).
        w_hh: (gates × hidden, hidden).
        b_ih: (gates × hidden,), the bias of the input's product; None for none.
        b_hh: (gates × hidden,), that of the state's product; None for none.

    Returns:
        The next state and the next cell.

    Raises:
        ValueError: shapes do not fit.

    As PyTorch's ``torch.lstm_cell``.

    >>> import stretto as st, stretto.numpy as snp
    >>> w, u = snp.ones((16, 2)), snp.ones((16, 4))
    >>> [x.shape for x in st.nn.functional.lstm_cell(snp.ones((3, 2)), None, w, u)]
    [(3, 4), (3, 4)]
    """
    h, c = cell(LSTM, input, hx, w_ih, w_hh, b_ih, b_hh)
    return h, c


def gru_cell(
    input: ArrayLike,
    hx: ArrayLike | None,
    w_ih: ArrayLike,
    w_hh: ArrayLike,
    b_ih: ArrayLike | None = None,
    b_hh: ArrayLike | None = None,
) -> Array:
    """Compute one step of ``gru``.

    Args:
        input: (N, features), or (features,).
        hx: the state (N, hidden), or (hidden,); zeros for None.
        w_ih: (gates × hidden, features).
        w_hh: (gates × hidden, hidden).
        b_ih: (gates × hidden,), the bias of the input's product; None for none.
        b_hh: (gates × hidden,), that of the state's product; None for none.

    Returns:
        The next state.

    Raises:
        ValueError: shapes do not fit.

    As PyTorch's ``torch.gru_cell``.

    >>> import stretto as st, stretto.numpy as snp
    >>> w, u = snp.ones((12, 2)), snp.ones((12, 4))
    >>> st.nn.functional.gru_cell(snp.ones((3, 2)), None, w, u).shape
    (3, 4)
    """
    return cell(GRU, input, hx, w_ih, w_hh, b_ih, b_hh)[0]
