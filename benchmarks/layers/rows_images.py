"""Rows over positions: convolution, pooling, resizing, padding, rearranging."""

from __future__ import annotations

from typing import Any

from benchmarks.layers.row import Row, Setting, normal, of, uniform

__all__ = ["IMAGES"]


def conv(batch: int, channels: int, out: int, kernel: int, *sizes: int, **more: Any) -> Setting:
    """A batch of images, or of what has other ranks, and a convolution of them."""
    shape = {"in_channels": channels, "out_channels": out, "kernel_size": kernel}
    return of(normal(batch, channels, *sizes), **shape, **more)


CONVOLUTIONS = [
    Row(
        "conv1d",
        "Conv1d",
        (conv(1, 64, 64, 3, 256), conv(8, 128, 256, 5, 512), conv(8, 512, 512, 3, 512)),
        {"padding": "same"},
    ),
    Row(  # WaveNet, TCN
        "conv1d-dilated",
        "Conv1d",
        (conv(1, 32, 32, 2, 512), conv(8, 64, 64, 3, 1024), conv(8, 128, 128, 3, 4096)),
        {"dilation": 8},
    ),
    Row(  # Conformer
        "conv1d-depthwise",
        "Conv1d",
        (
            conv(1, 144, 144, 31, 100, padding=15, groups=144),
            conv(8, 144, 144, 31, 200, padding=15, groups=144),
            conv(8, 256, 256, 31, 200, padding=15, groups=256),
        ),
    ),
    Row(  # ResNet
        "conv2d",
        "Conv2d",
        (conv(1, 16, 16, 3, 32, 32), conv(8, 64, 64, 3, 56, 56), conv(8, 256, 256, 3, 28, 28)),
        {"padding": 1},
    ),
    Row(  # the stems of ResNet and ConvNeXt
        "conv2d-strided",
        "Conv2d",
        (
            conv(1, 3, 32, 3, 112, 112, stride=2, padding=1),
            conv(8, 3, 96, 4, 224, 224, stride=4),
            conv(8, 3, 64, 7, 224, 224, stride=2, padding=3),
        ),
    ),
    Row(  # MobileNet's expansions, ResNet's bottlenecks
        "conv2d-1x1",
        "Conv2d",
        (conv(1, 16, 96, 1, 28, 28), conv(8, 96, 24, 1, 28, 28), conv(8, 512, 256, 1, 28, 28)),
    ),
    Row(  # MobileNet; in the middle ConvNeXt
        "conv2d-depthwise",
        "Conv2d",
        (
            conv(1, 96, 96, 3, 28, 28, padding=1, groups=96),
            conv(4, 192, 192, 7, 28, 28, padding=3, groups=192),
            conv(8, 144, 144, 3, 56, 56, padding=1, groups=144),
        ),
    ),
    Row(  # ResNeXt
        "conv2d-grouped",
        "Conv2d",
        (
            conv(1, 32, 32, 3, 28, 28, groups=4),
            conv(8, 128, 128, 3, 14, 14, groups=32),
            conv(8, 256, 256, 3, 14, 14, groups=32),
        ),
        {"padding": 1},
    ),
    Row(  # DeepLab
        "conv2d-dilated",
        "Conv2d",
        (
            conv(1, 32, 32, 3, 28, 28, padding=2, dilation=2),
            conv(4, 128, 128, 3, 28, 28, padding=4, dilation=4),
            conv(2, 512, 256, 3, 28, 28, padding=6, dilation=6),
        ),
    ),
    Row(
        "conv3d",
        "Conv3d",
        (conv(1, 3, 8, 3, 8, 32, 32), conv(2, 16, 32, 3, 8, 28, 28), conv(2, 64, 64, 3, 8, 28, 28)),
        {"padding": 1},
    ),
    Row(  # X3D
        "conv3d-depthwise",
        "Conv3d",
        (
            conv(1, 24, 24, 3, 4, 14, 14, groups=24),
            conv(1, 54, 54, 3, 8, 28, 28, groups=54),
            conv(2, 108, 108, 3, 8, 28, 28, groups=108),
        ),
        {"padding": 1},
    ),
    Row(  # vocoders
        "conv-transpose1d",
        "ConvTranspose1d",
        (conv(1, 64, 32, 4, 64), conv(4, 128, 64, 8, 256), conv(4, 512, 256, 16, 128)),
        {"stride": 2, "padding": 1},
    ),
    Row(  # U-Net, DCGAN
        "conv-transpose2d",
        "ConvTranspose2d",
        (
            conv(1, 32, 16, 2, 14, 14, stride=2),
            conv(8, 128, 64, 4, 14, 14, stride=2, padding=1),
            conv(4, 256, 128, 4, 14, 14, stride=2, padding=1),
        ),
    ),
    Row(
        "conv-transpose2d-depthwise",
        "ConvTranspose2d",
        (
            conv(1, 32, 32, 4, 14, 14, groups=32),
            conv(4, 96, 96, 4, 28, 28, groups=96),
            conv(8, 128, 128, 4, 28, 28, groups=128),
        ),
        {"stride": 2, "padding": 1},
    ),
    Row(
        "conv-transpose3d",
        "ConvTranspose3d",
        (conv(1, 8, 4, 2, 4, 8, 8), conv(1, 32, 16, 2, 8, 14, 14), conv(2, 64, 32, 2, 8, 14, 14)),
        {"stride": 2},
    ),
]

