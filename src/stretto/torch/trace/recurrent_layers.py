"""Recurrent layers while PyTorch traces: of any length, and on packed sequences.

PyTorch finds the shapes of their results by unrolling a layer over the example's steps, which fixes
their number and takes time. The layers stay whole here, so shapes are computed instead.

How many elements packed sequences have depends on the lengths. They are what a mask of the steps of
all sequences selects, step by step, and recurrent networks run over the rectangle with that mask.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._C import DispatchKey  # pyright: ignore[reportMissingImports]
from torch._decomp import decomposition_table  # pyright: ignore[reportMissingImports]
from torch.nn.utils.rnn import PackedSequence  # pyright: ignore[reportMissingImports]

from stretto.torch.trace.stand_ins import OPS, of_values

_KEY = DispatchKey.CompositeImplicitAutograd


@contextmanager
def not_unrolled() -> Iterator[None]:
    """Export recurrent layers by their shapes alone."""
    aten = torch.ops.aten
    known = {
        aten.lstm.input: _lstm,
        aten.gru.input: _one_state,
        aten.rnn_tanh.input: _one_state,
        aten.rnn_relu.input: _one_state,
    }
    before = [(op, op.py_kernels[_KEY], decomposition_table[op]) for op in known]
    for op, shapes in known.items():
        op.py_kernels[_KEY] = decomposition_table[op] = shapes
    try:
        yield
    finally:
        for op, kernel, decomposition in before:
            op.py_kernels[_KEY], decomposition_table[op] = kernel, decomposition


def _lstm(x: Any, states: Sequence[Any], *settings: Any) -> tuple[Any, Any, Any]:
    out, hidden = _one_state(x, states[0], *settings)
    return out, hidden, torch.empty_like(states[1])


def _one_state(
    x: Any,
    state: Any,
    weights: Any,
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, Any]:
    """Empty results: (…, directions · size of the state), and a state as it was."""
    size = (2 if bidirectional else 1) * state.shape[-1]
    return x.new_empty((*x.shape[:-1], size)), torch.empty_like(state)


_KNOWN = threading.local()


@contextmanager
def packing() -> Iterator[None]:
    """Remember the packed sequences that are made meanwhile."""
    _KNOWN.packed = {}
    try:
        yield
    finally:
        _KNOWN.packed = {}


def _pack(
    input: torch.Tensor, lengths: torch.Tensor, batch_first: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """``torch._VF._pack_padded_sequence``: the elements, and how many sequences have each step."""
    x = input.transpose(0, 1) if batch_first else input
    steps = x.shape[0]
    known = _KNOWN.packed
    for other, sizes, mask, places, _ in known.values():
        if other is lengths and _same_size(mask.shape[0], steps):
            return x.flatten(0, 1).index_select(0, places), sizes
    mask = OPS.steps(lengths, steps)
    places = mask.flatten().nonzero().squeeze(1)
    some = mask.any(1).nonzero().squeeze(1)
    sizes = mask.sum(1).index_select(0, some)
    known[id(sizes)] = lengths, sizes, mask, places, some
    return x.flatten(0, 1).index_select(0, places), sizes


def _same_size(n: Any, m: Any) -> bool:
    """Whether two sizes are known to be equal, without asking."""
    return n is m or str(n) == str(m)


def _packed(sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The mask of a packed sequence, the places of its true elements, and the steps that are."""
    if id(sizes) not in _KNOWN.packed:
        raise NotImplementedError(
            "from_torch: a packed sequence that pack_padded_sequence did not make inside of "
            "forward: pass the rectangle and the lengths, and pack them there"
        )
    return _KNOWN.packed[id(sizes)][2:]


def _unpack(
    data: torch.Tensor,
    sizes: torch.Tensor,
    batch_first: bool,
    padding_value: float,
    total_length: Any = -1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``torch._VF._pad_packed_sequence``: a rectangle, and the lengths.

    It is as long as it should be or, by default, as the longest.
    """
    mask, places, some = _packed(sizes)
    steps, count = mask.shape
    flat = data.new_full((steps * count, *data.shape[1:]), padding_value)
    rows = flat.index_put((places,), data)
    x = rows.unflatten(0, (steps, count))
    if of_values(total_length):
        x = x.index_select(0, some)
    elif not _same_size(total_length, steps):
        more = x.new_full((total_length - steps, *x.shape[1:]), padding_value)
        x = torch.cat([x, more])
    return (x.transpose(0, 1) if batch_first else x), mask.sum(0)


def _recurrent(network: Any, input: Any, hx: Any = None) -> Any:
    """``forward`` of recurrent networks."""
    if not isinstance(input, PackedSequence):
        return _FORWARDS[network.mode](network, input, hx)
    data, sizes, order, back = input
    mask, places, _ = _packed(sizes)
    lead = network.num_layers * (1 + network.bidirectional), mask.shape[1]
    own = [network.proj_size or network.hidden_size]
    if network.mode == "LSTM":
        own.append(network.hidden_size)
    if hx is None:
        states = [data.new_zeros((*lead, n)) for n in own]
    else:
        given = [hx] if isinstance(hx, torch.Tensor) else list(hx)
        states = [h if order is None else h.index_select(1, order) for h in given]
    data, *last = OPS.recurrent(
        data,
        mask,
        places,
        states,
        [getattr(network, name) for name in network._flat_weights_names],
        network.mode,
        network.bias,
        network.num_layers,
        network.dropout,
        network.training,
        network.bidirectional,
    )
    last = [h if back is None else h.index_select(1, back) for h in last]
    packed = PackedSequence(data, sizes, order, back)
    return packed, (tuple(last) if network.mode == "LSTM" else last[0])


_FORWARDS = {
    "GRU": torch.nn.GRU.forward,
    "LSTM": torch.nn.LSTM.forward,
    "RNN_RELU": torch.nn.RNN.forward,
    "RNN_TANH": torch.nn.RNN.forward,
}
CALLED: dict[Any, Callable[..., Any]] = {
    torch._VF._pack_padded_sequence: _pack,
    torch._VF._pad_packed_sequence: _unpack,
}
PATCHED: list[tuple[Any, str, Callable[..., Any]]] = [
    (torch.nn.GRU, "forward", _recurrent),
    (torch.nn.LSTM, "forward", _recurrent),
    (torch.nn.RNN, "forward", _recurrent),
]
