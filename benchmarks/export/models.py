"""The networks, written once for both frameworks: ``nn`` is PyTorch's or Stretto's.

Each entry of ``MODELS`` makes a module, and says what its input is like for one example.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

__all__ = ["MEMBERS", "MODELS", "Model"]

MEMBERS = 10
VOCABULARY = 1000


class Model(NamedTuple):
    """A network to export."""

    make: Callable[[Any], Any]
    shape: tuple[int, ...]
    """The shape of an example."""
    tokens: int = 0
    """The number of tokens, where examples are such; 0 for numbers."""
    ensemble: bool = False
    """Whether ten members go into one file."""
    batches: tuple[int, ...] = (1, 32)


def mlp(nn: Any, width: int = 256) -> Any:
    """Three hidden layers."""
    sizes = [64, width, width, width]
    layers = [m for a, b in pairwise(sizes) for m in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(width, 10), nn.Softmax(dim=-1))


def small_mlp(nn: Any) -> Any:
    """Three hidden layers of 64, as for tables."""
    return mlp(nn, 64)


def cnn(nn: Any) -> Any:
    """Three convolutions, normalized and pooled."""
    layers = []
    for a, b in pairwise([3, 16, 32, 64]):
        layers += [
            nn.Conv2d(a, b, 3, padding=1),
            nn.BatchNorm2d(b),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 10))


def resnet18(nn: Any) -> Any:
    """He et al. (2015), for images of 64x64."""

    class Block(nn.Module):
        def __init__(self, a: int, b: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(a, b, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(b)
            self.conv2 = nn.Conv2d(b, b, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(b)
            self.relu = nn.ReLU()
            same = a == b and stride == 1
            conv = None if same else nn.Conv2d(a, b, 1, stride, bias=False)
            self.around = nn.Identity() if same else nn.Sequential(conv, nn.BatchNorm2d(b))

        def forward(self, x: Any) -> Any:
            y = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(y)) + self.around(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers += [nn.MaxPool2d(3, 2, 1)]
    for a, b in pairwise([64, 64, 128, 256, 512]):
        layers += [Block(a, b, 1 if b == 64 else 2), Block(b, b, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


@functools.cache
def transformer_class(nn: Any) -> Any:
    """Radford et al. (2019): blocks normalized before attention and dense layers."""

    class Block(nn.Module):
        def __init__(self, width: int, heads: int, gelu: str) -> None:
            super().__init__()
            self.heads = heads
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.query = nn.Linear(width, width)
            self.key = nn.Linear(width, width)
            self.value = nn.Linear(width, width)
            self.out = nn.Linear(width, width)
            self.fc1 = nn.Linear(width, 4 * width)
            self.fc2 = nn.Linear(4 * width, width)
            self.gelu = nn.GELU(approximate=gelu)

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.ln_1(x))
            return x + self.fc2(self.gelu(self.fc1(self.ln_2(x))))

        def attention(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = [
                layer(x).reshape(batch, length, self.heads, width // self.heads).swapaxes(1, 2)
                for layer in (self.query, self.key, self.value)
            ]
            mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
            return self.out(mixed.swapaxes(1, 2).reshape(batch, length, width))

    class Transformer(nn.Module):
        def __init__(
            self, width: int, heads: int, layers: int, length: int, vocabulary: int, gelu: str
        ) -> None:
            super().__init__()
            self.wte = nn.Embedding(vocabulary, width)
            self.wpe = nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block(width, heads, gelu) for _ in range(layers)])
            self.ln_f = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
            return self.head(self.ln_f(self.blocks(x)))

    return Transformer


@functools.cache
def recurrent_class(nn: Any) -> Any:
    """Embedded tokens, recurrent layers, and an output for each token: one class."""

    class Recurrent(nn.Module):
        def __init__(self, kind: str, layers: int, both: bool) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, 128)
            self.layers = getattr(nn, kind)(128, 128, layers, batch_first=True, bidirectional=both)
            self.out = nn.Linear(256 if both else 128, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            return self.out(self.layers(self.embedding(tokens))[0])

    return Recurrent


def recurrent(nn: Any, kind: str, layers: int, both: bool) -> Any:
    """Return such a network."""
    return recurrent_class(nn)(kind, layers, both)


def gpt2(nn: Any) -> Any:
    """The smallest GPT-2."""
    return transformer_class(nn)(768, 12, 12, 1024, 50257, "tanh")


def small_transformer(nn: Any) -> Any:
    """Two blocks with the exact GELU."""
    return transformer_class(nn)(256, 4, 2, 128, VOCABULARY, "none")


MODELS: dict[str, Model] = {
    "mlp": Model(mlp, (64,)),
    "cnn": Model(cnn, (3, 32, 32)),
    "resnet18": Model(resnet18, (3, 64, 64), batches=(1, 8)),
    "transformer": Model(small_transformer, (64,), VOCABULARY, batches=(1, 8)),
    "gpt2": Model(gpt2, (64,), 50257, batches=(1,)),
    "lstm": Model(lambda nn: recurrent(nn, "LSTM", 2, False), (32,), VOCABULARY),
    "gru": Model(lambda nn: recurrent(nn, "GRU", 1, False), (32,), VOCABULARY),
    "lstm-both-ways": Model(lambda nn: recurrent(nn, "LSTM", 1, True), (32,), VOCABULARY),
    "ensemble-small-mlp": Model(small_mlp, (64,), ensemble=True),
    "ensemble-mlp": Model(mlp, (64,), ensemble=True),
    "ensemble-transformer": Model(
        small_transformer, (64,), VOCABULARY, ensemble=True, batches=(1, 8)
    ),
    "ensemble-gru": Model(
        lambda nn: recurrent(nn, "GRU", 1, False), (32,), VOCABULARY, ensemble=True, batches=(1, 8)
    ),
    "ensemble-cnn": Model(cnn, (3, 32, 32), ensemble=True),
}
