"""Gathers, and sums of what they read, as one operation, made by a pass for a kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

from stretto._engine.ops.fused import FusedProgram
from stretto._engine.ops.index.geometry import index_operand
from stretto._engine.ops.index.primitives import Gather


class Bag(NamedTuple):
    """What is done with the rows that a gather reads, along some of its axes."""

    kind: str
    """What it is: "sum", "weighted" for a sum of products, or "greatest"."""
    axes: tuple[int, ...]
    counts: bool
    """Whether an array says which rows count."""
    divisor: float | None = None
    """What a sum is divided by."""


class FusedGather(FusedProgram):
    """Windows of an array at indices, or a bag of them; see ``fuse_gathers``.

    The operands are the array, the indices, and for a bag the weights and what says which rows
    count, both in the gather's shape.
    """

    gather: Gather
    vectors: bool
    """Whether the indices have a last axis, of vectors."""
    wraps: bool
    """Whether negative indices count from the end."""
    counting: tuple[tuple[int, int], ...]
    """Components of index vectors that count along an axis of the indices, which the operand lacks:
    pairs of the component and the axis."""
    bag: Bag | None

    def lower(self, b: Any, x: Any, indices: Any, *beside: Any) -> Any:
        """Call the kernel, or write the operations."""
        called = b.called_gather(self, x, index_operand(b, indices), beside)
        if called is not None:
            return [called]
        return b.program(self.program, (x, indices, *beside), at_hand=True, as_is=True)
