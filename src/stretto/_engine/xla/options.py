"""The options of XLA's that a program is compiled with: by the facts about it, and the user's.

What ``XLA_FLAGS`` sets is left as it is.
"""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple, TypeAlias

from stretto._engine.core.errors import ConfigError
from stretto._engine.lowering.text import Facts, Product

Options: TypeAlias = tuple[tuple[str, str | bool | int | float], ...]
"""Options of the compiler as pairs of name and value, sorted by name."""

LIBRARY = "xla_cpu_experimental_ynn_fusion_type"
"""XLA's option for which work goes to YNNPACK; by default also products and convolutions.

Eigen is faster at some kinds of products, and YNNPACK at others; ``library_work`` tells which
prevail (docs/decisions/0022-sums-alone-go-to-ynnpack.md).
"""

SCHEDULER = "xla_cpu_scheduler_type"
"""XLA's option for what the order of a program's operations is good for.

By default that is that many can run at once. Programs of large arrays are put into the order that
takes the least memory (docs/decisions/0043-large-programs-in-the-order-of-least-memory.md).
"""

_LEAST_MEMORY = "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"

_MUCH = 1 << 27
"""The bytes in large results of a program's operations, all together, from which it is large.

Eight small transformers' gradients make 74 MiB, and took 1.12 to 1.15 of their time in the order of
least memory; training steps of networks make 770 MiB and more, and took 0.8 to 1.05."""

_LARGE = 1 << 18
"""The bytes from which a result is large: fewer stay in the processor's caches.

Five neural ODEs, which make 250 MB in arrays of 80 KiB, took 1.4 to 1.5 of their time in the order
of least memory."""

SMALL_LOOPS = "xla_cpu_small_while_loop_byte_threshold"
"""XLA's option for how many bytes a turn of a loop that is one kernel reads and writes at most.

XLA's CPU backend compiles the operations of a loop one by one, and hands them to its threads turn
by turn, unless it makes one kernel of the whole loop, with the loops and branches in it. In such a
kernel it has no library for products, and one thread
(docs/decisions/0060-small-loops-are-one-kernel.md).
"""

_TURN = 1 << 18
"""The bytes that we have such a turn read and write at most: beyond, there is work for two threads.

Element-wise work on 49,152 numbers took 0.96 to 1.0 of its time in one kernel, on 65,536 1.3."""

_LOOP_PRODUCTS = 1 << 12
"""The multiply-adds of a product beyond which a library is faster than a loop over the elements.

Loops of products of 16×16 matrices took 0.4 of their time in one kernel, of 32×32 1.2."""

_REUSE = 2.0
"""A library pays from so many reads of each element of a product's largest array on."""

_SHARED = 256
"""The elements of a call's largest array up to which XLA never shares its work among threads.

Random bits were shared from 1,025 words on, with any vectors (jaxlib 0.10.2)."""

_SMALL_MATRIX = 1 << 13
"""The most elements of a matrix on the right in a batch for which YNNPACK is much faster."""

_MEDIUM_BATCH, _LARGE_BATCH = 1 << 20, 1 << 24
"""The elements of all matrices on the right of a batch up to which YNNPACK is faster where one
matrix is repeated, and from which it is much slower."""

_WORTH = 0.98
"""The share of Eigen's time below which YNNPACK gets the products."""

_WITHOUT = "xla_disable_hlo_passes"
_DROPS_BARRIERS = "cse_barrier_expander"
"""XLA's pass that drops barriers, after which others merge and repeat work across them.

On the CPU a barrier that stays costs nothing: no kernel is made of it
(docs/decisions/0038-values-stored-once.md).
"""

_FUSES_LOOPS = "small-while-loop-hoisting"
"""XLA's pass that makes one kernel of a small loop.

XLA then refuses the program if there is a barrier in the loop.
"""

_DUMPS = (
    "xla_dump_to",
    "xla_dump_hlo_as_dot",
    "xla_dump_hlo_as_html",
    "xla_dump_hlo_as_proto",
    "xla_dump_hlo_as_text",
    "xla_dump_hlo_as_url",
    "xla_dump_hlo_module_re",
    "xla_dump_hlo_pass_re",
    "xla_dump_hlo_snapshots",
)
"""XLA's options that make it write files, or print, when it compiles."""


