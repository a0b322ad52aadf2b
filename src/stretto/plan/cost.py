"""What work costs on a machine: the constants behind the planner's choices.

Layer 5 (plan). Times are in microseconds. The figures are those of one core with 512-bit vectors,
read off measurements of XLA's CPU backend (``benchmarks/README.md`` says how); choices between
formulations depend on their proportions, which differ less between machines than they do.
"""

from __future__ import annotations

import dataclasses
import os

__all__ = ["CPU", "Machine"]


@dataclasses.dataclass(frozen=True)
class Machine:
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
    """Bytes moved in a microsecond while all fits in the cache of a core."""
    shared: float
    """While it fits in the last cache."""
    far: float
    """When it does not."""
    near_bytes: int
    shared_bytes: int

    def rate(self, size: float) -> float:
        """The bytes moved in a microsecond, of an array of this size."""
        if size <= self.near_bytes:
            return self.near
        return self.shared if size <= self.shared_bytes else self.far

    def copying(self, size: float) -> float:
        """The time to read and write so many bytes once."""
        return 2 * size / self.rate(size)

    def product(self, products: float, fraction: float) -> float:
        """The time of so many products with additions at a fraction of the best rate."""
        return products / (self.products * fraction)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


CPU = Machine(
    products=50e3 * _cores(),
    wide=0.75,
    batched=0.55,
    item=0.4,
    turn=5.0,
    kernel=2.0,
    near=30e3,
    shared=16e3,
    far=6e3,
    near_bytes=1 << 20,
    shared_bytes=16 << 20,
)
