"""Constant arrays inside programs.

A rule, or a user's derivative, may bring an array of its own into a program that is derived from
another. An equation without operands holds it, so that programs stay closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.primitive import CARRIED, ZERO_DERIVATIVE, Primitive, Refused
from stretto._engine.core.types import ArrayType


class Held:
    """An array as a static parameter, compared by identity."""

    __slots__ = ("array", "type")

    def __init__(self, array: np.ndarray, type: ArrayType) -> None:
        self.array = array
        self.type = type

    def __repr__(self) -> str:
        return self.type.short()


class Constant(Primitive):
    """An array."""

    padded = CARRIED

    light = True
    held: Held
    interned = False
    rollable = False
    jvp = ZERO_DERIVATIVE
    transpose = Refused("it has no operand")

    def infer(self) -> ArrayType:
        return self.held.type

    def reference(self) -> np.ndarray:
        return self.held.array

    def lower(self, b: Any) -> Any:
        return b.array(self.held.array)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(), None
