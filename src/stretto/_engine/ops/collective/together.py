"""Several sums over devices as one collective: what the planner makes of ``psum``s.

A collective takes as long as a message between all devices, whatever it carries; so sums that can
be taken at once are, and a sum along one axis after another is one along both.
``passes/merge_all_reduces`` writes it into programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.effects import NamedAxis
from stretto._engine.core.primitive import Primitive, Refused
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.collective.primitives import total_of


class TotalsTogether(Primitive):
    """The sum of each operand along all ``axes``, pairs of a name and a size; of one dtype."""

    axes: tuple[tuple[Any, int], ...]
    multiple = True
    reference = Refused(
        "it works across the examples of a vmap; call it inside the vmap of its axes"
    )
    padded = Refused("it is made of sums whose sizes are fixed by then: use stretto.lax.psum")

    @property
    def names(self) -> tuple[Any, ...]:
        """The names of the axes."""
        return tuple([name for name, _ in self.axes])

    @property
    def effects(self) -> frozenset[Any]:
        return frozenset([NamedAxis(name) for name in self.names])

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        if len({type.dtype for type in types}) > 1:
            raise TypeError(f"{self.name}: expected operands of one dtype, got {types}")
        return types

    def collect(self, name: Any, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        totals = [total_of(x, axis, size) for x, axis in zip(args, axes, strict=True)]
        rest = tuple([pair for pair in self.axes if pair[0] != name])
        return TotalsTogether(rest)(*totals) if rest else totals, (None,) * len(args)

    def lower(self, b: Any, *operands: Any) -> Sequence[Any]:
        return b.all_reduce(operands, self.names)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self._of_some(tangents)

    def transpose(self, cts: Sequence[Any], *args: Any) -> Sequence[Any]:
        """y_i = sum_j x_j for each i, hence x'_j = sum_i y'_i."""
        return self._of_some(cts)

    def _of_some(self, values: Sequence[Any]) -> list[Any]:
        """The sums of those that are not None, which stands for zero."""
        sums = iter(self(*[x for x in values if x is not None]))
        return [None if x is None else next(sums) for x in values]

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(*args), tuple(axes)
