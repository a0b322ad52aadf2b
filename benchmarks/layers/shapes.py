"""The parameters and buffers of a layer, by PyTorch's names, for JAX, which has no layers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from benchmarks.parity.case import Layer

__all__ = ["parameter_shapes", "statistics_of"]

Shapes: TypeAlias = dict[str, tuple[int, ...]]


def parameter_shapes(layer: Layer) -> Shapes:
    """The parameters' names and shapes."""
    make = MAKERS.get(layer.name)
    return make(**layer.kwargs) if make else {}


def statistics_of(layer: Layer) -> dict[str, tuple[tuple[int, ...], float]]:
    """Shape and first value of each running statistic."""
    if not layer.name.startswith("BatchNorm"):
        return {}
    shape = (layer.kwargs["num_features"],)
    return {"running_mean": (shape, 0.0), "running_var": (shape, 1.0)}


def linear(in_features: int, out_features: int) -> Shapes:
    return {"weight": (out_features, in_features), "bias": (out_features,)}


def bilinear(in1_features: int, in2_features: int, out_features: int) -> Shapes:
    return {"weight": (out_features, in1_features, in2_features), "bias": (out_features,)}


def embedding(num_embeddings: int, embedding_dim: int, **_: Any) -> Shapes:
    return {"weight": (num_embeddings, embedding_dim)}


def convolution(rank: int, transposed: bool) -> Callable[..., Shapes]:
    def make(
        in_channels: int, out_channels: int, kernel_size: int, groups: int = 1, **_: Any
    ) -> Shapes:
        lead = (out_channels, in_channels // groups)
        if transposed:
            lead = (in_channels, out_channels // groups)
        return {"weight": (*lead, *[kernel_size] * rank), "bias": (out_channels,)}

    return make


def affine(size: str, *names: str) -> Callable[..., Shapes]:
    return lambda **options: dict.fromkeys(names, (options[size],))


def attention(embed_dim: int, **_: Any) -> Shapes:
    return {
        "in_proj_weight": (3 * embed_dim, embed_dim),
        "in_proj_bias": (3 * embed_dim,),
        **within("out_proj", linear(embed_dim, embed_dim)),
    }


def encoder_layer(d_model: int, dim_feedforward: int, attentions: int = 1, **_: Any) -> Shapes:
    names = ("self_attn", "multihead_attn")[:attentions]
    shapes = {key: x for name in names for key, x in within(name, attention(d_model)).items()}
    shapes |= within("linear1", linear(d_model, dim_feedforward))
    shapes |= within("linear2", linear(dim_feedforward, d_model))
    for number in range(1, attentions + 2):
        shapes |= within(f"norm{number}", norm(d_model))
    return shapes


def decoder_layer(**options: Any) -> Shapes:
    return encoder_layer(**options, attentions=2)


def transformer(
    d_model: int, num_encoder_layers: int, num_decoder_layers: int, **options: Any
) -> Shapes:
    shapes: Shapes = {}
    for part, count, layer in (
        ("encoder", num_encoder_layers, encoder_layer),
        ("decoder", num_decoder_layers, decoder_layer),
    ):
        for number in range(count):
            shapes |= within(f"{part}.layers.{number}", layer(d_model=d_model, **options))
        shapes |= within(f"{part}.norm", norm(d_model))
    return shapes


def norm(size: int) -> Shapes:
    return {"weight": (size,), "bias": (size,)}


def within(prefix: str, shapes: Mapping[str, tuple[int, ...]]) -> Shapes:
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


def recurrent(gates: int) -> Callable[..., Shapes]:
    def make(
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        **_: Any,
    ) -> Shapes:
        shapes: Shapes = {}
        directions = ("", "_reverse")[: 1 + bidirectional]
        for number, direction in itertools.product(range(num_layers), directions):
            inputs = hidden_size * len(directions) if number else input_size
            cell = recurrent_cell(gates)(inputs, hidden_size)
            shapes |= {f"{name}_l{number}{direction}": shape for name, shape in cell.items()}
        return shapes

    return make


def recurrent_cell(gates: int) -> Callable[..., Shapes]:
    def make(input_size: int, hidden_size: int) -> Shapes:
        rows = gates * hidden_size
        return {
            "weight_ih": (rows, input_size),
            "weight_hh": (rows, hidden_size),
            "bias_ih": (rows,),
            "bias_hh": (rows,),
        }

    return make


MAKERS: dict[str, Callable[..., Shapes]] = {
    "Linear": linear,
    "Bilinear": bilinear,
    "Embedding": embedding,
    "EmbeddingBag": embedding,
    **{f"Conv{n}d": convolution(n, transposed=False) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": convolution(n, transposed=True) for n in (1, 2, 3)},
    **{
        f"{kind}Norm{n}d": affine("num_features", "weight", "bias")
        for kind in ("Batch", "Instance")
        for n in (1, 2, 3)
    },
    "GroupNorm": affine("num_channels", "weight", "bias"),
    "LayerNorm": affine("normalized_shape", "weight", "bias"),
    "RMSNorm": affine("normalized_shape", "weight"),
    "PReLU": affine("num_parameters", "weight"),
    "MultiheadAttention": attention,
    "TransformerEncoderLayer": encoder_layer,
    "TransformerDecoderLayer": decoder_layer,
    "Transformer": transformer,
    "RNN": recurrent(1),
    "LSTM": recurrent(4),
    "GRU": recurrent(3),
    "RNNCell": recurrent_cell(1),
    "LSTMCell": recurrent_cell(4),
    "GRUCell": recurrent_cell(3),
}
