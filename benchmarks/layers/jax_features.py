"""JAX twins of what works over features."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import nn

from benchmarks.layers.jax_twins import Parameters, Twins, Updated

__all__ = ["dense", "layer_norm", "twins"]

twins = Twins()

EPS = 1e-5


@twins.add("Linear")
def dense(p: Parameters, x: jax.Array, **_: Any) -> jax.Array:
    return x @ p["weight"].T + p["bias"]


@twins.add("Bilinear")
def bilinear(p: Parameters, x: jax.Array, y: jax.Array, **_: Any) -> jax.Array:
    return jnp.einsum("ni,oij,nj->no", x, p["weight"], y) + p["bias"]


@twins.add("Embedding")
def embedding(p: Parameters, at: jax.Array, **_: Any) -> jax.Array:
    return p["weight"][at]


@twins.add("EmbeddingBag")
def embedding_bag(p: Parameters, at: jax.Array, mode: str, **_: Any) -> jax.Array:
    assert mode == "mean"
    return p["weight"][at].mean(1)


def channelwise(x: jax.Array, values: jax.Array) -> jax.Array:
    return values.reshape(-1, *[1] * (x.ndim - 2))


def scaled(p: Parameters, x: jax.Array) -> jax.Array:
    return x * channelwise(x, p["weight"]) + channelwise(x, p["bias"])


@twins.add("BatchNorm1d", "BatchNorm2d", "BatchNorm3d")
def batch_norm(p: Parameters, x: jax.Array, num_features: int) -> Any:
    if "training" not in p:
        factor = p["weight"] / jnp.sqrt(p["running_var"] + EPS)
        shift = p["bias"] - p["running_mean"] * factor
        return x * channelwise(x, factor) + channelwise(x, shift)
    axes = (0, *range(2, x.ndim))
    mean, variance = x.mean(axes), x.var(axes)
    y = (x - channelwise(x, mean)) / jnp.sqrt(channelwise(x, variance) + EPS)
    count = x.size / num_features
    buffers = {
        "running_mean": 0.9 * p["running_mean"] + 0.1 * mean,
        "running_var": 0.9 * p["running_var"] + 0.1 * variance * count / (count - 1),
    }
    return Updated(scaled(p, y), buffers)


def standardized(x: jax.Array, axes: Any) -> jax.Array:
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / jnp.sqrt(x.var(axes, keepdims=True) + EPS)


@twins.add("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")
def instance_norm(p: Parameters, x: jax.Array, **_: Any) -> jax.Array:
    return scaled(p, standardized(x, tuple(range(2, x.ndim))))


@twins.add("GroupNorm")
def group_norm(p: Parameters, x: jax.Array, num_groups: int, **_: Any) -> jax.Array:
    groups = x.reshape(x.shape[0], num_groups, -1)
    return scaled(p, standardized(groups, -1).reshape(x.shape))


@twins.add("LayerNorm")
def layer_norm(p: Parameters, x: jax.Array, **_: Any) -> jax.Array:
    return standardized(x, -1) * p["weight"] + p["bias"]


@twins.add("RMSNorm")
def rms_norm(p: Parameters, x: jax.Array, **_: Any) -> jax.Array:
    eps = jnp.finfo(x.dtype).eps
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + eps) * p["weight"]


@twins.add("LocalResponseNorm")
def local_response_norm(_: Parameters, x: jax.Array, size: int) -> jax.Array:
    window = (1, size, *[1] * (x.ndim - 2))
    pads = ((0, 0), (size // 2, (size - 1) // 2), *((0, 0),) * (x.ndim - 2))
    sums = jax.lax.reduce_window(x * x, 0.0, jax.lax.add, window, (1,) * x.ndim, pads)
    return x / (1 + 1e-4 * sums / size) ** 0.75


@twins.add("normalize")
def normalize(_: Parameters, x: jax.Array, dim: int) -> jax.Array:
    return x / jnp.maximum(jnp.linalg.norm(x, axis=dim, keepdims=True), 1e-12)


@twins.add("PReLU")
def prelu(p: Parameters, x: jax.Array, **_: Any) -> jax.Array:
    return jnp.where(x > 0, x, channelwise(x, p["weight"]) * x)


SLOPES = (1 / 8, 1 / 3)


@twins.add("RReLU")
def rrelu(p: Parameters, x: jax.Array) -> jax.Array:
    low, high = SLOPES
    slope: Any = (low + high) / 2
    if "training" in p:
        slope = jax.random.uniform(p["key"], x.shape, minval=low, maxval=high)
    return jnp.where(x >= 0, x, slope * x)


twins.each(
    {
        "ReLU": nn.relu,
        "ReLU6": nn.relu6,
        "LeakyReLU": nn.leaky_relu,
        "ELU": nn.elu,
        "SELU": nn.selu,
        "CELU": nn.celu,
        "GELU": lambda x, approximate="none": nn.gelu(x, approximate == "tanh"),
        "SiLU": nn.silu,
        "Mish": nn.mish,
        "Sigmoid": nn.sigmoid,
        "Tanh": jnp.tanh,
        "Softplus": nn.softplus,
        "Softsign": nn.soft_sign,
        "Hardtanh": nn.hard_tanh,
        "Hardswish": nn.hard_swish,
        "Hardsigmoid": nn.hard_sigmoid,
        "LogSigmoid": nn.log_sigmoid,
        "Tanhshrink": lambda x: x - jnp.tanh(x),
        "Softshrink": lambda x: jnp.where(x > 0.5, x - 0.5, jnp.where(x < -0.5, x + 0.5, 0.0)),
        "Hardshrink": lambda x: jnp.where(jnp.abs(x) > 0.5, x, 0.0),
        "Threshold": lambda x, threshold, value: jnp.where(x > threshold, x, value),
        "GLU": nn.glu,
        "Softmax": lambda x, dim: nn.softmax(x, axis=dim),
        "LogSoftmax": lambda x, dim: nn.log_softmax(x, axis=dim),
        "Softmax2d": partial(nn.softmax, axis=-3),
    }
)


@twins.add("gumbel_softmax")
def gumbel_softmax(p: Parameters, x: jax.Array) -> jax.Array:
    return nn.softmax(x + jax.random.gumbel(p["key"], x.shape))


@twins.add("Dropout")
def dropout(p: Parameters, x: jax.Array, /, **options: float) -> jax.Array:
    kept = jax.random.bernoulli(p["key"], 1 - options["p"], x.shape)
    return jnp.where(kept, x / (1 - options["p"]), 0.0)


@twins.add("Dropout2d")
def dropout2d(p: Parameters, x: jax.Array, /, **options: float) -> jax.Array:
    kept = jax.random.bernoulli(p["key"], 1 - options["p"], (*x.shape[:2], 1, 1))
    return jnp.where(kept, x / (1 - options["p"]), 0.0)


LEAST = -1.7580993408473766
"""The number that SELU tends to."""


def alpha_dropped(x: jax.Array, kept: jax.Array, rate: float) -> jax.Array:
    """As "Self-Normalizing Neural Networks" has it: mean and variance stay."""
    a = ((1 - rate) * (1 + rate * LEAST**2)) ** -0.5
    return a * jnp.where(kept, x, LEAST) - a * LEAST * rate


@twins.add("AlphaDropout")
def alpha_dropout(p: Parameters, x: jax.Array, /, **options: float) -> jax.Array:
    rate = options["p"]
    return alpha_dropped(x, jax.random.bernoulli(p["key"], 1 - rate, x.shape), rate)


@twins.add("FeatureAlphaDropout")
def feature_alpha_dropout(p: Parameters, x: jax.Array, /, **options: float) -> jax.Array:
    rate = options["p"]
    return alpha_dropped(x, jax.random.bernoulli(p["key"], 1 - rate, (*x.shape[:2], 1, 1)), rate)
