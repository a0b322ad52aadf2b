"""Models of torchvision, trained nowhere else here: video, segmentation, flow, detection."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torchvision.models as tv
from torch import nn
from torchvision.models import detection, optical_flow, video
from torchvision.ops import FeaturePyramidNetwork

from benchmarks.torch_models.model import Call, Model, images

__all__ = ["MODELS"]


def _clip(size: int = 32, frames: int = 4) -> tuple[torch.Tensor]:
    return (torch.randn(2, 3, frames, size, size),)


def _video_resnet(convolution: Any, stem: Any) -> Call:
    module = video.VideoResNet(
        video.resnet.BasicBlock, [convolution] * 4, [1, 1, 1, 1], stem, num_classes=5
    )
    return Call(module, _clip())


def _swin3d() -> Call:
    module = video.SwinTransformer3d(
        [2, 4, 4], 16, depths=[2, 2], num_heads=[2, 4], window_size=[2, 4, 4], num_classes=5
    )
    return Call(module, _clip())


def _raft() -> Call:
    module = optical_flow.raft._raft(
        feature_encoder_layers=(16, 16, 16, 16, 32),
        feature_encoder_block=optical_flow.raft.ResidualBlock,
        feature_encoder_norm_layer=nn.InstanceNorm2d,
        context_encoder_layers=(16, 16, 16, 16, 32),
        context_encoder_block=optical_flow.raft.ResidualBlock,
        context_encoder_norm_layer=nn.BatchNorm2d,
        corr_block_num_levels=2,
        corr_block_radius=2,
        motion_encoder_corr_layers=(16, 16),
        motion_encoder_flow_layers=(16, 16),
        motion_encoder_out_channels=16,
        recurrent_block_hidden_state_size=16,
        recurrent_block_kernel_size=((3, 3),),
        recurrent_block_padding=((1, 1),),
        flow_head_hidden_size=16,
        use_mask_predictor=False,
        weights=None,
        progress=False,
    )
    pair = torch.randn(2, 3, 128, 128), torch.randn(2, 3, 128, 128)
    return Call(module, pair, {"num_flow_updates": 2})


class _Pyramid(nn.Module):
    """A backbone's maps at four scales, and what a detector's heads say of them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.stages = nn.ModuleList([nn.Conv2d(8, 8, 3, 2, 1) for _ in range(3)])
        self.fpn = FeaturePyramidNetwork([8, 8, 8], 16)
        self.head = detection.retinanet.RetinaNetHead(16, 3, 4)

    def forward(self, x: torch.Tensor) -> Any:
        x, maps = self.stem(x), {}
        for k, stage in enumerate(self.stages):
            x = maps[str(k)] = torch.relu(stage(x))
        return self.head(list(self.fpn(maps).values()))


_MAKERS: dict[str, Callable[[], Call]] = {
    "mnasnet": lambda: Call(tv.mnasnet0_5(weights=None, num_classes=5), images(32)),
    "inception_v3": lambda: Call(
        tv.inception_v3(weights=None, num_classes=5, aux_logits=False, init_weights=False),
        images(96),
    ),
    "swin_v2": lambda: Call(
        tv.SwinTransformer(
            [4, 4],
            embed_dim=16,
            depths=[2, 2],
            num_heads=[2, 4],
            window_size=[4, 4],
            num_classes=5,
            block=tv.swin_transformer.SwinTransformerBlockV2,
            downsample_layer=tv.swin_transformer.PatchMergingV2,
        ),
        images(64),
    ),
    "r2plus1d": partial(_video_resnet, video.resnet.Conv2Plus1D, video.resnet.R2Plus1dStem),
    "mc3": partial(_video_resnet, video.resnet.Conv3DNoTemporal, video.resnet.BasicStem),
    "swin3d": _swin3d,
    "retinanet_head": lambda: Call(_Pyramid(), images(32)),
    "raft": _raft,
}

MODELS = [Model(f"torchvision/{name}", make) for name, make in _MAKERS.items()]
