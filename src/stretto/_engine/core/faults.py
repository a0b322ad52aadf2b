"""Faults: an operation that made NaN or infinity, in words: which, where, from what.

``eager/checked`` finds them; what is known only further out, such as the example
of a ``vmap`` or the rule of a derivative, is added on the way.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.position import Position
from stretto._engine.core.types import ArrayType

_INEXACT = ("float", "complex")
_RULE = re.compile(r"(jvp|transpose)\(")
_OF = re.compile(r"jvp\(([\w, ]+)\)")


def wrong(array: np.ndarray, type: ArrayType, nans: bool, infs: bool) -> np.ndarray | None:
    """Say which elements are what is looked for; None where none is."""
    if type.kind not in _INEXACT or not array.size or not (nans or infs):
        return None
    if nans and infs:
        marks = ~np.isfinite(array)
    else:
        marks = np.isnan(array) if nans else np.isinf(array)
    return np.asarray(marks) if marks.any() else None


@dataclasses.dataclass(frozen=True)
class Operand:
    """Hold what an operation was applied to: a type, and the range of the elements."""

    type: str
    least: float | None
    """The least element that is not NaN; None where there is none, or elements have no order."""
    greatest: float | None
    nans: int
    """How many elements are NaN."""

    def __str__(self) -> str:
        of = "" if self.least is None else f" from {self.least:g} to {self.greatest:g}"
        return f"{self.type}{of}, {self.nans or 'no'} NaN"


def operand(array: np.ndarray, type: ArrayType) -> Operand:
    """Return the range of an operand."""
    if type.kind == "bool" or not array.size or array.dtype.kind not in "iufcVb":
        return Operand(repr(type), None, None, 0)
    with np.errstate(all="ignore"):
        nans = np.isnan(array) if type.kind in _INEXACT else np.zeros(array.shape, bool)
        rest = array[~nans]
        if type.kind == "complex":
            rest = np.abs(rest)
        least, greatest = (float(rest.min()), float(rest.max())) if rest.size else (None, None)
    return Operand(repr(type), least, greatest, int(nans.sum()))


@dataclasses.dataclass
class Fault:
    """An operation that made NaN or infinity from operands without, or a value that came with it.

    Printed, it is the message of a ``NonFiniteError``.
    """

    operation: str | None
    """The operation; None where it came in from outside, or was not found."""
    source: str | None
    """What it came in with: an argument and the path in it, or a captured array."""
    kind: str
    """``"NaN"`` or ``"infinity"``."""
    position: Position | None
    """The user's line."""
    result: str
    """The type of the result."""
    count: int
    """How many of its elements it is in."""
    index: tuple[int, ...]
    """Where the first of them is."""
    operands: tuple[Operand, ...] = ()
    steps: tuple[tuple[str, int], ...] = ()
    """The loops that it happened in, outermost first, and their steps, from 0."""
    examples: tuple[int, ...] = ()
    """The numbers of the example in each ``vmap`` around it, outermost first."""
    backward: bool = False
    """Whether it was in the backward pass of a derivative."""
    derivative_of: str | None = None
    """The operation whose derivative it belongs to."""
    function: str | None = None
    """The jitted function in whose results it was found."""
    note: str = ""
    """What else is to be said."""
    innermost: Position | None = dataclasses.field(default=None, repr=False)
    """The place of the innermost equation gone back through, once that is known."""

    def within_rule(self, name: str) -> None:
        """Note that it happened in the derivative rule of this operation, unless in its value."""
        if self.derivative_of is None and name != self.operation:
            self.derivative_of = name

    def going_back(self, place: Any) -> None:
        """Note that it happened in the backward pass, for the operation at this place."""
        if self.innermost is None and place is not None:
            self.position = self.innermost = Position(*place)
            self.within_scope(place[2])
        self.backward = True

    def within_scope(self, scope: str) -> None:
        """Note what the scope of an equation tells of the rules that it comes from."""
        rules = _RULE.findall(scope)
        self.backward = self.backward or "transpose" in rules
        if rules and self.derivative_of is None:
            of = _OF.findall(scope)
            self.derivative_of = of[-1] if of and of[-1] != self.operation else None

    def in_example(self, marks: np.ndarray, axis: int) -> None:
        """Note the example of the first marked element, along this axis."""
        self.examples = (*self.examples, first_of(marks)[axis])

    def where(self) -> list[str]:
        """Return the parts of where it happened, in words."""
        parts = [f"example {i} of vmap" for i in self.examples]
        parts += [f"step {i} of {name}" for name, i in self.steps]
        if self.backward:
            of = f" of {self.derivative_of}" if self.derivative_of else ""
            parts.append(f"the backward pass{of}")
        elif self.derivative_of:
            parts.append(f"the derivative of {self.derivative_of}")
        if self.function:
            parts.append(f"{self.function}, jitted")
        return parts

    def __str__(self) -> str:
        first = f", the first at {list(self.index)}" if self.index else ""
        result = f"in {self.count} elements of {self.result}{first}"
        at = f" at {self.position}" if self.position else ""
        if self.operation is not None:
            lines = [f"{self.operation} made {self.kind}{at}, {result}"]
        elif self.source is not None:
            lines = [f"{self.kind} came in with {self.source}, {result}"]
        else:
            lines = [f"there is {self.kind} {result}"]
        where = self.where()
        if where:
            lines.append(f"  in {', in '.join(where)}")
        lines += [f"  operand {i}: {x}" for i, x in enumerate(self.operands)]
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])


def first_of(marks: np.ndarray) -> tuple[int, ...]:
    """Say where the first marked element is."""
    return tuple([int(i) for i in np.unravel_index(int(np.argmax(marks)), marks.shape)])


def _kind(values: np.ndarray) -> str:
    """Return what these elements are."""
    return "NaN" if bool(np.isnan(values).any()) else "infinity"


def fault_of(
    operation: str | None,
    array: np.ndarray,
    type: ArrayType,
    marks: np.ndarray,
    position: Position | None,
    operands: Sequence[Operand] = (),
    source: str | None = None,
) -> Fault:
    """Return the fault of a result with these elements marked."""
    return Fault(
        operation,
        source,
        _kind(array[marks]),
        position,
        repr(type),
        int(marks.sum()),
        first_of(marks),
        tuple(operands),
    )
