"""Models of torchvision: classifiers, segmentation, video."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torchvision.models as tv
from torch import nn

from benchmarks.torch_models.model import Call, Model, images

__all__ = ["MODELS"]


def _named(name: str, size: int = 64, **kwargs: Any) -> Call:
    return Call(getattr(tv, name)(weights=None, num_classes=10, **kwargs), images(size))


def _with_small_head(name: str, features: int) -> Call:
    """One whose classifier has most of the weights, with fewer of them."""
    module = getattr(tv, name)(weights=None)
    module.classifier = nn.Sequential(
        nn.Dropout(), nn.Linear(features, 64), nn.ReLU(inplace=True), nn.Linear(64, 10)
    )
    return Call(module, images(64))


def _resnext() -> Call:
    module = tv.ResNet(
        tv.resnet.Bottleneck, [1, 1, 1, 1], groups=4, width_per_group=4, num_classes=10
    )
    return Call(module, images(64))


def _densenet() -> Call:
    return Call(tv.DenseNet(8, (2, 3, 2), 16, drop_rate=0.1, num_classes=10), images(64))


def _efficientnet() -> Call:
    block = tv.efficientnet.MBConvConfig
    blocks = [block(1, 3, 1, 16, 8, 1), block(6, 3, 2, 8, 16, 2), block(6, 5, 2, 16, 24, 2)]
    module = tv.EfficientNet(blocks, 0.2, num_classes=10, last_channel=64)
    return Call(module, images(64))


def _regnet() -> Call:
    blocks = tv.regnet.BlockParams.from_init_params(
        depth=6, w_0=16, w_a=8.0, w_m=2.0, group_width=8, se_ratio=0.25
    )
    return Call(tv.RegNet(blocks, num_classes=10), images(64))


def _convnext() -> Call:
    block = tv.convnext.CNBlockConfig
    blocks = [block(16, 32, 1), block(32, 64, 2), block(64, None, 1)]
    return Call(tv.ConvNeXt(blocks, stochastic_depth_prob=0.1, num_classes=10), images(64))


def _vit() -> Call:
    sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 32, "mlp_dim": 64}
    return Call(tv.VisionTransformer(32, 8, **sizes, num_classes=10), images(32))


def _swin(**kwargs: Any) -> Call:
    module = tv.SwinTransformer(
        [4, 4], embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4], **kwargs
    )
    return Call(module, images(64))


def _maxvit() -> Call:
    module = tv.MaxVit(
        (64, 64),
        stem_channels=8,
        partition_size=4,
        block_channels=[16, 32],
        block_layers=[1, 1],
        head_dim=8,
        stochastic_depth_prob=0.1,
        num_classes=10,
    )
    return Call(module, images(64))


def _segmentation(name: str) -> Call:
    make = getattr(tv.segmentation, name)
    return Call(make(weights=None, weights_backbone=None, num_classes=5), images(64))


def _video() -> Call:
    video = tv.video.resnet
    convolutions = [video.Conv3DSimple] * 4
    module = tv.video.VideoResNet(
        video.BasicBlock, convolutions, [1, 1, 1, 1], video.BasicStem, num_classes=10
    )
    return Call(module, (torch.randn(2, 3, 4, 32, 32),))


_MAKERS: dict[str, Callable[[], Call]] = {
    name: partial(_named, name)
    for name in ("resnet18", "resnet50", "shufflenet_v2_x0_5", "squeezenet1_1")
} | {
    "mobilenet_v2": partial(_named, "mobilenet_v2", width_mult=0.35),
    "mobilenet_v3_small": partial(_named, "mobilenet_v3_small", width_mult=0.5),
    "resnext": _resnext,
    "densenet": _densenet,
    "efficientnet": _efficientnet,
    "regnet_y": _regnet,
    "googlenet": partial(_named, "googlenet", init_weights=False, aux_logits=False),
    "alexnet": partial(_with_small_head, "alexnet", 256 * 6 * 6),
    "vgg11_bn": partial(_with_small_head, "vgg11_bn", 512 * 7 * 7),
    "convnext": _convnext,
    "vit": _vit,
    "swin": _swin,
    "maxvit": _maxvit,
    "deeplabv3_mobilenet": partial(_segmentation, "deeplabv3_mobilenet_v3_large"),
    "lraspp_mobilenet": partial(_segmentation, "lraspp_mobilenet_v3_large"),
    "video_resnet": _video,
}

MODELS = [Model(f"torchvision/{name}", make) for name, make in _MAKERS.items()]
