"""Rosenbrock's function minimized by CMA-ES: evosax."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from evosax.algorithms import CMA_ES

from benchmarks.ecosystem.tasks.data import nudged
from benchmarks.ecosystem.tasks.serving import Steps, serve

DIMENSIONS, POPULATION, GENERATIONS, MEMBERS = 16, 32, 20, 8


def rosenbrock(x: Any) -> jax.Array:
    """The function, least where all are 1."""
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


START = nudged(np.full(DIMENSIONS, -0.5))
STRATEGY = CMA_ES(population_size=POPULATION, solution=jnp.zeros(DIMENSIONS))


def created(key: jax.Array) -> Any:
    """The state before the first generation."""
    return STRATEGY.init(key, START, STRATEGY.default_params)


def evolved(state: Any, key: jax.Array) -> tuple[Any, Any]:
    """The state after some generations, and the best and mean of each."""
    params = STRATEGY.default_params

    def generation(state: Any, key: jax.Array) -> tuple[Any, Any]:
        asking, telling = jax.random.split(key)
        population, state = STRATEGY.ask(asking, state, params)
        fitness = jax.vmap(rosenbrock)(population)
        state, _ = STRATEGY.tell(telling, population, fitness, state, params)
        return state, (fitness.min(), fitness.mean())

    return jax.lax.scan(generation, state, jax.random.split(key, GENERATIONS))


def single(count: int) -> Steps:
    """One population."""
    state = jax.jit(created)(jax.random.key(0))
    evolve = jax.jit(evolved)
    for key in jax.random.split(jax.random.key(1), count):
        state, (best, mean) = evolve(state, key)
        yield {"best": best, "mean": mean}
    return {"center": state.mean, "std": state.std}


def ensemble(count: int) -> Steps:
    """Populations of their own keys."""
    state = jax.jit(jax.vmap(created))(jax.random.split(jax.random.key(0), MEMBERS))
    evolve = jax.jit(jax.vmap(evolved))
    for key in jax.random.split(jax.random.key(1), count):
        state, (best, mean) = evolve(state, jax.random.split(key, MEMBERS))
        yield {"best": best, "mean": mean}
    return {"center": state.mean, "std": state.std}


if __name__ == "__main__":
    serve(single, ensemble)
