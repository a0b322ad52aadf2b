"""Random settings, shapes and numbers for cases, and the register of their makers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.parity.case import Case

__all__ = ["Draw", "Families", "Maker"]

T = TypeVar("T")


class Draw:
    """A stream of random choices."""

    def __init__(self, seed: int, name: str) -> None:
        """The stream of the family `name`, which no other family's cases disturb."""
        self._rng = np.random.default_rng([seed, *name.encode()])

    def chance(self, probability: float) -> bool:
        return bool(self._rng.random() < probability)

    def choice(self, *options: T) -> T:
        return options[int(self._rng.integers(len(options)))]

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included, as are those below."""
        return int(self._rng.integers(low, high + 1))

    def sizes(self, count: int, low: int, high: int) -> tuple[int, ...]:
        return tuple(self.integer(low, high) for _ in range(count))

    def per_axis(self, rank: int, low: int, high: int) -> int | tuple[int, ...]:
        """One integer for all axes, or a tuple."""
        return self.integer(low, high) if self.chance(0.4) else self.sizes(rank, low, high)

    def lead(self, channels: int) -> tuple[int, ...]:
        """(batch, channels), or without a batch."""
        return (channels,) if self.chance(0.25) else (self.integer(1, 3), channels)

    def normal(self, *shape: int) -> NDArray[np.float64]:
        """Numbers that float32 holds exactly, as all that are drawn here."""
        return self._rng.standard_normal(shape).astype(np.float32).astype(np.float64)

    def uniform(self, *shape: int, low: float = 0.05, high: float = 0.95) -> NDArray[np.float64]:
        return self._rng.uniform(low, high, shape).astype(np.float32).astype(np.float64)

    def integers(self, low: int, high: int, *shape: int) -> NDArray[np.int64]:
        return np.asarray(self._rng.integers(low, high + 1, shape))

    def mask(self, probability: float, *shape: int) -> NDArray[np.bool_]:
        return np.asarray(self._rng.random(shape) < probability)

    def signs(self, *shape: int) -> NDArray[np.float64]:
        return np.where(self.mask(0.5, *shape), 1.0, -1.0)


Maker: TypeAlias = Callable[[Draw, str], Case]


class Families:
    """Makers of random cases, by the name of the function or layer."""

    def __init__(self) -> None:
        self.makers: dict[str, Maker] = {}

    def add(self, *names: str) -> Callable[[Maker], Maker]:
        """Register the decorated `make(draw, name)` for each of the names."""

        def register(make: Maker) -> Maker:
            for name in names:
                assert name not in self.makers, name
                self.makers[name] = make
            return make

        return register
