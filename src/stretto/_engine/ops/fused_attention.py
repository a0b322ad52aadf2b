"""Attention, or its gradients, as one operation, made by a pass for a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from stretto._engine.core.program import Program
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


class Examples(NamedTuple):
    """Examples of lengths of their own, as a kernel sees them."""

    rows: bool
    """Whether an example has as many rows as its length."""
    keys: bool
    packed: tuple[bool, ...]
    """Of each array that has a place, whether its examples lie one behind the other."""
    kept: bool
    """The same of what is kept for each row."""
    room: int
    """How many rows, or keys, there is room for one behind the other."""


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
    examples: Examples | None = None
    """What is said of examples of lengths of their own, which lie along the batch's first axis."""


class FusedAttention(FusedProgram):
    """Attention or its gradients; see ``fuse_attention``.

    The operands are queries, keys, values, and the arrays of steps; for gradients also what was
    subtracted in each row, the gradient of the result, and what is added to that of scores, or the
    sums and the result. Of examples that lie one behind the other there are the lengths besides,
    and where each begins.
    """

    geometry: Geometry

    def of_examples(
        self,
        program: Program,
        count: int,
        most: int,
        room: int,
        inputs: Sequence[str],
        outs: Sequence[str],
    ) -> FusedAttention:
        """Return the operation for so many examples, of at most so many elements each.

        The geometry is that of one, with 0 for the sizes that vary; ``program`` is what computes it
        for all. What each operand and result is, is one of "rows", "each" and "shared".
        """
        g = self.geometry
        arrays = len([step for step in g.steps if step.place])
        forms = [*inputs[:3], outs[0] if not g.gradient else "each" if g.kept else inputs[-1]]
        if g.gradient:
            forms += [inputs[4 + arrays], *outs]
        ways = zip(g.places, forms, strict=True)
        beside = iter(inputs[3 : 3 + arrays])
        steps = [
            s if s.place is None else s._replace(place=_moved(s.place, next(beside), most))
            for s in g.steps
        ]
        kept = inputs[3 + arrays] if g.gradient else outs[-1] if g.kept else "each"
        examples = Examples(
            not g.rows, not g.keys, tuple([f == "rows" for f in forms]), kept == "rows", room
        )
        geometry = g._replace(
            batch=(count, *g.batch),
            rows=g.rows or most,
            keys=g.keys or most,
            steps=tuple(steps),
            places=tuple([_moved(place, form, most) for place, form in ways]),
            examples=examples,
        )
        return FusedAttention(program, geometry)

    def lower(self, b: Any, *operands: Any) -> Any:
        """Call the kernel, or write the operations."""
        called = b.called_attention(self.geometry, operands, self.program.out_types)
        if called is None:
            return b.program(self.program, operands, at_hand=True, as_is=True)
        return called


def _moved(place: Place, form: str, most: int) -> Place:
    """Return where the axes are in an array that has examples in this form."""
    split = tuple([tuple([n or most for n in sizes]) for sizes in place.split])
    if form == "rows":  # an example begins as many rows behind the first as come before it
        return place._replace(split=split, batch=(0, *place.batch))
    if form == "shared":
        return place._replace(split=split, batch=(-1, *place.batch))
    after = lambda axis: axis + (axis >= 0)
    return Place(
        ((1,), *split), (0, *map(after, place.batch)), after(place.row), after(place.column)
    )
