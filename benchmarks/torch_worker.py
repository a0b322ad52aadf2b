"""The workloads in PyTorch, with `torch.func` for the ensembles."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch

from benchmarks import workloads
from benchmarks.worker import Case, Registry, serve

Function: TypeAlias = Callable[..., Any]

cases = Registry()


@cases.add("eager-add")
def eager_add() -> Case:
    """`x + y` on 4 floats; on the CPU a result is complete when it is returned."""
    return Case(partial(operator.add, *map(torch.from_numpy, workloads.eager_add_inputs())))


@cases.add("product")
def product() -> Case:
    """`x @ y` on square matrices."""
    return Case(partial(operator.matmul, *map(torch.from_numpy, workloads.product_inputs())))


def apply(params: Any, x: Any) -> Any:
    """One network, one batch."""
    for weights, bias in params[:-1]:
        x = torch.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def loss(params: Any, data: tuple[Any, Any]) -> Any:
    """Mean squared error of one network on one batch."""
    x, target = data
    return torch.mean((apply(params, x) - target) ** 2)


def vectorised(member: Function, params: Any, data: Any, batch: workloads.Batch) -> Function:
    """`torch.func.vmap` over the members."""
    run = torch.func.vmap(member, in_dims=(0, 0 if batch == "own" else None))
    return lambda: run(params, data)


def looped(member: Function, params: Any, data: Any, batch: workloads.Batch) -> Function:
    """The members one after the other."""
    members = unstack(params)
    own = unstack(data) if batch == "own" else [data] * len(members)
    return lambda: list(map(member, members, own))


def unstack(tree: Any) -> list[Any]:
    """The members' own trees."""
    return [tree_map(partial(member_of, i), tree) for i in range(workloads.MEMBERS)]


def member_of(index: int, leaf: torch.Tensor) -> torch.Tensor:
    """One member's own copy of a stacked tensor."""
    return leaf[index].clone()


def tree_map(function: Function, tree: Any) -> Any:
    """The tree of lists and tuples with `function` applied to each leaf."""
    if isinstance(tree, list | tuple):
        return type(tree)(tree_map(function, branch) for branch in tree)
    return function(tree)


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree of lists and tuples, in order."""
    if isinstance(tree, list | tuple):
        return [leaf for branch in tree for leaf in leaves(branch)]
    return [tree]


def flat(result: Any) -> list[Any]:
    """The leaves of a stacked result."""
    return [leaf.detach().numpy() for leaf in leaves(result)]


def flat_of_list(result: list[Any]) -> list[Any]:
    """The leaves of a result given member by member, stacked."""
    return [torch.stack(members).numpy() for members in zip(*map(leaves, result), strict=True)]


def on_device(batch: workloads.Batch) -> Any:
    """The ensemble's parameters, inputs and targets as tensors."""
    return tree_map(torch.from_numpy, workloads.ensemble_inputs(batch))


def ensemble_forward(formulate: Function, arrays: Function, batch: workloads.Batch) -> Case:
    """The outputs of all members, without the tape."""
    params, x, _ = on_device(batch)
    run = formulate(apply, params, x, batch)

    def forward() -> Any:
        with torch.no_grad():
            return run()

    return Case(forward, arrays)


def ensemble_gradient(formulate: Function, arrays: Function, batch: workloads.Batch) -> Case:
    """The gradients of all members' losses with respect to their parameters."""
    params, x, target = on_device(batch)
    return Case(formulate(torch.func.grad(loss), params, (x, target), batch), arrays)


FORMULATIONS = {"": (vectorised, flat), "loop": (looped, flat_of_list)}

for _batch in workloads.BATCHES:
    for _name, (_formulate, _arrays) in FORMULATIONS.items():
        for _kind, _make in (("forward", ensemble_forward), ("gradient", ensemble_gradient)):
            _case = partial(_make, _formulate, _arrays, _batch)
            cases.add(f"ensemble-{_kind}-{_batch}", _name)(_case)


if __name__ == "__main__":
    serve("torch", ["torch", "numpy"], "import torch", cases)
