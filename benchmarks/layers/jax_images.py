"""JAX twins of what works over positions."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.layers.jax_twins import Parameters, Twins

__all__ = ["twins"]

twins = Twins()

LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def layout(rank: int) -> tuple[str, str, str]:
    """Channels first, as PyTorch has them."""
    letters = LETTERS[rank]
    return f"NC{letters}", f"OI{letters}", f"NC{letters}"


def plus_bias(y: jax.Array, p: Parameters) -> jax.Array:
    return y + p["bias"].reshape(-1, *[1] * (y.ndim - 2))


@twins.add("Conv1d", "Conv2d", "Conv3d")
def convolution(
    p: Parameters,
    x: jax.Array,
    stride: int = 1,
    padding: int | str = 0,
    dilation: int = 1,
    groups: int = 1,
    **_: Any,
) -> jax.Array:
    rank = x.ndim - 2
    pads = padding.upper() if isinstance(padding, str) else [(padding, padding)] * rank
    y = lax.conv_general_dilated(
        x,
        p["weight"],
        (stride,) * rank,
        pads,
        rhs_dilation=(dilation,) * rank,
        dimension_numbers=layout(rank),
        feature_group_count=groups,
    )
    return plus_bias(y, p)


@twins.add("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
def transposed_convolution(
    p: Parameters, x: jax.Array, stride: int = 1, padding: int = 0, groups: int = 1, **_: Any
) -> jax.Array:
    """A convolution of the spread input with the flipped kernel."""
    rank, weight = x.ndim - 2, p["weight"]
    channels, out, *kernel = weight.shape
    flipped = jnp.flip(weight, range(2, 2 + rank))
    grouped = flipped.reshape(groups, channels // groups, out, *kernel)
    swapped = jnp.swapaxes(grouped, 1, 2).reshape(groups * out, channels // groups, *kernel)
    y = lax.conv_general_dilated(
        x,
        swapped,
        (1,) * rank,
        [(size - 1 - padding,) * 2 for size in kernel],
        lhs_dilation=(stride,) * rank,
        dimension_numbers=layout(rank),
        feature_group_count=groups,
    )
    return plus_bias(y, p)


def windows(x: jax.Array, kernel_size: int, stride: int | None, padding: int) -> tuple[Any, ...]:
    """Window, strides and pads as `reduce_window` has them."""
    rank = x.ndim - 2
    step = kernel_size if stride is None else stride
    pads = ((0, 0),) * 2 + ((padding, padding),) * rank
    return (1, 1, *(kernel_size,) * rank), (1, 1, *(step,) * rank), pads


@twins.add("MaxPool1d", "MaxPool2d", "MaxPool3d")
def max_pool(
    _: Parameters, x: jax.Array, kernel_size: int, stride: int | None = None, padding: int = 0
) -> jax.Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, *windows(x, kernel_size, stride, padding))


@twins.add("AvgPool1d", "AvgPool2d", "AvgPool3d")
def average_pool(
    _: Parameters, x: jax.Array, kernel_size: int, stride: int | None = None
) -> jax.Array:
    sums = lax.reduce_window(x, 0.0, lax.add, *windows(x, kernel_size, stride, 0))
    return sums / kernel_size ** (x.ndim - 2)


@twins.add("LPPool1d", "LPPool2d", "LPPool3d")
def power_pool(_: Parameters, x: jax.Array, norm_type: float, kernel_size: int) -> jax.Array:
    assert norm_type == 2
    return jnp.sqrt(lax.reduce_window(x * x, 0.0, lax.add, *windows(x, kernel_size, None, 0)))


@twins.add("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d")
def global_average_pool(_: Parameters, x: jax.Array, output_size: int) -> jax.Array:
    assert output_size == 1
    return jnp.mean(x, range(2, x.ndim), keepdims=True)


@twins.add("UpsamplingNearest2d")
def upsample_nearest(_: Parameters, x: jax.Array, scale_factor: int) -> jax.Array:
    return jnp.repeat(jnp.repeat(x, scale_factor, 2), scale_factor, 3)


@twins.add("Upsample")
def upsample(_: Parameters, x: jax.Array, scale_factor: int, mode: str) -> jax.Array:
    assert mode.endswith("linear")
    shape = (*x.shape[:2], *[scale_factor * size for size in x.shape[2:]])
    return jax.image.resize(x, shape, "linear", antialias=False)


@twins.add("interpolate")
def area(_: Parameters, x: jax.Array, size: tuple[int, int], mode: str) -> jax.Array:
    assert mode == "area"
    n, c, h, w = x.shape
    rows, columns = size
    return x.reshape(n, c, rows, h // rows, columns, w // columns).mean((3, 5))


def padded(mode: str) -> Any:
    def pad(_: Parameters, x: jax.Array, padding: int, value: float = 0.0) -> jax.Array:
        ends = [(0, 0)] * 2 + [(padding, padding)] * (x.ndim - 2)
        more = {"constant_values": value} if mode == "constant" else {}
        return jnp.pad(x, ends, mode, **more)

    return pad


for _kind, _mode in (
    ("Zero", "constant"),
    ("Constant", "constant"),
    ("Reflection", "reflect"),
    ("Replication", "edge"),
    ("Circular", "wrap"),
):
    twins.add(*[f"{_kind}Pad{n}d" for n in (1, 2, 3)])(padded(_mode))


@twins.add("PixelShuffle")
def pixel_shuffle(_: Parameters, x: jax.Array, upscale_factor: int) -> jax.Array:
    n, c, h, w = x.shape
    r = upscale_factor
    y = x.reshape(n, c // r**2, r, r, h, w)
    return y.transpose(0, 1, 4, 2, 5, 3).reshape(n, c // r**2, h * r, w * r)


@twins.add("PixelUnshuffle")
def pixel_unshuffle(_: Parameters, x: jax.Array, downscale_factor: int) -> jax.Array:
    n, c, h, w = x.shape
    r = downscale_factor
    y = x.reshape(n, c, h // r, r, w // r, r)
    return y.transpose(0, 1, 3, 5, 2, 4).reshape(n, c * r**2, h // r, w // r)


@twins.add("ChannelShuffle")
def channel_shuffle(_: Parameters, x: jax.Array, groups: int) -> jax.Array:
    n, c, *sizes = x.shape
    return x.reshape(n, groups, c // groups, *sizes).swapaxes(1, 2).reshape(x.shape)


@twins.add("Unfold")
def unfold(_: Parameters, x: jax.Array, kernel_size: int, padding: int) -> jax.Array:
    patches = lax.conv_general_dilated_patches(
        x, (kernel_size,) * 2, (1, 1), [(padding, padding)] * 2
    )
    return patches.reshape(*patches.shape[:2], math.prod(patches.shape[2:]))
