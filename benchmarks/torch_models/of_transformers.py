"""Models of transformers: encoders, decoders, both, and those of images and sound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import transformers

from benchmarks.torch_models.model import Call, Model, images, tokens

__all__ = ["MODELS"]

_Inputs = Callable[[], dict[str, Any]]

_SIZES = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
"""What most configurations call their sizes."""

_SPECIAL = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")

_BOTH = {
    "vocab_size": 100,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}
"""The same, of an encoder with a decoder."""

_IMAGE = {**_SIZES, "image_size": 32, "patch_size": 8}
del _IMAGE["vocab_size"]


def _made(name: str, config: str, sizes: Mapping[str, Any], inputs: _Inputs) -> Call:
    module = getattr(transformers, name)(getattr(transformers, config)(**sizes))
    return Call(module, (), inputs())


def _text() -> dict[str, Any]:
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[1, 9:] = 0
    return {"input_ids": tokens(), "attention_mask": mask}


def _next_token(length: int = 12) -> dict[str, Any]:
    return {"input_ids": tokens(length), "use_cache": False}


def _pair() -> dict[str, Any]:
    return {"input_ids": tokens(), "decoder_input_ids": tokens(7), "use_cache": False}


def _picture(size: int = 32) -> dict[str, Any]:
    return {"pixel_values": images(size)[0]}


def _sound() -> dict[str, Any]:
    return {"input_values": torch.randn(2, 2000)}


def _spectrum() -> dict[str, Any]:
    spectrum = torch.randn(2, 16, 40)
    return {"input_features": spectrum, "decoder_input_ids": tokens(6), "use_cache": False}


_ENCODERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertForSequenceClassification", "BertConfig", _SIZES),
    "roberta": ("RobertaModel", "RobertaConfig", _SIZES),
    "albert": ("AlbertModel", "AlbertConfig", {**_SIZES, "embedding_size": 16}),
    "electra": ("ElectraForPreTraining", "ElectraConfig", {**_SIZES, "embedding_size": 16}),
    "deberta_v2": ("DebertaV2Model", "DebertaV2Config", _SIZES),
    "mpnet": ("MPNetModel", "MPNetConfig", _SIZES),
    "modernbert": (
        "ModernBertModel",
        "ModernBertConfig",
        {**_SIZES, **dict.fromkeys(_SPECIAL, 0), "attn_implementation": "sdpa"},
    ),
    "distilbert": (
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"vocab_size": 100, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    ),
}

_GROUPED = {**_SIZES, "num_key_value_heads": 2}

_DECODERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", _SIZES),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        {
            "vocab_size": 100,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "ffn_dim": 64,
            "word_embed_proj_dim": 32,
            "max_position_embeddings": 64,
        },
    ),
    "bloom": (
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": 100, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", _GROUPED),
    "mistral": ("MistralForCausalLM", "MistralConfig", _GROUPED),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _GROUPED),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {**_GROUPED, "head_dim": 8}),
    "phi": ("PhiForCausalLM", "PhiConfig", _SIZES),
    # PyTorch has no grouped products in float64.
    "mixtral": (
        "MixtralForCausalLM",
        "MixtralConfig",
        {**_GROUPED, "num_local_experts": 4, "experts_implementation": "batched_mm"},
    ),
}

_PATCHES_AND_TEXT = {
    "text_config": {**_SIZES, "max_position_embeddings": 32, "eos_token_id": 99},
    "vision_config": _IMAGE,
    "projection_dim": 16,
}

_OTHERS: dict[str, tuple[str, str, dict[str, Any], _Inputs]] = {
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"vocab_size": 100, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
        _pair,
    ),
    "bart": (
        "BartForConditionalGeneration",
        "BartConfig",
        {**_BOTH, "max_position_embeddings": 64},
        _pair,
    ),
    "vit": ("ViTForImageClassification", "ViTConfig", _IMAGE, _picture),
    "segformer": (
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        {
            "hidden_sizes": [16, 32, 48, 64],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 3, 4],
            "decoder_hidden_size": 32,
        },
        partial(_picture, 64),
    ),
    "clip": (
        "CLIPModel",
        "CLIPConfig",
        _PATCHES_AND_TEXT,
        lambda: {"input_ids": tokens(), **_picture()},
    ),
    "wav2vec2": (
        "Wav2Vec2Model",
        "Wav2Vec2Config",
        {
            **_SIZES,
            "conv_dim": (16, 16),
            "conv_stride": (5, 4),
            "conv_kernel": (10, 8),
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 4,
            "mask_time_prob": 0.0,
        },
        _sound,
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            **_BOTH,
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "max_target_positions": 32,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
        },
        _spectrum,
    ),
}

_ALL: dict[str, tuple[str, str, dict[str, Any], _Inputs]] = {
    **{name: (*about, _text) for name, about in _ENCODERS.items()},
    **{name: (*about, _next_token) for name, about in _DECODERS.items()},
    "mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 1, "state_size": 8},
        partial(_next_token, 5),  # each token is unrolled
    ),
    **_OTHERS,
}

MODELS = [Model(f"transformers/{name}", partial(_made, *about)) for name, about in _ALL.items()]
