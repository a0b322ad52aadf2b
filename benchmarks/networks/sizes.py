"""The networks of inverted bottlenecks, block by block, as their papers list them."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["EFFICIENTNET_B0", "MOBILENET_V3_SMALL", "Block"]


class Block(NamedTuple):
    """An inverted bottleneck: a depthwise convolution between two of 1×1.

    `squeeze` is the width within the squeeze-and-excitation; 0 where there is none.
    """

    kernel: int
    expanded: int
    out: int
    squeeze: int
    activation: str
    stride: int


MOBILENET_V3_SMALL: dict[str, Any] = {
    "stem": 16,
    "blocks": (
        Block(3, 16, 16, 8, "relu", 2),
        Block(3, 72, 24, 0, "relu", 2),
        Block(3, 88, 24, 0, "relu", 1),
        Block(5, 96, 40, 24, "hardswish", 2),
        Block(5, 240, 40, 64, "hardswish", 1),
        Block(5, 240, 40, 64, "hardswish", 1),
        Block(5, 120, 48, 32, "hardswish", 1),
        Block(5, 144, 48, 40, "hardswish", 1),
        Block(5, 288, 96, 72, "hardswish", 2),
        Block(5, 576, 96, 144, "hardswish", 1),
        Block(5, 576, 96, 144, "hardswish", 1),
    ),
    "head": 576,
    "hidden": 1024,
    "activation": "hardswish",
    "within": "relu",
    "gate": "hardsigmoid",
    "classes": 1000,
}
"""Howard et al. (2019), Searching for MobileNetV3, table 2; squeezed to a quarter, in eighths."""


def _stages() -> tuple[Block, ...]:
    """Tan and Le (2019), EfficientNet, table 1: a stage's first block has its stride."""
    blocks, width = [], 32
    for expansion, kernel, stride, out, count in (
        (1, 3, 1, 16, 1),
        (6, 3, 2, 24, 2),
        (6, 5, 2, 40, 2),
        (6, 3, 2, 80, 3),
        (6, 5, 1, 112, 3),
        (6, 5, 2, 192, 4),
        (6, 3, 1, 320, 1),
    ):
        for place in range(count):
            step = stride if place == 0 else 1
            blocks.append(Block(kernel, expansion * width, out, width // 4, "silu", step))
            width = out
    return tuple(blocks)


EFFICIENTNET_B0: dict[str, Any] = {
    "stem": 32,
    "blocks": _stages(),
    "head": 1280,
    "hidden": 0,
    "activation": "silu",
    "within": "silu",
    "gate": "sigmoid",
    "classes": 1000,
}
