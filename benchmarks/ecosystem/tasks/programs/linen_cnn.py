"""A classifier of images with convolutions and batch normalization: flax.linen and optax."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import optax
from flax.training.train_state import TrainState

from benchmarks.ecosystem.tasks.data import FLOAT, images
from benchmarks.ecosystem.tasks.serving import Steps, serve

BATCH, MEMBERS = 32, 4


class State(TrainState):
    """Parameters, state of the optimizer, and the running statistics."""

    statistics: Any


class Classifier(nn.Module):
    """Two convolutions with batch normalization, and two dense layers."""

    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        x = x[..., None]
        for features in (16, 32):
            x = nn.Conv(features, (3, 3), use_bias=False, param_dtype=FLOAT)(x)
            x = nn.BatchNorm(not train, momentum=0.9, param_dtype=FLOAT)(x)
            x = nn.avg_pool(nn.gelu(x), (2, 2), strides=(2, 2))
        x = x.reshape((x.shape[0], -1))
        x = nn.gelu(nn.Dense(64, param_dtype=FLOAT)(x))
        return nn.Dense(10, param_dtype=FLOAT)(x)


def created(key: jax.Array, x: Any) -> State:
    """The state before the first step."""
    model = Classifier()
    variables = model.init(key, x, train=False)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    return State.create(
        apply_fn=model.apply,
        params=variables["params"],
        statistics=variables["batch_stats"],
        tx=optimizer,
    )


def trained(state: State, x: Any, y: Any) -> tuple[State, jax.Array]:
    """The state after a step, and the loss before it."""

    def loss_of(params: Any) -> tuple[jax.Array, Any]:
        variables = {"params": params, "batch_stats": state.statistics}
        logits, changed = state.apply_fn(variables, x, train=True, mutable=["batch_stats"])
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
        return losses.mean(), changed["batch_stats"]

    (loss, statistics), grads = jax.value_and_grad(loss_of, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, statistics=statistics), loss


def outputs(state: State, x: Any) -> jax.Array:
    """What the network says of examples."""
    variables = {"params": state.params, "batch_stats": state.statistics}
    return state.apply_fn(variables, x, train=False)


def single(count: int) -> Steps:
    """One network."""
    x, y = images(count * BATCH)
    state = jax.jit(created)(jax.random.key(0), x[:1])
    step = jax.jit(trained)
    for i in range(count):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        state, loss = step(state, x[rows], y[rows])
        yield {"loss": loss}
    return {"logits": jax.jit(outputs)(state, x[:100])}


def ensemble(count: int) -> Steps:
    """Networks that begin differently, and see the same batches."""
    x, y = images(count * BATCH)
    keys = jax.random.split(jax.random.key(0), MEMBERS)
    state = jax.jit(jax.vmap(created, (0, None)))(keys, x[:1])
    step = jax.jit(jax.vmap(trained, (0, None, None)))
    for i in range(count):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        state, loss = step(state, x[rows], y[rows])
        yield {"loss": loss}
    return {"logits": jax.jit(jax.vmap(outputs, (0, None)))(state, x[:100])}


if __name__ == "__main__":
    serve(single, ensemble)
