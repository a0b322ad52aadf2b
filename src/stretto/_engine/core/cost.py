"""Costs of work on a machine: the constants behind the planner's choices.

Times are in microseconds. There is a table for each kind of processor, and ``CPU`` is the one for
this machine's. One was measured, on cores with 512-bit vectors (``benchmarks/README.md`` says how);
the others are derived from it, each with its reasons. The choices depend only on the ratios between
the figures, which vary less between machines than the figures do. Results never depend on a table
by more than the rounding of sums in another order.
"""

from __future__ import annotations

from typing import NamedTuple

from stretto._engine.core.machine import Kind, cores, kind


class Machine(NamedTuple):
    """Say how fast a machine does each kind of work."""

    name: str
    """The kind of processor, and whether the figures were measured on one."""
    products: float
    """Multiply-adds in a microsecond, at best."""
    wide: float
    """The fraction of that rate which one large matrix product reaches."""
    batched: float
    """The fraction that a batch of small matrix products reaches."""
    item: float
    """The overhead of each product in a batch."""
    turn: float
    """The overhead of each iteration of a loop."""
    kernel: float
    """The overhead of each kernel."""
    joint: float
    """The overhead of a product that threads share."""
    near: float
    """Bytes copied in a microsecond while everything fits in a core's own cache."""
    shared: float
    """The same while it fits in the last-level cache."""
    far: float
    """The same when it fits in no cache."""
    passing_shared: float
    """Bytes of intermediate results read or written in a microsecond, in the last-level cache."""
    passing_far: float
    """The same when they fit in no cache."""
    fresh: float
    """The time for each byte of new memory, which the system clears page by page."""
    fresh_bytes: int
    """Allocations above this size get new memory from the system each time."""
    near_bytes: int
    """The size of a core's own cache."""
    shared_bytes: int
    """The size of the last-level cache."""
    vectors: float
    """The time for an element in XLA's vectorized code, as a share of that of the machine measured.
    """

    def copying(self, size: float) -> float:
        """Return the time to read and write so many bytes once."""
        return 2 * size / self._rate(size, self.shared, self.far) + self.fresh_memory(size)

    def moving(self, size: float) -> float:
        """Return the time to move so many bytes into or out of a loop, a part in each iteration."""
        return size / (self.shared if size <= self.shared_bytes else self.far)

    def passing(self, size: float) -> float:
        """Return the time to read or write an intermediate result of this size."""
        return size / self._rate(size, self.passing_shared, self.passing_far)

    def fresh_memory(self, size: float) -> float:
        """Return the time to allocate so much memory for intermediate results."""
        return size * self.fresh if size > self.fresh_bytes else 0.0

    def product(self, products: float, fraction: float) -> float:
        """Return the time for so many multiply-adds at a fraction of the best rate."""
        return products / (self.products * fraction)

    def fraction(self, products: float) -> float:
        """Give the fraction of the best rate that a product of this many multiply-adds reaches."""
        return self.batched if products < 8e6 else (self.batched + self.wide) / 2

    def _rate(self, size: float, shared: float, far: float) -> float:
        if size <= self.near_bytes:
            return self.near
        return shared if size <= self.shared_bytes else far


# Measured on an AMD EPYC (Zen 4), whose cores do 16 multiply-adds of float32 in a cycle at 3.1 GHz.
_MEASURED = Machine(
    name=f"{Kind.AVX512.value}, measured",
    products=50e3 * cores(),
    wide=0.75,
    batched=0.55,
    item=0.4,
    turn=1.5,
    kernel=0.5,
    joint=18.0,  # for 64 rows, 128 columns and a depth of 784; 6 for one of 128
    near=30e3,
    shared=16e3,
    far=6e3,
    passing_shared=25e3,
    passing_far=15e3,
    fresh=2e-4,  # 2e-4 to 4e-4 in programs, with huge pages; twice that without
    fresh_bytes=28_000_000,  # the C library's threshold is 32 MiB; a little less, to be safe
    near_bytes=1 << 19,
    shared_bytes=16 << 20,
    vectors=1.0,
)

# Cores with AVX2 do as many in a cycle, two vectors of 8, as those measured do with one of 16 in
# halves; and XLA prefers vectors of 256 bits for its own code on either. So nothing is different.
_AVX2 = _MEASURED._replace(name=f"{Kind.AVX2.value}, as measured with AVX-512")

# Derived, not measured. Cores such as Neoverse N1 and N2 do 8 multiply-adds in a cycle, two vectors
# of 4, at about 2.5 GHz. XLA's own code has vectors of 128 bits for the 256 that it prefers on x86,
# so an element takes it twice as long where it computes. Where it waits for memory it does not, and
# the rates of copies stay: 16 bytes read and written in a cycle are more than `near`. What begins
# an operation or an iteration is not vectorized. Their own caches have 512 KiB to 2 MiB, those that
# they share 16 to 64 MiB. That memory is fresh from 32 MiB on is the C library's doing.
_ARM = _MEASURED._replace(
    name=f"{Kind.ARM.value}, derived from measurements on x86", products=20e3 * cores(), vectors=2.0
)

TABLES = {Kind.AVX512: _MEASURED, Kind.AVX2: _AVX2, Kind.ARM: _ARM}
"""The table of each kind of processor."""

CPU = TABLES[kind()]
"""The table of this machine's."""
