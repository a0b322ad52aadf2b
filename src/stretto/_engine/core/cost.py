"""What work costs on a machine: the constants behind the planner's choices.

Layer 5 (plan). Times are in microseconds. The figures are those of one core with 512-bit vectors,
read off measurements of XLA's CPU backend (``benchmarks/README.md`` says how); choices between
formulations depend on their proportions, which differ less between machines than they do.
"""

from __future__ import annotations

import os
from typing import NamedTuple

__all__ = ["CPU", "Machine"]


class Machine(NamedTuple):
    """How fast the parts of the work go."""

    products: float
    """Products with additions in a microsecond, at best."""
    wide: float
    """The fraction of that which one large matrix product reaches."""
    batched: float
    """The fraction that many small matrix products reach, one after the other."""
    item: float
    """The time to begin one of a batch of products."""
    turn: float
    """The time to begin one turn of a loop."""
    kernel: float
    """The time to begin an operation of its own."""
    near: float
    """Bytes copied in a microsecond while all fits in the cache of a core."""
    shared: float
    """While it fits in the last cache."""
    far: float
    """When it does not."""
    passing_shared: float
    """Bytes written or read in a microsecond of what is made on the way, as ``shared``."""
    passing_far: float
    """As ``far``."""
    fresh: float
    """The time a byte takes that the system hands out anew: it is cleared, page by page."""
    fresh_bytes: int
    """From how much memory on the system hands it out at each call, and takes it back."""
    near_bytes: int
    shared_bytes: int

    def copying(self, size: float) -> float:
        """The time to read and write so many bytes once."""
        return 2 * size / self._rate(size, self.shared, self.far) + self.fresh_memory(size)

    def moving(self, size: float) -> float:
        """The time to bring so many bytes into a loop, or out of it, piece by piece."""
        return size / (self.shared if size <= self.shared_bytes else self.far)

    def passing(self, size: float) -> float:
        """The time to read or write an array of this size that is made on the way."""
        return size / self._rate(size, self.passing_shared, self.passing_far)

    def fresh_memory(self, size: float) -> float:
        """The time to get so much memory for what is made on the way."""
        return size * self.fresh if size > self.fresh_bytes else 0.0

    def product(self, products: float, fraction: float) -> float:
        """The time of so many products with additions at a fraction of the best rate."""
        return products / (self.products * fraction)

    def fraction(self, products: float) -> float:
        """The fraction that a matrix product of this size reaches, alone or in a batch."""
        return self.batched if products < 8e6 else (self.batched + self.wide) / 2

    def _rate(self, size: float, shared: float, far: float) -> float:
        if size <= self.near_bytes:
            return self.near
        return shared if size <= self.shared_bytes else far


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


CPU = Machine(
    products=50e3 * _cores(),
    wide=0.75,
    batched=0.55,
    item=0.4,
    turn=1.5,
    kernel=0.5,
    near=30e3,
    shared=16e3,
    far=6e3,
    passing_shared=25e3,
    passing_far=15e3,
    fresh=4e-4,
    fresh_bytes=28_000_000,  # the C library's limit is 32 MiB, and the estimate is rough
    near_bytes=1 << 19,
    shared_bytes=16 << 20,
)
