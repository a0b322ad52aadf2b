"""Where the JAX twins of layers and functions are kept, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax

__all__ = ["Parameters", "Twins", "Updated", "of_part"]

Parameters: TypeAlias = Mapping[str, jax.Array]
"""Parameters and running statistics by PyTorch's names, and a key under "key"."""

Twin: TypeAlias = Callable[..., Any]


class Updated(NamedTuple):
    """Outputs, and running statistics as the call leaves them."""

    output: Any
    buffers: dict[str, jax.Array]


class Twins:
    """Functions of parameters, inputs and the layer's settings, by the layer's name."""

    def __init__(self) -> None:
        self.found: dict[str, Twin] = {}

    def add(self, *names: str) -> Callable[[Twin], Twin]:
        """Register the decorated function."""

        def register(twin: Twin) -> Twin:
            for name in names:
                assert name not in self.found, name
                self.found[name] = twin
            return twin

        return register

    def each(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        """Register functions of the inputs and settings alone."""
        for name, function in functions.items():
            self.add(name)(_plain(function))


def _plain(function: Callable[..., Any]) -> Twin:
    return lambda p, *inputs, **options: function(*inputs, **options)


def of_part(parameters: Parameters, prefix: str) -> dict[str, jax.Array]:
    """The parameters of a layer inside."""
    start = f"{prefix}."
    return {name[len(start) :]: x for name, x in parameters.items() if name.startswith(start)}
