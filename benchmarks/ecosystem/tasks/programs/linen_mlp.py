"""A classifier of three dense layers with dropout: flax.linen and optax."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

from benchmarks.ecosystem.tasks.data import FLOAT, images
from benchmarks.ecosystem.tasks.serving import Steps, serve

BATCH, MEMBERS = 64, 8


class Classifier(nn.Module):
    """Dense layers, GELU and dropout between them."""

    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        x = x.reshape((x.shape[0], -1))
        for width in (128, 128):
            x = nn.gelu(nn.Dense(width, param_dtype=FLOAT)(x))
            x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(10, param_dtype=FLOAT)(x)


def created(key: jax.Array, x: Any) -> TrainState:
    """The state before the first step."""
    model = Classifier()
    params = model.init(key, x, train=False)["params"]
    return TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))


def trained(state: TrainState, key: jax.Array, x: Any, y: Any) -> tuple[TrainState, jax.Array]:
    """The state after a step, and the loss before it."""

    def loss_of(params: Any) -> jax.Array:
        rngs = {"dropout": jax.random.fold_in(key, state.step)}
        logits = state.apply_fn({"params": params}, x, train=True, rngs=rngs)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    loss, grads = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=grads), loss


def outputs(state: TrainState, x: Any) -> jax.Array:
    """What the network says of examples."""
    return state.apply_fn({"params": state.params}, x, train=False)


def single(count: int) -> Steps:
    """One network."""
    x, y = images(count * BATCH)
    state = jax.jit(created)(jax.random.key(0), x[:1])
    step = jax.jit(trained)
    for i in range(count):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        state, loss = step(state, jax.random.key(1), x[rows], y[rows])
        yield {"loss": loss}
    return {"logits": jax.jit(outputs)(state, x[:100])}


def ensemble(count: int) -> Steps:
    """Networks that begin differently, and see the same batches."""
    x, y = images(count * BATCH)
    firsts = jax.random.split(jax.random.key(0), MEMBERS)
    state = jax.jit(jax.vmap(created, (0, None)))(firsts, x[:1])
    keys = jax.random.split(jax.random.key(1), MEMBERS)
    step = jax.jit(jax.vmap(trained, (0, 0, None, None)))
    for i in range(count):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        state, loss = step(state, keys, x[rows], y[rows])
        yield {"loss": loss}
    logits = jax.jit(jax.vmap(outputs, (0, None)))(state, x[:100])
    return {"logits": logits, "mean": jnp.mean(logits, axis=0)}


if __name__ == "__main__":
    serve(single, ensemble)
