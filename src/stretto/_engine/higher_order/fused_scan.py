"""Loops of recurrent layers as one operation, made by a pass for a kernel that runs all turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.scan import Scan
from stretto._engine.ops.fused import Fused
from stretto._engine.ops.loop_program import Instructions
from stretto._engine.ops.row_program import View


class FusedScan(Fused):
    """A loop of products and element-wise operations; see ``loop_program``."""

    loop: Scan
    told: Instructions
    multiple = True
    interned = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """Return the types of the loop's outputs."""
        return self.loop.infer(*types)

    def reference(self, *arrays: Any) -> Any:
        """Run the loop step by step."""
        return self.loop.reference(*arrays)

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        return self.loop.work(types, outs)

    def lower(self, b: Any, *operands: Any) -> Any:
        """Call the kernel, or write the loop.

        Members come in front of turns in stacks, where products of all turns, in front of the loop
        and behind it, find the rows of a member side by side.
        """
        loop, told = self.loop, self.told
        types = [x.type for x in operands]
        outs = self.infer(*types)
        count = told.members
        if not count or not b.has_kernels:
            called = b.called_kernel("stretto_loop", operands, outs, told.numbers)
            return loop.lower(b, *operands) if called is None else called
        first = loop.consts + loop.carry
        lying = [b.lies_in(x) for x in operands[first:]]
        numbers, known = told.by_members([View(v.shape, v.strides) for _, v in lying])
        stacks = [
            base if k else x for x, (base, _), k in zip(operands[first:], lying, known, strict=True)
        ]
        carry, ys = outs[: loop.carry], outs[loop.carry :]
        moved = [
            t.with_shape((*t.shape[1 : 1 + count], t.shape[0], *t.shape[1 + count :])) for t in ys
        ]
        called = b.called_kernel(
            "stretto_loop", [*operands[:first], *stacks], [*carry, *moved], numbers
        )
        if called is None:
            return loop.lower(b, *operands)
        stacked = [
            b.transpose(y, (count, *range(count), *range(count + 1, t.ndim)), t)
            for y, t in zip(called[loop.carry :], ys, strict=True)
        ]
        return [*called[: loop.carry], *stacked]
