"""A model that is compared: how to make it, and what it is called with.

Weights are random, and configurations are small: an import is about operations, and not about how
many there are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

__all__ = ["Call", "Model", "images", "tokens", "without_dropout"]


@dataclasses.dataclass(frozen=True)
class Call:
    """A module, and the arguments of a call of it."""

    module: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Model:
    """A model by name.

    Args:
        name: its name, which begins with that of its package.
        make: makes it, with random weights, and its arguments.
        compiled: whether its step is compiled here; it cannot be where shapes depend on values.
        batched: whether the first axis of its arguments is that of examples.
        single: whether it may ask for float32 in so many words, as libraries do.
    """

    name: str
    make: Callable[[], Call]
    compiled: bool = True
    batched: bool = True
    single: bool = True

    def made(self, seed: int = 0) -> Call:
        """The module and its arguments, always the same for a seed, without dropout.

        Parameters that start at 0 are drawn as well: a head of zeros hides all that is before it.
        """
        torch.manual_seed(seed)
        call = self.make()
        for x in call.module.parameters():
            if not x.any():
                nn.init.normal_(x, std=0.02)
        without_dropout(call.module)
        return call


def images(size: int, count: int = 2) -> tuple[torch.Tensor]:
    """The arguments of a model of square images in three colours."""
    return (torch.randn(count, 3, size, size),)


def tokens(length: int = 12, count: int = 2, vocabulary: int = 100) -> torch.Tensor:
    """Sequences of token ids, none of them one of the first few, which tend to be special."""
    return torch.randint(3, vocabulary, (count, length))


def without_dropout(module: nn.Module) -> None:
    """Set every probability of dropping something to 0: the frameworks draw other numbers.

    Libraries keep them in layers of their own, in attributes of modules, and in configurations,
    under names that have "drop" in them.
    """
    for part in module.modules():
        config = getattr(part, "config", None)
        holders = [part, config] if hasattr(config, "to_dict") else [part]
        drops = any([word in type(part).__name__.lower() for word in ("drop", "stochasticdepth")])
        for holder in holders:
            for name, value in list(vars(holder).items()):
                if isinstance(value, float) and ("drop" in name or (drops and name == "p")):
                    setattr(holder, name, 0.0)
