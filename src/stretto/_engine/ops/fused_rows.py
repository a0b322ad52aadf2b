"""Softmax, norms and the like as one operation, made by a pass for a kernel by rows."""

from __future__ import annotations

from typing import Any

from stretto._engine.ops.fused import FusedProgram
from stretto._engine.ops.row_program import Instructions


class FusedRows(FusedProgram):
    """A program over rows; see ``row_program``."""

    told: Instructions

    def lower(self, b: Any, *operands: Any) -> Any:
        """Call the kernel, or write the operations."""
        read = [operands[i] for i in self.told.inputs]
        called = b.called_kernel("stretto_rows", read, self.program.out_types, self.told.numbers)
        return b.program(self.program, operands, at_hand=True) if called is None else called
