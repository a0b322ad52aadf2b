"""PyTorch's samples, and what they call: each dispatched call, or the whole as it is exported."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import stretto as st
from benchmarks.torch_samples.asked import Asked, as_array, cloned, mapped
from benchmarks.torch_samples.calls import Call
from benchmarks.torch_samples.tallies import Tallies, is_arbitrary
from stretto.torch.export.capture import WHOLE, capture
from stretto.torch.table import TABLE

__all__ = ["DTYPES", "look_at_dispatched", "look_at_exported", "stays_whole"]

MOST = 60
"""Samples of one operation and dtype that are looked at."""

EXPORTED = 6
"""Samples of one operation that are exported, which takes half a second each."""

DTYPES = {
    "float64": (torch.float64, torch.int64, torch.bool, torch.complex128),
    "float32": (torch.float32, torch.int32, torch.bool, torch.complex64),
}
"""The dtypes of samples, by that of the floats."""

_WHOLE = {f"aten.{name}" if "." in name else f"aten.{name}.default" for name in WHOLE}


class _Noting(TorchDispatchMode):
    """Notes each dispatched call that the table has.

    They are made again outside of it: inside of a mode, PyTorch's own functions forget that a
    tensor is a conjugate, so that its pseudo-inverses of complex matrices are wrong there.
    """

    def __init__(self, tallies: Tallies) -> None:
        super().__init__()
        self.tallies = tallies
        self.noted: list[Asked] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = str(func), kwargs or {}
        if name in TABLE:
            self.noted.append(Asked.of(name, func, *cloned((args, kwargs))))
        else:
            self.tallies.missing[name] += 1
        return func(*args, **kwargs)


def look_at_dispatched(op: Any, floats: str, tallies: Tallies) -> None:
    """Call an operation's samples of several dtypes, and compare every call that it makes."""
    for dtype in [dtype for dtype in DTYPES[floats] if dtype in op.dtypes]:
        torch.manual_seed(0)
        for sample in _samples(op, dtype, MOST, tallies):
            for function in _forms(op):
                _look_at_sample(op.name, function, sample, tallies)


def _look_at_sample(name: str, function: Callable[..., Any], sample: Any, tallies: Tallies) -> None:
    noting = _Noting(tallies)
    try:
        with noting:
            function(sample.input, *sample.args, **sample.kwargs)
    except Exception as error:  # PyTorch's own
        tallies.missing[f"({name} raises {type(error).__name__})"] += 1
    with st.nn.keys(st.random.key(0)):
        for asked in noting.noted:
            try:
                call = Call.of(asked)
            except TypeError as error:
                tallies.of[asked.name].refuse(error)
            else:
                tallies.look(call)


def _samples(op: Any, dtype: torch.dtype, most: int, tallies: Tallies) -> Iterator[Any]:
    """Give some of an operation's samples, and note it if PyTorch cannot make them."""
    try:
        made = iter(op.sample_inputs("cpu", dtype, requires_grad=False))
        for _ in range(most):
            yield next(made)
    except StopIteration:
        return
    except Exception as error:  # PyTorch's own
        tallies.missing[f"({op.name}: no samples of {dtype}, {type(error).__name__})"] += 1


def _forms(op: Any) -> list[Callable[..., Any]]:
    """Return the operation, and if its slopes need a Hermitian matrix or so, of such a one."""
    wrapper = op.gradcheck_wrapper
    if not wrapper.__name__.startswith("gradcheck_wrapper"):
        return [op.op]
    return [op.op, lambda *args, **kwargs: wrapper(op.op, *args, **kwargs)]


class _Calls(torch.nn.Module):
    """A module that calls a function with tensors at the places of others."""

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self.asked = asked

    def forward(self, *tensors: Any) -> Any:
        """What the function gives for these tensors."""
        remaining = iter(tensors)
        args, kwargs = mapped(lambda _: next(remaining), (self.asked.args, self.asked.kwargs))
        return self.asked.function(*args, **kwargs)


def _tensors_of(function: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    def called(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        out = function(*args, **kwargs)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    return called


def stays_whole(op: Any) -> bool:
    """Whether its samples may call an operation that an export keeps whole, or leaves as it is."""
    left = {name.split(".")[1] for name in TABLE if name.startswith("aten.")}
    packets = {name.partition(".")[0] for name in WHOLE} | left
    return op.name.startswith("nn.functional.") or op.name in packets


def look_at_exported(op: Any, floats: str, tallies: Tallies) -> None:
    """Export an operation's samples, and compare the programs."""
    dtype = next((d for d in DTYPES[floats][:2] if d in op.dtypes), None)
    if dtype is not None:
        torch.manual_seed(0)
        for sample in _samples(op, dtype, EXPORTED, tallies):
            args = (sample.input, *sample.args)
            asked = Asked.of(op.name, _tensors_of(op.op), args, sample.kwargs)
            _compare_exported(asked, tallies)


def _compare_exported(asked: Asked, tallies: Tallies) -> None:
    tensors: list[Any] = []
    mapped(tensors.append, (asked.args, asked.kwargs))
    arrays = [as_array(x) for x in tensors]
    try:
        expected = [as_array(x) for x in asked.results()[0] if isinstance(x, torch.Tensor)]
    except Exception as error:  # PyTorch's own
        tallies.missing[f"({asked.name} raises {type(error).__name__})"] += 1
        return
    try:
        found = capture(_Calls(asked), tensors, {}, train=False, dynamic_batch=False)
    except Exception as error:
        tallies.of[asked.name].refuse(error)
        return
    ops = [node.op for node in found.graph.nodes]
    lacking = [one for one in ops if one not in TABLE]
    if lacking or any(map(is_arbitrary, ops)) or asked.kwargs.get("dropout_p"):
        tallies.missing.update(lacking)
        return
    given = iter(arrays)
    constants = [x.kind == "constant" for x in found.graph.inputs]
    arrays = [
        found.constants[x.name] if x.kind == "constant" else next(given) for x in found.graph.inputs
    ]
    name = next((one for one in ops if one in _WHOLE), asked.name)
    whole = Asked(name, asked.function, asked.args, asked.kwargs)
    results = tuple([x for x in found.graph.outputs if x.kind == "result"])
    graph = dataclasses.replace(found.graph, outputs=results)
    tallies.look(Call(whole, graph, arrays, expected), slopes=not any(constants))
