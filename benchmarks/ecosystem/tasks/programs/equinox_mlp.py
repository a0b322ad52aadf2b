"""A classifier of dense layers: equinox and optax."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import optax

from benchmarks.ecosystem.tasks.data import images
from benchmarks.ecosystem.tasks.serving import Steps, serve

BATCH, MEMBERS = 64, 8
OPTIMIZER = optax.adamw(optax.cosine_decay_schedule(2e-3, 1000))


def created(key: jax.Array) -> tuple[eqx.nn.MLP, Any]:
    """A network, and the state of its optimizer."""
    model = eqx.nn.MLP(256, 10, width_size=128, depth=2, activation=jax.nn.gelu, key=key)
    return model, OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))


def loss_of(model: eqx.nn.MLP, x: Any, y: Any) -> jax.Array:
    """The mean cross-entropy."""
    logits = jax.vmap(model)(x.reshape(x.shape[0], -1))
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def trained(model: eqx.nn.MLP, state: Any, x: Any, y: Any) -> tuple[eqx.nn.MLP, Any, jax.Array]:
    """The network and its optimizer's state after a step, and the loss before it."""
    loss, grads = eqx.filter_value_and_grad(loss_of)(model, x, y)
    updates, state = OPTIMIZER.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, loss


def single(count: int) -> Steps:
    """One network."""
    x, y = images(count * BATCH)
    model, state = created(jax.random.key(0))
    step = eqx.filter_jit(trained)
    for i in range(count):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        model, state, loss = step(model, state, x[rows], y[rows])
        yield {"loss": loss}
    return {"logits": eqx.filter_jit(jax.vmap(model))(x[:100].reshape(100, -1))}


def ensemble(count: int) -> Steps:
    """Networks that begin differently, and see the same batches."""
    x, y = images(count * BATCH)
    keys = jax.random.split(jax.random.key(0), MEMBERS)
    model, state = eqx.filter_vmap(created)(keys)
    axis = eqx.if_array(0)
    step = eqx.filter_jit(eqx.filter_vmap(trained, in_axes=(axis, axis, None, None)))
    for i in range(count):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        model, state, loss = step(model, state, x[rows], y[rows])
        yield {"loss": loss}
    outputs = eqx.filter_vmap(lambda one, x: jax.vmap(one)(x), in_axes=(axis, None))
    return {"logits": eqx.filter_jit(outputs)(model, x[:100].reshape(100, -1))}


if __name__ == "__main__":
    serve(single, ensemble)
