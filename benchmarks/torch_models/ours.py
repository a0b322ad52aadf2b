"""Stretto's side: the same outputs, and the same training, as one compiled step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

import stretto as st
import stretto.numpy as snp
from benchmarks.torch_models.model import Call
from benchmarks.torch_models.reference import HYPERPARAMETERS, STEPS, Training, weights
from stretto.torch import ImportedModule

__all__ = ["arrays_of", "imported", "leaves_of", "outputs", "trained"]


def imported(call: Call, *, dynamic_batch: bool = True, train: bool = False) -> ImportedModule:
    """The module here; raises PyTorch's own error where its export refuses it."""
    return st.from_torch(
        call.module, call.args, call.kwargs, dynamic_batch=dynamic_batch, train=train
    )


def outputs(module: ImportedModule, call: Call) -> list[np.ndarray]:
    """The arrays that the module gives in evaluation mode."""
    args, kwargs = arrays_of(call)
    return [np.asarray(x) for x in leaves_of(module.eval()(*args, **kwargs))]


def trained(module: ImportedModule, call: Call, *, compiled: bool = True) -> Training:
    """Train the module, which stays as it is."""
    args, kwargs = arrays_of(call)
    module.train()
    optimizer = st.optim.adamw(**HYPERPARAMETERS)

    def loss(parameters: Any, buffers: Any) -> tuple[Any, Any]:
        results, after = st.func.functional_call(
            module, [parameters, buffers], args, kwargs, return_buffers=True
        )
        return _loss(results), after

    def step(parameters: Any, buffers: Any, state: Any) -> Any:
        (value, after), slope = st.value_and_grad(loss, has_aux=True)(parameters, buffers)
        updates, state = optimizer.update(slope, state, parameters)
        return value, slope, st.optim.apply_updates(parameters, updates), after, state

    if compiled:
        step = st.jit(step)
    parameters = dict(module.named_parameters())
    buffers = dict(module.named_buffers())
    state = optimizer.init(parameters)
    value, gradients, parameters, buffers, state = step(parameters, buffers, state)
    saved = module.state_dict()
    kept = _numpy({name: x for name, x in buffers.items() if name in saved})
    first = {"loss": np.asarray(value), "gradients": _numpy(gradients), "buffers": kept}
    for _ in range(STEPS - 1):
        _, _, parameters, buffers, state = step(parameters, buffers, state)
    return Training(**first, parameters=_numpy(parameters))


def _loss(results: Any) -> Any:
    """The loss that ``reference.trained`` describes."""
    terms = [
        (weights(x.shape, k) * x + x * x / 2).mean()
        for k, x in enumerate(leaves_of(results))
        if x.dtype.kind == "f"
    ]
    return sum(terms[1:], terms[0])


def leaves_of(results: Any) -> list[Any]:
    """The arrays among the results."""
    return [x for x in st.tree.leaves(results) if hasattr(x, "shape")]


def _numpy(arrays: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(x) for name, x in arrays.items()}


def arrays_of(call: Call) -> Any:
    """The arguments of the call, in arrays."""

    def array(x: Any) -> Any:
        return snp.asarray(x.detach().numpy()) if isinstance(x, torch.Tensor) else x

    return tree_map(array, (call.args, dict(call.kwargs)))
