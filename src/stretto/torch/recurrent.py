"""Recurrent layers of any length: what PyTorch's exporter needs to know of them are their shapes.

PyTorch finds these by unrolling the layer over the example's steps, which fixes their number and
takes time. The layers stay whole here, so shapes are computed instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._C import DispatchKey  # pyright: ignore[reportMissingImports]
from torch._decomp import decomposition_table  # pyright: ignore[reportMissingImports]

__all__ = ["not_unrolled"]

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
