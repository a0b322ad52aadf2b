"""What is timed of the networks in Stretto: programs of a step, of the outputs, of one token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import stretto as st
import stretto.numpy as snp
from benchmarks.networks import stretto_images, stretto_others, stretto_sequences, table
from benchmarks.networks.stages import Program, register_stages
from benchmarks.worker import Case, Registry, Training
from benchmarks.workloads import Exact
from stretto import nn, optim
from stretto.nn import functional as F

__all__ = ["build", "program", "register"]

Function: TypeAlias = Callable[..., Any]

MODELS = stretto_images.MODELS | stretto_sequences.MODELS | stretto_others.MODELS
ADAM = table.Adam()


def build(network: table.Network, member: int) -> nn.Module:
    """The model with its first parameters."""
    model = MODELS[network.model](**network.settings)
    shapes = {name: array.shape for name, array in model.named_parameters()}
    model.load_state_dict({name: table.draw(name, one, member) for name, one in shapes.items()})
    return model


def loss(model: Any, x: Any, target: Any) -> Any:
    """Cross-entropy of classes, squared error of numbers."""
    outputs = model(*x)
    if snp.issubdtype(target.dtype, snp.floating):
        return snp.mean((outputs - target) ** 2)
    if outputs.ndim == 3:  # (B, T, vocabulary)
        outputs, target = outputs.reshape(-1, outputs.shape[-1]), target.reshape(-1)
    return F.cross_entropy(outputs, target)


def optimizer() -> Any:
    """Adam, as the rows of the training step have it."""
    return optim.adam(ADAM.learning_rate, ADAM.decay_1, ADAM.decay_2, ADAM.epsilon)


def train_step(state: Any, data: Any) -> tuple[Any, Any]:
    """One update: the new model and optimizer state, and the loss before it."""
    model, memory = state
    value, slope = st.value_and_grad(loss)(model, *data)
    updates, memory = optimizer().update(slope, memory, model)
    return (optim.apply_updates(model, updates), memory), value


def program(task: table.Task) -> Program:
    """The function that is compiled, its arguments, and what is compared of its results."""
    network, several = task.network, task.members > 1
    models = [build(network, member) for member in range(task.members)]
    model = st.stack(models) if several else models[0]
    own = [table.inputs(network, member) for member in range(task.members)]
    data = st.tree.map(snp.asarray, st.stack(own) if several else own[0])
    if task.kind == "forward":
        forward = lambda model, x: model(*x)
        run = st.vmap(forward) if several else forward
        outputs = lambda result: table.digest(of_members(result, several))
        return Program(run, (model, data[0]), (), outputs)
    if task.kind == "decode":
        return decoding(task, model)
    memory = optimizer().init(model)
    adam = memory[0]._replace(
        count=snp.full(task.members if several else (), ADAM.count, snp.int32),
        nu=st.tree.map(lambda leaf: snp.full_like(leaf, ADAM.second), memory[0].nu),
    )
    before = named(model, several)  # parameters before they are given away

    def arrays(result: Any) -> list[Any]:
        (model, memory), losses = result
        return table.summary(
            of_members(losses, several),
            before,
            named(model, several),
            named(memory[0].mu, several),
            network.kinks,
        )

    run = st.vmap(train_step) if several else train_step
    return Program(run, ((model, (adam, *memory[1:])), data), (0,), arrays)


def decoding(task: table.Task, model: Any) -> Program:
    """One token of each member, at one position, which all share."""
    own = [table.cache(task.network, member) for member in range(task.members)]
    position = own[0][2]
    tokens, filled, _ = st.stack(own) if task.members > 1 else own[0]
    decode = stretto_sequences.decode
    run = st.vmap(decode, in_axes=(0, 0, 0, None)) if task.members > 1 else decode
    arrays = lambda result: table.digest(of_members(result[2], task.members > 1))
    return Program(run, (model, snp.asarray(tokens), snp.asarray(filled), position), (2,), arrays)


def of_members(array: Any, several: bool) -> Any:
    """With the members along axis 0."""
    return np.asarray(array) if several else np.asarray(array)[None]


def named(model: Any, several: bool) -> dict[str, Any]:
    """Parameters by name."""
    return {name: of_members(array, several) for name, array in model.named_parameters()}


def case(task: table.Task) -> Case:
    """What a call does, from the state that the call before left."""
    made = program(task)
    run = st.jit(made.function, donate_argnums=made.donated)
    if task.kind == "forward":
        return Case(lambda: st.block_until_ready(run(*made.arguments)), made.arrays)
    if task.kind == "step":
        state, data = made.arguments
        step = lambda state: st.block_until_ready(run(state, data))
        return Case(Training(step, state), made.arrays)
    model, tokens, filled, position = made.arguments
    length = filled.shape[-2]

    def token(state: Any) -> Any:
        tokens, filled, position = state
        tokens, filled, logits = st.block_until_ready(run(model, tokens, filled, position))
        return (tokens, filled, (position + 1) % length), logits

    arrays = lambda result: table.digest(of_members(result[1], task.members > 1))
    return Case(Training(token, (tokens, filled, position)), arrays)


def exact(task: table.Task) -> Case:
    """A step in float64."""
    with st.enable_x64():
        return replace(case(task), within=st.enable_x64)


def register(cases: Registry) -> None:
    """Add every row."""
    for task in table.all_tasks():
        cases.add(task.name)(partial(case, task))
        if task.exact:
            cases.add(task.name, Exact.FORMULATION)(partial(exact, task.exact))
        register_stages(cases, task, partial(program, task), st)
