"""Softmax, norms and the like as one operation, made by a pass for a kernel by rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.primitive import NOT_EXPORTED, Primitive, Refused
from stretto._engine.core.program import Literal, Program
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.row_program import Instructions

_LAST = Refused("a pass makes it of operations along rows, after all transformations")


class FusedRows(Primitive):
    """A program over rows; see ``row_program``."""

    program: Program
    told: Instructions
    multiple = True
    interned = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """Return the types of the program's outputs."""
        for got, expected in zip(types, self.program.in_types, strict=True):
            if got.shape != expected.shape or got.dtype != expected.dtype:
                raise TypeError(f"fused_rows: expected {expected}, got {got}")
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
        read = [operands[i] for i in self.told.inputs]
        called = b.called_kernel("stretto_rows", read, self.program.out_types, self.told.numbers)
        return b.program(self.program, operands, at_hand=True) if called is None else called

    onnx = NOT_EXPORTED
    jvp = _LAST
    transpose = _LAST
    vmap = _LAST
    padded = _LAST
