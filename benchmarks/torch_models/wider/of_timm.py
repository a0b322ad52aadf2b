"""Models of timm whose training is not compared elsewhere here."""

from __future__ import annotations

from functools import partial
from typing import Any

import timm

from benchmarks.torch_models.model import Call, Model, images

__all__ = ["MODELS"]


def _named(name: str, size: int, options: dict[str, Any]) -> Call:
    module = timm.create_model(name, pretrained=False, num_classes=5, **options)
    return Call(module, images(size))


_TRANSFORMER = {"img_size": 64, "embed_dim": 32, "depth": 2, "num_heads": 4}
_DEPTHS = {"depths": (1, 1, 1, 1)}
_FOUR = {**_DEPTHS, "dims": (8, 16, 24, 32)}

_ALL: dict[str, tuple[str, int, dict[str, Any]]] = {
    "cait": ("cait_xxs24_224", 64, _TRANSFORMER),
    "convit": ("convit_tiny", 64, {**_TRANSFORMER, "local_up_to_layer": 1}),
    "visformer": (
        "visformer_tiny",
        64,
        {"img_size": 64, "embed_dim": 48, "depth": (1, 1, 1), "num_heads": 2},
    ),
    "repvgg": ("repvgg_a0", 32, {}),
    "res2net": ("res2net50_14w_8s", 32, {"layers": (1, 1, 1, 1)}),
    "resnest": ("resnest14d", 32, {}),
    "skresnet": ("skresnet18", 32, {}),
    "gcvit": ("gcvit_xxtiny", 224, {}),
    "davit": (
        "davit_tiny",
        64,
        {**_DEPTHS, "embed_dims": (8, 16, 24, 32), "num_heads": (1, 2, 3, 4)},
    ),
    "inception_next": ("inception_next_atto", 32, _FOUR),
    "repvit": ("repvit_m0_9", 32, {}),
    "tiny_vit": (
        "tiny_vit_5m_224",
        64,
        {
            **_DEPTHS,
            "embed_dims": (8, 16, 32, 32),
            "num_heads": (1, 2, 2, 2),
            "window_sizes": (4, 4, 4, 2),
        },
    ),
    "eva02": ("eva02_tiny_patch14_224", 56, {**_TRANSFORMER, "img_size": 56}),
    "efficientvit": ("efficientvit_b0", 32, {}),
    "starnet": ("starnet_s1", 32, {"depths": (1, 1, 1, 1)}),
    "mambaout": ("mambaout_femto", 64, _FOUR),
    "lcnet": ("lcnet_035", 32, {}),
    "lambda_resnet": ("lambda_resnet26t", 64, {}),
    "botnet": ("botnet26t_256", 64, {"img_size": 64}),
    "swinv2_cr": (
        "swinv2_cr_tiny_224",
        64,
        {"img_size": 64, "window_size": 2, "depths": (2, 2), "embed_dim": 16, "num_heads": (2, 2)},
    ),
    "crossvit": (
        "crossvit_tiny_240",
        240,
        {"embed_dim": (16, 32), "depth": ((1, 1, 0),), "num_heads": (2, 2)},
    ),
    "convnextv2": ("convnextv2_atto", 32, _FOUR),
    "hrnet": ("hrnet_w18_small", 32, {}),
    "dla": ("dla34", 32, {}),
    "swiftformer": ("swiftformer_xs", 64, {}),
}

MODELS = [Model(f"timm/{name}", partial(_named, *about)) for name, about in _ALL.items()]
