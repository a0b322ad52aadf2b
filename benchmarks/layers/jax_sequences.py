"""JAX twins of attention, transformers and recurrent layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, nn

from benchmarks.layers.jax_features import dense, layer_norm
from benchmarks.layers.jax_twins import Parameters, Twins, of_part

__all__ = ["twins"]

twins = Twins()


@twins.add("scaled_dot_product_attention")
def attention(
    _: Parameters,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    is_causal: bool = False,
    enable_gqa: bool = False,
) -> jax.Array:
    if enable_gqa:
        *lead, count, length, size = query.shape
        groups = key.shape[-3]
        grouped = query.reshape(*lead, groups, count // groups, length, size)
        y, _ = attended(grouped, key[..., None, :, :], value[..., None, :, :])
        return y.reshape(query.shape)
    return attended(query, key, value, is_causal)[0]


def attended(
    query: jax.Array, key: jax.Array, value: jax.Array, is_causal: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Attention over the last axes but one, and its weights."""
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    if is_causal:
        scores = jnp.where(jnp.tri(*scores.shape[-2:], dtype=bool), scores, -jnp.inf)
    weights = nn.softmax(scores)
    return weights @ value, weights


@twins.add("MultiheadAttention")
def multi_head(
    p: Parameters,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    num_heads: int,
    need_weights: bool = True,
    is_causal: bool = False,
    **_: Any,
) -> Any:
    batch, length, size = query.shape
    if query is key is value:
        parts = jnp.split(query @ p["in_proj_weight"].T + p["in_proj_bias"], 3, -1)
    else:
        pairs = zip(jnp.split(p["in_proj_weight"], 3), jnp.split(p["in_proj_bias"], 3))
        parts = [x @ w.T + b for x, (w, b) in zip((query, key, value), pairs)]
    heads = [x.reshape(batch, -1, num_heads, size // num_heads).swapaxes(1, 2) for x in parts]
    y, weights = attended(*heads, is_causal)
    y = dense(of_part(p, "out_proj"), y.swapaxes(1, 2).reshape(batch, length, size))
    return (y, weights.mean(1)) if need_weights else y


def fed_forward(p: Parameters, x: jax.Array) -> jax.Array:
    hidden = nn.gelu(dense(of_part(p, "linear1"), x), approximate=False)
    return dense(of_part(p, "linear2"), hidden)


def blocks(
    p: Parameters, x: jax.Array, parts: list[Callable[[jax.Array], jax.Array]], norm_first: bool
) -> jax.Array:
    """Each part beside its input, with a norm before or after."""
    for number, part in enumerate(parts, 1):
        norm = of_part(p, f"norm{number}")
        x = x + part(layer_norm(norm, x)) if norm_first else layer_norm(norm, x + part(x))
    return x


@twins.add("TransformerEncoderLayer")
def encoder_layer(
    p: Parameters, x: jax.Array, nhead: int, norm_first: bool = False, **_: Any
) -> jax.Array:
    own = of_part(p, "self_attn")
    attend = lambda x: multi_head(own, x, x, x, nhead, need_weights=False)
    return blocks(p, x, [attend, lambda x: fed_forward(p, x)], norm_first)


@twins.add("TransformerDecoderLayer")
def decoder_layer(
    p: Parameters, x: jax.Array, memory: jax.Array, nhead: int, **_: Any
) -> jax.Array:
    own, other = of_part(p, "self_attn"), of_part(p, "multihead_attn")
    parts = [
        lambda x: multi_head(own, x, x, x, nhead, need_weights=False),
        lambda x: multi_head(other, x, memory, memory, nhead, need_weights=False),
        lambda x: fed_forward(p, x),
    ]
    return blocks(p, x, parts, norm_first=False)


@twins.add("Transformer")
def transformer(
    p: Parameters,
    x: jax.Array,
    y: jax.Array,
    nhead: int,
    num_encoder_layers: int,
    num_decoder_layers: int,
    **_: Any,
) -> jax.Array:
    for number in range(num_encoder_layers):
        x = encoder_layer(of_part(p, f"encoder.layers.{number}"), x, nhead)
    memory = layer_norm(of_part(p, "encoder.norm"), x)
    for number in range(num_decoder_layers):
        y = decoder_layer(of_part(p, f"decoder.layers.{number}"), y, memory, nhead)
    return layer_norm(of_part(p, "decoder.norm"), y)


# Recurrent layers: the inputs' products are taken at once, before the loop.


def rnn_step(gates: jax.Array, h: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.tanh(gates + h @ w.T + b)


def gru_step(gates: jax.Array, h: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
    r, z, n = jnp.split(gates, 3, -1)
    hr, hz, hn = jnp.split(h @ w.T + b, 3, -1)
    z = nn.sigmoid(z + hz)
    return (1 - z) * jnp.tanh(n + nn.sigmoid(r + hr) * hn) + z * h


def lstm_step(gates: jax.Array, state: Any, w: jax.Array, b: jax.Array) -> Any:
    h, c = state
    i, f, g, o = jnp.split(gates + h @ w.T + b, 4, -1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
    return nn.sigmoid(o) * jnp.tanh(c), c


STEPS = {"RNN": rnn_step, "GRU": gru_step, "LSTM": lstm_step}


def recurrent(name: str) -> Callable[..., Any]:
    """A layer over sequences, batch first, from states of 0."""
    step, is_lstm = STEPS[name], name == "LSTM"

    def run(p: Parameters, x: jax.Array, end: str, backwards: bool) -> tuple[jax.Array, Any]:
        w, b = p[f"weight_hh_{end}"], p[f"bias_hh_{end}"]
        gates = x @ p[f"weight_ih_{end}"].T + p[f"bias_ih_{end}"]
        start = jnp.zeros((x.shape[1], w.shape[1]), x.dtype)

        def body(state: Any, gates: jax.Array) -> tuple[Any, jax.Array]:
            state = step(gates, state, w, b)
            return state, state[0] if is_lstm else state

        last, ys = lax.scan(body, (start, start) if is_lstm else start, gates, reverse=backwards)
        return ys, last

    def layer(
        p: Parameters, x: jax.Array, num_layers: int = 1, bidirectional: bool = False, **_: Any
    ) -> Any:
        x, states = x.swapaxes(0, 1), []
        for number in range(num_layers):
            outputs = []
            for backwards in (False, True)[: 1 + bidirectional]:
                end = f"l{number}" + ("_reverse" if backwards else "")
                ys, last = run(p, x, end, backwards)
                outputs.append(ys)
                states.append(last)
            x = jnp.concatenate(outputs, -1) if bidirectional else outputs[0]
        return x.swapaxes(0, 1), jax.tree.map(lambda *each: jnp.stack(each), *states)

    return layer


def cell(name: str) -> Callable[..., Any]:
    """One step of it."""

    def step(p: Parameters, x: jax.Array, state: Any, **_: Any) -> Any:
        gates = x @ p["weight_ih"].T + p["bias_ih"]
        return STEPS[name](gates, state, p["weight_hh"], p["bias_hh"])

    return step


for _name in STEPS:
    twins.add(_name)(recurrent(_name))
    twins.add(f"{_name}Cell")(cell(_name))
