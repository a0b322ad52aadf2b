"""The rows in PyTorch, eagerly: layers and functions by their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from benchmarks.layers.catalogue import registry
from benchmarks.layers.row import Task, compared, cotangents, parameter
from benchmarks.parity.torch_worker import build, leaves
from benchmarks.worker import Case, serve

Function = Callable[..., Any]


def segment_sum(x: torch.Tensor, at: torch.Tensor, num_segments: int) -> torch.Tensor:
    """Rows of `x` added up by their number in `at`."""
    return x.new_zeros(num_segments, x.shape[1]).index_add(0, at, x)


OPERATIONS: dict[str, Function] = {
    "sort": lambda x: torch.sort(x).values,
    "argsort": lambda x: torch.argsort(x, stable=True),
    "top_k": lambda x, k: torch.topk(x, k).values,
    "argmax": lambda x: torch.argmax(x, -1),
    "cumsum": lambda x, axis: torch.cumsum(x, dim=axis),
    "cumprod": lambda x, axis: torch.cumprod(x, dim=axis),
    "cummax": lambda x, axis: torch.cummax(x, axis).values,
    "logsumexp": lambda x, axis: torch.logsumexp(x, dim=axis),
    "variance": lambda x, axis: torch.var(x, axis, correction=0),
    "norm": lambda x, axis: torch.linalg.vector_norm(x, dim=axis),
    "one_hot": lambda x, num_classes: functional.one_hot(x, num_classes).float(),
    "gather": lambda x, at: torch.gather(x, 1, at),
    "segment_sum": segment_sum,
    "masked_fill": lambda x, mask: x.masked_fill(mask == 0, -1e9),
    "einsum": lambda x, y: torch.einsum("bqhd,bkhd->bhqk", x, y),
}


def make(task: Task) -> Case:
    """One row at one size."""
    torch.manual_seed(0)
    inputs = [
        torch.tensor(x, dtype=torch.int64 if x.dtype.kind == "i" else None) for x in task.values
    ]
    if task.kind == "gradient":
        for x, differentiated in zip(inputs, task.differentiated):
            x.requires_grad_(differentiated)
    layer = task.layer
    if layer is None:
        module, name = None, task.row.target
        function = OPERATIONS.get(name) or getattr(functional, name)
        function = partial(function, **task.options)
    else:
        function = module = build(layer)
        load(module, task)
    by = [x for x in inputs if x.requires_grad]
    if module is not None:
        by += [x for _, x in sorted(module.named_parameters())]
    arguments, call = task.arranged(inputs), task.row.call
    through = getattr(functional, task.row.through) if task.row.through else None

    def forward() -> list[torch.Tensor]:
        args = (through(arguments[0], -1), *arguments[1:]) if through else arguments
        return leaves(function(*args, **call))

    if task.kind == "forward":

        def run() -> list[torch.Tensor]:
            with torch.inference_mode():
                return forward()

        return Case(run, partial(results, task, module))
    with torch.no_grad():
        weights = [torch.tensor(x) for x in cotangents([tuple(x.shape) for x in forward()])]
    if module is not None:
        load(module, task)

    def gradient() -> list[torch.Tensor]:
        outputs = forward()
        return [*outputs, *torch.autograd.grad(outputs, by, weights)]

    return Case(gradient, partial(results, task, module))


def load(module: torch.nn.Module, task: Task) -> None:
    """The parameters of all frameworks, and running statistics as they begin."""
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._NormBase):
            part.reset_running_stats()
    with torch.no_grad():
        for name, weight in module.named_parameters():
            weight.copy_(torch.tensor(parameter(name, tuple(weight.shape))))
    module.train(task.row.training)


def results(
    task: Task, module: torch.nn.Module | None, found: list[torch.Tensor]
) -> list[NDArray[Any]]:
    """What is compared: results, and running statistics after a step of training."""
    if module is not None and task.row.training:
        buffers = [x for _, x in sorted(module.named_buffers())]
        found = [*found, *[x for x in buffers if x.is_floating_point()]]
    return compared(task, [np.array(x.detach().numpy()) for x in found])


cases = registry("torch", make)


if __name__ == "__main__":
    serve("torch", ["torch", "numpy"], "import torch", cases, threads=torch.get_num_threads())
