"""PyTorch's samples, and what they call: each dispatched call, or the whole as it is exported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import stretto as st
from benchmarks.torch_samples.calls import Call, cloned, mapped
from benchmarks.torch_samples.tallies import Tallies, is_random
from stretto.torch.capture import WHOLE, capture
from stretto.torch.crossing import to_numpy
from stretto.torch.table import TABLE

__all__ = ["look_at_dispatched", "look_at_exported", "stays_whole"]

MOST = 60
"""Samples of one operation and dtype that are looked at."""

EXPORTED = 6
"""Samples of one operation that are exported, which takes half a second each."""

DTYPES = (torch.float64, torch.int64, torch.bool, torch.complex128)

_WHOLE = {f"aten.{name}" if "." in name else f"aten.{name}.default" for name in WHOLE}


class _Looking(TorchDispatchMode):
    """Runs each dispatched call through the table as well."""

    def __init__(self, tallies: Tallies) -> None:
        super().__init__()
        self.tallies = tallies
        self.differentiated: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = str(func), kwargs or {}
        if name not in TABLE:
            self.tallies.missing[name] += 1
            return func(*args, **kwargs)
        before = cloned((args, kwargs))
        result = func(*args, **kwargs)
        try:
            call = Call.of(name, *before, result)
        except TypeError as error:
            self.tallies.of[name].refused[str(error)[:80]] += 1
            return result
        if self.tallies.values(name, call):
            self.differentiated.append((name, call, func, *before))
        return result


def look_at_dispatched(op: Any, tallies: Tallies) -> None:
    """Call an operation's samples of several dtypes, and compare every call that it makes."""
    for dtype in [dtype for dtype in DTYPES if dtype in op.dtypes]:
        torch.manual_seed(0)
        looking = _Looking(tallies)
        try:
            for _, sample in zip(range(MOST), _samples(op, dtype), strict=False):
                with looking, st.nn.keys(st.random.key(0)):
                    op.op(sample.input, *sample.args, **sample.kwargs)
                while looking.differentiated:  # PyTorch has no gradients inside of the mode
                    tallies.gradients(*looking.differentiated.pop())
        except Exception as error:  # PyTorch's own
            tallies.missing[f"({op.name} of {dtype}: {type(error).__name__})"] += 1


def _samples(op: Any, dtype: torch.dtype) -> Iterator[Any]:
    return iter(op.sample_inputs("cpu", dtype, requires_grad=False))


class _Calls(torch.nn.Module):
    """A module that calls an operation."""

    def __init__(self, op: Any, sample: Any) -> None:
        super().__init__()
        self.op = op
        self.arguments = (sample.input, *sample.args), sample.kwargs

    def forward(self, *tensors: Any) -> Any:
        """What the operation gives for these tensors."""
        remaining = iter(tensors)
        args, kwargs = mapped(lambda _: next(remaining), self.arguments)
        out = self.op(*args, **kwargs)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def stays_whole(op: Any) -> bool:
    """Whether its samples may call an operation that an export keeps whole, or leaves as it is."""
    left = {name.split(".")[1] for name in TABLE if name.startswith("aten.")}
    packets = {name.partition(".")[0] for name in WHOLE} | left
    return op.name.startswith("nn.functional.") or op.name in packets


def look_at_exported(op: Any, tallies: Tallies) -> None:
    """Export an operation's samples, and compare the programs."""
    dtype = next((d for d in (torch.float64, torch.int64) if d in op.dtypes), None)
    if dtype is not None:
        for _, sample in zip(range(EXPORTED), _samples(op, dtype), strict=False):
            _compare_exported(op, sample, tallies)


def _compare_exported(op: Any, sample: Any, tallies: Tallies) -> None:
    module = _Calls(op.op, sample)
    tensors: list[Any] = []
    mapped(tensors.append, module.arguments)
    try:
        expected = [
            to_numpy(x, "torch_samples") for x in module(*tensors) if isinstance(x, torch.Tensor)
        ]
        found = capture(module, tensors, {}, train=False, dynamic_batch=False)
    except Exception:  # PyTorch's own: it cannot be called, or not be exported
        tallies.missing[f"({op.name}: not exported)"] += 1
        return
    ops = [node.op for node in found.graph.nodes]
    lacking = [one for one in ops if one not in TABLE]
    if lacking or any(map(is_random, ops)) or sample.kwargs.get("dropout_p"):
        tallies.missing.update(lacking)
        return
    given = iter([to_numpy(x, "torch_samples") for x in tensors])
    constants = [x.kind == "constant" for x in found.graph.inputs]
    arrays = [
        found.constants[x.name] if x.kind == "constant" else next(given) for x in found.graph.inputs
    ]
    name = next((one for one in ops if one in _WHOLE), op.name)
    call = Call(found.graph, arrays, expected)
    if tallies.values(name, call) and not any(constants):
        tallies.gradients(name, call, module, tuple(tensors), {})
