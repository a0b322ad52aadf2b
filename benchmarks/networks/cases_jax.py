"""What is timed of the networks in JAX: alone; five by `vmap`, or in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.networks import jax_images, jax_others, jax_sequences, table
from benchmarks.networks.jax_layers import Take, recorded
from benchmarks.networks.stages import Program, register_stages
from benchmarks.worker import Case, Registry, Training
from benchmarks.workloads import Exact

__all__ = ["program", "register"]

Function: TypeAlias = Callable[..., Any]

MODELS = jax_images.MODELS | jax_sequences.MODELS | jax_others.MODELS
ADAM = table.Adam()


def apply_of(network: table.Network) -> Function:
    """The network as a function of `take` and its inputs."""
    return partial(MODELS[network.model], **network.settings)


def own_inputs(network: table.Network, member: int) -> Any:
    """A member's batch, images with channels last."""
    x, target = table.inputs(network, member)
    if x[0].ndim == 4:
        x = (np.ascontiguousarray(np.moveaxis(x[0], 1, -1)),)
    return x, target


def parameters(network: table.Network, shapes: dict[str, Any], member: int) -> dict[str, Any]:
    """First values by name, in JAX's layout."""
    draw = lambda *what: table.draw(*what).astype(network.dtype)
    return {
        name: np.ascontiguousarray(draw(name, shape, member).transpose(axes))
        for name, (shape, axes) in shapes.items()
    }


def loss(network: table.Network, params: Any, x: Any, target: Any) -> Any:
    """Cross-entropy of classes along the last axis, squared error of numbers."""
    outputs = apply_of(network)(taken(params), *x)
    if jnp.issubdtype(target.dtype, jnp.floating):
        return jnp.mean((outputs - target) ** 2)
    log_probabilities = jax.nn.log_softmax(outputs)
    return -jnp.mean(jnp.take_along_axis(log_probabilities, target[..., None], axis=-1))


def taken(params: dict[str, Any]) -> Take:
    """The parameters by name, whatever shape is expected."""
    return lambda name, *_: params[name]


def train_step(network: table.Network, state: Any, data: Any) -> tuple[Any, Any]:
    """One update by Adam (Kingma and Ba, 2015): the new state, and the loss before it."""
    params, first, second, count = state
    value, slope = jax.value_and_grad(partial(loss, network))(params, *data)
    count = count + 1
    first = jax.tree.map(lambda m, g: ADAM.decay_1 * m + (1 - ADAM.decay_1) * g, first, slope)
    second = jax.tree.map(lambda v, g: ADAM.decay_2 * v + (1 - ADAM.decay_2) * g * g, second, slope)
    scale_1, scale_2 = 1 / (1 - ADAM.decay_1**count), 1 / (1 - ADAM.decay_2**count)

    def update(p: Any, m: Any, v: Any) -> Any:
        return p - ADAM.learning_rate * m * scale_1 / (jnp.sqrt(v * scale_2) + ADAM.epsilon)

    return (jax.tree.map(update, params, first, second), first, second, count), value


def decode(network: table.Network, params: Any, tokens: Any, cache: Any, position: Any) -> Any:
    """The most probable next tokens, the cache with the present ones, and the outputs."""
    logits, cache = jax_sequences.gpt2_step(
        taken(params), tokens, cache, position, **network.settings
    )
    return jnp.argmax(logits, axis=-1), cache, logits


def stacked(trees: list[Any]) -> Any:
    """One tree with the members along axis 0, or the only one."""
    if len(trees) == 1:
        return jax.tree.map(jnp.asarray, trees[0])
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *trees)


def first_state(task: table.Task, shapes: dict[str, Any], members: Any) -> Any:
    """Parameters and moments of these members."""
    params = stacked([parameters(task.network, shapes, member) for member in members])
    first = jax.tree.map(jnp.zeros_like, params)
    second = jax.tree.map(lambda leaf: jnp.full_like(leaf, ADAM.second), params)
    count = np.full(len(members), ADAM.count, np.int32)
    return params, first, second, jnp.asarray(count if len(members) > 1 else count[0])


def shapes_of(network: table.Network) -> dict[str, Any]:
    """The parameters that the network takes."""
    return recorded(apply_of(network), *own_inputs(network, 0)[0])


def first_cache(task: table.Task, members: Any) -> tuple[Any, Any, int]:
    """Tokens, the cache with positions before heads, and the position."""
    own = [table.cache(task.network, member) for member in members]
    tokens, cache = stacked([(tokens, cache.swapaxes(3, 4)) for tokens, cache, _ in own])
    return tokens, cache, own[0][2]


