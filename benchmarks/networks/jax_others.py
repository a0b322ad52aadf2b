"""A graph network and a neural ODE in JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.networks.jax_layers import Take, dense, inside, layer_norm

__all__ = ["MODELS"]


def message_layer(take: Take, nodes: Any, senders: Any, receivers: Any) -> Any:
    """Messages along edges, summed where they arrive, and an update of each node."""
    width = nodes.shape[1]
    ends = jnp.concatenate([nodes[senders], nodes[receivers]], axis=1)
    messages = dense(take, "message2", jax.nn.silu(dense(take, "message1", ends, width)), width)
    arrived = jax.ops.segment_sum(messages, receivers, nodes.shape[0])
    both = jnp.concatenate([nodes, arrived], axis=1)
    updates = dense(take, "update2", jax.nn.silu(dense(take, "update1", both, width)), width)
    return layer_norm(take, "norm", nodes + updates)


def graph(
    take: Take,
    nodes: Any,
    senders: Any,
    receivers: Any,
    inputs: int,
    width: int,
    layers: int,
    classes: int,
) -> Any:
    """A class for each node; as the interaction networks of Battaglia et al. (2016)."""
    nodes = dense(take, "encode", nodes, width)
    for place in range(layers):
        nodes = message_layer(inside(take, f"layers.{place}"), nodes, senders, receivers)
    return dense(take, "out", nodes, classes)


def ode(take: Take, y: Any, width: int, hidden: int, steps: int, unrolled: bool = False) -> Any:
    """Chen et al. (2018): where a learned flow leads in unit time, by Runge and Kutta's method."""
    size = 1 / steps

    def slope(y: Any) -> Any:
        return dense(take, "fc2", jnp.tanh(dense(take, "fc1", y, hidden)), width)

    def step(y: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + size / 2 * k1)
        k3 = slope(y + size / 2 * k2)
        k4 = slope(y + size * k3)
        return y + size / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    if unrolled:
        for _ in range(steps):
            y = step(y)
        return y
    return jax.lax.scan(lambda y, _: (step(y), None), y, length=steps)[0]


MODELS = {"graph": graph, "ode": ode}
