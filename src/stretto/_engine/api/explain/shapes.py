"""Reports of sizes that vary: ``explain_shapes``.

A function is traced; for each call of a program whose sizes vary, the report says what the rules of
its operations do, and what part of the work is padding.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.api.explain.explain import near
from stretto._engine.api.graph import make_graph
from stretto._engine.api.varying_sizes.ragged import Ragged, is_ragged
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.lazy import shown
from stretto._engine.core.position import Position
from stretto._engine.core.program import Literal, Program
from stretto._engine.higher_order.fixed_sizes import notes_of
from stretto._engine.higher_order.sized_call import SizedCall

_WAYS = {
    "replaced": "replace padding first",
    "moved": "move by the true size",
    "one by one": "put elements into another order",
}
_MOST = 12
"""The most lines that are printed for each way."""


@dataclasses.dataclass(frozen=True)
class SizedProgram:
    """One program whose sizes vary."""

    name: str
    buckets: dict[str, int]
    """The bucket that each size is padded to."""
    valid: float | None
    """The part of the padded arguments that is valid; None if lengths are traced."""
    carried: int
    """The number of operations that pass padding through."""
    ways: dict[str, list[str]]
    """The operations by their way of treating padding, with the user's lines."""
    refused: str | None
    """The reason why the program cannot be padded; None if it can."""

    def __str__(self) -> str:
        sizes = ", ".join([f"{name} up to {most}" for name, most in self.buckets.items()])
        valid = "" if self.valid is None else f"; {self.valid:.0%} of the arguments is valid"
        lines = [f"{self.name}: {sizes}{valid}"]
        if self.refused is not None:
            return "\n".join([*lines, f"  refused: {self.refused}"])
        lines.append(f"  {self.carried} operations pass padding through")
        for way, words in _WAYS.items():
            those = self.ways.get(way, [])
            if those:
                lines.append(f"  {len(those)} {words}:")
                lines += [f"    {one}" for one in those[:_MOST]]
                if len(those) > _MOST:
                    lines.append(f"    and {len(those) - _MOST} more")
        return "\n".join(lines)


@shown("stretto._engine.api.cards", "card_of_report", "text_of_report")
@dataclasses.dataclass(frozen=True)
class ShapesReport:
    """The programs whose sizes vary, of one call; prints itself."""

    programs: tuple[SizedProgram, ...]

    def __str__(self) -> str:
        if not self.programs:
            return "no size varies: give jit dynamic_axes, or vmap a ragged array"
        return "\n".join(map(str, self.programs))


def explain_shapes(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> ShapesReport:
    """Say what a function does where sizes vary: what is padded, and what happens to padding.

    Args:
        fun: a function jitted with ``dynamic_axes``, or one that maps over ragged arrays.
        *args: its arguments; nothing is computed.
        **kwargs: the same, by name.

    Returns:
        A report, which prints itself.

    Raises:
        TypeError: ``fun`` is not a function.

    >>> import stretto as st, stretto.numpy as snp
    >>> f = st.jit(lambda x: (x * 2).max(0), dynamic_axes=({0: "n"},))
    >>> print(st.explain_shapes(f, snp.ones(12)))  # doctest: +ELLIPSIS
    function: n up to 16; 75% of the arguments is valid
      1 operations pass padding through
      1 replace padding first:
        reduce_max ...
    """
    with boundary:
        ragged = [x for x in tree.leaves((args, kwargs), is_ragged) if is_ragged(x)]
        program = make_graph(fun)(*args, **kwargs)
        return ShapesReport(tuple([_explained(c, sizes, ragged) for c, sizes in _calls(program)]))


def _calls(program: Program) -> list[tuple[SizedCall, list[int | None]]]:
    """Give the calls of programs whose sizes vary, and their sizes where these are written down."""
    found: list[tuple[SizedCall, list[int | None]]] = []
    for e in program.equations:
        primitive: Any = e.primitive
        if isinstance(primitive, SizedCall):
            sizes = [
                int(a.value) if isinstance(a, Literal) else None
                for a in e.inputs[: len(primitive.variables)]
            ]
            found.append((primitive, sizes))
        elif primitive.holds_programs:
            for inner in primitive.programs():
                found += _calls(inner)
    return found


def _explained(call: SizedCall, sizes: list[int | None], ragged: list[Ragged]) -> SizedProgram:
    buckets = {str(v): n for v, n in zip(call.variables, call.most, strict=True)}
    refused, notes = None, []
    try:
        notes = notes_of(call.program, call.variables, dict(zip(call.variables, call.most)))
    except MissingRuleError as error:
        refused = str(error)
    ways: dict[str, list[str]] = {}
    carried = 0
    for note in notes:
        if not note.done:
            carried += 1
            continue
        at = None if note.place is None else Position(*note.place)
        where = "" if at is None else f" at {near(at.file)}:{at.line}"
        for way in note.done:
            ways.setdefault(way, []).append(f"{note.name}{where}")
    return SizedProgram(
        call.program.name, buckets, _valid(call, sizes, ragged), carried, ways, refused
    )


def _valid(call: SizedCall, sizes: list[int | None], ragged: list[Ragged]) -> float | None:
    """Return the part of the padded arguments that is valid."""
    if call.batch:
        lengths = [np.asarray(x.lengths) for x in ragged]
        if not lengths:
            return None
        padded = sum([len(n) * x._most for n, x in zip(lengths, ragged, strict=True)])
        return float(sum([n.sum() for n in lengths]) / padded)
    if None in sizes:
        return None
    known: Any = dict(zip(call.variables, sizes, strict=True))
    bounds = call.bucket
    true = padded = 0
    for type in call.program.in_types:
        shape = [n.known(known) if not isinstance(n, int) else n for n in type.shape]
        if tuple(shape) != type.shape:
            true += int(np.prod(shape))
            padded += int(np.prod(bounds.shape(type.shape)))
    return true / padded if padded else None
