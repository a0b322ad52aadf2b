"""Cases of functions over positions: convolution, pooling, padding, reshaping, resizing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.parity.case import Case, called
from benchmarks.parity.draw import Draw, Families

__all__ = ["families", "rank_of"]

families = Families()


def rank_of(name: str) -> int:
    """2 of `conv2d`."""
    return int(name[-2])


@families.add("conv1d", "conv2d", "conv3d")
def convolution(draw: Draw, name: str) -> Case:
    rank, groups = rank_of(name), draw.integer(1, 3)
    channels, out = groups * draw.integer(1, 3), groups * draw.integer(1, 3)
    sizes = draw.sizes(rank, 3, 8 if rank < 3 else 5)
    arrays = [
        draw.normal(*draw.lead(channels), *sizes),
        draw.normal(out, channels // groups, *draw.sizes(rank, 1, 3)),
    ]
    if draw.chance(0.6):
        arrays.append(draw.normal(out))
    settings: dict[str, Any] = {
        "groups": groups,
        "stride": draw.per_axis(rank, 1, 3),
        "dilation": draw.per_axis(rank, 1, 2),
        "padding": draw.per_axis(rank, 0, 2),
    }
    if draw.chance(0.25):
        settings["padding"] = draw.choice("same", "valid")
        if settings["padding"] == "same" and draw.chance(0.8):
            settings["stride"] = 1
    return called(name, *arrays, **settings)


@families.add("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed_convolution(draw: Draw, name: str) -> Case:
    rank, groups = rank_of(name), draw.integer(1, 3)
    channels, out = groups * draw.integer(1, 3), groups * draw.integer(1, 3)
    sizes = draw.sizes(rank, 2, 5 if rank < 3 else 3)
    arrays = [
        draw.normal(*draw.lead(channels), *sizes),
        draw.normal(channels, out // groups, *draw.sizes(rank, 1, 3)),
    ]
    if draw.chance(0.6):
        arrays.append(draw.normal(out))
    return called(
        name,
        *arrays,
        groups=groups,
        stride=draw.per_axis(rank, 1, 3),
        dilation=draw.per_axis(rank, 1, 2),
        padding=draw.per_axis(rank, 0, 2),
        output_padding=draw.per_axis(rank, 0, 1),
    )


def image(draw: Draw, rank: int) -> Any:
    """Two channels over some positions, a few hundred at most."""
    return draw.normal(*draw.lead(2), *draw.sizes(rank, 3, (15, 9, 6)[rank - 1]))


def tied(draw: Draw, x: Any) -> Any:
    """Sometimes rounded, so that several are the largest."""
    return np.round(x) if draw.chance(0.3) else x


@families.add("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(draw: Draw, name: str) -> Case:
    rank = rank_of(name)
    settings: dict[str, Any] = {
        "kernel_size": draw.per_axis(rank, 1, 4),
        "padding": draw.per_axis(rank, 0, 1),
        "dilation": draw.per_axis(rank, 1, 2),
        "ceil_mode": draw.chance(0.5),
        "return_indices": draw.chance(0.5),
    }
    if draw.chance(0.6):
        settings["stride"] = draw.per_axis(rank, 1, 3)
    return called(name, tied(draw, image(draw, rank)), **settings)


@families.add("avg_pool1d", "avg_pool2d", "avg_pool3d")
def average_pool(draw: Draw, name: str) -> Case:
    rank = rank_of(name)
    settings: dict[str, Any] = {
        "kernel_size": draw.per_axis(rank, 1, 4),
        "padding": draw.per_axis(rank, 0, 1),
        "ceil_mode": draw.chance(0.5),
        "count_include_pad": draw.chance(0.5),
    }
    if draw.chance(0.6):
        settings["stride"] = draw.per_axis(rank, 1, 3)
    if rank > 1 and draw.chance(0.2):
        settings["divisor_override"] = draw.integer(1, 4)
    return called(name, image(draw, rank), **settings)


@families.add("lp_pool1d", "lp_pool2d", "lp_pool3d")
def power_pool(draw: Draw, name: str) -> Case:
    rank = rank_of(name)
    settings: dict[str, Any] = {
        "norm_type": float(draw.integer(1, 4)),
        "kernel_size": draw.integer(1, 4) if rank == 1 else draw.per_axis(rank, 1, 4),
        "ceil_mode": draw.chance(0.5),
    }
    if draw.chance(0.6):
        settings["stride"] = draw.per_axis(rank, 1, 3)
    return called(name, np.abs(image(draw, rank)) + 0.125, **settings)


@families.add(*[f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)])
def adaptive_pool(draw: Draw, name: str) -> Case:
    rank = rank_of(name)
    size: Any = draw.per_axis(rank, 1, 6)
    if rank > 1 and isinstance(size, tuple) and draw.chance(0.3):
        size = (None, *size[1:])
    if "avg" in name:
        return called(name, image(draw, rank), output_size=size)
    x = tied(draw, image(draw, rank))
    return called(name, x, output_size=size, return_indices=draw.chance(0.5))


@families.add("pad")
def pad(draw: Draw, name: str) -> Case:
    rank, low = draw.integer(1, 3), -1 if draw.chance(0.3) else 0
    x = draw.normal(*draw.lead(2), *draw.sizes(rank, 3, 5))
    settings: dict[str, Any] = {
        "pad": draw.sizes(2 * rank, low, 3),
        "mode": draw.choice("constant", "reflect", "replicate", "circular"),
    }
    if settings["mode"] == "constant" and draw.chance(0.5):
        settings["value"] = 1.5
    return called(name, x, **settings)


@families.add("pixel_shuffle")
def pixel_shuffle(draw: Draw, name: str) -> Case:
    r, lead = draw.integer(1, 3), draw.sizes(draw.integer(0, 2), 1, 2)
    return called(name, draw.normal(*lead, 2 * r * r, 3, 2), upscale_factor=r)


@families.add("pixel_unshuffle")
def pixel_unshuffle(draw: Draw, name: str) -> Case:
    r, lead = draw.integer(1, 3), draw.sizes(draw.integer(0, 2), 1, 2)
    return called(name, draw.normal(*lead, 2, 3 * r, 2 * r), downscale_factor=r)


@families.add("channel_shuffle")
def channel_shuffle(draw: Draw, name: str) -> Case:
    groups = draw.integer(1, 3)
    return called(name, draw.normal(2, 2 * groups, 3, 2), groups=groups)


@families.add("unfold")
def unfold(draw: Draw, name: str) -> Case:
    return called(
        name,
        draw.normal(*draw.lead(2), *draw.sizes(2, 3, 7)),
        kernel_size=draw.per_axis(2, 1, 3),
        dilation=draw.per_axis(2, 1, 2),
        padding=draw.per_axis(2, 0, 2),
        stride=draw.per_axis(2, 1, 3),
    )


@families.add("fold")
def fold(draw: Draw, name: str) -> Case:
    kernel, dilation = draw.sizes(2, 1, 3), draw.sizes(2, 1, 2)
    padding, stride = draw.sizes(2, 0, 2), draw.sizes(2, 1, 3)
    size = draw.sizes(2, 3, 7)
    positions = math.prod(
        max((n + 2 * p - d * (k - 1) - 1) // s + 1, 0)
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride)
    )
    return called(
        name,
        draw.normal(*draw.lead(2 * math.prod(kernel)), positions or 1),
        output_size=size,
        kernel_size=kernel,
        dilation=dilation,
        padding=padding,
        stride=stride,
    )


@families.add("interpolate", "upsample")
def resizing(draw: Draw, name: str) -> Case:
    rank = draw.integer(1, 3)
    modes = ["nearest", "nearest-exact", "area", ("linear", "bilinear", "trilinear")[rank - 1]]
    if rank == 2:
        modes.append("bicubic")
    settings: dict[str, Any] = {"mode": draw.choice(*modes)}
    if settings["mode"].endswith("linear") or settings["mode"] == "bicubic":
        settings["align_corners"] = draw.chance(0.5)
    if draw.chance(0.5):
        settings["size"] = draw.per_axis(rank, 1, 9)
    else:
        factors = tuple(draw.choice(0.6, 1.3, 2.0, 3.0) for _ in range(rank))
        one = draw.choice(0.5, 0.7, 1.5, 2.0, 2.3, 3.0)
        settings["scale_factor"] = one if draw.chance(0.6) else factors
        if name == "interpolate" and draw.chance(0.3):
            settings["recompute_scale_factor"] = True
    return called(name, draw.normal(draw.integer(1, 2), 2, *draw.sizes(rank, 2, 7)), **settings)
