"""Constants that a function makes itself, told from those that it closes over.

A program has single numbers in its text, wherever they come from. Where programs are compared, all
that a function closes over has to be inputs instead: then functions that differ in those values
alone have programs of one form. ``linearize`` and ``vjp`` need it, whose results are trees of such
values, and ``make_jaxpr`` of ``stretto.as_jax``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import state
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType


class _Own:
    """Makes constants as the eager interpreter does, and knows them again."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def constant(self, host: np.ndarray, type: ArrayType) -> Any:
        """Return the array that holds this NumPy array, which must not be written to afterwards."""
        value = state.eager.constant(host, type)
        if host.size <= 1 or not any(host.strides):  # else it is an input in any case
            self.take(value)
        return value

    def take(self, value: Any) -> None:
        """Know this array as if it had been made here."""
        self._made[id(value)] = value

    def made(self, value: Any) -> bool:
        """Say whether this array was made here."""
        return id(value) in self._made


def closing_over(fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)``; what functions recorded in it close over are inputs of programs."""
    return holding(state, "maker", _Own(), fun, *args)


def take_as_own(values: Iterable[Any]) -> None:
    """Have arrays be constants that the function makes: those of a program that it runs."""
    if state.maker is not state.eager:
        for value in values:
            state.maker.take(value)
