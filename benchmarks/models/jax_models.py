"""One member of an ensemble, in JAX."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.workloads_ensembles import HEADS, AdamW

__all__ = ["APPLY", "loss", "mlp", "train_step"]


def mlp(params: Any, x: Any) -> Any:
    """Dense layers with ReLU between them."""
    for weights, bias in params[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def cnn(params: Any, x: Any, layout: str, kernels: str) -> Any:
    """3×3 convolutions with ReLU, the mean over positions, a dense layer."""
    for kernel, bias in params[:-1]:
        x = jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=(layout, kernels, layout)
        )
        x = jax.nn.relu(x + (bias if layout == "NHWC" else bias[:, None, None]))
    weights, bias = params[-1]
    positions = layout.index("H"), layout.index("W")
    return jnp.mean(x, axis=positions) @ weights + bias


def transformer(params: Any, x: Any) -> Any:
    """PyTorch's `TransformerEncoderLayer` without dropout: attention, two layers, post-norm."""
    batch, length, width = x.shape

    def dense(name: str, x: Any) -> Any:
        return x @ params[f"{name}_weight"] + params[f"{name}_bias"]

    def norm(name: str, x: Any) -> Any:
        x = x - jnp.mean(x, axis=-1, keepdims=True)
        x = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)
        return x * params[f"{name}_weight"] + params[f"{name}_bias"]

    def heads(x: Any) -> Any:
        return x.reshape(batch, length, HEADS, width // HEADS).transpose(0, 2, 1, 3)

    query, key, value = map(heads, jnp.split(dense("in_proj", x), 3, axis=-1))
    scores = query @ key.swapaxes(-1, -2) / (width // HEADS) ** 0.5
    mixed = (jax.nn.softmax(scores, axis=-1) @ value).transpose(0, 2, 1, 3).reshape(x.shape)
    x = norm("norm1", x + dense("out_proj", mixed))
    return norm("norm2", x + dense("linear2", jax.nn.relu(dense("linear1", x))))


APPLY = {
    "mlp": mlp,
    "cnn": partial(cnn, layout="NHWC", kernels="HWIO"),
    "cnn-nchw": partial(cnn, layout="NCHW", kernels="OIHW"),
    "transformer": transformer,
}


def loss(apply: Any, params: Any, data: Any) -> Any:
    """Mean squared error of one member on one batch."""
    x, target = data
    return jnp.mean((apply(params, x) - target) ** 2)


def cross_entropy(apply: Any, params: Any, data: Any) -> Any:
    """Softmax cross-entropy of one member; the targets are numbers of classes."""
    x, labels = data
    log_probabilities = jax.nn.log_softmax(apply(params, x))
    return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=1))


def train_step(apply: Any, state: Any, data: Any) -> tuple[Any, Any]:
    """One update by AdamW (Loshchilov and Hutter, 2019): the new state, and the loss before it."""
    params, first, second, count = state
    how = AdamW()
    value, slope = jax.value_and_grad(lambda params: cross_entropy(apply, params, data))(params)
    count = count + 1
    first = jax.tree.map(lambda m, g: how.decay_1 * m + (1 - how.decay_1) * g, first, slope)
    second = jax.tree.map(lambda v, g: how.decay_2 * v + (1 - how.decay_2) * g * g, second, slope)
    scale_1, scale_2 = 1 / (1 - how.decay_1**count), 1 / (1 - how.decay_2**count)

    def update(p: Any, m: Any, v: Any) -> Any:
        step = m * scale_1 / (jnp.sqrt(v * scale_2) + how.epsilon)
        return p - how.learning_rate * (step + how.weight_decay * p)

    return (jax.tree.map(update, params, first, second), first, second, count), value