EFFORTS = frozenset(
    {
        "exec_time_optimization_effort",
        "memory_fitting_effort",
        "memory_fitting_level",
        "optimization_level",
    }
)
"""Options of how hard XLA tries, which it is told otherwise than its flags."""


EXTRAS = frozenset({SMALL_LOOPS})
"""Options of the CPU backend alone, which XLA keeps by name in a table among its flags."""

# The numbers of XLA's fields: CompileOptionsProto.executable_build_options, debug_options in that,
# xla_backend_extra_options in that, and the key and the value of an entry of the table.
_BUILD, _DEBUG, _TABLE, _KEY, _VALUE = 3, 3, 500, 1, 2


def field(number: int, content: bytes) -> bytes:
    """Return a field of a serialized protocol buffer, as it is written."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Return an integer of variable length: seven bits a byte, the lowest first."""
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes([*result, value])


def with_extras(chosen: Any, extras: dict[str, Any]) -> Any:
    """Compile options with these ``EXTRAS``, for which jaxlib has no attribute.

    They are written behind the others in the form in which jaxlib reads options: what is read later
    is added to what was read before. Raises ``ConfigError`` for a value that is no number of bytes.
    """
    for name, value in extras.items():
        if not str(value).isdecimal():
            raise ConfigError(f"compiler_options: {name} must be a number of bytes, got {value!r}")
    table = b"".join(
        [
            field(_TABLE, field(_KEY, name.encode()) + field(_VALUE, str(value).encode()))
            for name, value in extras.items()
        ]
    )
    added = field(_BUILD, field(_DEBUG, table))
    return type(chosen).ParseFromString(chosen.SerializeAsString() + added)


def set_effort(build: Any, name: str, value: Any) -> None:
    """Give XLA one of ``EFFORTS``; raises ``ConfigError`` where it does not take name or value."""
    if not hasattr(build, name):
        known = ", ".join(sorted([n for n in EFFORTS if hasattr(build, n)]))
        raise ConfigError(f"compiler_options: this version of jaxlib has no {name}; it has {known}")
    try:
        setattr(build, name, value)
    except TypeError:
        kind = type(getattr(build, name)).__name__
        raise ConfigError(
            f"compiler_options: {name} must be of type {kind}, got {value!r}"
        ) from None


def quick_options(version: tuple[int, ...]) -> Options:
    """Return what has this version of jaxlib compile in a fraction of the time, to slower code.

    XLA's older kernel emitters write code that needs little optimization to compile. After 0.11.0
    there are none, nor is there an option for them (docs/decisions/0039-tiers.md).
    """
    unoptimized = ("xla_backend_optimization_level", 0)
    older_emitters = ("xla_cpu_use_fusion_emitters", False)
    return (unoptimized, older_emitters) if version <= (0, 11, 0) else (unoptimized,)


def options_for(facts: Facts, options: Options) -> list[tuple[str, Any]]:
    """Return our defaults for this program, unless ``XLA_FLAGS`` sets them, and these options."""
    ours: dict[str, Any] = {}
    if work := library_of(facts, options).work:
        ours[LIBRARY] = work
    in_loop = facts.has_loops and facts.has_barriers_in_loops
    if facts.has_barriers and _WITHOUT not in _flags():
        ours[_WITHOUT] = f"{_DROPS_BARRIERS},{_FUSES_LOOPS}" if in_loop else _DROPS_BARRIERS
    if not in_loop and SMALL_LOOPS not in _flags() and (most := most_bytes(facts)) is not None:
        ours[SMALL_LOOPS] = most
    if _bytes_made(facts) >= _MUCH and SCHEDULER not in _flags():
        ours[SCHEDULER] = _LEAST_MEMORY
    return list({**ours, **dict(options)}.items())


def with_option(options: Options, name: str, value: str | int) -> Options:
    """Return these options with one of them set."""
    return tuple(sorted({**dict(options), name: value}.items()))


class Libraries(NamedTuple):
    """Say what of a program goes to YNNPACK, and why."""

    work: str
    """The value of XLA's option: names of kinds of work, joined by commas; empty for none."""
    products: bool
    """Says whether products are among it."""
    reason: str


