"""Facts about a program, noted while its text is written: the compiler's options go by them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from stretto._engine.core.types import ArrayType


class Product(NamedTuple):
    """A ``dot_general`` that was written."""

    left: ArrayType
    right: ArrayType
    out: ArrayType
    summed: tuple[tuple[int, ...], tuple[int, ...]]
    """The axes of each operand that are multiplied and summed, in pairs."""
    is_batch: bool
    """Whether the operands share axes."""
    swapped: tuple[bool, bool]
    """Whether each operand is a transpose that swaps the last two axes alone."""
    repeats: bool
    """Whether an operand is a broadcast."""
    in_loop: bool


@dataclass(slots=True)
class Facts:
    """What a program has in it.

    "In a loop" is also what is in a function of the module's own, since a loop may call it.
    """

    name: str = "main"
    """The module's name."""
    results: dict[ArrayType, int] = field(default_factory=dict)
    """How many operations with one result give each type."""
    products: list[Product] = field(default_factory=list)
    targets: set[str] = field(default_factory=set)
    """The names of the registered functions that it calls."""
    has_reductions: bool = False
    has_loops: bool = False
    has_barriers: bool = False
    has_barriers_in_loops: bool = False
    has_convolutions_in_loops: bool = False
    largest_call_in_loops: int = 0
    """The elements of the largest real array of a call in a loop that is not to be inlined."""
    may_take_long: bool = False
    """Whether it may run for a second or longer."""
