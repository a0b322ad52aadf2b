"""Models written by hand of PyTorch's own layers: recurrent ones, attention, control flow."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from benchmarks.torch_models.model import Call, Model, images, tokens

__all__ = ["MODELS"]


class _Tagger(nn.Module):
    """An LSTM in both directions, that says something of each token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 16)
        self.lstm = nn.LSTM(16, 24, 2, batch_first=True, bidirectional=True, dropout=0.1)
        self.head = nn.Linear(48, 100)

    def forward(self, x: torch.Tensor) -> Any:
        hidden, (last, cell) = self.lstm(self.embedding(x))
        return self.head(hidden), last, cell


class _Recurrent(nn.Module):
    """A GRU with a plain recurrent layer on it."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 16)
        self.rnn = nn.RNN(16, 8)

    def forward(self, x: torch.Tensor) -> Any:
        hidden, last = self.gru(x)
        return self.rnn(hidden)[0], last


class _Attention(nn.Module):
    """One sequence that attends to another."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.attention(x, y, y)


class _Choice(nn.Module):
    """A layer that is called for some inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, self.linear, lambda x: x - 1, (x,))


def _sequences() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(2, 7, 32), torch.randn(2, 5, 32)


def _convolutional() -> Call:
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.2),
        nn.Flatten(),
        nn.Linear(8 * 15 * 15, 10),
    )
    return Call(module, images(32))


MODELS = [
    Model("written/lstm", lambda: Call(_Tagger(), (tokens(),))),
    Model("written/gru", lambda: Call(_Recurrent(), (torch.randn(7, 3, 8),))),
    Model(
        "written/transformer",
        lambda: Call(nn.Transformer(32, 4, 2, 2, 64, batch_first=True), _sequences()),
    ),
    Model("written/attention", lambda: Call(_Attention(), _sequences())),
    Model("written/convolutional", _convolutional),
    Model("written/choice", lambda: Call(_Choice(), (torch.rand(3, 4),))),
]
