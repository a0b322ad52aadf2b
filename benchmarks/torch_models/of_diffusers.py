"""Models of diffusers: a U-Net that is told a time and a text, and an autoencoder."""

from __future__ import annotations

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from torch import nn

from benchmarks.torch_models.model import Call, Model

__all__ = ["MODELS"]


def _unet() -> Call:
    module = UNet2DConditionModel(
        sample_size=16,
        layers_per_block=1,
        block_out_channels=(32, 64),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=32,
        attention_head_dim=8,
        norm_num_groups=8,
    )
    args = torch.randn(2, 4, 16, 16), torch.tensor([3, 5]), torch.randn(2, 6, 32)
    return Call(module, args, {"return_dict": False})


class _Roundtrip(nn.Module):
    """An image encoded, and decoded from the mode of the distribution."""

    def __init__(self) -> None:
        super().__init__()
        self.autoencoder = AutoencoderKL(
            block_out_channels=(32, 64),
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
            norm_num_groups=8,
            latent_channels=4,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        latent = self.autoencoder.encode(x, return_dict=False)[0].mode()
        return self.autoencoder.decode(latent, return_dict=False)[0]


MODELS = [
    Model("diffusers/unet", _unet),
    Model("diffusers/autoencoder", lambda: Call(_Roundtrip(), (torch.randn(2, 3, 32, 32),))),
]
