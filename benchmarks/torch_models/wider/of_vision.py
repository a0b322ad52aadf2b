"""Models of transformers that see, alone or with words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.torch_models.model import Call, Model, images, tokens
from benchmarks.torch_models.wider.of_language import made

__all__ = ["MODELS"]

_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}

_PATCHES = {**_SIZES, "image_size": 32, "patch_size": 8}

_TEXT = {
    **_SIZES,
    "vocab_size": 100,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 99,
}

_WINDOWS = {
    "image_size": 64,
    "patch_size": 4,
    "embed_dim": 16,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
}

_STAGES = {"hidden_sizes": [16, 32], "depths": [1, 1]}

_RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 16, 32],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
    "out_features": ["stage4"],
}


def _seen(size: int = 32) -> dict[str, Any]:
    return {"pixel_values": images(size)[0]}


def _read_and_seen(size: int = 32) -> dict[str, Any]:
    return {"input_ids": tokens(), **_seen(size)}


def _filmed(frames: int = 4) -> dict[str, Any]:
    return {"pixel_values": torch.randn(2, frames, 3, 32, 32)}


def _masked() -> dict[str, Any]:
    return {**_seen(), "noise": torch.rand(2, 16)}


def _detr(name: str) -> Call:
    import transformers

    backbone = transformers.ResNetConfig(**{k: v for k, v in _RESNET.items() if k != "model_type"})
    config = getattr(transformers, f"{name}Config")(
        backbone_config=backbone,
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_queries=5,
    )
    module = getattr(transformers, f"{name}ForObjectDetection")(config)
    pixels = torch.randn(2, 3, 64, 64)
    return Call(module, (), {"pixel_values": pixels, "pixel_mask": torch.ones(2, 64, 64).long()})


_ALL: dict[str, tuple[str, str, dict[str, Any], Callable[[], dict[str, Any]]]] = {
    "dinov2": ("Dinov2Model", "Dinov2Config", _PATCHES, _seen),
    "dinov3": ("DINOv3ViTModel", "DINOv3ViTConfig", {**_PATCHES, "num_register_tokens": 2}, _seen),
    "beit": ("BeitModel", "BeitConfig", {**_PATCHES, "use_relative_position_bias": True}, _seen),
    "data2vec": ("Data2VecVisionModel", "Data2VecVisionConfig", _PATCHES, _seen),
    "vit_mae": (
        "ViTMAEForPreTraining",
        "ViTMAEConfig",
        {
            **_PATCHES,
            "decoder_hidden_size": 16,
            "decoder_num_hidden_layers": 1,
            "decoder_num_attention_heads": 2,
            "decoder_intermediate_size": 32,
        },
        _masked,
    ),
    "swin": ("SwinModel", "SwinConfig", _WINDOWS, partial(_seen, 64)),
    "swinv2": ("Swinv2Model", "Swinv2Config", _WINDOWS, partial(_seen, 64)),
    "swin2sr": (
        "Swin2SRForImageSuperResolution",
        "Swin2SRConfig",
        {
            **_WINDOWS,
            "image_size": 16,
            "patch_size": 1,
            "depths": [1],
            "num_heads": [2],
            "upscale": 2,
        },
        partial(_seen, 16),
    ),
    "convnextv2": (
        "ConvNextV2Model",
        "ConvNextV2Config",
        {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]},
        _seen,
    ),
    "dpt": (
        "DPTForDepthEstimation",
        "DPTConfig",
        {
            **_PATCHES,
            "backbone_out_indices": [0, 1],
            "neck_hidden_sizes": [8, 16],
            "reassemble_factors": [2, 1],
            "fusion_hidden_size": 16,
            "is_hybrid": False,
        },
        _seen,
    ),
    "glpn": (
        "GLPNForDepthEstimation",
        "GLPNConfig",
        {
            "hidden_sizes": [8, 16, 16, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 16,
        },
        partial(_seen, 64),
    ),
    "focalnet": (
        "FocalNetModel",
        "FocalNetConfig",
        {
            "image_size": 32,
            "embed_dim": 16,
            "hidden_sizes": [16, 32],
            "depths": [1, 1],
            "focal_levels": [2, 2],
            "focal_windows": [3, 3],
        },
        _seen,
    ),
    "pvt": (
        "PvtModel",
        "PvtConfig",
        {
            "image_size": 32,
            "hidden_sizes": [8, 16, 16, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 4],
        },
        _seen,
    ),
    "bit": (
        "BitModel",
        "BitConfig",
        {"embedding_size": 32, "hidden_sizes": [32, 64], "depths": [1, 1], "num_groups": 8},
        _seen,
    ),
    "hiera": (
        "HieraModel",
        "HieraConfig",
        {
            "image_size": [32, 32],
            "embed_dim": 16,
            "depths": [1, 1],
            "num_heads": [1, 2],
            "query_stride": [2, 2],
            "masked_unit_size": [4, 4],
            "num_query_pool": 1,
            "masked_unit_attention": [True, False],
        },
        lambda: {**_seen(), "noise": torch.rand(2, 4)},
    ),
    "yolos": (
        "YolosModel",
        "YolosConfig",
        {**_PATCHES, "image_size": [32, 32], "num_detection_tokens": 5},
        _seen,
    ),
    "mobilevitv2": (
        "MobileViTV2Model",
        "MobileViTV2Config",
        {"image_size": 64, "width_multiplier": 0.25, "n_attn_blocks": [1, 1, 1]},
        partial(_seen, 64),
    ),
    "vivit": (
        "VivitModel",
        "VivitConfig",
        {**_SIZES, "image_size": 32, "num_frames": 4, "tubelet_size": [2, 8, 8]},
        _filmed,
    ),
    "videomae": ("VideoMAEModel", "VideoMAEConfig", {**_PATCHES, "num_frames": 4}, _filmed),
    "timesformer": (
        "TimesformerModel",
        "TimesformerConfig",
        {**_PATCHES, "num_frames": 4},
        _filmed,
    ),
    "siglip": (
        "SiglipModel",
        "SiglipConfig",
        {"text_config": {**_TEXT, "projection_size": 32}, "vision_config": _PATCHES},
        _read_and_seen,
    ),
    "blip": (
        "BlipModel",
        "BlipConfig",
        {"text_config": _TEXT, "vision_config": _PATCHES, "projection_dim": 16},
        _read_and_seen,
    ),
    "clipseg": (
        "CLIPSegForImageSegmentation",
        "CLIPSegConfig",
        {
            "text_config": _TEXT,
            "vision_config": _PATCHES,
            "projection_dim": 16,
            "extract_layers": [0, 1],
            "reduce_dim": 16,
            "decoder_num_attention_heads": 2,
            "decoder_intermediate_size": 32,
        },
        _read_and_seen,
    ),
    "vilt": (
        "ViltModel",
        "ViltConfig",
        {**_TEXT, **_PATCHES, "max_image_length": -1},
        _read_and_seen,
    ),
    "flava_image": ("FlavaImageModel", "FlavaImageConfig", _PATCHES, _seen),
    "perceiver": (
        "PerceiverModel",
        "PerceiverConfig",
        {
            "num_latents": 4,
            "d_latents": 16,
            "d_model": 16,
            "num_blocks": 1,
            "num_self_attends_per_block": 2,
            "num_self_attention_heads": 2,
            "num_cross_attention_heads": 2,
        },
        lambda: {"inputs": torch.randn(2, 10, 16)},
    ),
}

MODELS = [
    *[Model(f"vision/{name}", partial(made, *about)) for name, about in _ALL.items()],
    Model("vision/detr", partial(_detr, "Detr")),
    Model("vision/conditional_detr", partial(_detr, "ConditionalDetr")),
]
