"""The workloads in PyTorch."""

from __future__ import annotations

import operator
from functools import partial

import torch

from benchmarks import ensembles_torch, workloads
from benchmarks.worker import Case, Registry, serve

cases = Registry()


@cases.add("eager-add")
def eager_add() -> Case:
    """`x + y` on 4 floats; on the CPU a result is complete when it is returned."""
    return Case(partial(operator.add, *map(torch.from_numpy, workloads.eager_add_inputs())))


@cases.add("product")
def product() -> Case:
    """`x @ y` on square matrices."""
    return Case(partial(operator.matmul, *map(torch.from_numpy, workloads.product_inputs())))


ensembles_torch.register(cases)


if __name__ == "__main__":
    serve("torch", ["torch", "numpy"], "import torch", cases)
