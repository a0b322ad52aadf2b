"""The workloads in JAX."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import workloads
from benchmarks.worker import Case, Registry, serve

Function: TypeAlias = Callable[..., Any]

cases = Registry()


@cases.add("eager-add")
def eager_add() -> Case:
    """`x + y` on 4 floats, each result awaited."""
    x, y = map(jnp.asarray, workloads.eager_add_inputs())
    add = lambda: (x + y).block_until_ready()  # noqa: PLW0108 (the addition is timed)
    return Case(add)


@cases.add("jitted-affine")
def jitted_affine() -> Case:
    """A compiled `x @ W + b`, each result awaited."""
    x, weights, bias = map(jnp.asarray, workloads.affine_inputs())
    affine = jax.jit(lambda x, weights, bias: x @ weights + bias)
    return Case(lambda: affine(x, weights, bias).block_until_ready())


def new_chain() -> Function:
    """1,000 multiplies by `x`, as a function that no cache has seen."""

    def chain(x: Any) -> Any:
        y = x
        for _ in range(workloads.CHAIN_LENGTH):
            y = y * x
        return y

    return chain


@cases.add("trace-chain")
def trace_chain() -> Case:
    """Python function to typed program."""
    x = jnp.asarray(workloads.chain_input())
    return Case(
        lambda chain: jax.jit(chain).trace(x),
        fresh=new_chain,
        arrays=lambda traced: [np.asarray(traced.lower().compile()(x))],
    )


@cases.add("lower-chain")
def lower_chain() -> Case:
    """Typed program to StableHLO.

    `lower` builds the module that the compiler takes; printing it (`as_text`, a fifth on top)
    is not needed to go on, so it is not charged.
    """
    x = jnp.asarray(workloads.chain_input())
    return Case(
        lambda traced: traced.lower(),
        fresh=lambda: jax.jit(new_chain()).trace(x),
        arrays=lambda lowered: [np.asarray(lowered.compile()(x))],
    )


@cases.add("product")
def product() -> Case:
    """`x @ y` on square matrices, compiled."""
    x, y = map(jnp.asarray, workloads.product_inputs())
    matmul = jax.jit(jnp.matmul)
    return Case(lambda: matmul(x, y).block_until_ready())


def apply(params: Any, x: Any) -> Any:
    """One network, one batch."""
    for weights, bias in params[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def loss(params: Any, data: tuple[Any, Any]) -> Any:
    """Mean squared error of one network on one batch."""
    x, target = data
    return jnp.mean((apply(params, x) - target) ** 2)


def vectorised(member: Function, params: Any, data: Any, batch: workloads.Batch) -> Function:
    """`vmap` over the members, compiled."""
    run = jax.jit(jax.vmap(member, in_axes=(0, 0 if batch == "own" else None)))
    return lambda: jax.block_until_ready(run(params, data))


def mapped(member: Function, params: Any, data: Any, batch: workloads.Batch) -> Function:
    """One member at a time, inside one compiled program."""
    if batch == "own":
        run = jax.jit(lambda params, data: jax.lax.map(lambda both: member(*both), (params, data)))
    else:
        run = jax.jit(lambda params, data: jax.lax.map(lambda one: member(one, data), params))
    return lambda: jax.block_until_ready(run(params, data))


def unrolled(member: Function, params: Any, data: Any, batch: workloads.Batch) -> Function:
    """The members written out one after the other, inside one compiled program."""
    members = unstack(params)
    if batch == "own":
        own = unstack(data)
        run = jax.jit(lambda members, own: list(map(member, members, own)))
        return lambda: jax.block_until_ready(run(members, own))
    run = jax.jit(lambda members, data: [member(one, data) for one in members])
    return lambda: jax.block_until_ready(run(members, data))


def looped(member: Function, params: Any, data: Any, batch: workloads.Batch) -> Function:
    """One compiled program, called for each member."""
    members, run = unstack(params), jax.jit(member)
    own = unstack(data) if batch == "own" else [data] * len(members)
    return lambda: jax.block_until_ready(list(map(run, members, own)))


def unstack(tree: Any) -> list[Any]:
    """The members' own trees."""
    return [jax.tree.map(itemgetter(i), tree) for i in range(workloads.MEMBERS)]


def flat(result: Any) -> list[Any]:
    """The leaves of a stacked result."""
    return jax.tree.leaves(result)


def flat_of_list(result: list[Any]) -> list[Any]:
    """The leaves of a result given member by member, stacked."""
    return [np.stack(leaves) for leaves in zip(*map(jax.tree.leaves, result), strict=True)]


def ensemble_forward(formulate: Function, arrays: Function, batch: workloads.Batch) -> Case:
    """The outputs of all members."""
    params, x, _ = jax.tree.map(jnp.asarray, workloads.ensemble_inputs(batch))
    return Case(formulate(apply, params, x, batch), arrays)


def ensemble_gradient(formulate: Function, arrays: Function, batch: workloads.Batch) -> Case:
    """The gradients of all members' losses with respect to their parameters."""
    params, x, target = jax.tree.map(jnp.asarray, workloads.ensemble_inputs(batch))
    return Case(formulate(jax.grad(loss), params, (x, target), batch), arrays)


FORMULATIONS = {
    "": (vectorised, flat),
    "lax.map": (mapped, flat),
    "unroll": (unrolled, flat_of_list),
    "loop": (looped, flat_of_list),
}

for _batch in workloads.BATCHES:
    for _name, (_formulate, _arrays) in FORMULATIONS.items():
        for _kind, _make in (("forward", ensemble_forward), ("gradient", ensemble_gradient)):
            _case = partial(_make, _formulate, _arrays, _batch)
            cases.add(f"ensemble-{_kind}-{_batch}", _name)(_case)


if __name__ == "__main__":
    serve("jax", ["jax", "jaxlib", "numpy"], "import jax, jax.numpy", cases)
