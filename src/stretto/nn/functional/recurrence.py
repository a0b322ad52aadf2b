"""Recurrent networks: Elman's, LSTM and GRU, over a whole sequence or one step.

Names, arguments, the order of gates and the shapes of weights are those of PyTorch's functions
``torch.lstm``, ``torch.lstm_cell`` and so on. The inputs of all steps are multiplied by the weights
at once, before a scan that only multiplies the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import stretto.numpy as snp
from stretto._engine.core.functions import described, described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, DType, Key
from stretto._engine.higher_order.scan import scan
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.comparison import full
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import logistic
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto.nn.functional.activations import relu
from stretto.nn.functional.affine import linear
from stretto.nn.functional.checks import as_float, key_or_next, probability
from stretto.nn.functional.dropouts import dropout
from stretto.random.keys import split

_recurrent = described(
    {
        "input": "(L, N, features), (N, L, features) if ``batch_first``, or (L, features).",
        "hx": "the initial states (layers × directions, N, hidden); zeros for None.",
        "has_biases": "whether ``params`` has biases.",
        "num_layers": "how many layers are stacked; each takes the outputs of the one before.",
        "dropout": "the probability of dropout between layers while ``train``.",
        "train": "whether there is dropout.",
        "bidirectional": "whether each layer also runs from the end to the beginning.",
        "batch_first": "whether the batch is the first axis.",
        "key": "the key of dropout; by default the ambient stream's next one.",
        "w_ih": "(gates × hidden, features).",
        "w_hh": "(gates × hidden, hidden).",
        "b_ih": "(gates × hidden,), the bias of the input's product; None for none.",
        "b_hh": "(gates × hidden,), that of the state's product; None for none.",
    },
    "The last layer's outputs, those of both directions side by side, and the last states.",
    raises="RuntimeError: dropout has no key to draw from.\n"
    "    ValueError: shapes or the number of weights do not fit.",
)
"""Complete the docstring of a recurrent network."""


class Weights(NamedTuple):
    """The weights of one layer in one direction."""

    of_input: Array
    of_state: Array
    input_bias: Array | None = None
    state_bias: Array | None = None
    projection: Array | None = None


class Kind(NamedTuple):
    """A kind of recurrent network: its name, how many gates, and one step.

    ``step(x, state, weight, bias, projection)`` takes the input's product, the state (a tuple,
    whose first part is the output), the state's weight, transposed, the bias of the state's
    product, and the weight that projects the output, or None.
    """

    name: str
    gates: int
    step: Callable[[Array, tuple[Array, ...], Array, Array | None, Array | None], tuple[Array, ...]]
    states: int = 1


def _parts(x: Array, count: int) -> list[Array]:
    n = x.shape[-1] // count
    return [slice_in_dim(x, i * n, (i + 1) * n, axis=-1) for i in range(count)]


def _elman(function: Callable[[Array], Array]) -> Callable[..., tuple[Array, ...]]:
    def step(
        x: Array,
        state: tuple[Array, ...],
        weight: Array,
        bias: Array | None,
        projection: Array | None,
    ) -> tuple[Array, ...]:
        # h' = f(W x + b + U h + c)
        return (function(x + matmul(state[0], weight)),)

    return step


def _lstm_step(
    x: Array, state: tuple[Array, ...], weight: Array, bias: Array | None, projection: Array | None
) -> tuple[Array, ...]:
    # i, f, g, o of W x + b + U h + c;  c' = σ(f) c + σ(i) tanh(g);  h' = P σ(o) tanh(c')
    h, c = state
    i, f, g, o = _parts(x + matmul(h, weight), 4)
    c = logistic(f) * c + logistic(i) * snp.tanh(g)
    h = logistic(o) * snp.tanh(c)
    return (h if projection is None else matmul(h, projection)), c


def _gru_step(
    x: Array, state: tuple[Array, ...], weight: Array, bias: Array | None, projection: Array | None
) -> tuple[Array, ...]:
    # r, z, n of W x + b and U h + c;  n = tanh(n + σ(r) n');  h' = (1 - σ(z)) n + σ(z) h
    (h,) = state
    product = matmul(h, weight)
    xr, xz, xn = _parts(x, 3)
    hr, hz, hn = _parts(product if bias is None else product + of_rank(bias, product.ndim), 3)
    z = logistic(xz + hz)
    n = snp.tanh(xn + logistic(xr + hr) * hn)
    return (n + z * (h - n),)


TANH = Kind("rnn_tanh", 1, _elman(snp.tanh))
RELU = Kind("rnn_relu", 1, _elman(relu))
LSTM = Kind("lstm", 4, _lstm_step, 2)
GRU = Kind("gru", 3, _gru_step)


def _multiply_inputs(kind: Kind, x: Array, weights: Weights) -> tuple[Array, Array | None]:
    """Return the input's product with the biases, but one for the loop to add, and that bias."""
    bias, late = weights.input_bias, weights.state_bias
    if late is not None and kind is not GRU:
        bias, late = late if bias is None else bias + late, None
    return linear(x, weights.of_input, bias), late


