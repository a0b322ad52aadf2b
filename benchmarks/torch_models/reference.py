"""PyTorch's side: outputs, and a training of ten steps, in float64."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from benchmarks.torch_models.model import Call

__all__ = [
    "HYPERPARAMETERS",
    "Exact",
    "STEPS",
    "Training",
    "in_double",
    "nearly",
    "outputs",
    "trained",
    "weights",
]

STEPS = 10

HYPERPARAMETERS = {"learning_rate": 1e-4, "b1": 0.9, "b2": 0.999, "eps": 1e-6, "weight_decay": 0.01}
"""Those of AdamW, on both sides.

It divides gradients by their size plus eps: with a smaller eps, what rounding leaves of a gradient
that is 0 would be seen in the parameters. At ten times the rate, the steps of a ResNet-50 multiply
errors of 1e-12 by a hundred thousand.
"""

Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Training:
    """What is compared of a training.

    Args:
        loss: the loss of the first step.
        gradients: its gradients, by the names of the parameters.
        buffers: the buffers after the first step, such as BatchNorm's statistics.
        parameters: the parameters after all steps.
    """

    loss: np.ndarray
    gradients: Arrays
    buffers: Arrays
    parameters: Arrays


class _Wide(TorchFunctionMode):
    """Has what asks for float32 in so many words get float64.

    Language models compute norms and softmaxes in float32, whatever their weights are; rounding
    there would be all that a comparison shows.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        named = {name: _wide(x) for name, x in (kwargs or {}).items()}
        return func(*[_wide(x) for x in args], **named)


def _wide(x: Any) -> Any:
    return torch.float64 if x is torch.float32 else x


class Exact(TorchFunctionMode):
    """Has the derivative of hardsigmoid in float64: PyTorch takes its slope, 1/6, from float32."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("hardsigmoid", "hardsigmoid_"):
            return torch.clamp(args[0] + 3, 0, 6) / 6
        return func(*args, **(kwargs or {}))


@contextmanager
def in_double(call: Call, *, single: bool = True) -> Iterator[Call]:
    """The call in float64: its module, which changes, its arguments, and all that is computed.

    Where nothing asks for float32 in so many words, ``single=False`` leaves PyTorch as it is.
    """
    args, kwargs = tree_map(_double, (call.args, dict(call.kwargs)))
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Wide() if single else nullcontext():
            yield Call(call.module.double(), args, kwargs)
    finally:
        torch.set_default_dtype(before)


def _double(x: Any) -> Any:
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def outputs(call: Call) -> list[np.ndarray]:
    """The tensors that the module gives in evaluation mode."""
    with torch.no_grad():
        results = call.module.eval()(*call.args, **call.kwargs)
    return [x.numpy() for x in tree_leaves(results) if isinstance(x, torch.Tensor)]


def weights(shape: tuple[int, ...], k: int) -> np.ndarray:
    """What the elements of output ``k`` count in the loss."""
    return np.random.default_rng(k).uniform(0.5, 1.5, shape)


def trained(call: Call) -> Training:
    """Train the module, which changes.

    The loss is the mean of w·x + x²/2 over each output x of floats, with the ``weights`` w. What
    the loss does not depend on has no gradient in PyTorch, and is passed over by its optimizers;
    it gets a gradient of 0, as it has here.
    """
    module = call.module.train()
    named = {name: x for name, x in module.named_parameters() if x.requires_grad}
    optimizer = torch.optim.AdamW(
        named.values(),
        lr=HYPERPARAMETERS["learning_rate"],
        betas=(HYPERPARAMETERS["b1"], HYPERPARAMETERS["b2"]),
        eps=HYPERPARAMETERS["eps"],
        weight_decay=HYPERPARAMETERS["weight_decay"],
        fused=True,
    )
    first: dict[str, Any] = {}
    for step in range(STEPS):
        optimizer.zero_grad()
        with Exact():
            loss = _loss(module(*call.args, **call.kwargs))
        loss.backward()
        for x in named.values():
            x.grad = torch.zeros_like(x) if x.grad is None else x.grad
        if step == 0:
            first = {
                "loss": loss.detach().numpy().copy(),
                "gradients": {name: _copy(x.grad) for name, x in named.items()},
                "buffers": _buffers(module),
            }
        optimizer.step()
    return Training(**first, parameters={name: _copy(x) for name, x in named.items()})


def nearly(call: Call, before: Mapping[str, torch.Tensor]) -> Call:
    """The call, its module with these arrays, but for the last digit of some parameters."""
    call.module.load_state_dict(before)
    torch.manual_seed(1)
    with torch.no_grad():
        for x in call.module.parameters():
            x.mul_(1 + 1e-15 * torch.randn_like(x))
    return call


def _loss(results: Any) -> torch.Tensor:
    tensors = [x for x in tree_leaves(results) if isinstance(x, torch.Tensor)]
    terms = []
    for k, x in enumerate(tensors):
        if x.is_floating_point():
            terms.append((torch.from_numpy(weights(tuple(x.shape), k)) * x + x * x / 2).mean())
    return sum(terms[1:], terms[0])


def _buffers(module: nn.Module) -> Arrays:
    saved = module.state_dict()
    return {name: _copy(x) for name, x in module.named_buffers() if name in saved}


def _copy(x: Any) -> np.ndarray:
    return x.detach().numpy().copy()
