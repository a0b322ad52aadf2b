"""What passes make of several operations at the very end, for one call of a kernel each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.primitive import NOT_EXPORTED, Primitive, Refused
from stretto._engine.core.program import Literal, Program
from stretto._engine.core.types import ArrayType

_LAST = Refused("a pass makes it of what stands in a program, after all transformations")


class Fused(Primitive, abstract=True):
    """An operation that a pass makes when all transformations are done, and that has no rules."""

    onnx = NOT_EXPORTED
    jvp = _LAST
    transpose = _LAST
    vmap = _LAST
    padded = _LAST


class FusedProgram(Fused, abstract=True):
    """One that keeps the operations that it was made of, as a program."""

    program: Program
    multiple = True
    interned = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """Return the types of the program's outputs."""
        for got, expected in zip(types, self.program.in_types, strict=True):
            if got.shape != expected.shape or got.dtype != expected.dtype:
                raise TypeError(f"{self.name}: expected {expected}, got {got}")
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
        """Return the program's."""
        return self.program.work
