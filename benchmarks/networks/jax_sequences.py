"""Networks of tokens in JAX: transformers, with cached decoding, and a recurrent network."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.networks.jax_layers import Take, conv, dense, embedding, inside, layer_norm

__all__ = ["MODELS", "gpt2_step"]


def split(take: Take, x: Any, heads: int) -> Any:
    """Queries, keys and values, each (B, T, heads, width of a head)."""
    batch, length, width = x.shape
    parts = dense(take, "qkv", x, 3 * width)
    return jnp.moveaxis(parts.reshape(batch, length, 3, heads, width // heads), 2, 0)


def attention(take: Take, x: Any, heads: int, causal: bool) -> Any:
    """Several heads of self-attention, from one product for queries, keys and values."""
    query, key, value = split(take, x, heads)
    mixed = jax.nn.dot_product_attention(query, key, value, is_causal=causal)
    return dense(take, "out", mixed.reshape(x.shape), x.shape[-1])


def feed_forward(take: Take, x: Any, tanh: bool) -> Any:
    """Two dense layers."""
    width = x.shape[-1]
    return dense(take, "fc2", jax.nn.gelu(dense(take, "fc1", x, 4 * width), tanh), width)


def block(take: Take, x: Any, heads: int, tanh: bool, eps: float, causal: bool) -> Any:
    """Attention and two dense layers, normalized before each."""
    x = x + attention(inside(take, "attn"), layer_norm(take, "ln_1", x, eps), heads, causal)
    return x + feed_forward(take, layer_norm(take, "ln_2", x, eps), tanh)


def vit(
    take: Take, x: Any, size: int, patch: int, width: int, layers: int, heads: int, classes: int
) -> Any:
    """Dosovitskiy et al. (2021), with a token for the class."""
    x = conv(take, "patches", x, width, patch, patch, bias=True)
    x = x.reshape(x.shape[0], -1, width)
    first = jnp.broadcast_to(take("cls_token", (1, 1, width)), (x.shape[0], 1, width))
    count = (size // patch) ** 2 + 1
    x = jnp.concatenate([first, x], axis=1) + take("positions", (1, count, width))
    for place in range(layers):
        x = block(inside(take, f"blocks.{place}"), x, heads, False, 1e-6, False)
    return dense(take, "head", layer_norm(take, "norm", x, 1e-6)[:, 0], classes)


def gpt2(
    take: Take, tokens: Any, vocabulary: int, positions: int, width: int, heads: int, layers: int
) -> Any:
    """Radford et al. (2019); the outputs' weights are the embeddings."""
    words = embedding(take, "wte", vocabulary, width)
    x = words[tokens] + embedding(take, "wpe", positions, width)[: tokens.shape[1]]
    for place in range(layers):
        x = block(inside(take, f"blocks.{place}"), x, heads, True, 1e-5, True)
    return layer_norm(take, "ln_f", x) @ words.T


def gpt2_step(
    take: Take,
    tokens: Any,
    cache: Any,
    position: Any,
    vocabulary: int,
    positions: int,
    width: int,
    heads: int,
    layers: int,
) -> Any:
    """Outputs for one token (B,), and the cache (layers, 2, B, T, heads, …) with it."""
    words = embedding(take, "wte", vocabulary, width)
    x = (words[tokens] + embedding(take, "wpe", positions, width)[position])[:, None]
    seen = (jnp.arange(cache.shape[3]) <= position)[None, None, None]
    for place in range(layers):
        here = inside(take, f"blocks.{place}")
        within = inside(here, "attn")
        query, key, value = split(within, layer_norm(here, "ln_1", x), heads)
        new = jnp.stack([key, value])[:, :, 0]
        cache = cache.at[place, :, :, position].set(new)
        keys, values = cache[place]
        mixed = jax.nn.dot_product_attention(query, keys, values, mask=seen)
        x = x + dense(within, "out", mixed.reshape(x.shape), width)
        x = x + feed_forward(here, layer_norm(here, "ln_2", x), True)
    return layer_norm(take, "ln_f", x[:, 0]) @ words.T, cache


def bert(
    take: Take, tokens: Any, vocabulary: int, positions: int, width: int, heads: int, layers: int
) -> Any:
    """Devlin et al. (2019): embeddings and encoder, all tokens of the first segment."""
    x = embedding(take, "words", vocabulary, width)[tokens]
    x = x + embedding(take, "positions", positions, width)[: tokens.shape[1]]
    x = layer_norm(take, "norm", x + embedding(take, "types", 2, width)[0], 1e-12)
    for place in range(layers):
        here = inside(take, f"blocks.{place}")
        mixed = attention(inside(here, "attn"), x, heads, causal=False)
        x = layer_norm(here, "ln_1", x + mixed, 1e-12)
        x = layer_norm(here, "ln_2", x + feed_forward(here, x, tanh=False), 1e-12)
    return x


def lstm(take: Take, tokens: Any, vocabulary: int, width: int, layers: int) -> Any:
    """A recurrent language model; gates in PyTorch's order."""
    x = embedding(take, "embedding", vocabulary, width)[tokens].swapaxes(0, 1)
    for layer in range(layers):
        inner = take(f"lstm.weight_ih_l{layer}", (4 * width, width), (1, 0))
        outer = take(f"lstm.weight_hh_l{layer}", (4 * width, width), (1, 0))
        bias = take(f"lstm.bias_ih_l{layer}", (4 * width,))
        bias = bias + take(f"lstm.bias_hh_l{layer}", (4 * width,))

        def step(state: Any, part: Any, outer: Any = outer) -> Any:
            hidden, cell = state
            gates = jnp.split(part + hidden @ outer, 4, axis=-1)
            enter, forget, out = (jax.nn.sigmoid(gates[place]) for place in (0, 1, 3))
            cell = forget * cell + enter * jnp.tanh(gates[2])
            hidden = out * jnp.tanh(cell)
            return (hidden, cell), hidden

        start = jnp.zeros((x.shape[1], width))
        x = jax.lax.scan(step, (start, start), x @ inner + bias)[1]
    return dense(take, "out", x.swapaxes(0, 1), vocabulary)


MODELS = {"vit": vit, "gpt2": gpt2, "bert": bert, "lstm": lstm}
