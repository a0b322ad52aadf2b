"""What is timed of the networks in PyTorch: eager, compiled; five by `vmap`, or in turn."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks.networks import table, torch_images, torch_others, torch_sequences
from benchmarks.worker import Case, Registry, Training
from benchmarks.workloads import Exact

__all__ = ["register"]

Function: TypeAlias = Callable[..., Any]

MODELS = torch_images.MODELS | torch_sequences.MODELS | torch_others.MODELS
ADAM = table.Adam()


def build(network: table.Network, member: int) -> torch.nn.Module:
    """The model with its first parameters."""
    model = MODELS[network.model](**network.settings).to(getattr(torch, network.dtype))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(table.draw(name, tuple(parameter.shape), member)))
    return model


def own_inputs(network: table.Network, member: int) -> tuple[tuple[Any, ...], Any]:
    """A member's batch; indices have 64 bits, which PyTorch wants."""
    x, target = table.inputs(network, member)
    return tuple(map(tensor, x)), tensor(target)


def tensor(array: Any) -> torch.Tensor:
    """A tensor of its own."""
    made = torch.tensor(array)
    return made if made.is_floating_point() else made.long()


def loss(model: Function, x: Any, target: Any) -> Any:
    """Cross-entropy of classes, squared error of numbers."""
    outputs = model(*x)
    if target.is_floating_point():
        return torch.mean((outputs - target) ** 2)
    if outputs.ndim == 3:  # (B, T, vocabulary)
        outputs, target = outputs.reshape(-1, outputs.shape[-1]), target.reshape(-1)
    return F.cross_entropy(outputs, target)


class Members:
    """The models as one: parameters stacked along axis 0, and the module that takes them."""

    def __init__(self, task: table.Task) -> None:
        models = [build(task.network, member) for member in range(task.members)]
        stacked, _ = torch.func.stack_module_state(models)
        self.params = {name: leaf.detach() for name, leaf in stacked.items()}
        self._module = copy.deepcopy(models[0]).to("meta")

    def call(self, params: Any, *x: Any, method: str = "forward") -> Any:
        """The model with one member's parameters."""
        module = self._module if method == "forward" else Stepping(self._module)
        prefix = "" if method == "forward" else "model."
        named = {prefix + name: leaf for name, leaf in params.items()}
        return torch.func.functional_call(module, named, x)


