"""A call of PyTorch's, as a graph that runs here: the same values, the same gradients?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import stretto as st
from stretto.torch.crossing import to_numpy
from stretto.torch.graph import DType, Graph, Input, Node, Output, Ref, TensorType
from stretto.torch.run import run

__all__ = ["Call", "cloned", "comparable", "difference", "mapped"]

DROPPED = {"layout", "device", "pin_memory", "memory_format", "generator", "non_blocking"}
"""Arguments of PyTorch's that mean nothing here."""


@dataclasses.dataclass
class Call:
    """One call, as a graph of one operation."""

    graph: Graph
    arrays: list[np.ndarray]
    expected: list[np.ndarray]
    differentiable: list[int] = dataclasses.field(default_factory=list)
    """Which results PyTorch has gradients of; known when it was asked."""

    @classmethod
    def of(cls, name: str, args: Any, kwargs: Any, result: Any) -> Call:
        """The call of an operation; raises ``TypeError`` for what the graph has no form of."""
        tensors: list[Any] = []

        def plain(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                if x.layout is not torch.strided or x.is_quantized:
                    raise TypeError("sparse or quantised")
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

        positional = plain(args)
        named = [(k, plain(v)) for k, v in sorted(kwargs.items()) if k not in DROPPED]
        several = isinstance(result, (tuple, list))
        parts = list(result) if several else [result]
        types = [_type(part) for part in parts]
        inputs = [Input("argument", f"x{i}", _type(x)) for i, x in enumerate(tensors)]
        node = Node(
            name, positional, tuple([(k, v) for k, v in named if v is not None]), tuple(types), ""
        )
        nodes, value = [node], Ref(len(inputs))
        outputs = [value]
        if several:
            outputs = []
            for i in range(len(parts)):
                nodes.append(Node("operator.getitem", (value, i), (), (types[i],), ""))
                outputs.append(Ref(len(inputs) + 1 + i))
        graph = Graph(
            tuple(inputs), tuple(nodes), tuple([Output("result", "", x) for x in outputs])
        )
        expected = [
            to_numpy(x, "torch_samples") if isinstance(x, torch.Tensor) else np.asarray(x)
            for x in parts
        ]
        return cls(graph, [to_numpy(x, "torch_samples") for x in tensors], expected)

    @property
    def size(self) -> int:
        """The number of elements in it."""
        return sum([a.size for a in (*self.arrays, *self.expected)])

    def described(self) -> str:
        """What it was called with."""
        node = self.graph.nodes[0]
        shapes = [f"{a.dtype}{list(a.shape)}" for a in self.arrays]
        return f"[{shapes} args={node.args} {dict(node.kwargs)}]"[:300]

    def gradients_by_torch(
        self, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> list[np.ndarray] | None:
        """PyTorch's gradients of a combination of the results; None if there are none."""
        leaves: list[Any] = []

        def leaf(x: Any) -> Any:
            inexact = x.is_floating_point() or x.is_complex()
            leaves.append(x.detach().clone().requires_grad_(inexact))
            return leaves[-1]

        args, kwargs = mapped(leaf, (args, dict(sorted(kwargs.items()))))
        wrt = [x for x in leaves if x.requires_grad]
        try:
            with torch.enable_grad():
                out = function(*args, **kwargs)
                outs = out if isinstance(out, (tuple, list)) else [out]
                self.differentiable = [
                    k for k, x in enumerate(outs) if isinstance(x, torch.Tensor) and x.requires_grad
                ]
                if not wrt or not self.differentiable:
                    return None
                total = sum(
                    [(outs[k] * _torch_weights(outs[k], k)).sum() for k in self.differentiable]
                )
                total = total.real if total.is_complex() else total
                found = torch.autograd.grad(total, wrt, allow_unused=True)
        except (RuntimeError, NotImplementedError):  # it has no derivative
            return None
        return [
            to_numpy(torch.zeros_like(x) if g is None else torch.zeros_like(x) + g, "torch_samples")
            for x, g in zip(wrt, found, strict=True)
        ]

    def gradients(self) -> list[np.ndarray]:
        """The same, here."""
        where = [i for i, a in enumerate(self.arrays) if a.dtype.kind in "fc"]

        def total(chosen: list[Any]) -> Any:
            arrays = [st.numpy.asarray(a) for a in self.arrays]
            for i, x in zip(where, chosen, strict=True):
                arrays[i] = x
            outs = run(self.graph, arrays)
            parts = [
                (outs[k] * _weights(outs[k].shape, k).astype(outs[k].dtype)).sum()
                for k in self.differentiable
            ]
            return st.numpy.real(sum(parts))

        chosen = [st.numpy.asarray(self.arrays[i]) for i in where]
        found = st.grad(total)(chosen)
        # PyTorch's gradient of a real function of complex numbers is the conjugate of ours.
        return [np.conj(np.asarray(g)) for g in found]

    def to_json(self) -> dict[str, Any]:
        """The call, its arrays and results, as JSON."""
        return {
            "graph": self.graph.to_json(),
            "arrays": [_array_to_json(a) for a in self.arrays],
            "expected": [_array_to_json(a) for a in self.expected],
        }


def _weights(shape: Any, k: int) -> np.ndarray:
    return np.random.default_rng(k).uniform(0.5, 1.5, tuple(shape))


def _torch_weights(x: Any, k: int) -> Any:
    return torch.from_numpy(_weights(x.shape, k)).to(x.dtype)


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


def mapped(f: Any, tree: Any) -> Any:
    if isinstance(tree, torch.Tensor):
        return f(tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)([mapped(f, x) for x in tree]) if type(tree) in (list, tuple) else tree
    if isinstance(tree, dict):
        return {k: mapped(f, v) for k, v in tree.items()}
    return tree


def cloned(tree: Any) -> Any:
    return mapped(lambda x: x.detach().clone() if x.layout is torch.strided else x, tree)


FIRST = {
    "aten._embedding_bag.default": 1,
    "aten._embedding_bag_forward_only.default": 1,
    "aten._linalg_det.default": 1,
    "aten._linalg_slogdet.default": 2,
    "aten._linalg_solve_ex.default": 1,
    "aten.linalg_lu_factor_ex.default": 1,
    "aten.log_sigmoid_forward.default": 1,
    "aten.nll_loss_forward.default": 1,
    "aten.nll_loss2d_forward.default": 1,
}
"""Operations of which only the first results are its user's; the rest is for its backward pass."""

BY_INDEX = ("kthvalue", "topk", "sort", "median", "mode", "argsort")
"""Operations whose indices may be others where elements are equal."""


def comparable(name: str, call: Call, found: Any) -> tuple[Any, Any]:
    """What is compared of the results."""
    expected = call.expected
    if name in FIRST:
        return found[: FIRST[name]], expected[: FIRST[name]]
    if name == "aten._linalg_svd.default":  # up to the phases of singular vectors
        u, s, vh = map(np.asarray, found)
        if not u.size or not vh.size:
            return found[1:2], expected[1:2]
        a, k = call.arrays[0], s.shape[-1]
        return [s, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]], [expected[1], a]
    if name in ("aten._linalg_eigh.default", "aten.linalg_eig.default"):
        w, v = map(np.asarray, found)
        if name == "aten.linalg_eig.default":
            if not v.size:
                return [], []
            a = call.arrays[0].astype(v.dtype)
            return [a @ v], [v * w[..., None, :]]
        return [w], expected[:1]
    if (
        any([f".{part}." in name for part in BY_INDEX])
        and len(expected) == 2
        and call.arrays[0].ndim
    ):
        return found[:1], expected[:1]
    return found, expected


def difference(found: Any, expected: list[np.ndarray]) -> str:
    """What is wrong with results; empty if nothing is."""
    for k, (x, y) in enumerate(zip(found, expected, strict=True)):
        a = np.asarray(x)
        if a.shape != y.shape:
            return f"result {k} has shape {a.shape} and not {y.shape}"
        if a.dtype != y.dtype and y.dtype.kind in "fciub":
            return f"result {k} has dtype {a.dtype} and not {y.dtype}"
        wide = np.complex128 if y.dtype.kind == "c" else np.float64
        tolerance = {"float64": 1e-7, "complex128": 1e-7, "float16": 4e-3, "bfloat16": 3e-2}
        bound = tolerance.get(y.dtype.name, 2e-5)
        a, b = a.astype(wide), y.astype(wide)
        close = np.isclose(a, b, rtol=bound, atol=bound, equal_nan=True)
        if not close.all():
            i = int(np.flatnonzero(~close.ravel())[0])
            return f"result {k} differs: {a.ravel()[i]!r} and not {b.ravel()[i]!r}"
    return ""
