"""Constants that a function makes itself, told from those that it closes over.

Layer 1 (core). A program has small constants in its text, wherever they come from. A reader of
programs may want all that a function closes over as inputs instead, also single numbers: then two
functions that differ in those alone have programs that differ in nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core.holding import holding
from stretto._engine.core.interpreter import state
from stretto._engine.core.types import ArrayType

__all__ = ["closing_over"]


class _Own:
    """Makes constants as the eager interpreter does, and knows them again."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def constant(self, host: np.ndarray, type: ArrayType) -> Any:
        """The array that holds this NumPy array, which must not be written to afterwards."""
        value = state.eager.constant(host, type)
        self._made[id(value)] = value
        return value

    def made(self, value: Any) -> bool:
        """Whether this array was made here."""
        return id(value) in self._made


def closing_over(fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)``; what functions recorded in it close over are inputs of programs."""
    return holding(state, "maker", _Own(), fun, *args)