SEQUENCES = (of(normal(1, 32, 128)), of(normal(8, 64, 512)), of(normal(16, 256, 1024)))
IMAGE = (of(normal(1, 16, 32, 32)), of(normal(8, 64, 56, 56)), of(normal(8, 64, 112, 112)))
SMALLER = (of(normal(1, 16, 28, 28)), of(normal(8, 64, 56, 56)), of(normal(16, 128, 56, 56)))
VOLUMES = (of(normal(1, 8, 4, 16, 16)), of(normal(2, 32, 8, 28, 28)), of(normal(4, 64, 8, 28, 28)))
ENDS = (of(normal(1, 96, 7, 7)), of(normal(8, 512, 8, 8)), of(normal(32, 2048, 8, 8)))
BY_RANK = {1: SEQUENCES, 2: IMAGE, 3: VOLUMES}

POWERS = (of(uniform(1, 16, 32, 32)), of(uniform(8, 64, 56, 56)), of(uniform(16, 128, 56, 56)))
"""Positive, for the root has no slope at 0."""

WITHOUT_ADAPTIVE = "JAX has none for windows of several sizes"

OVERLAPPING = {"kernel_size": 3, "stride": 2, "padding": 1}

POOLING = [
    *(Row(f"max-pool{n}d", f"MaxPool{n}d", BY_RANK[n], OVERLAPPING) for n in (1, 2, 3)),
    Row("max-pool2d-2x2", "MaxPool2d", IMAGE, {"kernel_size": 2}),
    *(Row(f"avg-pool{n}d", f"AvgPool{n}d", BY_RANK[n], {"kernel_size": 2}) for n in (1, 2, 3)),
    Row("avg-pool2d-overlapping", "AvgPool2d", SMALLER, {"kernel_size": 3, "stride": 1}),
    Row("lp-pool2d", "LPPool2d", POWERS, {"norm_type": 2.0, "kernel_size": 2}),
    Row("adaptive-avg-pool1d", "AdaptiveAvgPool1d", SEQUENCES, {"output_size": 1}),
    Row("adaptive-avg-pool2d-global", "AdaptiveAvgPool2d", ENDS, {"output_size": 1}),
    Row(
        "adaptive-avg-pool2d",
        "AdaptiveAvgPool2d",
        SMALLER,
        {"output_size": 6},
        without_jax=WITHOUT_ADAPTIVE,
    ),
    Row("adaptive-avg-pool3d", "AdaptiveAvgPool3d", VOLUMES, {"output_size": 1}),
    Row(
        "adaptive-max-pool2d",
        "AdaptiveMaxPool2d",
        IMAGE,
        {"output_size": 3},
        without_jax=WITHOUT_ADAPTIVE,
    ),
]

FEATURES = (of(normal(1, 32, 14, 14)), of(normal(4, 64, 28, 28)), of(normal(8, 64, 56, 56)))
THIN = (of(normal(1, 32, 64)), of(normal(8, 64, 256)), of(normal(16, 128, 512)))
CUBES = (of(normal(1, 8, 4, 8, 8)), of(normal(1, 32, 8, 14, 14)), of(normal(2, 32, 8, 28, 28)))

RESIZING = [
    Row("upsample-nearest", "UpsamplingNearest2d", FEATURES, {"scale_factor": 2}),
    Row(
        "upsample-bilinear-corners",
        "UpsamplingBilinear2d",
        FEATURES,
        {"scale_factor": 2},
        without_jax="jax.image.resize does not align corners",
    ),
    Row("upsample-linear", "Upsample", THIN, {"scale_factor": 2, "mode": "linear"}),
    Row("upsample-bilinear", "Upsample", FEATURES, {"scale_factor": 2, "mode": "bilinear"}),
    Row("upsample-trilinear", "Upsample", CUBES, {"scale_factor": 2, "mode": "trilinear"}),
    Row(
        "interpolate-bicubic",
        "interpolate",
        FEATURES,
        {"scale_factor": 2.0, "mode": "bicubic"},
        without_jax="jax.image.resize has another cubic kernel",
    ),
    Row(  # to the next position embeddings of a ViT
        "interpolate-bilinear-odd",
        "interpolate",
        FEATURES,
        {"size": (37, 37), "mode": "bilinear"},
        without_jax="jax.image.resize, without antialiasing, is compared at a factor of 2",
    ),
    Row("interpolate-area", "interpolate", SMALLER, {"size": (14, 14), "mode": "area"}),
]

PADDING = [
    Row("zero-pad2d", "ZeroPad2d", IMAGE, {"padding": 3}),
    Row("constant-pad2d", "ConstantPad2d", IMAGE, {"padding": 3, "value": 1.5}),
    Row("reflection-pad2d", "ReflectionPad2d", IMAGE, {"padding": 3}),
    Row("replication-pad2d", "ReplicationPad2d", IMAGE, {"padding": 3}),
    Row("circular-pad2d", "CircularPad2d", IMAGE, {"padding": 3}),
]

PATCHES = (of(normal(1, 3, 32, 32)), of(normal(4, 32, 28, 28)), of(normal(4, 64, 56, 56)))


def columns(batch: int, channels: int, size: int) -> Setting:
    """What `Fold` puts together: patches of 3×3 at each position, padded by 1."""
    return of(normal(batch, 9 * channels, size * size), output_size=(size, size))


REARRANGING = [
    Row("pixel-shuffle", "PixelShuffle", FEATURES, {"upscale_factor": 2}),
    Row("pixel-unshuffle", "PixelUnshuffle", IMAGE, {"downscale_factor": 2}),
    Row("channel-shuffle", "ChannelShuffle", FEATURES, {"groups": 4}),
    Row("unfold", "Unfold", PATCHES, {"kernel_size": 3, "padding": 1}),
    Row(
        "fold",
        "Fold",
        (columns(1, 3, 32), columns(4, 32, 28), columns(4, 64, 56)),
        {"kernel_size": 3, "padding": 1},
        without_jax="JAX has none",
    ),
]

IMAGES = [*CONVOLUTIONS, *POOLING, *RESIZING, *PADDING, *REARRANGING]
