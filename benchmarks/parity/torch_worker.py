"""PyTorch's side: a process that carries out cases in both precisions, with gradients."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.parity.case import (
    Case,
    Fixed,
    Layer,
    Step,
    changed,
    cotangent,
    filled,
    packed,
    unpacked,
)
from benchmarks.worker import converse

PRECISIONS = {"float64": torch.float64, "float32": torch.float32}


def obey(command: dict[str, Any]) -> dict[str, Any]:
    """The results of one case, by precision; a refusal instead where PyTorch raises."""
    case = unpacked(command["case"])
    return {"results": packed({name: attempt(case, dtype) for name, dtype in PRECISIONS.items()})}


def attempt(case: Case, dtype: torch.dtype) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return carry_out(case, dtype)
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"}


def carry_out(case: Case, dtype: torch.dtype) -> dict[str, Any]:
    if isinstance(case.target, str):
        return {"steps": [step_of_function(case, dtype)]}
    module = build(case.target).to(dtype)
    initial = state_of(module)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.tensor(filled(name, tuple(parameter.shape))))
    loaded = state_of(module)
    steps = [step_of_layer(case, module, step, dtype) for step in case.steps]
    return {"initial": initial, "loaded": loaded, "steps": steps}


def build(layer: Layer) -> torch.nn.Module:
    """The module, and those among its arguments."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, Layer):
            return build(leaf)
        return torch.tensor(leaf.array if isinstance(leaf, Fixed) else leaf)

    args, kwargs = changed(layer.args, change), changed(layer.kwargs, change)
    return getattr(torch.nn, layer.name)(*args, **kwargs)


def state_of(module: torch.nn.Module) -> dict[str, Any]:
    return {name: array(value) for name, value in module.state_dict().items()}


def array(tensor: torch.Tensor) -> Any:
    """A copy: what PyTorch later writes in place does not show."""
    return np.array(tensor.detach().numpy())


def tensors(case: Case, step: Step, dtype: torch.dtype) -> tuple[Any, Any, list[torch.Tensor]]:
    """Arguments, and the tensors that are differentiated."""
    floats: list[torch.Tensor] = []

    def change(leaf: Any) -> torch.Tensor:
        if isinstance(leaf, Fixed):
            return torch.tensor(leaf.array, dtype=dtype)
        if leaf.dtype.kind != "f":
            return torch.tensor(leaf)
        floats.append(torch.tensor(leaf, dtype=dtype, requires_grad=True))
        return floats[-1]

    args, kwargs = changed(step.args, change), changed(step.kwargs, change)
    if case.through:
        args = (getattr(functional, case.through)(args[0], -1), *args[1:])
    return args, kwargs, floats


def step_of_function(case: Case, dtype: torch.dtype) -> dict[str, Any]:
    assert isinstance(case.target, str)
    args, kwargs, floats = tensors(case, case.steps[0], dtype)
    return differentiated(getattr(functional, case.target)(*args, **kwargs), floats, {})


def step_of_layer(
    case: Case, module: torch.nn.Module, step: Step, dtype: torch.dtype
) -> dict[str, Any]:
    module.train(step.training)
    args, kwargs, floats = tensors(case, step, dtype)
    results = differentiated(module(*args, **kwargs), floats, dict(module.named_parameters()))
    return {**results, "buffers": {name: array(value) for name, value in module.named_buffers()}}


def differentiated(
    output: Any, floats: list[torch.Tensor], parameters: Mapping[str, torch.Tensor]
) -> dict[str, Any]:
    """Outputs, and the gradients of the weighted sum of the floating ones."""
    tensors = leaves(output)
    outputs = [leaf for leaf in tensors if leaf.is_floating_point()]
    by = [*floats, *parameters.values()]
    gradients: list[torch.Tensor | None] = [None] * len(by)
    sums = [
        (leaf * torch.tensor(cotangent(tuple(leaf.shape), position), dtype=leaf.dtype)).sum()
        for position, leaf in enumerate(outputs)
        if leaf.requires_grad
    ]
    if sums and by:
        total = torch.stack(sums).sum()
        gradients = list(torch.autograd.grad(total, by, allow_unused=True))
    # What the result does not depend on has the gradient 0.
    full = [array(torch.zeros_like(x) if g is None else g) for g, x in zip(gradients, by)]
    return {
        "outputs": [array(leaf) for leaf in outputs],
        "others": [array(leaf) for leaf in tensors if not leaf.is_floating_point()],
        "gradients": full[: len(floats)],
        "parameters": dict(zip(parameters, full[len(floats) :])),
        "buffers": {},
    }


def leaves(output: Any) -> list[torch.Tensor]:
    if isinstance(output, (tuple, list)):
        return [leaf for item in output for leaf in leaves(item)]
    return [] if output is None else [output]


if __name__ == "__main__":
    torch.manual_seed(0)
    versions = {package: metadata.version(package) for package in ("torch", "numpy")}
    converse(obey, framework="torch", versions=versions)
