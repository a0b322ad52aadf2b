"""Networks of images in JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.networks.jax_layers import HWIO, Take, batch_norm, conv, dense, inside, layer_norm
from benchmarks.networks.sizes import Block

__all__ = ["MODELS"]


def max_pool(x: Any, size: int, stride: int, padding: int) -> Any:
    """The largest of each window of `x` (N, H, W, C)."""
    around = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
    window, strides = (1, size, size, 1), (1, stride, stride, 1)
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, around)


def basic(take: Take, name: str, x: Any, out: int, stride: int) -> Any:
    """Two convolutions of 3×3 with a way around them."""
    y = conv(take, f"{name}.conv1", x, out, 3, stride, 1)
    y = jax.nn.relu(batch_norm(take, f"{name}.bn1", y))
    y = batch_norm(take, f"{name}.bn2", conv(take, f"{name}.conv2", y, out, 3, 1, 1))
    return jax.nn.relu(y + shortcut(take, f"{name}.downsample", x, out, stride))


def bottleneck(take: Take, name: str, x: Any, out: int, stride: int) -> Any:
    """1×1, 3×3 with the stride, 1×1, with a way around them."""
    y = conv(take, f"{name}.conv1", x, out // 4, 1)
    y = jax.nn.relu(batch_norm(take, f"{name}.bn1", y))
    y = conv(take, f"{name}.conv2", y, out // 4, 3, stride, 1)
    y = jax.nn.relu(batch_norm(take, f"{name}.bn2", y))
    y = batch_norm(take, f"{name}.bn3", conv(take, f"{name}.conv3", y, out, 1))
    return jax.nn.relu(y + shortcut(take, f"{name}.downsample", x, out, stride))


def shortcut(take: Take, name: str, x: Any, out: int, stride: int) -> Any:
    """The way around a block: nothing, or a convolution where the shape changes."""
    if x.shape[-1] == out and stride == 1:
        return x
    return batch_norm(take, f"{name}.1", conv(take, f"{name}.0", x, out, 1, stride))


def resnet(
    take: Take,
    x: Any,
    blocks: tuple[int, ...],
    deep: bool,
    width: int,
    imagenet: bool,
    classes: int,
) -> Any:
    """He et al. (2015), with the stride in the bottleneck's 3×3, and a small stem for 32×32."""
    x = conv(take, "conv1", x, width, *((7, 2, 3) if imagenet else (3, 1, 1)))
    x = jax.nn.relu(batch_norm(take, "bn1", x))
    x = max_pool(x, 3, 2, 1) if imagenet else x
    block, number = bottleneck if deep else basic, 0
    for stage, count in enumerate(blocks):
        out = width * 2**stage * (4 if deep else 1)
        for place in range(count):
            x = block(take, f"layers.{number}", x, out, 2 if place == 0 and stage else 1)
            number += 1
    return dense(take, "fc", jnp.mean(x, axis=(1, 2)), classes)


FUNCTIONS = {
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "hardswish": jax.nn.hard_swish,
    "sigmoid": jax.nn.sigmoid,
    "hardsigmoid": jax.nn.hard_sigmoid,
}


