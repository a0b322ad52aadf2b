"""Networks of images in PyTorch; Stretto's layers are its own.

Batch normalization uses the batch's statistics and keeps none.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.networks.sizes import Block

__all__ = ["MODELS"]


def norm(width: int, eps: float = 1e-5) -> nn.Module:
    """Batch normalization without running statistics."""
    return nn.BatchNorm2d(width, eps=eps, track_running_stats=False)


class BasicBlock(nn.Module):
    """Two convolutions of 3×3 with a way around them."""

    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
        self.bn1 = norm(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = norm(out)
        self.downsample = shortcut(width, out, stride)

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class Bottleneck(nn.Module):
    """1×1, 3×3 with the stride, 1×1, with a way around them."""

    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, out // 4, 1, bias=False)
        self.bn1 = norm(out // 4)
        self.conv2 = nn.Conv2d(out // 4, out // 4, 3, stride, 1, bias=False)
        self.bn2 = norm(out // 4)
        self.conv3 = nn.Conv2d(out // 4, out, 1, bias=False)
        self.bn3 = norm(out)
        self.downsample = shortcut(width, out, stride)

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.downsample(x))


def shortcut(width: int, out: int, stride: int) -> nn.Module:
    """The way around a block: nothing, or a convolution where the shape changes."""
    if width == out and stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), norm(out))


class ResNet(nn.Module):
    """He et al. (2015), with the stride in the bottleneck's 3×3, and a small stem for 32×32."""

    def __init__(
        self, blocks: tuple[int, ...], deep: bool, width: int, imagenet: bool, classes: int
    ) -> None:
        super().__init__()
        stem = (7, 2, 3) if imagenet else (3, 1, 1)
        self.conv1 = nn.Conv2d(3, width, *stem, bias=False)
        self.bn1 = norm(width)
        self.pool = nn.MaxPool2d(3, 2, 1) if imagenet else nn.Identity()
        layers, block, now = [], Bottleneck if deep else BasicBlock, width
        for stage, count in enumerate(blocks):
            out = width * 2**stage * (4 if deep else 1)
            for place in range(count):
                layers.append(block(now, out, 2 if place == 0 and stage else 1))
                now = out
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(now, classes)

    def forward(self, x: Any) -> Any:
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.mean(self.layers(x), dim=(2, 3)))


def hardsigmoid(x: Any) -> Any:
    """PyTorch's function; written out in float64, where its gradient is off by 2e-8."""
    return F.relu6(x + 3) / 6 if x.dtype == torch.float64 else F.hardsigmoid(x)


class Inverted(nn.Module):
    """An inverted bottleneck with squeeze-and-excitation."""

    def __init__(self, width: int, block: Block, within: str, gate: str, eps: float) -> None:
        super().__init__()
        wide, kernel = block.expanded, block.kernel
        self.expand = nn.Conv2d(width, wide, 1, bias=False) if wide != width else None
        self.bn1: Any = norm(wide, eps) if wide != width else None
        padding = kernel // 2
        self.depth = nn.Conv2d(wide, wide, kernel, block.stride, padding, groups=wide, bias=False)
        self.bn2 = norm(wide, eps)
        self.squeeze = nn.Conv2d(wide, block.squeeze, 1) if block.squeeze else None
        self.excite: Any = nn.Conv2d(block.squeeze, wide, 1) if block.squeeze else None
        self.project = nn.Conv2d(wide, block.out, 1, bias=False)
        self.bn3 = norm(block.out, eps)
        self.residual = block.stride == 1 and width == block.out
        self.activation = getattr(F, block.activation)
        self.within = getattr(F, within)
        self.gate = hardsigmoid if gate == "hardsigmoid" else getattr(F, gate)

    def forward(self, x: Any) -> Any:
        y = x if self.expand is None else self.activation(self.bn1(self.expand(x)))
        y = self.activation(self.bn2(self.depth(y)))
        if self.squeeze is not None:
            scale = self.within(self.squeeze(torch.mean(y, dim=(2, 3), keepdim=True)))
            y = y * self.gate(self.excite(scale))
        y = self.bn3(self.project(y))
        return x + y if self.residual else y