def program(task: table.Task) -> Program:
    """The function that is compiled, its arguments, and what is compared of its results."""
    network, several, members = task.network, task.members > 1, range(task.members)
    shapes = shapes_of(network)
    data = stacked([own_inputs(network, member) for member in members])
    if task.kind == "step":
        run = partial(train_step, network)
        state = first_state(task, shapes, members)
        arrays = lambda result: summary(network, shapes, [result], several)
        return Program(jax.vmap(run) if several else run, (state, data), (0,), arrays)
    params = stacked([parameters(network, shapes, member) for member in members])
    if task.kind == "forward":
        run = forward(network)
        arrays = lambda result: outputs(task, [result], several)
        return Program(jax.vmap(run) if several else run, (params, data[0]), (), arrays)
    run = partial(decode, network)
    run = jax.vmap(run, in_axes=(0, 0, 0, None)) if several else run
    arrays = lambda result: outputs(task, [result[2]], several)
    return Program(run, (params, *first_cache(task, members)), (2,), arrays)


def forward(network: table.Network) -> Function:
    """The outputs."""
    return lambda params, x: apply_of(network)(taken(params), *x)


def summary(
    network: table.Network, shapes: dict[str, Any], results: list[Any], several: bool
) -> list[Any]:
    """What is compared of steps, given for all members at once, or one by one."""
    together = (lambda leaves: np.asarray(leaves[0])) if several else np.stack

    def named(place: int) -> dict[str, Any]:
        found = {}
        for name, (_, axes) in shapes.items():
            back = [0, *(1 + axis for axis in np.argsort(axes))]
            found[name] = together([state[place][name] for state, _ in results]).transpose(back)
        return found

    losses = together([value for _, value in results])
    before = {
        name: np.stack([table.draw(name, shape, member) for member in range(len(losses))])
        for name, (shape, _) in shapes.items()
    }
    return table.summary(losses, before, named(0), named(1), network.kinks)


def outputs(task: table.Task, results: list[Any], several: bool) -> list[Any]:
    """What is compared of outputs; those of pixels with channels first."""
    array = np.asarray(results[0]) if several else np.stack(results)
    return table.digest(np.moveaxis(array, -1, 2) if array.ndim == 5 else array)


def case(task: table.Task) -> Case:
    """All members as one program."""
    made = program(task)
    run = jax.jit(made.function, donate_argnums=made.donated)
    if task.kind == "forward":
        return Case(lambda: jax.block_until_ready(run(*made.arguments)), made.arrays)
    if task.kind == "step":
        state, data = made.arguments
        step = lambda state: jax.block_until_ready(run(state, data))
        return Case(Training(step, state), made.arrays)
    params, *start = made.arguments
    arrays = lambda result: outputs(task, [result[1]], task.members > 1)
    return Case(Training(partial(token, run, params), tuple(start)), arrays)


def token(run: Function, params: Any, state: Any) -> Any:
    """One token; positions go around."""
    tokens, cache, position = state
    tokens, cache, logits = jax.block_until_ready(run(params, tokens, cache, position))
    return (tokens, cache, (position + 1) % cache.shape[-3]), logits


def looped(task: table.Task) -> Case:
    """One compiled program, called for each member of a list."""
    network, members = task.network, range(task.members)
    shapes = shapes_of(network)
    data = [stacked([own_inputs(network, member)]) for member in members]
    if task.kind == "step":
        step = jax.jit(partial(train_step, network), donate_argnums=0)
        states = [first_state(task, shapes, [member]) for member in members]

        def steps(states: Any) -> Any:
            results = jax.block_until_ready(list(map(step, states, data)))
            return [state for state, _ in results], results

        return Case(
            Training(steps, states),
            lambda result: summary(network, shapes, result[1], several=False),
        )
    params = [stacked([parameters(network, shapes, member)]) for member in members]
    if task.kind == "forward":
        run = jax.jit(forward(network))
        xs = [x for x, _ in data]
        return Case(
            lambda: jax.block_until_ready(list(map(run, params, xs))),
            lambda results: outputs(task, results, several=False),
        )
    run = jax.jit(partial(decode, network), donate_argnums=2)
    starts = [first_cache(task, [member]) for member in members]

    def tokens(states: Any) -> Any:
        pending = [run(one, *state) for one, state in zip(params, states)]
        results = jax.block_until_ready(pending)
        after = [
            (new, cache, (state[2] + 1) % cache.shape[-3])
            for (new, cache, _), state in zip(results, states)
        ]
        return after, [logits for _, _, logits in results]

    return Case(Training(tokens, starts), lambda result: outputs(task, result[1], several=False))


def exact(task: table.Task) -> Case:
    """A step in float64."""
    with jax.enable_x64(True):
        return replace(case(task), within=partial(jax.enable_x64, True))


def register(cases: Registry) -> None:
    """Add every row; ensembles also as a loop."""
    for task in table.all_tasks():
        cases.add(task.name)(partial(case, task))
        if task.exact:
            cases.add(task.name, Exact.FORMULATION)(partial(exact, task.exact))
        if task.members > 1:
            cases.add(task.name, "loop")(partial(looped, task))
        register_stages(cases, task, partial(program, task), jax)
