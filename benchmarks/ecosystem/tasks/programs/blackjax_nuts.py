"""A Bayesian logistic regression by NUTS, with its window adaptation: blackjax."""

from __future__ import annotations

from typing import Any

import blackjax
import jax
import jax.numpy as jnp
from jax.scipy import stats

from benchmarks.ecosystem.tasks.data import regression
from benchmarks.ecosystem.tasks.serving import Steps, serve

EXAMPLES, FEATURES, CHAINS = 200, 8, 4
WARM_UP, DRAWS = 100, 50

X, Y = regression(EXAMPLES, FEATURES)


def log_density(at: Any) -> jax.Array:
    """The logarithm of the posterior's density, but for a constant."""
    width = jnp.exp(at["log_width"])
    prior = stats.norm.logpdf(at["coefficients"], 0.0, width).sum()
    prior += stats.norm.logpdf(at["log_width"]) + stats.norm.logpdf(at["intercept"], 0.0, 2.0)
    logits = jnp.asarray(X) @ at["coefficients"] + at["intercept"]
    return prior + jnp.sum(Y * logits - jax.nn.softplus(logits))


def adapted(key: jax.Array) -> tuple[Any, Any]:
    """The state and the sampler's parameters after the adaptation."""
    start = {"coefficients": jnp.zeros(FEATURES), "intercept": 0.0, "log_width": 0.0}
    adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, parameters), _ = adaptation.run(key, start, num_steps=WARM_UP)
    return state, parameters


def drawn(key: jax.Array, state: Any, parameters: Any) -> tuple[Any, Any]:
    """The state after some transitions, and what was drawn in each."""
    kernel = blackjax.nuts(log_density, **parameters)

    def transition(state: Any, key: jax.Array) -> tuple[Any, Any]:
        state, about = kernel.step(key, state)
        return state, (state.position, about.num_integration_steps)

    return jax.lax.scan(transition, state, jax.random.split(key, DRAWS))


def single(count: int) -> Steps:
    """One chain."""
    state, parameters = jax.jit(adapted)(jax.random.key(0))
    draw = jax.jit(drawn)
    for key in jax.random.split(jax.random.key(1), count):
        state, (position, steps) = draw(key, state, parameters)
        yield {**position, "steps": steps}
    return {"step_size": parameters["step_size"]}


def ensemble(count: int) -> Steps:
    """Chains of their own keys."""
    keys = jax.random.split(jax.random.key(0), CHAINS)
    state, parameters = jax.jit(jax.vmap(adapted))(keys)
    draw = jax.jit(jax.vmap(drawn))
    for key in jax.random.split(jax.random.key(1), count):
        state, (position, steps) = draw(jax.random.split(key, CHAINS), state, parameters)
        yield {**position, "steps": steps}
    return {"step_size": parameters["step_size"]}


if __name__ == "__main__":
    serve(single, ensemble)
