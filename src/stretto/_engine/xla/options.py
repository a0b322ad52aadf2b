"""The options of XLA's that a text is compiled with, besides those that the user gives.

What ``XLA_FLAGS`` sets is left as it is.
"""

from __future__ import annotations

import math
import os
import re
from typing import Any, TypeAlias

from stretto._engine.core.errors import ConfigError
from stretto._engine.xla.libraries import Libraries, library_work
from stretto._engine.xla.messages import field
from stretto._engine.xla.small_loops import (
    BARRIER,
    SMALL_LOOPS,
    has_barrier_in_loop,
    most_bytes,
)

Options: TypeAlias = tuple[tuple[str, str | bool | int | float], ...]
"""Options of the compiler as pairs of name and value, sorted by name."""

LIBRARY = "xla_cpu_experimental_ynn_fusion_type"
"""XLA's option for which work goes to YNNPACK; by default also products and convolutions.

Eigen is faster at some kinds of products, and YNNPACK at others; ``libraries`` tells which prevail
(docs/decisions/0022-sums-alone-go-to-ynnpack.md).
"""

SCHEDULER = "xla_cpu_scheduler_type"
"""XLA's option for what the order of a program's operations is good for.

By default that is that many can run at once. Programs of large arrays are put into the order that
takes the least memory (docs/decisions/0043-large-programs-in-the-order-of-least-memory.md).
"""

_LEAST_MEMORY = "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"

_MUCH = 1 << 27
"""The bytes in large results of a program's operations, all together, from which it is large."""

_LARGE = 1 << 18
"""The bytes from which a result is large: fewer stay in the processor's caches."""

_RESULT = re.compile(r"-> tensor<(\d[\dx]*)x[a-z]+(\d+)>")

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
"""How hard XLA tries, which it is told otherwise than its flags."""


EXTRAS = frozenset({SMALL_LOOPS})
"""Options of the CPU backend alone, which XLA keeps by name in a table among its flags."""

# The numbers of XLA's fields: CompileOptionsProto.executable_build_options, debug_options in that,
# xla_backend_extra_options in that, and the key and the value of an entry of the table.
_BUILD, _DEBUG, _TABLE, _KEY, _VALUE = 3, 3, 500, 1, 2


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


def given(build: Any, name: str, value: Any) -> None:
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
    """What makes this version of jaxlib compile in a fraction of the time, to slower programs.

    XLA's older kernel emitters write code that needs little optimization to compile. After 0.11.0
    there are none, nor is there an option for them (docs/decisions/0039-tiers.md).
    """
    unoptimized = ("xla_backend_optimization_level", 0)
    older_emitters = ("xla_cpu_use_fusion_emitters", False)
    return (unoptimized, older_emitters) if version <= (0, 11, 0) else (unoptimized,)


def options_for(text: str, options: Options) -> list[tuple[str, Any]]:
    """The options for this text: our defaults, unless ``XLA_FLAGS`` sets them, and these."""
    ours: dict[str, Any] = {}
    if work := library_of(text, options).work:
        ours[LIBRARY] = work
    in_loop = has_barrier_in_loop(text)
    if BARRIER in text and _WITHOUT not in _flags():
        ours[_WITHOUT] = f"{_DROPS_BARRIERS},{_FUSES_LOOPS}" if in_loop else _DROPS_BARRIERS
    if not in_loop and SMALL_LOOPS not in _flags() and (most := most_bytes(text)) is not None:
        ours[SMALL_LOOPS] = most
    if _bytes_made(text) >= _MUCH and SCHEDULER not in _flags():
        ours[SCHEDULER] = _LEAST_MEMORY
    return list({**ours, **dict(options)}.items())


def with_option(options: Options, name: str, value: str | int) -> Options:
    """Return these options with one of them set."""
    return tuple(sorted({**dict(options), name: value}.items()))


def library_of(text: str, options: Options) -> Libraries:
    """What of this text goes to YNNPACK when it is compiled with these options, and why.

    No work is named where ``XLA_FLAGS`` decides, which XLA reads itself.
    """
    given = dict(options)
    if LIBRARY in given or LIBRARY in _flags():
        work = str(given.get(LIBRARY, ""))
        return Libraries(work, "DOT" in work, "XLA_FLAGS or compiler_options decide")
    return library_work(text)


def _bytes_made(text: str) -> int:
    """The sizes of all large results of one array in a text, whether or not they are kept."""
    sizes = [
        math.prod(map(int, shape.split("x"))) * max(1, int(bits) // 8)
        for shape, bits in _RESULT.findall(text)
    ]
    return sum([size for size in sizes if size >= _LARGE])


def _flags() -> str:
    return os.environ.get("XLA_FLAGS", "")


def asks_for_dumps(debug_options: Any, options: Options) -> bool:
    """Whether XLA is to write files, or print, when it compiles."""
    return any(getattr(debug_options, name, None) for name in _DUMPS) or any(
        ["dump" in name for name, _ in options]
    )
