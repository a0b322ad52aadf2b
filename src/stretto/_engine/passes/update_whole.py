"""Updates of parts of an array that are put together again become updates of the whole.

Caches of keys and values are kept in one array with an axis for layers: each layer takes its own
part, sets one position, reads the part, and all parts are stacked again. Written so, parts are
copied out of the array and into it, for a few elements that change. Here each layer sets them in
the array itself, in place where it is given up, and reads its part where it lies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.program import Equation, Literal, Program, Var
from stretto._engine.core.rewriting import (
    changed_inside,
    drop_dead,
    in_order,
    remember,
    with_equations,
)
from stretto._engine.core.types import array_type
from stretto._engine.ops.identities import OptimizationBarrier
from stretto._engine.ops.index.dynamic import DynamicUpdateSlice
from stretto._engine.ops.index.writes import WRITES, small_part, update_of
from stretto._engine.ops.layout import Reshape
from stretto._engine.ops.shape import Concatenate, Slice


def update_whole(program: Program) -> Program:
    """Return the program with such updates made to the whole; the same values.

    >>> import stretto as st, stretto.numpy as snp
    >>> def run(cache, x):
    ...     return snp.stack([part.at[3].set(x) for part in cache])
    >>> graph = st.make_graph(run)(snp.ones((2, 1000)), 5.0)
    >>> [e.primitive.name for e in update_whole(graph).equations if "scatter" in e.primitive.name]
    ['scatter', 'scatter']
    >>> "slice" in [e.primitive.name for e in update_whole(graph).equations]
    False
    """
    return remember(program, "update_whole", _update_whole)


def _update_whole(program: Program) -> Program:
    program = changed_inside(program, update_whole)
    joins = [e for e in program.equations if isinstance(e.primitive, Concatenate)]
    if not joins or not any([isinstance(e.primitive, WRITES) for e in program.equations]):
        return program
    for e in joins:
        found = _Parts(program, e)
        if found.parts:
            program = found.whole()
    return program


class _Part(NamedTuple):
    """A part of an array that is updated, and put back where it was."""

    index: int
    """Where it is along the axis."""
    update: Equation
    place: int
    """Of the update in the program."""


class _Parts:
    """The parts that one operation puts together, if they are all updates of an array's parts."""

    def __init__(self, program: Program, join: Equation) -> None:
        self.program, self.join = program, join
        self.axis: int = join.primitive.axis  # type: ignore[attr-defined]
        self.made = {v: (n, e) for n, e in enumerate(program.equations) for v in e.outputs}
        self.readers: dict[Any, list[Equation]] = {}
        for e in program.equations:
            for a in dict.fromkeys(e.inputs):
                self.readers.setdefault(a, []).append(e)
        self.array: Any = None
        """What they are parts of."""
        found = [self._part(n, a) for n, a in enumerate(join.inputs)]
        parts = [part for part in found if part is not None]
        if len(parts) < len(found) or join.outputs[0].type != self.array.type:
            parts = []
        self.parts = sorted(parts, key=lambda part: part.place)

    def _of(self, a: Any, kind: Any) -> tuple[int, Equation] | None:
        """Return what makes a value, and its place, if it is of such a kind."""
        found = self.made.get(a)
        return found if found is not None and isinstance(found[1].primitive, kind) else None

    def _part(self, index: int, a: Any) -> _Part | None:
        """Return the update that a part of the join is; None if it is something else."""
        joined = self._of(a, Reshape)
        updated = self._of(joined[1].inputs[0], WRITES) if joined else None
        if updated is None:
            return None
        place, update = updated
        old = update.inputs[0]
        taken = self._of(old, Reshape)
        sliced = self._of(taken[1].inputs[0], Slice) if taken else None
        if sliced is None or len(self.readers[old]) > 1:
            return None
        (array,) = sliced[1].inputs
        self.array = array if self.array is None else self.array
        bounds: Any = sliced[1].primitive
        whole, shape = array.type.shape, update.outputs[0].type.shape
        fits = [
            array is self.array,
            dataclasses.replace(bounds, hidden=False) == self._bounds(whole, index),
            whole[self.axis] == len(self.join.inputs),
            a.type.shape == sliced[1].outputs[0].type.shape,
            shape == (*whole[: self.axis], *whole[self.axis + 1 :]),
            small_part(update.inputs[update_of(update.primitive)].type, update.outputs[0].type),
        ]
        return _Part(index, update, place) if all(fits) else None

    def _bounds(self, shape: Sequence[int], index: int) -> Slice:
        """Return what takes a part out of an array of this shape."""
        starts, limits = [0] * len(shape), [*shape]
        starts[self.axis], limits[self.axis] = index, index + 1
        return Slice((*starts,), (*limits,), (1,) * len(shape))

    def whole(self) -> Program:
        """Return the program with updates of the whole array."""
        states: list[Any] = [self.array]
        equations = [*self.program.equations]
        first = self._first_updates()
        for n, part in enumerate(self.parts):
            more = self._updated(part, states[-1])
            states.append(more[-1].outputs[0])
            equations += more
            first.update(dict.fromkeys(map(id, more), n))
        written: list[Equation] = []
        index: dict[Any, int] = {part.update.outputs[0]: part.index for part in self.parts}
        taken: dict[Any, Any] = {}
        last = len(self.parts)

        def read(a: Any, state: int) -> Any:
            if a is self.join.outputs[0]:
                return states[-1]
            if a in index and (a, state) not in taken:
                written.extend(self._read(states[state], index[a], a))
                taken[a, state] = written[-1].outputs[0]
            return taken.get((a, state), a)

        for e in equations:
            state = first.get(id(e), last)
            inputs = [read(a, state) for a in e.inputs]
            written.append(Equation(e.primitive, inputs, e.outputs, e.place))
        outputs = [read(a, last) for a in self.program.outputs]
        program = Program(self.program.inputs, written, outputs, self.program.name)
        return drop_dead(with_equations(program, in_order(program, {})))

    def _first_updates(self) -> dict[int, int]:
        """Return for each equation the first update that depends on it, in their order.

        What reads a part reads it as it is before that.
        """
        number = {id(part.update): n for n, part in enumerate(self.parts)}
        first: dict[int, int] = {}
        for e in reversed(self.program.equations):
            behind = [
                number.get(id(reader), first.get(id(reader), len(self.parts)))
                for v in e.outputs
                for reader in self.readers.get(v, ())
            ]
            least = min(behind, default=len(self.parts))
            if least < len(self.parts):
                first[id(e)] = least
        return first

    def _updated(self, part: _Part, array: Any) -> list[Equation]:
        """Return the update of a part as one of the whole array."""
        _, *rest = part.update.inputs
        primitive: Any = part.update.primitive
        out, place, axis = Var(self.array.type), part.update.place, self.axis
        before: list[Equation] = []
        if isinstance(primitive, DynamicUpdateSlice):
            new, *starts = rest
            type = starts[0].type if starts else array_type((), np.dtype(np.int32))
            shape = (*new.type.shape[:axis], 1, *new.type.shape[axis:])
            given = Var(new.type.with_shape(shape))
            before.append(Equation(Reshape(shape), (new,), (given,), place))
            starts.insert(axis, Literal(type.dtype.type(part.index), type))
            rest = [given, *starts]
        else:
            indices, new = rest
            shape = (*indices.type.shape[:-1], 1)
            own = Literal(indices.type.dtype.type(part.index), indices.type.with_shape(shape))
            shape = (*shape[:-1], indices.type.shape[-1] + 1)
            given = Var(indices.type.with_shape(shape))
            before.append(Equation(Concatenate(len(shape) - 1), (own, indices), (given,), place))
            primitive = _of_whole(primitive, axis)
            rest = [given, new]
        stored = Var(self.array.type)
        return [
            *before,
            Equation(primitive, (array, *rest), (out,), place),
            # Or a kernel that reads a part would make it once more, from what was there before.
            Equation(OptimizationBarrier(), (out,), (stored,), place),
        ]

    def _read(self, array: Any, index: int, part: Any) -> list[Equation]:
        """Return what takes a part out of the array."""
        bounds = self._bounds(array.type.shape, index)
        own = Var(bounds.infer(array.type))
        taken = Equation(bounds, (array,), (own,), self.join.place)
        out = Var(part.type)
        return [taken, Equation(Reshape(part.type.shape), (own,), (out,), self.join.place)]


def _of_whole(primitive: Any, axis: int) -> Any:
    """Return a scatter for an array that has one axis more, whose index comes first."""
    numbers = primitive.dimension_numbers
    moved = lambda axes: tuple([d + (d >= axis) for d in axes])
    whole = dataclasses.replace(
        numbers,
        inserted_window_dims=tuple(sorted([axis, *moved(numbers.inserted_window_dims)])),
        scatter_dims_to_operand_dims=(axis, *moved(numbers.scatter_dims_to_operand_dims)),
        operand_batching_dims=moved(numbers.operand_batching_dims),
    )
    return dataclasses.replace(primitive, dimension_numbers=whole)