def library_of(facts: Facts, options: Options) -> Libraries:
    """Return what of this program goes to YNNPACK when it is compiled with these options, and why.

    No work is named where ``XLA_FLAGS`` decides, which XLA reads itself.
    """
    given = dict(options)
    if LIBRARY in given or LIBRARY in _flags():
        work = str(given.get(LIBRARY, ""))
        return Libraries(work, "DOT" in work, "XLA_FLAGS or compiler_options decide")
    return library_work(facts)


def library_work(facts: Facts) -> Libraries:
    """Return what of this program goes to YNNPACK, if nobody else decides."""
    sums = "LIBRARY_FUSION_TYPE_REDUCE"
    time = _time_of_products(facts)
    reason = f"YNNPACK is expected to take {time:.0%} of Eigen's time for them"
    if time < _WORTH:
        return Libraries(f"LIBRARY_FUSION_TYPE_DOT,{sums}", True, reason)
    return Libraries(sums, False, reason)


def _time_of_products(facts: Facts) -> float:
    """Return how long YNNPACK takes for all products of a program, as a share of Eigen's time."""
    ours = eigens = 0.0
    for product in facts.products:
        if {t.dtype.name for t in (product.left, product.right, product.out)} == {"float32"}:
            work = _multiply_adds(product)
            ours += work * _share_of_time(product)
            eigens += work
    return ours / eigens if eigens else 1.0


def _share_of_time(product: Product) -> float:
    """Return how long YNNPACK takes for a product, as a share of Eigen's time.

    Eigen takes long for products with a transposed matrix on the right, for small matrices in
    batches, and for those of one matrix with many, which it must have copies of. YNNPACK takes long
    for batches that it has to copy much for, and leaves products with a transposed matrix on the
    left to Eigen.
    """
    left, right = product.left, product.right
    columns, rows = product.summed
    transposed = (rows == (right.ndim - 1,)) != product.swapped[1]
    if not product.is_batch:
        return 0.6 if transposed else 1.0
    if (columns == (left.ndim - 1,)) == product.swapped[0]:
        return 1.0
    if right.size > _LARGE_BATCH:
        return 2.0
    if math.prod(right.shape[-2:]) <= _SMALL_MATRIX:
        return 0.7
    if transposed:
        return 0.8
    return 0.9 if product.repeats and right.size <= _MEDIUM_BATCH else 1.1


def _multiply_adds(product: Product) -> float:
    # (M K) (K N) (M N) = (M N K)²
    return math.sqrt(product.left.size * product.right.size * product.out.size)


def most_bytes(facts: Facts) -> int | None:
    """Return how many bytes a turn of a loop may read and write to be one kernel.

    It is None for XLA's choice.

    That is XLA's where a loop has work for a library, and where one calls what is kept apart and
    has work for two threads: XLA would call for them from within the kernel, where they are not to
    be had, and fail with "Symbols not found: __xla_cpu_runtime_ParallelForkJoin".
    """
    is_left_to_xla = (
        not facts.has_loops
        or facts.largest_call_in_loops > _SHARED
        or facts.has_convolutions_in_loops
        or any([p.in_loop and _is_for_a_library(p) for p in facts.products])
    )
    return None if is_left_to_xla else _TURN


def _is_for_a_library(product: Product) -> bool:
    """Say whether a product is faster done by a library.

    Those of complex numbers were not measured.
    """
    sizes = product.left.size, product.right.size, product.out.size
    work = _multiply_adds(product)
    is_real = product.out.kind != "complex"
    return is_real and work > _LOOP_PRODUCTS and work >= _REUSE * max(sizes)


def _bytes_made(facts: Facts) -> int:
    """Add up the sizes of all large results of one array, whether or not they are kept.

    Complex ones are not counted, as they were not when the bounds were measured.
    """
    sizes = [
        (type.size * type.dtype.itemsize, count)
        for type, count in facts.results.items()
        if type.kind != "complex"
    ]
    return sum([size * count for size, count in sizes if size >= _LARGE])


def _flags() -> str:
    return os.environ.get("XLA_FLAGS", "")


def asks_for_dumps(debug_options: Any, options: Options) -> bool:
    """Say whether XLA is to write files, or print, when it compiles."""
    return any(getattr(debug_options, name, None) for name in _DUMPS) or any(
        ["dump" in name for name, _ in options]
    )