def _run(
    kind: Kind,
    x: Array,
    state: tuple[Array, ...],
    weights: Weights,
    reverse: bool,
    valid: Array | None,
) -> tuple[Array, tuple[Array, ...]]:
    """Return the outputs of all steps of (L, N, features), and the last state.

    Steps that are not ``valid``, booleans (L, N), leave the state as it is.
    """
    products, bias = _multiply_inputs(kind, x, weights)
    weight = snp.swapaxes(weights.of_state, 0, 1)
    projection = None
    if weights.projection is not None:
        projection = snp.swapaxes(weights.projection, 0, 1)

    def step(state: tuple[Array, ...], x: Array) -> tuple[tuple[Array, ...], Array]:
        state = kind.step(x, state, weight, bias, projection)
        return state, state[0]

    def step_if_valid(
        state: tuple[Array, ...], xs: tuple[Array, Array]
    ) -> tuple[tuple[Array, ...], Array]:
        x, here = xs
        new, _ = step(state, x)
        kept = tuple([snp.where(here[:, None], n, h) for n, h in zip(new, state, strict=True)])
        return kept, kept[0]

    if valid is None:
        last, outputs = scan(step, state, products, reverse=reverse)
    else:
        last, outputs = scan(step_if_valid, state, (products, valid), reverse=reverse)
    return outputs, last


def _check_weights(
    caller: str, gates: int, x: Array, hidden: int, out: int, weights: Weights
) -> None:
    expected = {
        "weight_ih": (weights.of_input, (gates * hidden, x.shape[-1])),
        "weight_hh": (weights.of_state, (gates * hidden, out)),
        "bias_ih": (weights.input_bias, (gates * hidden,)),
        "bias_hh": (weights.state_bias, (gates * hidden,)),
        "weight_hr": (weights.projection, (out, hidden)),
    }
    for name, (value, shape) in expected.items():
        if value is not None and value.shape != shape:
            raise ValueError(
                f"{caller}: expected {name} of shape {shape} for input {x.type} and hidden size "
                f"{hidden}, got {value.type}"
            )


def _group_weights(
    caller: str, params: Sequence[ArrayLike], has_biases: bool, runs: int, projects: bool
) -> list[Weights]:
    """Return the flat list of weights, grouped by layer and direction."""
    size = 2 + 2 * has_biases
    if projects and len(params) == runs * (size + 1):
        size += 1
    elif len(params) != runs * size:
        raise ValueError(
            f"{caller}: expected {size} weights for each of {runs} layers and directions, got "
            f"{len(params)} in all"
        )
    values = [as_float(w, caller, f"params[{i}]") for i, w in enumerate(params)]
    out = []
    for i in range(0, len(values), size):
        first, rest = values[i : i + 2], values[i + 2 : i + size]
        biases = rest[:2] if has_biases else [None, None]
        projection = rest[2 * has_biases :]
        out.append(Weights(*first, *biases, *projection))
    return out


def _states(
    caller: str,
    hx: ArrayLike | tuple[ArrayLike, ...] | None,
    lead: tuple[int, ...],
    sizes: tuple[int, ...],
    dtype: DType,
) -> list[Array]:
    """Return the initial states, of shapes ``(*lead, size)``; zeros for None."""
    if hx is None:
        return [full((*lead, n), 0, dtype) for n in sizes]
    states = tuple(hx) if isinstance(hx, (tuple, list)) else (hx,)
    if len(states) != len(sizes):
        expected = "a pair (h, c)" if len(sizes) == 2 else "one array"
        raise ValueError(f"{caller}: expected hx to be {expected}, got {len(states)} arrays")
    out = []
    for name, h, n in zip("hc", states, sizes, strict=False):
        value = as_value(h, caller, name)
        if value.shape != (*lead, n):
            raise ValueError(f"{caller}: expected {name} of shape {(*lead, n)}, got {value.type}")
        out.append(convert(value, dtype))
    return out


