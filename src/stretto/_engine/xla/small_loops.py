"""Which loops of a program are one kernel each, told from its text.

XLA's CPU backend compiles the operations of a loop one by one, and hands them to its threads turn
by turn, unless it makes one kernel of the whole loop, with the loops and branches in it. It does
that where a turn reads and writes little. In such a kernel it has no library for products, and one
thread. Decision 60 has the measurements.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from stretto._engine.xla.libraries import multiply_adds

BARRIER = '"stablehlo.optimization_barrier"'
"""A barrier, as texts have it."""

SMALL_LOOPS = "xla_cpu_small_while_loop_byte_threshold"
"""XLA's option for how many bytes a turn of such a loop reads and writes at most."""

_BYTES = 1 << 18
"""As many as we have it take: beyond, a turn has work for two threads."""

_PRODUCTS = 1 << 12
"""The multiply-adds of a product beyond which a library is faster than a loop over the elements."""

_REUSE = 2.0
"""How often a product reads each element of its largest array, from which on a library pays."""

_SHARED = 256
"""The elements of a call's largest array up to which XLA never shares its work among threads.

Random bits were shared from 1,025 words on, with any vectors (jaxlib 0.10.2)."""

_LOOP = '"stablehlo.while"'
_APART = 'inlineable = "false"'
_TENSOR = re.compile(r"tensor<([\dx]*)x\w+>")
_PRODUCT = re.compile(
    r'"stablehlo\.dot_general"\(.* : \(tensor<(?:([\dx]*)x)?\w+>, tensor<(?:([\dx]*)x)?\w+>\) -> '
    r"tensor<(?:([\dx]*)x)?\w+>"
)


def most_bytes(text: str) -> int | None:
    """How many bytes a turn of a loop may read and write to be one kernel; None for XLA's choice.

    That is XLA's where a loop has work for a library, and where one calls what is kept apart and
    has work for two threads: XLA would call for them from within the kernel, where they are not to
    be had, and fail with "Symbols not found: __xla_cpu_runtime_ParallelForkJoin".
    """
    if _LOOP not in text:
        return None
    for line in _in_loops(text):
        if _APART in line and max(map(_elements, _TENSOR.findall(line)), default=0) > _SHARED:
            return None
        if '"stablehlo.convolution"' in line:
            return None
        product = _PRODUCT.search(line) if '"stablehlo.dot_general"' in line else None
        if product and _for_a_library(product.groups()):
            return None
    return _BYTES


def _elements(shape: str) -> int:
    return math.prod(map(int, shape.split("x")))


def has_barrier_in_loop(text: str) -> bool:
    """Whether a barrier is in a loop, or in a function that one might call."""
    return BARRIER in text and _LOOP in text and any([BARRIER in line for line in _in_loops(text)])


def _in_loops(text: str) -> Iterator[str]:
    """The lines of a text that are in loops, and those of functions, which loops may call."""
    depth, called = 0, False
    for line in text.split("\n"):
        if line.startswith("func.func"):
            called = line.startswith("func.func private")
        elif depth or called:
            yield line
        if depth or _LOOP in line:
            depth += line.count("({") - line.count("})")


def _for_a_library(shapes: Sequence[str | None]) -> bool:
    """Whether a product of such operands and result is faster done by a library."""
    sizes = [math.prod([int(n) for n in shape.split("x")]) if shape else 1 for shape in shapes]
    work = multiply_adds(*sizes)
    return work > _PRODUCTS and work >= _REUSE * max(sizes)
