"""Find what the copies in a stretch are applied to, and so whether they are one loop's iterations.

Each operand of the body must have one of five sources: the same value in every copy (``Still``), a
result of the same copy (``Made``), a result of an earlier copy (``Carried``), a number that changes
(``Counted``), or another array for each copy (``Given``). A slice whose index changes is turned
into an operation that takes the index as an operand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from stretto._engine.core.program import Atom, Equation, Literal, Var, literal, operation_key
from stretto._engine.core.types import ArrayType, array_type, bytes_of
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.index.dynamic import DynamicSlice, DynamicUpdateSlice
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.shape import Pad, Slice
from stretto._engine.passes.rolling.roll_loops import LEAST_COPIES, Stretch, stretches

_MOST_DELAY = 3
"""The most copies back that a carried value may come from."""

_MOST_STARTS = 16
"""The start is moved so often towards where the copies agree."""

_VIEWS = (Slice, Reshape, Transpose, BroadcastInDim, ConvertElementType)
"""Operations so cheap that operands computed by them are computed inside the loop."""

_INDEX = np.dtype(np.int32)


@dataclasses.dataclass(frozen=True, slots=True)
class Still:
    """The same value in every copy."""

    atom: Atom


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """Output ``output`` of the same copy's step ``step``."""

    step: int
    output: int


