"""Models of transformers that hear, and those that go on with series or act."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.torch_models.model import Model
from benchmarks.torch_models.wider.of_language import made

__all__ = ["MODELS"]

_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}

_WAVES = {
    **_SIZES,
    "vocab_size": 30,
    "conv_dim": (16, 16),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 8),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "mask_time_prob": 0.0,
}

_SERIES = {
    "prediction_length": 4,
    "context_length": 8,
    "lags_sequence": [1, 2],
    "num_time_features": 2,
    "num_static_categorical_features": 1,
    "cardinality": [5],
    "embedding_dimension": [3],
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
}


def _heard(length: int = 1000) -> dict[str, Any]:
    return {"input_values": torch.randn(2, length)}


def _series() -> dict[str, Any]:
    return {
        "past_values": torch.rand(2, 10),
        "past_time_features": torch.randn(2, 10, 2),
        "past_observed_mask": torch.ones(2, 10),
        "static_categorical_features": torch.randint(0, 5, (2, 1)),
        "future_values": torch.rand(2, 4),
        "future_time_features": torch.randn(2, 4, 2),
        "use_cache": False,
    }


def _patches() -> dict[str, Any]:
    return {"past_values": torch.randn(2, 16, 3)}


def _actions() -> dict[str, Any]:
    return {
        "states": torch.randn(2, 5, 4),
        "actions": torch.randn(2, 5, 3),
        "rewards": torch.randn(2, 5, 1),
        "returns_to_go": torch.randn(2, 5, 1),
        "timesteps": torch.arange(5).repeat(2, 1),
        "attention_mask": torch.ones(2, 5),
    }


_ALL: dict[str, tuple[str, str, dict[str, Any], Callable[[], dict[str, Any]]]] = {
    "hubert": ("HubertModel", "HubertConfig", _WAVES, _heard),
    "wavlm": ("WavLMModel", "WavLMConfig", {**_WAVES, "num_buckets": 16}, _heard),
    "unispeech_sat": ("UniSpeechSatModel", "UniSpeechSatConfig", _WAVES, _heard),
    "data2vec_audio": (
        "Data2VecAudioModel",
        "Data2VecAudioConfig",
        {**_WAVES, "num_conv_pos_embeddings": 2},
        _heard,
    ),
    "sew": ("SEWModel", "SEWConfig", {**_WAVES, "squeeze_factor": 2}, _heard),
    "conformer": ("Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", _WAVES, _heard),
    "speech_to_text": (
        "Speech2TextForConditionalGeneration",
        "Speech2TextConfig",
        {
            "vocab_size": 100,
            "d_model": 32,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "conv_channels": 16,
            "input_feat_per_channel": 20,
            "max_source_positions": 64,
            "max_target_positions": 32,
        },
        lambda: {
            "input_features": torch.randn(2, 24, 20),
            "decoder_input_ids": torch.randint(3, 100, (2, 6)),
            "use_cache": False,
        },
    ),
    "ast": (
        "ASTModel",
        "ASTConfig",
        {
            **_SIZES,
            "patch_size": 8,
            "frequency_stride": 8,
            "time_stride": 8,
            "max_length": 32,
            "num_mel_bins": 16,
        },
        lambda: {"input_values": torch.randn(2, 32, 16)},
    ),
    "encodec": (
        "EncodecModel",
        "EncodecConfig",
        {
            "hidden_size": 16,
            "num_filters": 4,
            "upsampling_ratios": [4, 2],
            "num_lstm_layers": 1,
            "codebook_size": 16,
            "codebook_dim": 16,
            "sampling_rate": 8000,
            "target_bandwidths": [16.0],
        },
        lambda: {"input_values": torch.randn(2, 1, 256), "bandwidth": 16.0},
    ),
    "univnet": (
        "UnivNetModel",
        "UnivNetConfig",
        {
            "model_in_channels": 8,
            "model_hidden_channels": 8,
            "num_mel_bins": 10,
            "resblock_kernel_sizes": [3],
            "resblock_stride_sizes": [4],
            "resblock_dilation_sizes": [[1, 3]],
            "kernel_predictor_hidden_channels": 8,
        },
        lambda: {"input_features": torch.randn(2, 12, 10), "noise_sequence": torch.randn(2, 12, 8)},
    ),
    "series_transformer": (
        "TimeSeriesTransformerModel",
        "TimeSeriesTransformerConfig",
        _SERIES,
        _series,
    ),
    "informer": ("InformerModel", "InformerConfig", {**_SERIES, "attention_type": "full"}, _series),
    "autoformer": (
        "AutoformerModel",
        "AutoformerConfig",
        {**_SERIES, "label_length": 2, "moving_average": 3},
        _series,
    ),
    "patchtst": (
        "PatchTSTForPrediction",
        "PatchTSTConfig",
        {
            "num_input_channels": 3,
            "context_length": 16,
            "patch_length": 4,
            "patch_stride": 4,
            "d_model": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "ffn_dim": 32,
            "prediction_length": 4,
            "loss": "mse",
        },
        _patches,
    ),
    "patchtsmixer": (
        "PatchTSMixerForPrediction",
        "PatchTSMixerConfig",
        {
            "num_input_channels": 3,
            "context_length": 16,
            "patch_length": 4,
            "patch_stride": 4,
            "d_model": 8,
            "num_layers": 2,
            "prediction_length": 4,
        },
        _patches,
    ),
    "decision_transformer": (
        "DecisionTransformerModel",
        "DecisionTransformerConfig",
        {"state_dim": 4, "act_dim": 3, "hidden_size": 32, "n_layer": 2, "n_head": 4},
        _actions,
    ),
}

MODELS = [Model(f"time/{name}", partial(made, *about)) for name, about in _ALL.items()]
