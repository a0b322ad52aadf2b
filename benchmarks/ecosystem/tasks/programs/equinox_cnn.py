"""A classifier of images with convolutions, group normalization and dropout: equinox and optax."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import optax

from benchmarks.ecosystem.tasks.data import images
from benchmarks.ecosystem.tasks.serving import Steps, serve

BATCH, MEMBERS = 32, 4
OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))


class Classifier(eqx.Module):
    """Two convolutions, two dense layers; of one image."""

    first: eqx.nn.Conv2d
    second: eqx.nn.Conv2d
    norm: eqx.nn.GroupNorm
    pool: eqx.nn.AvgPool2d
    dropout: eqx.nn.Dropout
    head: eqx.nn.Sequential

    def __init__(self, key: jax.Array) -> None:
        keys = jax.random.split(key, 4)
        self.first = eqx.nn.Conv2d(1, 16, 3, padding=1, key=keys[0])
        self.second = eqx.nn.Conv2d(16, 32, 3, padding=1, key=keys[1])
        self.norm = eqx.nn.GroupNorm(4, 16)
        self.pool = eqx.nn.AvgPool2d(2, 2)
        self.dropout = eqx.nn.Dropout(0.1)
        self.head = eqx.nn.Sequential(
            [
                eqx.nn.Linear(512, 64, key=keys[2]),
                eqx.nn.Lambda(jax.nn.silu),
                eqx.nn.Linear(64, 10, key=keys[3]),
            ]
        )

    def __call__(self, x: Any, key: jax.Array | None = None, inference: bool = False) -> Any:
        x = self.pool(jax.nn.silu(self.norm(self.first(x[None]))))
        x = self.pool(jax.nn.silu(self.second(x)))
        return self.head(self.dropout(x.reshape(-1), key=key, inference=inference))


def created(key: jax.Array) -> tuple[Classifier, Any]:
    """A network, and the state of its optimizer."""
    model = Classifier(key)
    return model, OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))


def loss_of(model: Classifier, key: jax.Array, x: Any, y: Any) -> jax.Array:
    """The mean cross-entropy."""
    logits = jax.vmap(model)(x, jax.random.split(key, x.shape[0]))
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def trained(
    model: Classifier, state: Any, key: jax.Array, x: Any, y: Any
) -> tuple[Classifier, Any, jax.Array, jax.Array]:
    """The network, its optimizer's state and a new key after a step, and the loss before it."""
    key, own = jax.random.split(key)
    loss, grads = eqx.filter_value_and_grad(loss_of)(model, own, x, y)
    updates, state = OPTIMIZER.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, key, loss


def outputs(model: Classifier, x: Any) -> jax.Array:
    """What the network says of examples."""
    return jax.vmap(lambda one: model(one, inference=True))(x)


def single(count: int) -> Steps:
    """One network."""
    x, y = images(count * BATCH)
    model, state = created(jax.random.key(0))
    key = jax.random.key(1)
    step = eqx.filter_jit(trained)
    for i in range(count):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        model, state, key, loss = step(model, state, key, x[rows], y[rows])
        yield {"loss": loss}
    return {"logits": eqx.filter_jit(outputs)(model, x[:100])}


def ensemble(count: int) -> Steps:
    """Networks that begin differently, and see the same batches."""
    x, y = images(count * BATCH)
    model, state = eqx.filter_vmap(created)(jax.random.split(jax.random.key(0), MEMBERS))
    keys = jax.random.split(jax.random.key(1), MEMBERS)
    axis = eqx.if_array(0)
    step = eqx.filter_jit(eqx.filter_vmap(trained, in_axes=(axis, axis, 0, None, None)))
    for i in range(count):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        model, state, keys, loss = step(model, state, keys, x[rows], y[rows])
        yield {"loss": loss}
    every = eqx.filter_jit(eqx.filter_vmap(outputs, in_axes=(axis, None)))
    return {"logits": every(model, x[:100])}


if __name__ == "__main__":
    serve(single, ensemble)
