"""The chains in JAX, as one writes them with ``vmap`` and ``lax.scan``."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.posteriors.table import CHAIN, curve, start, summary
from benchmarks.worker import Case, Registry, serve

cases = Registry()


@cases.add("sghmc")
def sghmc() -> Case:
    """All chains, in one program."""
    x, y = map(jnp.asarray, curve())
    rate, friction = CHAIN.rate, CHAIN.friction

    def outputs(p: Any, x: Any) -> Any:
        return jnp.tanh(x @ p["w"] + p["b"]) @ p["v"] + p["c"]

    def energy(p: Any) -> Any:
        off = y - outputs(p, x)
        prior = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(p))
        return 0.5 * jnp.sum(off**2) / CHAIN.noise**2 + 0.5 * prior

    def chain(params: Any, key: Any) -> Any:
        speed = jax.tree.map(jnp.zeros_like, params)

        def step(carry: Any, key: Any) -> Any:
            params, speed = carry
            gradient = jax.grad(energy)(params)
            leaves, structure = jax.tree.flatten(speed)
            keys = jax.random.split(key, len(leaves))
            noise = jax.tree.unflatten(
                structure,
                [jax.random.normal(k, v.shape) for k, v in zip(keys, leaves, strict=True)],
            )
            scale = (2 * friction * rate) ** 0.5
            speed = jax.tree.map(
                lambda v, g, n: (1 - friction * rate) * v - rate * g + scale * n,
                speed, gradient, noise,
            )  # fmt: skip
            params = jax.tree.map(lambda p, v: p + rate * v, params, speed)
            return (params, speed), outputs(params, x[::8])[:, 0]

        _, drawn = jax.lax.scan(step, (params, speed), jax.random.split(key, CHAIN.steps))
        return drawn

    keys = jax.random.split(jax.random.key(0), CHAIN.chains)
    run = jax.jit(jax.vmap(chain))
    starts = jax.tree.map(jnp.asarray, start())
    return Case(lambda: jax.block_until_ready(run(starts, keys)), summary)


if __name__ == "__main__":
    serve("jax", ["jax", "jaxlib", "numpy"], "import jax", cases)
