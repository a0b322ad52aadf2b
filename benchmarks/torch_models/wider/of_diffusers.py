"""Models of diffusers whose training is not compared elsewhere here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffusers
import torch
from torch import nn

from benchmarks.torch_models.model import Call, Model

__all__ = ["MODELS"]

_PLAIN = {"return_dict": False}


class _Plain(nn.Module):
    """A model that gives a tuple."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: Any) -> Any:
        return self.model(*args, return_dict=False)


def _unet2d() -> Call:
    module = diffusers.UNet2DModel(
        sample_size=16,
        layers_per_block=1,
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
        attention_head_dim=8,
    )
    return Call(module, (torch.randn(2, 3, 16, 16), torch.tensor([3, 5])), _PLAIN)


def _unet1d() -> Call:
    module = diffusers.UNet1DModel(
        sample_size=32,
        in_channels=6,
        out_channels=6,
        layers_per_block=1,
        block_out_channels=(16, 32),
        down_block_types=("DownResnetBlock1D", "DownResnetBlock1D"),
        up_block_types=("UpResnetBlock1D",),
        mid_block_type="MidResTemporalBlock1D",
        out_block_type="OutConv1DBlock",
        time_embedding_type="positional",
        use_timestep_embedding=True,
        act_fn="mish",
        downsample_each_block=False,
    )
    return Call(module, (torch.randn(2, 6, 32), torch.tensor([3, 5])), _PLAIN)


def _dit() -> Call:
    module = diffusers.DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        sample_size=8,
        patch_size=2,
        num_embeds_ada_norm=10,
        norm_num_groups=2,
    )
    args = torch.randn(2, 4, 8, 8), torch.tensor([3, 5]), torch.tensor([1, 7])
    return Call(module, args, _PLAIN)


def _sd3() -> Call:
    module = diffusers.SD3Transformer2DModel(
        sample_size=8,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=2,
        joint_attention_dim=16,
        caption_projection_dim=16,
        pooled_projection_dim=12,
        out_channels=4,
        pos_embed_max_size=8,
    )
    args = torch.randn(2, 4, 8, 8), torch.randn(2, 5, 16), torch.randn(2, 12), torch.tensor([3, 5])
    return Call(module, args, _PLAIN)


def _flux() -> Call:
    module = diffusers.FluxTransformer2DModel(
        patch_size=1,
        in_channels=4,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=16,
        pooled_projection_dim=12,
        axes_dims_rope=(4, 4, 8),
    )
    named = {
        "hidden_states": torch.randn(2, 16, 4),
        "encoder_hidden_states": torch.randn(2, 5, 16),
        "pooled_projections": torch.randn(2, 12),
        "timestep": torch.tensor([0.3, 0.5]),
        "img_ids": torch.randint(0, 4, (16, 3)).float(),
        "txt_ids": torch.zeros(5, 3),
    }
    return Call(module, (), {**named, **_PLAIN})


def _vq() -> Call:
    module = diffusers.VQModel(
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4,
        latent_channels=4,
        num_vq_embeddings=16,
        vq_embed_dim=4,
    )
    return Call(_Plain(module), (torch.randn(2, 3, 16, 16),))


def _tiny() -> Call:
    module = diffusers.AutoencoderTiny(
        encoder_block_out_channels=(8, 8),
        decoder_block_out_channels=(8, 8),
        num_encoder_blocks=(1, 1),
        num_decoder_blocks=(1, 1),
        latent_channels=4,
    )
    return Call(_Plain(module), (torch.rand(2, 3, 16, 16),))


def _control() -> Call:
    module = diffusers.ControlNetModel(
        block_out_channels=(16, 32),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=8,
        norm_num_groups=8,
        conditioning_embedding_out_channels=(8, 8),
    )
    args = (
        torch.randn(2, 4, 8, 8),
        torch.tensor([3, 5]),
        torch.randn(2, 6, 16),
        torch.randn(2, 3, 16, 16),
    )
    return Call(module, args, _PLAIN)


def _prior() -> Call:
    module = diffusers.PriorTransformer(
        num_attention_heads=2,
        attention_head_dim=8,
        num_layers=2,
        embedding_dim=12,
        num_embeddings=6,
        additional_embeddings=4,
    )
    named = {
        "hidden_states": torch.randn(2, 12),
        "timestep": torch.tensor([3, 5]),
        "proj_embedding": torch.randn(2, 12),
        "encoder_hidden_states": torch.randn(2, 6, 12),
    }
    return Call(module, (), {**named, **_PLAIN})


_MAKERS: dict[str, Callable[[], Call]] = {
    "unet2d": _unet2d,
    "unet1d": _unet1d,
    "dit": _dit,
    "sd3": _sd3,
    "flux": _flux,
    "vq": _vq,
    "tiny_autoencoder": _tiny,
    "controlnet": _control,
    "prior": _prior,
}

MODELS = [Model(f"diffusers/{name}", make) for name, make in _MAKERS.items()]
