"""What loops give to one another and to the rest of the program.

Layer 5 (plan). Read from the end, as dead work is found: which outputs of which copies are read, by
whom. What another loop reads copy by copy, or a concatenation puts together again, stays in the
stack that the loop makes of it. Next, read ``paying``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from stretto.core.effects import observable
from stretto.core.program import Atom, Equation, Program
from stretto.ops.broadcast import Reshape
from stretto.ops.shape import Concatenate
from stretto.plan.repeats import LEAST_COPIES
from stretto.plan.wiring import Carried, Given, Loop, Source, Still

__all__ = ["Exchange", "Gathered", "Kept", "Link", "Use", "exchange", "sources_of"]

Kept: TypeAlias = tuple[int, int, tuple[Atom, ...]]
"""What a loop stacks: an output of a step; as the copy gives it, or carried as the copy gets it.

The third item is empty, or what ``Carried.first`` is.
"""


class Link(NamedTuple):
    """Arrays that are those of some copies of a loop."""

    loop: Loop
    kept: Kept
    copies: tuple[int, ...]


class Gathered(NamedTuple):
    """Operands of a concatenation: those of neighbouring copies, each reshaped first."""

    link: Link
    shape: tuple[int, ...]


@dataclasses.dataclass(slots=True)
class Use:
    """What of a loop is used outside, and what it is given by others."""

    outs: dict[tuple[int, int], list[int]]
    """Of each output of a step: the copies that are read outside of loops."""
    asked: dict[Kept, None]
    """What is read of many copies, in the order in which it was found."""
    links: dict[Given, Link]

    @property
    def live(self) -> bool:
        """Whether it is used at all."""
        return bool(self.outs or self.asked)


class Exchange(NamedTuple):
    """The uses of loops by their ``id``, and the operands of concatenations of what they give."""

    uses: dict[int, Use]
    gathered: dict[int, list[Atom | Gathered]]
    """By the ``id`` of the equation."""


_Homes: TypeAlias = dict[Atom, tuple[Loop, int, int, int]]


def exchange(program: Program, loops: Sequence[Loop], makers: Mapping[Atom, Equation]) -> Exchange:
    """What these loops give, where they all stand in the program.

    ``makers`` has the equation that makes each variable of it.
    """
    reader = _Reader(program, loops, makers)
    ends = {loop.end: loop for loop in loops}
    i = len(program.equations)
    while i:
        loop = ends.get(i)
        if loop is None:
            i -= 1
            reader.equation(program.equations[i])
        else:
            i = loop.start
            reader.loop(loop)
    return reader.found


class _Reader:
    """Goes through a program from its end, and notes what is needed."""

    def __init__(
        self, program: Program, loops: Sequence[Loop], makers: Mapping[Atom, Equation]
    ) -> None:
        self.equations, self.makers = program.equations, makers
        self.needed: set[Any] = set(program.outputs)
        self.found = Exchange({id(loop): Use({}, {}, {}) for loop in loops}, {})
        self.homes: _Homes = {}
        for loop in loops:
            for i in range(loop.start, loop.end):
                copy, j = divmod(i - loop.start, loop.period)
                for o, v in enumerate(self.equations[i].outputs):
                    self.homes[v] = (loop, copy, loop.views + j, o)

    def equation(self, e: Equation) -> None:
        """One outside of loops."""
        if self.needed.isdisjoint(e.outputs) and not observable(e.primitive.effects):
            return
        parts = _parts(e, self.homes, self.makers)
        for part in parts:
            if isinstance(part, Gathered):
                self.ask(part.link)
                self.found.gathered[id(e)] = parts
            else:
                self.needed.add(part)

    def loop(self, loop: Loop) -> None:
        """One, after all that follows it."""
        use = self.found.uses[id(loop)]
        for i in range(loop.start, loop.end):
            for v in self.equations[i].outputs:
                if v in self.needed:
                    _, copy, step, o = self.homes[v]
                    use.outs.setdefault((step, o), []).append(copy)
        if not use.live:
            return
        for source in sources_of(loop):
            if isinstance(source, Still):
                self.needed.add(source.atom)
            elif isinstance(source, Carried):
                self.needed.update(source.first)
            elif isinstance(source, Given):
                link = _link(source, self.homes)
                if link is None:
                    self.needed.update(source.atoms)
                else:
                    use.links[source] = link
                    self.ask(link)

    def ask(self, link: Link) -> None:
        """Note that many copies of an output are read."""
        self.found.uses[id(link.loop)].asked[link.kept] = None


def sources_of(loop: Loop) -> Iterable[Source]:
    """The sources of all operands."""
    return (source for step in loop.steps for source in step.sources)


def _link(given: Given, homes: _Homes) -> Link | None:
    """The loop that all arrays are from, if it is one.

    It may be that one array is what the loop begins with, and the others what it carries on.
    """
    found = [homes.get(v) for v in given.atoms]
    inside = [home for home in found if home is not None]
    if len(inside) < len(found) - 1 or not inside:
        return None
    loop, _, step, output = inside[0]
    if any([home[0] is not loop or home[2:] != (step, output) for home in inside]):
        return None
    if len(inside) == len(found):
        return Link(loop, (step, output, ()), tuple([home[1] for home in inside]))
    begin = given.atoms[found.index(None)]
    if Carried(step, output, (begin,)) not in sources_of(loop):
        return None
    copies = [0 if home is None else home[1] + 1 for home in found]
    if max(copies) == loop.copies:
        return None
    return Link(loop, (step, output, (begin,)), tuple(copies))


def _parts(
    equation: Equation, homes: _Homes, makers: Mapping[Atom, Equation]
) -> list[Atom | Gathered]:
    """The operands; in a concatenation those of consecutive copies of a loop in one."""
    if not isinstance(equation.primitive, Concatenate) or len(equation.inputs) < LEAST_COPIES:
        return list(equation.inputs)
    parts: list[Any] = []
    run: list[tuple[Atom, Any]] = []

    def end() -> None:
        if len(run) < LEAST_COPIES:
            parts.extend([atom for atom, _ in run])
        else:
            atom, (loop, _, step, output) = run[0]
            copies = tuple([home[1] for _, home in run])
            parts.append(Gathered(Link(loop, (step, output, ()), copies), atom.type.shape))
        run.clear()

    for atom in equation.inputs:
        maker = makers.get(atom)
        reshaped = maker is not None and isinstance(maker.primitive, Reshape)
        home = homes.get(maker.inputs[0] if maker is not None and reshaped else atom)
        if not _follows(run, atom, home):
            end()
        if home is None:
            parts.append(atom)
        else:
            run.append((atom, home))
    end()
    return parts


def _follows(run: Sequence[tuple[Atom, Any]], atom: Atom, home: Any) -> bool:
    """Whether this comes from the next copy, or from the one before, as the others do."""
    if not run or home is None:
        return False
    last, (loop, copy, *place) = run[-1]
    step = home[1] - copy
    steady = len(run) < 2 or step == copy - run[-2][1][1]
    same = home[0] is loop and [*home[2:]] == place and atom.type is last.type
    return same and steady and abs(step) == 1