def inverted(take: Take, x: Any, block: Block, within: str, gate: str, eps: float) -> Any:
    """An inverted bottleneck with squeeze-and-excitation."""
    activation, wide, y = FUNCTIONS[block.activation], block.expanded, x
    if wide != x.shape[-1]:
        y = activation(batch_norm(take, "bn1", conv(take, "expand", x, wide, 1), eps))
    size = block.kernel
    y = conv(take, "depth", y, wide, size, block.stride, size // 2, groups=wide)
    y = activation(batch_norm(take, "bn2", y, eps))
    if block.squeeze:
        scale = jnp.mean(y, axis=(1, 2), keepdims=True)
        scale = FUNCTIONS[within](conv(take, "squeeze", scale, block.squeeze, 1, bias=True))
        y = y * FUNCTIONS[gate](conv(take, "excite", scale, wide, 1, bias=True))
    y = batch_norm(take, "bn3", conv(take, "project", y, block.out, 1), eps)
    return x + y if block.stride == 1 and x.shape[-1] == block.out else y


def inverted_net(
    take: Take,
    x: Any,
    stem: int,
    blocks: tuple[Block, ...],
    head: int,
    hidden: int,
    activation: str,
    within: str,
    gate: str,
    classes: int,
) -> Any:
    """MobileNet-v3 and EfficientNet: a stem, inverted bottlenecks, a head."""
    eps, function = 1e-3 if hidden else 1e-5, FUNCTIONS[activation]
    x = function(batch_norm(take, "bn1", conv(take, "stem", x, stem, 3, 2, 1), eps))
    for place, block in enumerate(blocks):
        x = inverted(inside(take, f"blocks.{place}"), x, block, within, gate, eps)
    x = function(batch_norm(take, "bn2", conv(take, "head", x, head, 1), eps))
    x = jnp.mean(x, axis=(1, 2))
    x = function(dense(take, "hidden", x, hidden)) if hidden else x
    return dense(take, "fc", x, classes)


def convnext_block(take: Take, x: Any) -> Any:
    """A depthwise 7×7, and two dense layers at each pixel."""
    width = x.shape[-1]
    y = conv(take, "depth", x, width, 7, padding=3, groups=width, bias=True)
    y = dense(take, "fc1", layer_norm(take, "norm", y, 1e-6), 4 * width)
    y = dense(take, "fc2", jax.nn.gelu(y, approximate=False), width)
    return x + take("scale", (width,)) * y


def convnext(
    take: Take, x: Any, depths: tuple[int, ...], widths: tuple[int, ...], classes: int
) -> Any:
    """Liu et al. (2022), A ConvNet for the 2020s."""
    number = 0
    for stage, (width, depth) in enumerate(zip(widths, depths)):
        here, stride = inside(take, f"layers.{number}"), 2 if stage else 4
        x = layer_norm(here, "norm", x, 1e-6) if stage else x
        x = conv(here, "conv", x, width, stride, stride, bias=True)
        x = x if stage else layer_norm(here, "norm", x, 1e-6)
        for place in range(number + 1, number + 1 + depth):
            x = convnext_block(inside(take, f"layers.{place}"), x)
        number += 1 + depth
    return dense(take, "fc", layer_norm(take, "norm", jnp.mean(x, axis=(1, 2)), 1e-6), classes)


def double(take: Take, x: Any, out: int) -> Any:
    """Two convolutions of 3×3, normalized."""
    x = jax.nn.relu(batch_norm(take, "bn1", conv(take, "conv1", x, out, 3, padding=1)))
    return jax.nn.relu(batch_norm(take, "bn2", conv(take, "conv2", x, out, 3, padding=1)))


def unet(take: Take, x: Any, widths: tuple[int, ...], classes: int) -> Any:
    """Ronneberger et al. (2015), padded and normalized, as it is commonly used today."""
    kept = []
    for place, width in enumerate(widths):
        x = double(inside(take, f"down.{place}"), max_pool(x, 2, 2, 0) if place else x, width)
        kept.append(x)
    for place, (width, side) in enumerate(zip(widths[-2::-1], kept[-2::-1])):
        kernel = take(f"up.{place}.weight", (x.shape[-1], width, 2, 2), HWIO)
        x = jax.lax.conv_transpose(x, kernel, (2, 2), "VALID", transpose_kernel=True)
        x = x + take(f"up.{place}.bias", (width,))
        both = jnp.concatenate([side, x], axis=-1)
        x = double(inside(take, f"merge.{place}"), both, width)
    return conv(take, "head", x, classes, 1, bias=True)


MODELS = {"resnet": resnet, "inverted": inverted_net, "convnext": convnext, "unet": unet}
