"""The workloads in PyTorch."""

from __future__ import annotations

import operator
from functools import partial

import torch

from benchmarks import ensembles_torch, shapes_torch, workloads
from benchmarks.models import torch_models as models
from benchmarks.worker import Case, Registry, serve

cases = Registry()


@cases.add("eager-add")
def eager_add() -> Case:
    """`x + y` on 4 floats; on the CPU a result is complete when it is returned."""
    return Case(partial(operator.add, *map(torch.from_numpy, workloads.eager_add_inputs())))


@cases.add("eager-product")
def eager_product() -> Case:
    """`x @ x` on 4 integers."""
    x = torch.from_numpy(workloads.eager_product_inputs())
    return Case(partial(operator.matmul, x, x))


@cases.add("eager-affine")
def eager_affine() -> Case:
    """`x @ W + b`."""
    x, weights, bias = map(torch.from_numpy, workloads.affine_inputs())
    return Case(lambda: x @ weights + bias)


@cases.add("eager-gradient")
def eager_gradient() -> Case:
    """The gradient of an MLP's loss, by the tape."""
    params, *data = ensembles_torch.tree_map(torch.from_numpy, workloads.mlp_inputs())
    params = ensembles_torch.tree_map(torch.Tensor.requires_grad_, params)
    loss = partial(models.loss, models.mlp)
    gradient = ensembles_torch.tape_gradient(loss)
    return Case(lambda: gradient(params, data), lambda result: ensembles_torch.flat(result[0]))


@cases.add("product")
def product() -> Case:
    """`x @ y` on square matrices."""
    return Case(partial(operator.matmul, *map(torch.from_numpy, workloads.product_inputs())))


ensembles_torch.register(cases)
shapes_torch.register(cases)


if __name__ == "__main__":
    serve("torch", ["torch", "numpy"], "import torch", cases, threads=torch.get_num_threads())
