"""A call of PyTorch's, as a graph that runs here."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

import stretto as st
from benchmarks.torch_samples.asked import Asked, as_array
from benchmarks.torch_samples.essence import of_any_phase, weights
from stretto.torch.programs.torch_graph import DType, Graph, Input, Node, Output, Ref, TensorType
from stretto.torch.programs.torch_program import run

__all__ = ["Call"]

DROPPED = {"layout", "device", "pin_memory", "memory_format", "generator", "non_blocking"}
"""Arguments of PyTorch's that mean nothing here."""


@dataclasses.dataclass
class Call:
    """What PyTorch was asked, its results, and the same as a graph."""

    asked: Asked
    graph: Graph
    arrays: list[np.ndarray]
    expected: list[np.ndarray]

    @classmethod
    def of(cls, asked: Asked) -> Call:
        """Ask PyTorch; raises ``TypeError`` for what the graph has no form of."""
        tensors: list[Any] = []

        def plain(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                if x.layout is not torch.strided or x.is_quantized:
                    raise TypeError("sparse or quantized")
                tensors.append(x)
                return Ref(len(tensors) - 1)
            if isinstance(x, (list, tuple)):
                return tuple([plain(part) for part in x])
            if isinstance(x, torch.dtype):
                return DType(str(x).removeprefix("torch."))
            if isinstance(x, (torch.device, torch.layout, torch.memory_format, torch.Generator)):
                return None
            if x is None or isinstance(x, (bool, int, float, complex, str)):
                return x
            raise TypeError(f"an argument of a {type(x).__name__}")

        positional = plain(asked.args)
        named = [(k, plain(v)) for k, v in asked.kwargs.items() if k not in DROPPED]
        arrays = [as_array(x) for x in tensors]  # before the call, which may write to them
        parts, several = asked.results()
        types = [_type(part) for part in parts]
        inputs = [Input("argument", f"x{i}", _type(x)) for i, x in enumerate(tensors)]
        known = tuple([(k, v) for k, v in named if v is not None])
        node = Node(asked.name, positional, known, tuple(types), "")
        nodes, value = [node], Ref(len(inputs))
        outputs = [value]
        if several:
            outputs = []
            for i in range(len(parts)):
                nodes.append(Node("operator.getitem", (value, i), (), (types[i],), ""))
                outputs.append(Ref(len(inputs) + 1 + i))
        results = tuple([Output("result", "", x) for x in outputs])
        graph = Graph(tuple(inputs), tuple(nodes), results)
        return cls(asked, graph, arrays, [as_array(x) for x in parts])

    @property
    def node(self) -> Node:
        """The first operation; of what was dispatched, the only one. A program may have none."""
        return next(iter(self.graph.nodes), Node("", (), (), (), ""))

    @property
    def size(self) -> int:
        """The number of elements in it."""
        return sum([a.size for a in (*self.arrays, *self.expected)])

    def described(self) -> str:
        """What it was called with."""
        shapes = [f"{a.dtype}{list(a.shape)}" for a in self.arrays]
        return f"[{shapes} args={self.node.args} {dict(self.node.kwargs)}]"[:300]

    def run(self) -> list[Any]:
        """The results here, but for those that are no arrays."""
        found = run(self.graph, [st.numpy.asarray(a) for a in self.arrays])
        return [x for x in found if hasattr(x, "shape")]

    def gradients(self, slopes: list[int]) -> list[np.ndarray]:
        """The gradients of PyTorch's combination of those results, here."""
        where = [i for i, a in enumerate(self.arrays) if a.dtype.kind in "fc"]

        def total(chosen: list[Any]) -> Any:
            arrays = [st.numpy.asarray(a) for a in self.arrays]
            for i, x in zip(where, chosen, strict=True):
                arrays[i] = x
            outs = run(self.graph, arrays)
            parts = [of_any_phase(self.asked.name, k, outs[k]) for k in slopes]
            sums = [
                (x * weights(x.shape, k).astype(x.dtype)).sum()
                for k, x in zip(slopes, parts, strict=True)
            ]
            return sum([st.numpy.real(x) for x in sums])

        found = st.grad(total)([st.numpy.asarray(self.arrays[i]) for i in where])
        # PyTorch's gradient of a real function of complex numbers is the conjugate of ours.
        return [np.conj(np.asarray(g)) for g in found]

    def to_json(self) -> dict[str, Any]:
        """The call, its arrays and results, as JSON."""
        return {
            "graph": self.graph.to_json(),
            "arrays": [_array_to_json(a) for a in self.arrays],
            "expected": [_array_to_json(a) for a in self.expected],
        }


def _array_to_json(a: np.ndarray) -> Any:
    if a.dtype.kind == "c":
        flat = [[float(x.real), float(x.imag)] for x in a.ravel()]
    elif a.dtype.kind == "b":
        flat = [bool(x) for x in a.ravel()]
    elif a.dtype.kind in "iu":
        flat = [int(x) for x in a.ravel()]
    else:
        flat = [
            repr(float(x)) if not np.isfinite(float(x)) else float(f"{float(x):.9g}")
            for x in a.ravel()
        ]
    return [a.dtype.name, list(a.shape), flat]


def _type(x: Any) -> TensorType | None:
    if not isinstance(x, torch.Tensor):
        return None
    return TensorType(str(x.dtype).removeprefix("torch."), tuple(x.shape))
