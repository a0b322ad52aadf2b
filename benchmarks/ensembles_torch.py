"""The ensembles in PyTorch: `torch.func.vmap`, that compiled, and a loop over the members."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch

from benchmarks import workloads_ensembles as ensembles
from benchmarks.models import torch_models as models
from benchmarks.worker import Case, Registry

__all__ = ["flat", "register", "tape_gradient", "tree_map"]

Function: TypeAlias = Callable[..., Any]


def vectorized(member: Function, task: ensembles.Task) -> Function:
    """`torch.func.vmap` over the members."""
    return torch.func.vmap(member, in_dims=(0, 0 if task.batch == "own" else None))


def compiled(member: Function, task: ensembles.Task) -> Function:
    """The same, compiled by TorchInductor."""
    return torch.compile(vectorized(member, task), dynamic=False)


def looped(member: Function, task: ensembles.Task) -> Function:
    """The members, in a list, one after the other."""
    if task.batch == "own":
        return lambda states, data: list(map(member, states, data))
    return lambda states, data: [member(one, data) for one in states]


def functional_gradient(loss: Function) -> Function:
    """The gradient and the value, by `torch.func`, which `vmap` takes."""
    return torch.func.grad_and_value(loss)


def tape_gradient(loss: Function) -> Function:
    """The gradient and the value, by the tape, which is the faster of the two in a loop."""

    def gradient(params: Any, data: Any) -> Any:
        value = loss(params, data)
        slopes = iter(torch.autograd.grad(value, leaves(params)))
        return tree_map(lambda _: next(slopes), params), value.detach()

    return gradient


FORMULATIONS: dict[str, tuple[Function, Function, bool]] = {
    "": (vectorized, functional_gradient, False),
    "compile": (compiled, functional_gradient, False),
    "loop": (looped, tape_gradient, True),
}
"""How the members are run, how one is differentiated, and whether they come as a list."""


def ensemble(task: ensembles.Task, formulation: str) -> Case:
    """One row in one formulation."""
    formulate, differentiate, listed = FORMULATIONS[formulation]
    members, own = task.ensemble.members, task.batch == "own"
    apply = models.APPLY[task.ensemble.model]
    arrays = flat_of_list if listed else flat
    inputs = ensembles.inputs(task.ensemble, task.batch)
    params, x, target = tree_map(torch.tensor, inputs)
    if task.kind == "step":
        target = target.argmax(dim=-1)
    data = x if task.kind == "forward" else (x, target)
    if listed:
        params = of_members(params, members)
        data = of_members(data, members) if own else data
    if task.kind == "forward":
        run = formulate(apply, task)

        def forward() -> Any:
            with torch.inference_mode():
                return run(params, data)

        return Case(forward, arrays)
    if listed:
        params = tree_map(torch.Tensor.requires_grad_, params)
    if task.kind == "step":
        gradients = formulate(differentiate(partial(models.cross_entropy, apply)), task)
        moments = tree_map(torch.tensor, ensembles.optimizer_state(inputs[0]))
        moments = of_members(moments, members) if listed else moments
        return training(gradients, params, moments, data, listed)
    gradients = formulate(differentiate(partial(models.loss, apply)), task)
    slopes = (lambda result: [one for one, _ in result]) if listed else (lambda result: result[0])
    return Case(lambda: gradients(params, data), lambda result: arrays(slopes(result)))


def training(gradients: Function, params: Any, moments: Any, data: Any, listed: bool) -> Case:
    """Steps of all members by one `torch.optim.AdamW`, in place."""
    how = ensembles.AdamW()
    firsts = [one[0] for one in moments] if listed else moments[0]
    seconds = [one[1] for one in moments] if listed else moments[1]
    variables = leaves(params)
    optimizer = torch.optim.AdamW(
        variables,
        lr=how.learning_rate,
        betas=(how.decay_1, how.decay_2),
        eps=how.epsilon,
        weight_decay=how.weight_decay,
        fused=True,
    )
    for variable, first, second in zip(variables, leaves(firsts), leaves(seconds), strict=True):
        optimizer.state[variable] = {
            "step": torch.tensor(float(how.count)),
            "exp_avg": first,
            "exp_avg_sq": second,
        }

    def step() -> Any:
        results = gradients(params, data)
        slopes = [one for one, _ in results] if listed else results[0]
        for variable, slope in zip(variables, leaves(slopes)):
            variable.grad = slope
        optimizer.step()
        return torch.stack([value for _, value in results]) if listed else results[1]

    def results(losses: Any) -> list[Any]:
        arrays = flat_of_list if listed else flat
        return [*arrays(params), *arrays(firsts), *arrays(seconds), losses.numpy()]

    return Case(step, results)


def of_members(tree: Any, members: int) -> list[Any]:
    """The members' own trees, with memory of their own."""
    return [tree_map(lambda leaf: leaf[i].clone(), tree) for i in range(members)]  # noqa: B023


def tree_map(function: Function, tree: Any) -> Any:
    """The tree of dicts, lists and tuples with `function` applied to each leaf."""
    if isinstance(tree, dict):
        return {name: tree_map(function, tree[name]) for name in sorted(tree)}
    if isinstance(tree, list | tuple):
        return type(tree)(tree_map(function, branch) for branch in tree)
    return function(tree)


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, in order; those of a dict in the order of its names."""
    tensors: list[Any] = []
    tree_map(tensors.append, tree)
    return tensors


def flat(result: Any) -> list[Any]:
    """The leaves of a stacked result."""
    return [leaf.detach().numpy() for leaf in leaves(result)]


def flat_of_list(result: list[Any]) -> list[Any]:
    """The leaves of a result given member by member, stacked."""
    return [
        torch.stack(members).detach().numpy() for members in zip(*map(leaves, result), strict=True)
    ]


def register(cases: Registry) -> None:
    """Add every row in every formulation; compiling takes a compiler for C++."""
    can_compile = shutil.which("g++") is not None
    for task in ensembles.all_tasks():
        for formulation in FORMULATIONS:
            left_out = f"torch {formulation}".strip() in task.ensemble.left_out
            if not left_out and (can_compile or formulation != "compile"):
                cases.add(task.name, formulation)(partial(ensemble, task, formulation))