def network(
    kind: Kind,
    input: ArrayLike,
    hx: ArrayLike | tuple[ArrayLike, ...] | None,
    params: Sequence[ArrayLike],
    has_biases: bool,
    num_layers: int,
    p: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    key: Key | None,
    valid: Array | None = None,
) -> tuple[Array, list[Array]]:
    """Return the outputs of the last layer, and the last states of all layers and directions.

    Where sequences end before others, ``valid`` (L, N) says which steps they have; their last
    states are those of their own last steps, and outputs behind these mean nothing.
    """
    caller, directions = kind.name, 1 + bidirectional
    x = as_float(input, caller)
    if x.ndim not in (2, 3):
        order = "(batch, length, features)" if batch_first else "(length, batch, features)"
        raise ValueError(f"{caller}: expected input {order} or (length, features), got {x.type}")
    p = probability(p, caller, "dropout") if train and num_layers > 1 else 0.0
    layers = _group_weights(caller, params, has_biases, num_layers * directions, kind is LSTM)
    batch_first = batch_first and x.ndim == 3
    if batch_first:
        x = snp.swapaxes(x, 0, 1)
    hidden = layers[0].of_state.shape[0] // kind.gates
    projection = layers[0].projection
    out = hidden if projection is None else projection.shape[0]
    dtype = snp.result_type(x, layers[0].of_state)
    lead, sizes = (len(layers), *x.shape[1:-1]), (out, hidden)[: kind.states]
    first = _states(caller, hx, lead, sizes, dtype)
    keys = split(key_or_next(key, caller), num_layers - 1) if p else None
    last: list[tuple[Array, ...]] = []
    for i in range(num_layers):
        outputs = []
        for d in range(directions):
            run = i * directions + d
            _check_weights(caller, kind.gates, x, hidden, out, layers[run])
            state = tuple([h[run] for h in first])
            y, state = _run(kind, x, state, layers[run], bool(d), valid)
            outputs.append(y)
            last.append(state)
        x = outputs[0] if directions == 1 else concatenate(outputs, -1)
        if keys is not None and i < num_layers - 1:
            x = dropout(x, p, key=keys[i])
    states = [snp.stack([state[k] for state in last]) for k in range(kind.states)]
    return (snp.swapaxes(x, 0, 1) if batch_first else x), states


def cell(
    kind: Kind,
    input: ArrayLike,
    hx: ArrayLike | tuple[ArrayLike, ...] | None,
    w_ih: ArrayLike,
    w_hh: ArrayLike,
    b_ih: ArrayLike | None,
    b_hh: ArrayLike | None,
) -> tuple[Array, ...]:
    """Return the states after one step."""
    caller = f"{kind.name}_cell"
    x = as_float(input, caller)
    if x.ndim not in (1, 2):
        raise ValueError(f"{caller}: expected input (batch, features) or (features,), got {x.type}")
    biases = (("b_ih", b_ih), ("b_hh", b_hh))
    weights = Weights(
        as_float(w_ih, caller, "w_ih"),
        as_float(w_hh, caller, "w_hh"),
        *[None if b is None else as_float(b, caller, name) for name, b in biases],
    )
    hidden = weights.of_state.shape[0] // kind.gates
    _check_weights(caller, kind.gates, x, hidden, hidden, weights)
    dtype = snp.result_type(x, weights.of_state)
    state = tuple(_states(caller, hx, x.shape[:-1], (hidden,) * kind.states, dtype))
    products, bias = _multiply_inputs(kind, x, weights)
    return kind.step(products, state, snp.swapaxes(weights.of_state, 0, 1), bias, None)


