"""Three small convolutional networks, and the ensemble of members of each.

Next, read ``training``.
"""

from typing import Any

import stretto as st
from stretto import nn

__all__ = ["ARCHITECTURES", "Block", "make", "plain", "residual", "strided"]

CLASSES = 10


def normalized(*sizes: int, **options: Any) -> list[nn.Module]:
    """A convolution without bias, and BatchNorm, which has one."""
    return [nn.Conv2d(*sizes, bias=False, **options), nn.BatchNorm2d(sizes[1])]


def plain() -> nn.Module:
    """Two convolutions, each followed by max pooling; one linear layer."""
    return nn.Sequential(
        *normalized(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        *normalized(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(16 * 7 * 7, CLASSES),
    )  # fmt: skip


def strided() -> nn.Module:
    """Two convolutions with strides and larger windows, a hidden layer, and GELU."""
    return nn.Sequential(
        *normalized(1, 12, 5, stride=2, padding=2), nn.GELU(),
        *normalized(12, 24, 3, stride=2, padding=1), nn.GELU(), nn.Dropout2d(0.1),
        nn.Flatten(), nn.Linear(24 * 7 * 7, 48), nn.GELU(), nn.Dropout(0.25),
        nn.Linear(48, CLASSES),
    )  # fmt: skip


class Block(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.within = nn.Sequential(
            *normalized(channels, channels, 3, padding=1), nn.ReLU(),
            *normalized(channels, channels, 3, padding=1),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        """(N, channels, H, W), as ``x``."""
        return nn.relu(x + self.within(x))


def residual() -> nn.Module:
    """Patches of 4×4 pixels, two residual blocks, and averages over their neighbourhoods."""
    return nn.Sequential(
        *normalized(1, 24, 4, stride=4), nn.ReLU(),
        Block(24), Block(24),
        nn.AvgPool2d(2), nn.Flatten(), nn.Dropout(0.25), nn.Linear(24 * 3 * 3, CLASSES),
    )  # fmt: skip


ARCHITECTURES = {"plain": plain, "strided": strided, "residual": residual}


def make(architectures: tuple[str, ...], members: int, key: Any) -> st.Ensemble:
    """An ensemble of this many members of each architecture, all initialized differently."""
    with nn.keys(key):
        return st.Ensemble([ARCHITECTURES[a]() for a in architectures for _ in range(members)])
