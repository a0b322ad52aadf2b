"""JAX twins of losses, distances, and of operations beside layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax, nn

from benchmarks.layers.jax_twins import Twins

__all__ = ["twins"]

twins = Twins()


def huber(x: jax.Array, y: jax.Array) -> jax.Array:
    """Also the smooth L1 loss, where both change at 1."""
    size = jnp.abs(x - y)
    return jnp.where(size < 1, 0.5 * size**2, size - 0.5).mean()


def picked(x: jax.Array, at: jax.Array) -> jax.Array:
    """The numbers of the classes `at`, which are along axis 1."""
    return jnp.take_along_axis(x, at[:, None], 1)[:, 0]


def cross_entropy(x: jax.Array, at: jax.Array, label_smoothing: float = 0.0) -> jax.Array:
    logs = nn.log_softmax(x, 1)
    loss = -picked(logs, at)
    if label_smoothing:
        loss = (1 - label_smoothing) * loss - label_smoothing * logs.mean(1)
    return loss.mean()


def multi_margin(x: jax.Array, at: jax.Array) -> jax.Array:
    margins = jnp.maximum(0, 1 - x[jnp.arange(len(at)), at][:, None] + x)
    others = jnp.where(nn.one_hot(at, x.shape[1], dtype=bool), 0, margins)
    return others.sum(1).mean() / x.shape[1]


def binary(x: jax.Array, y: jax.Array) -> jax.Array:
    logs = jnp.maximum(jnp.log(x), -100), jnp.maximum(jnp.log1p(-x), -100)
    return -(y * logs[0] + (1 - y) * logs[1]).mean()


def binary_of_logits(x: jax.Array, y: jax.Array) -> jax.Array:
    return (jnp.maximum(x, 0) - x * y + jnp.log1p(jnp.exp(-jnp.abs(x)))).mean()


def multilabel(x: jax.Array, y: jax.Array) -> jax.Array:
    return -(y * nn.log_sigmoid(x) + (1 - y) * nn.log_sigmoid(-x)).mean()


def kl(x: jax.Array, y: jax.Array, reduction: str) -> jax.Array:
    assert reduction == "batchmean"
    return (jax.scipy.special.xlogy(y, y) - y * x).sum() / len(x)


def gaussian(x: jax.Array, y: jax.Array, variance: jax.Array) -> jax.Array:
    return 0.5 * (jnp.log(variance) + (x - y) ** 2 / variance).mean()


def cosine(x: jax.Array, y: jax.Array) -> jax.Array:
    squares = (x * x).sum(1) * (y * y).sum(1)
    return (x * y).sum(1) / jnp.sqrt(squares)


def cosine_embedding(x: jax.Array, y: jax.Array, sign: jax.Array) -> jax.Array:
    similarity = cosine(x, y)
    return jnp.where(sign > 0, 1 - similarity, jnp.maximum(0, similarity)).mean()


def distance(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.linalg.norm(x - y + 1e-6, axis=-1)


twins.each(
    {
        "MSELoss": lambda x, y: ((x - y) ** 2).mean(),
        "L1Loss": lambda x, y: jnp.abs(x - y).mean(),
        "SmoothL1Loss": huber,
        "HuberLoss": huber,
        "SoftMarginLoss": lambda x, y: nn.softplus(-y * x).mean(),
        "HingeEmbeddingLoss": lambda x, y: jnp.where(y > 0, x, jnp.maximum(0, 1 - x)).mean(),
        "BCELoss": binary,
        "BCEWithLogitsLoss": binary_of_logits,
        "PoissonNLLLoss": lambda x, y: (jnp.exp(x) - y * x).mean(),
        "KLDivLoss": kl,
        "GaussianNLLLoss": gaussian,
        "CrossEntropyLoss": cross_entropy,
        "NLLLoss": lambda x, at: -picked(x, at).mean(),
        "MultiMarginLoss": multi_margin,
        "MultiLabelSoftMarginLoss": multilabel,
        "MarginRankingLoss": lambda x, y, sign: jnp.maximum(0, -sign * (x - y)).mean(),
        "CosineEmbeddingLoss": cosine_embedding,
        "TripletMarginLoss": lambda x, y, z: jnp.maximum(
            0, distance(x, y) - distance(x, z) + 1
        ).mean(),
        "CosineSimilarity": cosine,
        "PairwiseDistance": distance,
        "sort": jnp.sort,
        "argsort": jnp.argsort,
        "top_k": lambda x, k: lax.top_k(x, k)[0],
        "argmax": lambda x: jnp.argmax(x, -1),
        "cumsum": jnp.cumsum,
        "cumprod": jnp.cumprod,
        "cummax": lambda x, axis: lax.cummax(x, axis=axis),
        "logsumexp": nn.logsumexp,
        "variance": jnp.var,
        "norm": lambda x, axis: jnp.linalg.norm(x, axis=axis),
        "one_hot": nn.one_hot,
        "gather": lambda x, at: jnp.take_along_axis(x, at, 1),
        "segment_sum": jax.ops.segment_sum,
        "masked_fill": lambda x, mask: jnp.where(mask == 0, -1e9, x),
        "einsum": lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y),
    }
)
