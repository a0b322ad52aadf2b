"""The ensembles in JAX: `vmap`, `lax.map`, the members written out, and a loop of calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import workloads_ensembles as ensembles
from benchmarks.models import jax_models as models
from benchmarks.worker import Case, Registry, Training

__all__ = ["flat", "register"]

Function: TypeAlias = Callable[..., Any]


def vectorized(member: Function, task: ensembles.Task, donated: tuple[int, ...]) -> Function:
    """`vmap` over the members, compiled."""
    axes = (0, 0 if task.batch == "own" else None)
    return jax.jit(jax.vmap(member, in_axes=axes), donate_argnums=donated)


def mapped(member: Function, task: ensembles.Task, donated: tuple[int, ...]) -> Function:
    """One member at a time, inside one compiled program."""
    if task.batch == "own":
        run = lambda state, data: jax.lax.map(lambda both: member(*both), (state, data))
    else:
        run = lambda state, data: jax.lax.map(lambda one: member(one, data), state)
    return jax.jit(run, donate_argnums=donated)


def unrolled(member: Function, task: ensembles.Task, donated: tuple[int, ...]) -> Function:
    """The members, in a list, one after the other inside one compiled program."""
    if task.batch == "own":
        run = lambda states, data: together(list(map(member, states, data)), task)
    else:
        run = lambda states, data: together([member(one, data) for one in states], task)
    return jax.jit(run, donate_argnums=donated)


def looped(member: Function, task: ensembles.Task, donated: tuple[int, ...]) -> Function:
    """One compiled program, called for each member of a list."""
    run = jax.jit(member, donate_argnums=donated)
    if task.batch == "own":
        return lambda states, data: together(list(map(run, states, data)), task)
    return lambda states, data: together([run(one, data) for one in states], task)


def together(results: list[Any], task: ensembles.Task) -> Any:
    """The members' results; of training steps the states, and the losses."""
    return tuple(map(list, zip(*results))) if task.kind == "step" else results


def of_members(stacked: Any, members: int) -> list[Any]:
    """The members' own trees, with buffers of their own."""
    return [jax.tree.map(itemgetter(i), stacked) for i in range(members)]


def flat(result: Any) -> list[Any]:
    """The leaves of a stacked result."""
    return jax.tree.leaves(result)


def flat_of_list(result: list[Any]) -> list[Any]:
    """The leaves of a result given member by member, stacked."""
    return [np.stack(leaves) for leaves in zip(*map(jax.tree.leaves, result), strict=True)]


FORMULATIONS: dict[str, tuple[Function, bool]] = {
    "": (vectorized, False),
    "lax.map": (mapped, False),
    "unroll": (unrolled, True),
    "loop": (looped, True),
}
"""How the members are run, and whether they come as a list."""


def ensemble(task: ensembles.Task, formulation: str) -> Case:
    """One row in one formulation."""
    formulate, listed = FORMULATIONS[formulation]
    members, own = task.ensemble.members, task.batch == "own"
    apply = models.APPLY[task.ensemble.model]
    arrays = flat_of_list if listed else flat
    params, x, target = ensembles.inputs(task.ensemble, task.batch)
    if task.kind == "step":
        first, second = ensembles.optimizer_state(params)
        count = np.full(members, ensembles.AdamW().count, np.int32)
        state, data = (params, first, second, count), (x, target.argmax(axis=-1))
        member = partial(models.train_step, apply)
    elif task.kind == "gradient":
        state, data, member = params, (x, target), jax.grad(partial(models.loss, apply))
    else:
        state, data, member = params, x, apply
    state, data = jax.tree.map(jnp.asarray, (state, data))
    if listed:
        state = of_members(state, members)
        data = of_members(data, members) if own else data
    run = formulate(member, task, (0,) if task.kind == "step" else ())
    if task.kind != "step":
        return Case(lambda: jax.block_until_ready(run(state, data)), arrays)

    def results(result: tuple[Any, Any]) -> list[Any]:
        states, losses = result
        parts = [one[:3] for one in states] if listed else states[:3]
        return [*arrays(parts), np.asarray(losses)]

    return Case(Training(lambda state: jax.block_until_ready(run(state, data)), state), results)


def register(cases: Registry) -> None:
    """Add every row in every formulation."""
    for task in ensembles.all_tasks():
        for formulation in FORMULATIONS:
            if f"jax {formulation}".strip() not in task.ensemble.left_out:
                cases.add(task.name, formulation)(partial(ensemble, task, formulation))
