"""Operations that stand in a trace for what PyTorch cannot trace itself.

They compute nothing in PyTorch: each has a rule for shapes, and the table has its function. This
module imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.autograd.function import _SingleLevelFunction  # pyright: ignore[reportMissingImports]
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

_OWN = torch.library.Library("stretto", "FRAGMENT")


class _Passing(torch.autograd.Function):
    """Lets PyTorch see that gradients pass from the results of an operation to its operands."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Note it as PyTorch does, whatever is done with others' functions meanwhile."""
        return super(_SingleLevelFunction, cls).apply(*args)  # pyright: ignore

    @staticmethod
    def forward(ctx: Any, compute: Callable[[], Any], *operands: torch.Tensor) -> Any:
        """Compute the results, as a tuple where there are several."""
        results = compute()
        return tuple(results) if isinstance(results, list) else results

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        """Refuse: the trace is read, and not run."""
        raise NotImplementedError("operations of stretto are differentiated by stretto alone")


def _operation(schema: str, shape: Callable[..., Any]) -> None:
    """Define an operation with this rule for shapes, through which gradients are seen to pass."""
    _OWN.define(schema)
    name = schema.partition("(")[0]
    torch.library.register_fake(f"stretto::{name}", shape, lib=_OWN)
    operation = getattr(torch.ops.stretto, name).default

    def noted(*args: Any) -> Any:
        def compute() -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return operation(*args)

        operands = [x for x in pytree.tree_leaves(args) if isinstance(x, torch.Tensor)]
        if not torch.is_grad_enabled() or not any([x.requires_grad for x in operands]):
            return compute()
        results = _Passing.apply(compute, *operands)
        return list(results) if isinstance(results, tuple) else results

    _OWN.impl(name, noted, "Autograd")


def _alike(xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.empty_like(x) for x in xs]


def _steps(lengths: torch.Tensor, steps: int) -> torch.Tensor:
    return lengths.new_empty((steps, lengths.shape[0]), dtype=torch.bool)


def _batched(
    outputs: Sequence[torch.Tensor],
    examples: Sequence[torch.Tensor],
    operands: Sequence[torch.Tensor],
    in_dims: Sequence[int],
    out_dims: Sequence[int],
    randomness: str,
) -> list[torch.Tensor]:
    n = operands[0].shape[in_dims[0]]
    return [
        x.new_empty((*x.shape[: d % (x.ndim + 1)], n, *x.shape[d % (x.ndim + 1) :]))
        for x, d in zip(outputs, out_dims, strict=True)
    ]


_operation("binomial(Tensor count, Tensor prob) -> Tensor", lambda n, p: torch.empty_like(n + p))
_operation(
    "cdist(Tensor x, Tensor y, float p) -> Tensor",
    lambda x, y, p: x.new_empty(
        (*torch.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-2])
    ),
)
_operation(
    "cross_entropy_loss(Tensor x, Tensor target, Tensor? weight, int reduction, "
    "SymInt ignore_index, float label_smoothing) -> Tensor",
    lambda x, target, weight, reduction, *_: (
        x.new_empty(()) if reduction else x.new_empty((*x.shape[:1], *x.shape[2:]))
    ),
)
_operation(
    "nll_loss_nd(Tensor x, Tensor target, Tensor? weight, int reduction, SymInt ignore_index)"
    " -> Tensor",
    lambda x, target, weight, reduction, *_: (
        x.new_empty(()) if reduction else x.new_empty((*x.shape[:1], *x.shape[2:]))
    ),
)
_operation("fresh(Tensor x) -> Tensor", torch.empty_like)
_operation(
    "example(Tensor x, int dim) -> Tensor",
    lambda x, dim: x.new_empty((*x.shape[:dim], *x.shape[dim + 1 :])),
)
_operation(
    "grad(Tensor[] outputs, Tensor[] inputs, Tensor?[] cotangents) -> Tensor[]",
    lambda outputs, inputs, cotangents: _alike(inputs),
)
_operation(
    "jvp(Tensor[] outputs, Tensor[] inputs, Tensor[] tangents) -> Tensor[]",
    lambda outputs, inputs, tangents: _alike(outputs),
)
_operation(
    "vmap(Tensor[] outputs, Tensor[] examples, Tensor[] operands, int[] in_dims, int[] out_dims, "
    "str randomness) -> Tensor[]",
    _batched,
)
_operation("steps(Tensor lengths, SymInt steps) -> Tensor", _steps)
_operation(
    "recurrent(Tensor data, Tensor mask, Tensor places, Tensor[] states, Tensor[] weights, "
    "str mode, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional)"
    " -> Tensor[]",
    lambda data, mask, places, states, weights, mode, biases, layers, dropout, train, both: [
        data.new_empty((data.shape[0], states[0].shape[-1] * (1 + both))),
        *_alike(states),
    ],
)
OPS = torch.ops.stretto


def of_values(n: Any) -> bool:
    """Whether a size depends on values."""
    return not isinstance(n, int) and bool(free_unbacked_symbols(n))
