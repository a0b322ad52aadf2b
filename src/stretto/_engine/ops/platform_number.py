"""Which of several platforms a program is compiled for, as a number.

Branches by that number are decided when text is written: only that of the platform is in it. A
module for several platforms has one function for each, and each function its own number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.primitive import CARRIED, ZERO_DERIVATIVE, Primitive, Refused
from stretto._engine.core.types import ArrayType, array_type

NAMES = {"gpu": ("cuda", "gpu"), "rocm": ("rocm", "gpu")}
"""What others call platforms, where it is not what they are called here."""

_INDEX = np.dtype(np.int32)


def number_of(platform: str, names: Sequence[str], rest: bool) -> int:
    """Return which of the names is that of a platform; how many there are if none is.

    Raises:
        NotImplementedError: none is, and the ``rest`` is not provided for.
    """
    own = NAMES.get(platform, (platform,))
    number = next((k for k, name in enumerate(names) if name in own), None)
    if number is None and not rest:
        raise NotImplementedError(
            f"platform_dependent: expected a function for {own[0]} or a default, got functions for "
            f"{', '.join(names) or 'none'}"
        )
    return len(names) if number is None else number


class PlatformNumber(Primitive):
    """The place among ``names`` of the platform that runs; their number if it has none of them.

    Without ``rest`` there has to be one.
    """

    padded = CARRIED
    only_compiled = True
    by_platform = True
    names: tuple[str, ...]
    rest: bool

    jvp = ZERO_DERIVATIVE
    transpose = Refused("it has no operand")

    def infer(self) -> ArrayType:
        return array_type((), _INDEX)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Say that it is compiled: then it is known for what."""
        return True

    def reference(self) -> np.ndarray:
        """Return that of the platform on which NumPy runs."""
        return np.asarray(number_of("cpu", self.names, self.rest), _INDEX)

    def lower(self, b: Any) -> Any:
        return b.decided(number_of(b.platform, self.names, self.rest), _INDEX)

    def onnx(self, b: Any) -> Any:  # type: ignore[override]
        """Take that of the CPU: a model is for any machine, and so is what is written for it."""
        return b.scalar(number_of("cpu", self.names, self.rest), _INDEX)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(), None