@_recurrent
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
        params: for each layer, and in it for each direction, W (hidden, features), U (hidden,
            hidden), and with ``has_biases`` b and c (hidden,).

    As PyTorch's ``torch.rnn_tanh``. Source: Elman, Finding Structure in Time, 1990.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, w, u = snp.ones((2, 1)), snp.ones((1, 1)), snp.zeros((1, 1))
    >>> outputs, last = st.nn.functional.rnn_tanh(x, None, [w, u], has_biases=False)
    >>> outputs.round(3).tolist(), last.shape
    ([[0.7620000243186951], [0.7620000243186951]], (1, 1))
    """
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first, key)
    out, (h,) = network(TANH, input, hx, params, *settings)
    return out, h


@_recurrent
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
        params: the weights, as for ``rnn_tanh``.

    As PyTorch's ``torch.rnn_relu``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, one = snp.ones((3, 1)), snp.ones((1, 1))
    >>> outputs, last = st.nn.functional.rnn_relu(x, None, [one, one], has_biases=False)
    >>> outputs.tolist()
    [[1.0], [2.0], [3.0]]
    """
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first, key)
    out, (h,) = network(RELU, input, hx, params, *settings)
    return out, h


@_recurrent
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
        hx: the initial states and cells, each (layers × directions, N, hidden); zeros for None.
        params: as for ``rnn_tanh``, with the rows of four gates: input, forget, cell, output. A
            further weight (out, hidden) after each layer's others projects its outputs, which are
            its states.

    Returns:
        The last layer's outputs, the last states, and the last cells.

    As PyTorch's ``torch.lstm``. Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997;
    Sak et al., Long Short-Term Memory Recurrent Neural Network Architectures, 2014, for
    projections.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, w, u = snp.ones((5, 3, 2)), snp.ones((16, 2)), snp.ones((16, 4))
    >>> outputs, h, c = st.nn.functional.lstm(x, None, [w, u], has_biases=False)
    >>> outputs.shape, h.shape, c.shape
    ((5, 3, 4), (1, 3, 4), (1, 3, 4))
    """
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first, key)
    out, (h, c) = network(LSTM, input, hx, params, *settings)
    return out, h, c


@_recurrent
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
        params: as for ``rnn_tanh``, with the rows of three gates: reset, update, new.

    As PyTorch's ``torch.gru``, whose reset gate multiplies after the product. Source: Cho et al.,
    Learning Phrase Representations using RNN Encoder-Decoder, 2014.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, w, u = snp.ones((5, 3, 2)), snp.ones((12, 2)), snp.ones((12, 4))
    >>> outputs, h = st.nn.functional.gru(x, None, [w, u], has_biases=False)
    >>> outputs.shape, h.shape
    ((5, 3, 4), (1, 3, 4))
    """
    settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first, key)
    out, (h,) = network(GRU, input, hx, params, *settings)
    return out, h


@_recurrent
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


@described_like(rnn_tanh_cell)
def rnn_relu_cell(
    input: ArrayLike,
    hx: ArrayLike | None,
    w_ih: ArrayLike,
    w_hh: ArrayLike,
    b_ih: ArrayLike | None = None,
    b_hh: ArrayLike | None = None,
) -> Array:
    """Compute one step of ``rnn_relu``.

    As PyTorch's ``torch.rnn_relu_cell``.

    >>> import stretto as st, stretto.numpy as snp
    >>> one = snp.ones((1, 1))
    >>> st.nn.functional.rnn_relu_cell(one, one, one, one)
    Array([[2.]], dtype=float32)
    """
    return cell(RELU, input, hx, w_ih, w_hh, b_ih, b_hh)[0]


@_recurrent
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


@described_like(rnn_tanh_cell)
def gru_cell(
    input: ArrayLike,
    hx: ArrayLike | None,
    w_ih: ArrayLike,
    w_hh: ArrayLike,
    b_ih: ArrayLike | None = None,
    b_hh: ArrayLike | None = None,
) -> Array:
    """Compute one step of ``gru``.

    As PyTorch's ``torch.gru_cell``.

    >>> import stretto as st, stretto.numpy as snp
    >>> w, u = snp.ones((12, 2)), snp.ones((12, 4))
    >>> st.nn.functional.gru_cell(snp.ones((3, 2)), None, w, u).shape
    (3, 4)
    """
    return cell(GRU, input, hx, w_ih, w_hh, b_ih, b_hh)[0]
