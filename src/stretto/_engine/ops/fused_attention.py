"""Attention, or its gradients, as one operation, made by a pass for a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.primitive import NOT_EXPORTED, Primitive, Refused
from stretto._engine.core.program import Literal, Program
from stretto._engine.core.types import ArrayType

_LAST = Refused("a pass makes it of products and a softmax, after all transformations")


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


class FusedAttention(Primitive):
    """Attention or its gradients; see ``fuse_attention``.

    The operands are queries, keys, values, and the arrays of steps; for gradients also what was
    subtracted in each row, the gradient of the result, and what is added to that of scores, or the
    sums and the result.
    """

    program: Program
    geometry: Geometry
    multiple = True
    interned = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """Return the types of the program's outputs."""
        for got, expected in zip(types, self.program.in_types, strict=True):
            if got.shape != expected.shape or got.dtype != expected.dtype:
                raise TypeError(f"fused_attention: expected {expected}, got {got}")
        return self.program.out_types

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Run the operations one by one."""
        known: dict[Any, Any] = dict(zip(self.program.inputs, arrays, strict=True))
        read = lambda a: a.array() if isinstance(a, Literal) else known[a]
        for e in self.program.equations:
            outs = e.primitive.reference(*[read(a) for a in e.inputs])
            known.update(zip(e.outputs, outs if e.primitive.multiple else [outs], strict=True))
        return tuple([read(a) for a in self.program.outputs])

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        return self.program.work

    def lower(self, b: Any, *operands: Any) -> Any:
        """Call the kernel, or write the operations."""
        called = b.called_attention(self.geometry, operands, self.program.out_types)
        if called is None:
            return b.program(self.program, operands, at_hand=True, as_is=True)
        return called

    onnx = NOT_EXPORTED
    jvp = _LAST
    transpose = _LAST
    vmap = _LAST
    padded = _LAST
