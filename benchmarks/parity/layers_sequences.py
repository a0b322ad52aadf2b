"""Cases of layers over sequences: attention, transformers, recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.parity.case import Case, Layer
from benchmarks.parity.draw import Draw, Families
from benchmarks.parity.functions_attention import masks
from benchmarks.parity.layers import in_both_modes

__all__ = ["families"]

families = Families()

E, BATCH = 8, 3


def sequence(draw: Draw, length: int, batch_first: bool, features: int = E) -> Any:
    return draw.normal(*((BATCH, length) if batch_first else (length, BATCH)), features)


@families.add("MultiheadAttention")
def multi_head(draw: Draw, name: str) -> Case:
    first = draw.chance(0.5)
    settings: dict[str, Any] = {"batch_first": first, "bias": draw.chance(0.6)}
    settings |= draw.choice(
        {}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 4, "vdim": 6}, {"vdim": 6}
    )
    layer = Layer(name, (E, draw.choice(2, 4)), settings)
    call: dict[str, Any] = {
        "need_weights": draw.chance(0.6),
        "average_attn_weights": draw.chance(0.5),
    }
    x = sequence(draw, 5, first)
    if not settings.keys() & {"kdim", "vdim"} and draw.chance(0.3):
        causal = np.triu(np.ones((5, 5), bool), 1)
        return in_both_modes(layer, x, x, x, attn_mask=causal, is_causal=True, need_weights=False)
    keys = sequence(draw, 6, first, settings.get("kdim", E))
    values = sequence(draw, 6, first, settings.get("vdim", E))
    return in_both_modes(layer, x, keys, values, **call, **masks(draw, 5, 6, (BATCH,)))


def transformer_settings(draw: Draw) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "dropout": 0.0,
        "batch_first": draw.chance(0.5),
        "norm_first": draw.chance(0.5),
        "bias": draw.chance(0.7),
        "activation": draw.choice("relu", "gelu"),
    }
    if draw.chance(0.3):
        settings["layer_norm_eps"] = 1e-3
    return settings


def encoder_masks(draw: Draw, name: str, padding: str) -> dict[str, Any]:
    """Masks as `masks` has them, boolean, under the names of the encoder or decoder."""
    arguments: dict[str, Any] = {}
    if draw.chance(0.5):
        arguments[name] = np.triu(np.ones((5, 5), bool), 1)
    if draw.chance(0.4):
        arguments[padding] = np.arange(5) >= np.array([[5], [3], [4]])
    return arguments


@families.add("TransformerEncoderLayer", "TransformerEncoder")
def encoder(draw: Draw, name: str) -> Case:
    settings = transformer_settings(draw)
    layer = Layer("TransformerEncoderLayer", (E, 2, 16), settings)
    x = sequence(draw, 5, settings["batch_first"])
    if name == layer.name:
        return in_both_modes(layer, x, **encoder_masks(draw, "src_mask", "src_key_padding_mask"))
    norm = draw.choice(None, Layer("LayerNorm", (E,)))
    return in_both_modes(
        Layer(name, (layer, 2, norm)), x, **encoder_masks(draw, "mask", "src_key_padding_mask")
    )


@families.add("TransformerDecoderLayer", "TransformerDecoder")
def decoder(draw: Draw, name: str) -> Case:
    settings = transformer_settings(draw)
    layer = Layer("TransformerDecoderLayer", (E, 2, 16), settings)
    x, memory = (sequence(draw, n, settings["batch_first"]) for n in (5, 6))
    if name != layer.name:
        layer = Layer(name, (layer, 2, draw.choice(None, Layer("LayerNorm", (E,)))))
    return in_both_modes(
        layer, x, memory, **encoder_masks(draw, "tgt_mask", "tgt_key_padding_mask")
    )


@families.add("Transformer")
def transformer(draw: Draw, name: str) -> Case:
    settings = transformer_settings(draw)
    source, target = (sequence(draw, n, settings["batch_first"]) for n in (6, 5))
    layer = Layer(name, (E, 2, draw.integer(1, 2), 1, 16), settings)
    return in_both_modes(
        layer, source, target, **encoder_masks(draw, "tgt_mask", "tgt_key_padding_mask")
    )


@families.add("RNN", "LSTM", "GRU")
def recurrent(draw: Draw, name: str) -> Case:
    settings: dict[str, Any] = {
        "bias": draw.chance(0.6),
        "num_layers": draw.integer(1, 2),
        "bidirectional": draw.chance(0.5),
        "batch_first": draw.chance(0.5),
    }
    if name == "RNN":
        settings["nonlinearity"] = draw.choice("tanh", "relu")
    projected = draw.choice(0, 2) if name == "LSTM" else 0
    if projected:
        settings["proj_size"] = projected
    batch = draw.choice((), (BATCH,))
    shape = (*batch, 6) if settings["batch_first"] else (6, *batch)
    inputs: tuple[Any, ...] = (draw.normal(*shape, 5),)
    if draw.chance(0.6):
        runs = settings["num_layers"] * (1 + settings["bidirectional"])
        state: Any = draw.normal(runs, *batch, projected or 4)
        inputs += ((state, draw.normal(runs, *batch, 4)) if name == "LSTM" else state,)
    return in_both_modes(Layer(name, (5, 4), settings), *inputs)


@families.add("RNNCell", "LSTMCell", "GRUCell")
def cell(draw: Draw, name: str) -> Case:
    settings: dict[str, Any] = {"bias": draw.chance(0.6)}
    if name == "RNNCell":
        settings["nonlinearity"] = draw.choice("tanh", "relu")
    batch = draw.choice((), (BATCH,))
    inputs: tuple[Any, ...] = (draw.normal(*batch, 5),)
    if draw.chance(0.6):
        state: Any = draw.normal(*batch, 4)
        inputs += ((state, draw.normal(*batch, 4)) if name == "LSTMCell" else state,)
    return in_both_modes(Layer(name, (5, 4), settings), *inputs)