class InvertedNet(nn.Module):
    """MobileNet-v3 and EfficientNet: a stem, inverted bottlenecks, a head."""

    def __init__(
        self,
        stem: int,
        blocks: tuple[Block, ...],
        head: int,
        hidden: int,
        activation: str,
        within: str,
        gate: str,
        classes: int,
    ) -> None:
        super().__init__()
        eps = 1e-3 if hidden else 1e-5
        self.stem = nn.Conv2d(3, stem, 3, 2, 1, bias=False)
        self.bn1 = norm(stem, eps)
        widths = [stem, *(block.out for block in blocks)]
        self.blocks = nn.Sequential(
            *(Inverted(width, block, within, gate, eps) for width, block in zip(widths, blocks))
        )
        self.head = nn.Conv2d(widths[-1], head, 1, bias=False)
        self.bn2 = norm(head, eps)
        self.hidden = nn.Linear(head, hidden) if hidden else None
        self.fc = nn.Linear(hidden or head, classes)
        self.activation = getattr(F, activation)

    def forward(self, x: Any) -> Any:
        x = self.blocks(self.activation(self.bn1(self.stem(x))))
        x = torch.mean(self.activation(self.bn2(self.head(x))), dim=(2, 3))
        return self.fc(x if self.hidden is None else self.activation(self.hidden(x)))


class ConvNeXtBlock(nn.Module):
    """A depthwise 7×7, and two dense layers at each pixel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depth = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x: Any) -> Any:
        y = self.norm(torch.movedim(self.depth(x), 1, -1))
        y = self.scale * self.fc2(F.gelu(self.fc1(y)))
        return x + torch.movedim(y, -1, 1)


class Downsample(nn.Module):
    """Layer normalization of the channels, around a convolution that leaves out pixels."""

    def __init__(self, width: int, out: int, stride: int, first: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, out, stride, stride)
        self.norm = nn.LayerNorm(out if first else width, eps=1e-6)
        self.first = first

    def forward(self, x: Any) -> Any:
        if self.first:
            return self.normalized(self.conv(x))
        return self.conv(self.normalized(x))

    def normalized(self, x: Any) -> Any:
        """`x` (N, C, H, W), normalized along its channels."""
        return torch.movedim(self.norm(torch.movedim(x, 1, -1)), -1, 1)


class ConvNeXt(nn.Module):
    """Liu et al. (2022), A ConvNet for the 2020s."""

    def __init__(self, depths: tuple[int, ...], widths: tuple[int, ...], classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for stage, ((width, out), depth) in enumerate(zip(pairwise((3, *widths)), depths)):
            layers.append(Downsample(width, out, 2 if stage else 4, first=stage == 0))
            layers += [ConvNeXtBlock(out) for _ in range(depth)]
        self.layers = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(widths[-1], eps=1e-6)
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x: Any) -> Any:
        return self.fc(self.norm(torch.mean(self.layers(x), dim=(2, 3))))


class Double(nn.Module):
    """Two convolutions of 3×3, normalized."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, padding=1, bias=False)
        self.bn1 = norm(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.bn2 = norm(out)

    def forward(self, x: Any) -> Any:
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


class UNet(nn.Module):
    """Ronneberger et al. (2015), padded and normalized, as it is commonly used today."""

    def __init__(self, widths: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.down = nn.ModuleList(Double(*pair) for pair in pairwise((3, *widths)))
        turned = list(pairwise(widths[::-1]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(wide, out, 2, 2) for wide, out in turned)
        self.merge = nn.ModuleList(Double(2 * out, out) for _, out in turned)
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Any) -> Any:
        kept = []
        for place, block in enumerate(self.down):
            x = block(x if place == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for up, merge, side in zip(self.up, self.merge, kept[-2::-1]):
            x = merge(torch.cat([side, up(x)], dim=1))
        return self.head(x)


MODELS = {"resnet": ResNet, "inverted": InvertedNet, "convnext": ConvNeXt, "unet": UNet}