@dataclasses.dataclass(frozen=True, slots=True)
class Carried:
    """An output of the copy ``len(first)`` earlier; in the first copies, ``first``."""

    step: int
    output: int
    first: tuple[Atom, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """A literal whose element is another in each copy."""

    values: tuple[Any, ...]
    type: ArrayType


@dataclasses.dataclass(frozen=True, slots=True)
class Given:
    """Another array in each copy."""

    atoms: tuple[Var, ...]


Source: TypeAlias = Still | Made | Carried | Counted | Given

Homes: TypeAlias = Mapping[Atom, tuple[int, int]]
"""Maps variables to the number of the equation that computes them, and of the output there."""


@dataclasses.dataclass(slots=True)
class Step:
    """One operation of the body."""

    primitive: Any
    sources: list[Source]
    equation: Equation
    """The equation in the first copy."""


@dataclasses.dataclass(slots=True)
class Loop:
    """Copies of a body: ``period`` equations each, from equation ``start`` on."""

    start: int
    period: int
    copies: int
    steps: list[Step]
    """The body: first the ``views``, whose equations are elsewhere in the program, then its own."""
    views: int
    """The number of views."""

    @property
    def end(self) -> int:
        """The number of the equation after the last copy."""
        return self.start + self.period * self.copies


class _Later(Exception):
    """Raised where copies disagree: the loop can begin with this copy at the earliest."""

    def __init__(self, copy: int) -> None:
        self.copy = copy


class _Longer(Exception):
    """Raised where so many copies together are one iteration of the loop."""

    def __init__(self, copies: int) -> None:
        self.copies = copies


def loop_in(
    equations: Sequence[Equation], low: int, high: int, period: int, homes: Homes
) -> Loop | None:
    """Return the loop that most of the equations from ``low`` up to ``high`` form, if they do."""
    if high - low < LEAST_COPIES * period:
        return None
    if all([isinstance(e.primitive, _VIEWS) for e in equations[low : low + period]]):
        return None
    start = low + _cut(equations, low, high, period)
    for _ in range(2):  # the last copy may be unlike the others
        copies = (high - start) // period
        for _ in range(_MOST_STARTS):
            if copies < LEAST_COPIES:
                break
            try:
                return _Reader(equations, start, period, copies, homes).loop()
            except _Later as later:
                start += later.copy * period
                copies -= later.copy
            except _Longer as longer:
                period *= longer.copies
                copies //= longer.copies
        high -= period
        start = low + (start - low) % period
    return None


def wired(
    equations: Sequence[Equation], low: int, high: int, tokens: np.ndarray, homes: Homes
) -> list[Stretch]:
    """Return stretches within ``low`` to ``high`` where distances to operands repeat as well."""
    far = (high - low) // LEAST_COPIES
    elsewhere = (-1, 0)

    def distance(i: int, atom: Any) -> int:
        home = homes.get(atom, elsewhere)[0]
        return i - home if home >= max(low, i - far) else 0

    words = [
        hash((int(tokens[i]), *[distance(i, a) for a in equations[i].inputs]))
        for i in range(low, high)
    ]
    repeated = stretches(np.array(words, np.int64).view(np.uint64))
    return [Stretch(low + s.start, s.period, s.length) for s in repeated]


def _cut(equations: Sequence[Equation], low: int, high: int, period: int) -> int:
    """Return where to begin a period so that the fewest bytes are carried, the first such offset.

    Bytes between element-wise operations count one and a half times, since cutting there prevents
    their fusion.
    """
    middle = low + (high - low) // period // 2 * period
    window = range(middle, min(middle + 2 * period, high))
    last: dict[Atom, int] = {}
    for i in window:
        for atom in equations[i].inputs:
            last[atom] = i
    change = [0.0] * (2 * period + 1)
    for i in range(middle, min(middle + period, high)):
        for v in equations[i].outputs:
            end = last.get(v, i)
            if end > i:
                fused = all(isinstance(equations[k].primitive, Elementwise) for k in (i, end))
                size = bytes_of(v.type) * (1.5 if fused else 1.0)
                change[i - middle + 1] += size
                change[end - middle + 1] -= size
    carried, total = [0.0] * period, 0.0
    for i in range(2 * period):
        total += change[i]
        carried[i % period] += total
    return carried.index(min(carried))


class _Reader:
    """Compares the copies of a body, the first of which begins at an equation."""

    def __init__(
        self, equations: Sequence[Equation], start: int, period: int, copies: int, homes: Homes
    ) -> None:
        self.equations = equations
        self.start, self.period, self.copies = start, period, copies
        self.stop = start + period * copies
        self.homes = homes
        self.views: list[Step] = []
        self.viewed: dict[tuple[Atom, ...], Made] = {}

    def loop(self) -> Loop:
        """Return the loop; raises ``_Later`` if the first copies are not part of it."""
        steps = [
            self.step(self.equations[self.start + j : self.stop : self.period])
            for j in range(self.period)
        ]
        body, shift = [*self.views, *steps], len(self.views)
        for step in body:
            step.sources = [_shifted(s, shift) for s in step.sources]
        return Loop(self.start, self.period, self.copies, body, shift)

    def step(self, copies: Sequence[Equation]) -> Step:
        """Return the step of the body of which these equations are the copies."""
        first, last = copies[0], copies[-1]
        types = [v.type for v in last.outputs]
        for k in range(len(copies) - 2, -1, -1):
            if [v.type for v in copies[k].outputs] != types:
                raise _Later(k + 1)
        primitive = last.primitive
        inputs: list[Sequence[Atom]] = [e.inputs for e in copies]
        if any([e.primitive is not primitive for e in copies]):
            forms = [_form(e) for e in copies]
            primitive, inputs = forms[-1][0], [f[1] for f in forms]
            for k in range(len(copies) - 2, -1, -1):
                if not _alike(forms[k][0], primitive):
                    raise _Later(k + 1)
        columns = zip(*inputs, strict=True)
        return Step(primitive, [self.source(column) for column in columns], first)

    def home(self, atom: Atom) -> tuple[int, int] | None:
        """Return where one of the copies computes the atom; ``None`` if it comes from elsewhere."""
        home = self.homes.get(atom)
        return home if home is not None and self.start <= home[0] < self.stop else None

    def source(self, column: tuple[Atom, ...]) -> Source:
        """Return where an operand comes from, given what it is in each copy."""
        last = column[-1]
        home = self.home(last)
        if column.count(last) == len(column):
            if home is not None:
                raise _Later((home[0] - self.start) // self.period + 1)
            return Still(last)
        if home is not None:
            return self.carried(column, *home)
        for k in range(len(column) - 2, -1, -1):
            if column[k].type is not last.type or self.home(column[k]) is not None:
                raise _Later(k + 1)
        if isinstance(last, Literal):
            return self.counted(column)
        for k in range(len(column) - 2, -1, -1):
            if isinstance(column[k], Literal):
                raise _Later(k + 1)
        atoms: Any = column
        period = _period(atoms)
        if period <= len(atoms) // LEAST_COPIES:
            raise _Longer(period)
        return self.view(atoms) or Given(atoms)

    def carried(self, column: Sequence[Atom], last: int, output: int) -> Source:
        """Return an operand that a copy computes, for itself or for a later one."""
        copy, step = divmod(last - self.start, self.period)
        delay = self.copies - 1 - copy
        if delay > _MOST_DELAY:
            raise _Later(copy + 1)
        for k in range(self.copies - 2, delay - 1, -1):
            if self.homes.get(column[k]) != (self.start + (k - delay) * self.period + step, output):
                raise _Later(max(1, k + 1 - delay))
        if not delay:
            return Made(step, output)
        type = column[-1].type
        first = []
        for k in range(delay):
            atom = column[k]
            if self.home(atom) is not None:
                raise _Later(k + 1)
            if atom.type is not type:
                same = atom.type.shape == type.shape and atom.type.dtype == type.dtype
                if not (same and isinstance(atom, Literal)):
                    raise _Later(k + 1)
                atom = Literal(atom.value, type)
            first.append(atom)
        return Carried(step, output, tuple(first))

    def counted(self, column: Sequence[Atom]) -> Source:
        """Return literals as a source: one for all copies, or one for each."""
        for k in range(len(column) - 2, -1, -1):
            if not isinstance(column[k], Literal):
                raise _Later(k + 1)
        values = tuple([atom.value for atom in column])  # type: ignore[union-attr]
        array = np.array(values, column[-1].type.dtype)
        if array.tobytes() == array[:1].tobytes() * len(array):
            return Still(column[-1])
        return Counted(values, column[-1].type)

    def view(self, column: tuple[Var, ...]) -> Source | None:
        """Compute an operand of each copy by a cheap operation, as an extra first step."""
        known = self.viewed.get(column)
        if known is not None:
            return known
        if not all([v in self.homes for v in column]):
            return None
        makers = [self.equations[self.homes[v][0]] for v in column]
        if not all([isinstance(e.primitive, _VIEWS) for e in makers]):
            return None
        forms = [_form(e) for e in makers]
        if not all([_alike(f[0], forms[-1][0]) for f in forms]):
            return None
        if all([e.primitive is makers[-1].primitive for e in makers]):
            forms = [(e.primitive, e.inputs) for e in makers]
        sources = [self.source(c) for c in zip(*[f[1] for f in forms], strict=True)]
        self.views.append(Step(forms[-1][0], sources, makers[0]))
        # Negative until the number of views is known; see ``_shifted``.
        source = self.viewed[column] = Made(-len(self.views), 0)
        return source


def _period(column: Sequence[Any]) -> int:
    """Return the number of items after which the same follow again in the same order."""
    period = next((k for k in range(1, len(column)) if column[k] is column[0]), len(column))
    again = all([a is b for a, b in zip(column[period:], column, strict=False)])
    return period if again else len(column)


def _shifted(source: Source, views: int) -> Source:
    if isinstance(source, Made):
        return Made(-source.step - 1 if source.step < 0 else source.step + views, source.output)
    if isinstance(source, Carried):
        return Carried(source.step + views, source.output, source.first)
    return source


def _form(equation: Equation) -> tuple[Any, Sequence[Atom]]:
    """Return the operation and its operands; for a slice or a pad, with the index as operands."""
    primitive: Any = equation.primitive
    if isinstance(primitive, Slice) and all([s == 1 for s in primitive.strides]):
        starts = [literal(s, array_type((), _INDEX)) for s in primitive.starts]
        return DynamicSlice(equation.outputs[0].type.shape), [*equation.inputs, *starts]
    if isinstance(primitive, Pad) and all(
        [low >= 0 and high >= 0 and not inner for low, high, inner in primitive.config]
    ):
        x, value = equation.inputs
        if isinstance(value, Literal):
            starts = [literal(low, array_type((), _INDEX)) for low, *_ in primitive.config]
            around = Literal(value.value, equation.outputs[0].type)
            return DynamicUpdateSlice(), [around, x, *starts]
    return primitive, equation.inputs


def _alike(one: Any, other: Any) -> bool:
    """Say whether two operations do the same, also if they hold equal programs."""
    return one is other or operation_key(one) == operation_key(other)
