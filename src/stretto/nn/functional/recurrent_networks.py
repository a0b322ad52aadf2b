"""What recurrent networks share: the steps of each kind, and how they run over layers and time.

The inputs of all steps are multiplied by the weights at once, before a scan that only multiplies
the state. ``recurrence`` uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, DType, Key
from stretto._engine.higher_order.scan import scan
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.comparison import full
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.shape import slice_in_dim
from stretto.nn import functions
from stretto.nn.functional.affine import linear
from stretto.nn.functional.arguments import as_float
from stretto.nn.functional.checks import key_or_next, probability
from stretto.nn.functional.dropouts import dropout
from stretto.nn.piecewise_functions import relu
from stretto.random.keys import split

__all__ = ["GRU", "LSTM", "RELU", "TANH", "cell", "network"]


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
    c = functions.sigmoid(f) * c + functions.sigmoid(i) * functions.tanh(g)
    h = functions.sigmoid(o) * functions.tanh(c)
    return (h if projection is None else matmul(h, projection)), c


def _gru_step(
    x: Array, state: tuple[Array, ...], weight: Array, bias: Array | None, projection: Array | None
) -> tuple[Array, ...]:
    # r, z, n of W x + b and U h + c;  n = tanh(n + σ(r) n');  h' = (1 - σ(z)) n + σ(z) h
    (h,) = state
    product = matmul(h, weight)
    xr, xz, xn = _parts(x, 3)
    hr, hz, hn = _parts(product if bias is None else product + of_rank(bias, product.ndim), 3)
    z = functions.sigmoid(xz + hz)
    n = functions.tanh(xn + functions.sigmoid(xr + hr) * hn)
    return (n + z * (h - n),)


TANH = Kind("rnn_tanh", 1, _elman(functions.tanh))
RELU = Kind("rnn_relu", 1, _elman(relu))
LSTM = Kind("lstm", 4, _lstm_step, 2)
GRU = Kind("gru", 3, _gru_step)


def _prepared(kind: Kind, x: Array, weights: Weights) -> tuple[Array, Array | None]:
    """The input's product with the biases, except one that is added in the loop, and that bias."""
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
    """The outputs of all steps of (L, N, features), and the last state.

    Steps that are not ``valid``, booleans (L, N), leave the state as it is.
    """
    products, bias = _prepared(kind, x, weights)
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


def _grouped(
    caller: str, params: Sequence[ArrayLike], has_biases: bool, runs: int, projects: bool
) -> list[Weights]:
    """The flat list of weights, grouped by layer and direction."""
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
    """The initial states, of shapes ``(*lead, size)``; zeros for None."""
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
    """The outputs of the last layer, and the last states of all layers and directions.

    Where sequences end before others, ``valid`` (L, N) says which steps they have; their last
    states are those of their own last steps, and outputs behind these mean nothing.
    """
    caller, directions = kind.name, 1 + bidirectional
    x = as_float(input, caller)
    if x.ndim not in (2, 3):
        order = "(batch, length, features)" if batch_first else "(length, batch, features)"
        raise ValueError(f"{caller}: expected input {order} or (length, features), got {x.type}")
    p = probability(p, caller, "dropout") if train and num_layers > 1 else 0.0
    layers = _grouped(caller, params, has_biases, num_layers * directions, kind is LSTM)
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
    """The states after one step."""
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
    products, bias = _prepared(kind, x, weights)
    return kind.step(products, state, snp.swapaxes(weights.of_state, 0, 1), bias, None)
