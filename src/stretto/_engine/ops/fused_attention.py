"""Attention, or its gradients, as one operation, made by a pass for a kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

from stretto._engine.ops.fused import FusedProgram


class Place(NamedTuple):
    """Where the axes of attention are in an array."""

    split: tuple[tuple[int, ...], ...]
    """For each axis of the array, the sizes of those that it consists of."""
    batch: tuple[int, ...]
    """Which of all those each axis of the batch is; -1 where the array is repeated along it."""
    row: int
    column: int


class Step(NamedTuple):
    """What is done to scores."""

    kind: str
    """One of ``multiply``, ``add``, ``select`` and ``causal``."""
    constant: float = 0.0
    """What scores are multiplied by, or what they become where a mask says so."""
    offset: int = 0
    """Query i sees keys up to this plus i, if the mask is causal."""
    place: Place | None = None
    """Where the axes are in the array, if there is one."""


class Geometry(NamedTuple):
    """Attention as a kernel sees it."""

    batch: tuple[int, ...]
    rows: int
    keys: int
    features: int
    columns: int
    scale: float
    """What queries are multiplied by."""
    steps: tuple[Step, ...]
    guarded: bool
    """Whether a row that is hidden altogether gives zeros, not NaN."""
    gradient: bool
    kept: bool
    """Whether what is subtracted in each row, and its sum, are results; for gradients, whether the
    gradient is divided by the sums already, and the last operand is what is added to it."""
    places: tuple[Place, ...]
    """Those of queries, keys, values and the result, then those of gradients: of the result, of
    queries, keys and values."""


class FusedAttention(FusedProgram):
    """Attention or its gradients; see ``fuse_attention``.

    The operands are queries, keys, values, and the arrays of steps; for gradients also what was
    subtracted in each row, the gradient of the result, and what is added to that of scores, or the
    sums and the result.
    """

    geometry: Geometry

    def lower(self, b: Any, *operands: Any) -> Any:
        """Call the kernel, or write the operations."""
        called = b.called_attention(self.geometry, operands, self.program.out_types)
        if called is None:
            return b.program(self.program, operands, at_hand=True, as_is=True)
        return called
