"""Bases of layers that apply a function of ``functional``: activations, losses, pooling.

``piecewise_activations``, ``regression_losses``, ``pooling`` and their siblings use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto.nn.inputs import check_signal, hashable
from stretto.nn.module import Module

__all__ = ["FunctionLayer", "InPlace", "Loss", "Pool"]


class FunctionLayer(Module):
    """A function of the call's arguments and of settings, which are attributes."""

    function: ClassVar[Callable[..., Any]]
    settings: tuple[str, ...] = ()

    def forward(self, input: ArrayLike) -> Array:
        """Apply the function.

        Args:
            input: an array, of any shape unless the layer says otherwise.

        Returns:
            The values.
        """
        return self._call(input)

    def _call(self, *arguments: Any) -> Tree:
        settings = {name: getattr(self, name) for name in self.settings}
        return type(self).function(*arguments, **settings)

    def extra_repr(self) -> str:
        """The settings that are not arrays."""
        names = [name for name in self.settings if self._roles.get(name) == "static"]
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


class InPlace(FunctionLayer):
    """One without settings, which in PyTorch may write over its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class Loss(FunctionLayer):
    """A function of the model's output and a target, whose values are reduced to one."""

    settings = ("reduction",)
    reductions: ClassVar[tuple[str, ...]] = ("none", "mean", "sum")

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in self.reductions:
            raise ValueError(
                f"{type(self).__name__}: reduction must be one of {', '.join(self.reductions)}; "
                f"got {reduction!r}"
            )
        self.reduction = reduction

    def forward(self, input: ArrayLike, target: ArrayLike) -> Array:
        """Compute the loss.

        Args:
            input: what the model gives.
            target: what it should give.

        Returns:
            A scalar, or each loss where ``reduction`` is ``"none"``.
        """
        return self._call(input, target)


class Pool(FunctionLayer):
    """A function of signals, images or volumes; a setting that is a list becomes a tuple."""

    _axes: ClassVar[int]

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        for name, value in settings.items():
            setattr(self, name, hashable(value))
        self.settings = tuple(settings)

    def forward(self, input: ArrayLike) -> Tree:
        """Pool the input.

        Args:
            input: (batch, channels, *space), or without the batch.

        Returns:
            The same axes with pooled sizes; with ``return_indices`` a pair of values and indices.
        """
        return self._call(check_signal(self, input, self._axes))