class Stepping(torch.nn.Module):
    """A model whose call is one token."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Any, cache: Any, position: Any) -> Any:
        return torch_sequences.decode(self.model, tokens, cache, position)


def adam(variables: list[torch.Tensor]) -> torch.optim.Optimizer:
    """The optimizer, with moments as the rows of the training step have them."""
    optimizer = torch.optim.Adam(
        variables,
        lr=ADAM.learning_rate,
        betas=(ADAM.decay_1, ADAM.decay_2),
        eps=ADAM.epsilon,
        fused=True,
    )
    for variable in variables:
        optimizer.state[variable] = {
            "step": torch.tensor(float(ADAM.count)),
            "exp_avg": torch.zeros_like(variable),
            "exp_avg_sq": torch.full_like(variable, ADAM.second),
        }
    return optimizer


def summary(
    network: table.Network, losses: Any, named: list[tuple[str, Any]], optimizer: Any, several: bool
) -> list[Any]:
    """What is compared of a step; `named` parameters come stacked, or member by member."""
    after: dict[str, list[Any]] = {}
    first: dict[str, list[Any]] = {}
    for name, variable in named:
        after.setdefault(name, []).append(variable.detach().numpy())
        first.setdefault(name, []).append(optimizer.state[variable]["exp_avg"].numpy())
    together = (lambda leaves: leaves[0]) if several else np.stack
    after_all = {name: together(leaves) for name, leaves in after.items()}
    first_all = {name: together(leaves) for name, leaves in first.items()}
    losses = losses.detach().numpy()
    before = {
        name: np.stack(
            [table.draw(name, leaf.shape[1:], member) for member in range(losses.shape[0])]
        )
        for name, leaf in after_all.items()
    }
    return table.summary(losses, before, after_all, first_all, network.kinks)


def vectorized(task: table.Task) -> Case:
    """All members by `torch.func.vmap`."""
    network, members = task.network, Members(task)
    own = [own_inputs(network, member) for member in range(task.members)]
    x = tuple(torch.stack(parts) for parts in zip(*(one for one, _ in own)))
    target = torch.stack([one for _, one in own])
    if task.kind == "forward":
        run = torch.func.vmap(lambda params, x: members.call(params, *x))
        # Not inference mode, in which `vmap` has no rule for an LSTM.
        call = torch.no_grad()(lambda: run(members.params, x))
        return Case(call, lambda outputs: table.digest(outputs.numpy()))
    if task.kind == "decode":
        one = partial(members.call, method="decode")
        run = torch.func.vmap(one, in_dims=(0, 0, 0, None))
        return decoding(task, lambda *state: run(members.params, *state))
    value = lambda params, x, target: loss(partial(members.call, params), x, target)
    gradients = torch.func.vmap(torch.func.grad_and_value(value))
    optimizer = adam(list(members.params.values()))

    def step() -> Any:
        slopes, losses = gradients(members.params, x, target)
        for name, variable in members.params.items():
            variable.grad = slopes[name]
        optimizer.step()
        return losses

    named = list(members.params.items())
    return Case(step, lambda losses: summary(network, losses, named, optimizer, True))


def looped(task: table.Task, compiled: bool) -> Case:
    """The members, or the only one, in turn; gradients by the tape."""
    network = task.network
    models = [build(network, member) for member in range(task.members)]
    data = [own_inputs(network, member) for member in range(task.members)]
    if compiled:
        torch.compiler.reset()  # after eight networks it would leave the function eager
    wrap = partial(torch.compile, dynamic=False) if compiled else lambda function: function
    if task.kind == "forward":
        run = wrap(lambda model, x: model(*x))

        @torch.inference_mode()
        def forward() -> Any:
            return [run(model, x) for model, (x, _) in zip(models, data)]

        return Case(forward, lambda outputs: table.digest(torch.stack(outputs).numpy()))
    if task.kind == "decode":
        token = wrap(torch_sequences.decode)

        def tokens(tokens: Any, cache: Any, position: Any) -> Any:
            states = zip(models, tokens, cache)
            results = [token(model, one, own, position) for model, one, own in states]
            return tuple(torch.stack([result[place] for result in results]) for place in (0, 2))

        return decoding(task, tokens)
    value = wrap(loss)
    named = [pair for model in models for pair in model.named_parameters()]
    optimizer = adam([variable for _, variable in named])

    def step() -> Any:
        optimizer.zero_grad()
        losses = [value(model, *both) for model, both in zip(models, data)]
        for one in losses:
            one.backward()
        optimizer.step()
        return torch.stack([one.detach() for one in losses])

    return Case(step, lambda losses: summary(network, losses, named, optimizer, False))


def decoding(task: table.Task, run: Function) -> Case:
    """One token of each member; caches are written in place, positions go around."""
    own = [table.cache(task.network, member) for member in range(task.members)]
    tokens = torch.stack([tensor(one) for one, _, _ in own])
    cache = torch.stack([torch.from_numpy(filled) for _, filled, _ in own])
    length = cache.shape[-2]

    @torch.inference_mode()
    def token(state: Any) -> Any:
        tokens, position = state
        after, *_, logits = run(tokens, cache, position)
        return (after, (position + 1) % length), logits

    start = tokens, torch.tensor([own[0][2]])
    return Case(Training(token, start), lambda result: table.digest(result[1].numpy()))


def register(cases: Registry) -> None:
    """Add every row; compiling takes a compiler for C++."""
    can_compile = shutil.which("g++") is not None
    for task in table.all_tasks():
        if task.members > 1:
            cases.add(task.name)(partial(vectorized, task))
        cases.add(task.name, "loop" if task.members > 1 else "")(partial(looped, task, False))
        if task.exact:
            cases.add(task.name, Exact.FORMULATION)(partial(looped, task.exact, False))
        if can_compile:
            cases.add(task.name, "compile")(partial(looped, task, True))
