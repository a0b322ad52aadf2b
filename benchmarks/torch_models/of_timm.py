"""Models of timm: those that mix patches, and networks that are partly convolutions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import timm
from timm.models import mlp_mixer
from timm.models.convmixer import ConvMixer
from timm.models.metaformer import MetaFormer

from benchmarks.torch_models.model import Call, Model, images

__all__ = ["MODELS"]


def _named(name: str, size: int = 64, **kwargs: Any) -> Call:
    return Call(timm.create_model(name, pretrained=False, num_classes=10, **kwargs), images(size))


def _mixer(**layers: Any) -> Call:
    """Patches, mixed by MLPs: the class that timm has for three papers."""
    module = mlp_mixer.MlpMixer(num_classes=10, img_size=64, num_blocks=2, embed_dim=32, **layers)
    return Call(module, images(64))


def _poolformer() -> Call:
    module = MetaFormer(depths=(1, 1, 1, 1), dims=(8, 16, 32, 64), num_classes=10)
    return Call(module, images(64))


_TRANSFORMER = {"img_size": 64, "embed_dim": 32, "depth": 2, "num_heads": 4}

_MAKERS: dict[str, Callable[[], Call]] = {
    "mixer": _mixer,
    "resmlp": partial(
        _mixer, mlp_ratio=4, block_layer=mlp_mixer.ResBlock, norm_layer=mlp_mixer.Affine
    ),
    "gmlp": partial(
        _mixer, mlp_ratio=6, block_layer=mlp_mixer.SpatialGatingBlock, mlp_layer=mlp_mixer.GatedMlp
    ),
    "deit": partial(_named, "deit_tiny_patch16_224", **_TRANSFORMER),
    "xcit": partial(_named, "xcit_nano_12_p16_224", **_TRANSFORMER),
    "convmixer": lambda: Call(ConvMixer(32, 4, patch_size=8, num_classes=10), images(64)),
    "poolformer": _poolformer,
    "coat": partial(
        _named,
        "coat_tiny",
        img_size=64,
        embed_dims=(16, 32, 32, 32),
        serial_depths=(1, 1, 1, 1),
        parallel_depth=1,
    ),
    "efficientformer": partial(
        _named, "efficientformer_l1", 224, depths=(1, 1, 1, 2), embed_dims=(8, 16, 32, 64)
    ),
    "edgenext": partial(
        _named, "edgenext_xx_small", depths=(1, 1, 2, 1), dims=(8, 16, 32, 64), heads=(4, 4, 4, 4)
    ),
    "levit": partial(
        _named,
        "levit_128s",
        img_size=64,
        embed_dim=(32, 48, 64),
        num_heads=(2, 3, 4),
        depth=(1, 1, 1),
    ),
    "mobilevit": partial(_named, "mobilevit_xxs"),
    "seresnet18": partial(_named, "seresnet18"),
    "ghostnet": partial(_named, "ghostnet_100"),
    "nf_resnet26": partial(_named, "nf_resnet26"),
}

MODELS = [Model(f"timm/{name}", make) for name, make in _MAKERS.items()]
