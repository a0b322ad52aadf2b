"""Costs of work on a machine: the constants behind the planner's choices.

Times are in microseconds. There is a table for each kind of processor, and ``CPU`` is the one for
this machine's. One was measured, on cores with 512-bit vectors (``benchmarks/README.md`` says how);
the others are derived from it, each with its reasons. The choices depend only on the ratios between
the figures, which vary less between machines than the figures do. Results never depend on a table
by more than the rounding of sums in another order.

``stretto tune`` measures this machine, and keeps how many times as long as by the table each kind
of work takes, by processor, in the folder ``costs`` of the user's cache directory. With the setting
``tuned`` the planner goes by the table so scaled. The file is read as numbers, each of which has to
be between bounds; one that is damaged or makes no sense counts for nothing.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import NamedTuple

from stretto._engine import core
from stretto._engine.core.config import config
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.machine import Kind, cache_directory, cores, kind, processor
from stretto._engine.kernels import LEVEL

hashlib = LazyModule("hashlib")
json = LazyModule("json")


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


# What was measured on this machine

SCALED: dict[str, tuple[str, ...]] = {
    "products": ("products",),
    "copies": ("near", "shared", "far", "passing_shared", "passing_far"),
    "fresh": ("fresh",),
    "overheads": ("item", "turn", "kernel", "joint"),
}
"""The kinds of work that are measured, and the figures that each scales."""

_RATES = {*SCALED["products"], *SCALED["copies"]}
"""The figures that are rates, and not times."""

_BOUND = 30.0
"""The most times as long as by the table, or as short, that a kind of work may take."""

_LARGEST = 1 << 12
"""The most bytes of a file that is read; one takes a hundred."""


def scaled(machine: Machine, times: Mapping[str, float]) -> Machine:
    """Return a machine on which each kind of work takes so many times as long.

    >>> slow = scaled(CPU, dict.fromkeys(SCALED, 1.0) | {"copies": 2.0})
    >>> CPU.shared / slow.shared, slow.turn / CPU.turn
    (2.0, 1.0)
    """
    figures = {
        name: getattr(machine, name) * (1 / times[kind] if name in _RATES else times[kind])
        for kind, names in SCALED.items()
        for name in names
    }
    name = machine.name.partition(",")[0]
    return machine._replace(name=f"{name}, tuned on this machine", **figures)


def tuned_path() -> str | None:
    """Return the file of this processor, with as many cores and such vectors; None if nowhere."""
    base = cache_directory()
    about = "\n".join([processor(), str(cores()), LEVEL])
    name = hashlib.sha256(about.encode()).hexdigest()
    return os.path.join(base, "costs", f"{name}.json") if base else None


def keep(times: Mapping[str, float]) -> str | None:
    """Write what was measured, for all processes that begin later; return the file."""
    path = tuned_path()
    if path is not None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        content = json.dumps({kind: times[kind] for kind in SCALED}).encode()
        core.files.write_whole(path, lambda file: file.write(content), "stretto tune")
        kept.cache_clear()
    return path


@functools.cache
def kept() -> Machine | None:
    """Return the table as scaled by what was measured here; None where that is not to be had."""
    try:
        path = tuned_path()
        content = core.files.read_small(path, _LARGEST) if path else None
        if content is None:
            return None
        times = {kind: float(json.loads(content)[kind]) for kind in SCALED}
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    if not all([1 / _BOUND <= value <= _BOUND for value in times.values()]):  # nor is NaN
        return None
    return scaled(CPU, times)


def current() -> Machine:
    """Return the costs that the planner goes by: the table's, or with ``tuned`` this machine's."""
    return (kept() if config.tuned else None) or CPU
