"""Rows over sequences: attention, transformers, recurrent layers."""

from __future__ import annotations

from benchmarks.layers.row import Row, Setting, normal, of

__all__ = ["SEQUENCES"]


def heads(batch: int, count: int, length: int, size: int, groups: int | None = None) -> Setting:
    """Queries, keys and values of attention; with `groups`, so many heads of keys and values."""
    few = count if groups is None else groups
    queries, keys = normal(batch, count, length, size), normal(batch, few, length, size)
    return of(queries, keys, keys)


DOTTED = (heads(2, 4, 32, 32), heads(4, 12, 128, 64), heads(2, 12, 512, 64))
GROUPED = (heads(2, 4, 32, 32, 2), heads(4, 12, 128, 64, 4), heads(2, 12, 512, 64, 4))


def embedded(batch: int, length: int, size: int, count: int, inputs: int) -> Setting:
    """The layer's inputs are equally many tokens each."""
    return of(*[normal(batch, length, size)] * inputs, embed_dim=size, num_heads=count)


def tokens(batch: int, length: int, size: int, count: int, inputs: int = 1) -> Setting:
    """A transformer's, with four times as many hidden units."""
    settings = {"d_model": size, "nhead": count, "dim_feedforward": 4 * size}
    return of(*[normal(batch, length, size)] * inputs, **settings)


PLAIN = {"batch_first": True, "dropout": 0.0, "activation": "gelu"}
"""Without ReLU, at whose kink rounding would decide."""

ATTENTION = [
    Row("attention", "scaled_dot_product_attention", DOTTED),
    Row("attention-causal", "scaled_dot_product_attention", DOTTED, {"is_causal": True}),
    Row("attention-grouped", "scaled_dot_product_attention", GROUPED, {"enable_gqa": True}),
    Row(  # BERT's
        "multihead-attention",
        "MultiheadAttention",
        (embedded(2, 32, 64, 4, 3), embedded(4, 128, 256, 8, 3), embedded(4, 128, 768, 12, 3)),
        {"batch_first": True},
        call={"need_weights": False},
    ),
    Row(
        "multihead-attention-weights",
        "MultiheadAttention",
        (embedded(2, 32, 64, 4, 3), embedded(4, 128, 256, 8, 3), embedded(4, 128, 768, 12, 3)),
        {"batch_first": True},
    ),
    Row(  # BERT's block
        "transformer-encoder-layer",
        "TransformerEncoderLayer",
        (tokens(2, 32, 64, 4), tokens(4, 128, 256, 8), tokens(2, 128, 768, 12)),
        PLAIN,
    ),
    Row(  # GPT-2's normalizes first
        "transformer-encoder-layer-first",
        "TransformerEncoderLayer",
        (tokens(2, 32, 64, 4), tokens(4, 128, 256, 8), tokens(2, 128, 768, 12)),
        {**PLAIN, "norm_first": True},
    ),
    Row(
        "transformer-decoder-layer",
        "TransformerDecoderLayer",
        (tokens(2, 32, 64, 4, 2), tokens(4, 128, 256, 8, 2), tokens(2, 128, 512, 8, 2)),
        PLAIN,
    ),
    Row(
        "transformer",
        "Transformer",
        (tokens(2, 16, 64, 4, 2), tokens(4, 32, 128, 8, 2), tokens(2, 64, 512, 8, 2)),
        {**PLAIN, "num_encoder_layers": 2, "num_decoder_layers": 2},
    ),
]


def sequence(batch: int, length: int, features: int, hidden: int) -> Setting:
    """A batch of sequences, and so many units."""
    return of(normal(batch, length, features), input_size=features, hidden_size=hidden)


def step(batch: int, features: int, hidden: int, states: int = 1) -> Setting:
    """One step, from a state."""
    x, state = normal(batch, features), normal(batch, hidden)
    return of(x, *[state] * states, input_size=features, hidden_size=hidden)


LENGTHS = (sequence(8, 20, 32, 32), sequence(16, 35, 128, 200), sequence(20, 35, 650, 650))
"""The large one is that of word-level language models."""

RECURRENT = [
    Row("rnn", "RNN", LENGTHS, {"batch_first": True}),
    Row("lstm", "LSTM", LENGTHS, {"batch_first": True}),
    Row("gru", "GRU", LENGTHS, {"batch_first": True}),
    Row(
        "lstm-deep-bidirectional",
        "LSTM",
        (sequence(4, 20, 32, 32), sequence(16, 50, 64, 128), sequence(16, 64, 128, 256)),
        {"batch_first": True, "num_layers": 2, "bidirectional": True},
    ),
    Row("rnn-cell", "RNNCell", (step(8, 32, 32), step(64, 256, 256), step(64, 1024, 1024))),
    Row("gru-cell", "GRUCell", (step(8, 32, 32), step(64, 256, 256), step(64, 1024, 1024))),
    Row(
        "lstm-cell",
        "LSTMCell",
        (step(8, 32, 32, 2), step(64, 256, 256, 2), step(64, 1024, 1024, 2)),
        paired=True,
    ),
]

SEQUENCES = [*ATTENTION, *RECURRENT]
