"""What an optimizer does with many arrays as one operation, made by a pass for a kernel."""

from __future__ import annotations

from typing import Any

from stretto._engine.ops.fused import FusedProgram


class FusedUpdates(FusedProgram):
    """Element-wise programs over many arrays of any sizes."""

    numbers: tuple[int, ...]
    """The numbers that the kernel is told."""
    shared: tuple[tuple[int, int], ...]
    """Results and operands, in pairs, where the one may be put where the other lies."""
    ending: frozenset[int]
    """The operands that nothing reads afterwards, and that the program makes itself."""

    def lower(self, b: Any, *operands: Any) -> Any:
        """Call the kernel, or write the operations.

        Results take the memory of operands that are given up: where the whole program was promised
        that, and of what it has made itself.
        """
        aliases: dict[int, int] = {}
        if b.has_kernels:
            homes = b.homes
            for k, i in self.shared:
                if homes[k] is not None and homes[k].name == operands[i].name:
                    aliases[k] = i
            taken = {*aliases.values()}
            for k, i in self.shared:
                if k not in aliases and homes[k] is None and i in self.ending and i not in taken:
                    aliases[k] = i
                    taken.add(i)
        outs = self.program.out_types
        called = b.called_kernel(
            "stretto_update", operands, outs, self.numbers, aliases, self.shared
        )
        return b.program(self.program, operands, at_hand=True) if called is None else called
