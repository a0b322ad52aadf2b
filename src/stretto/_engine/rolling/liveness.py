"""What loops give to one another and to the rest of the program.

Layer 5 (rolling). Read from the end, as dead work is found: which outputs of which copies are read,
by whom. What another loop reads copy by copy, or a concatenation puts together again, stays in the
stack that the loop makes of it. Next, read ``profit``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from stretto._engine.core.effects import observable
from stretto._engine.core.program import Atom, Equation, Program
from stretto._engine.ops.layout import Reshape
from stretto._engine.ops.shape import Concatenate
from stretto._engine.rolling.operands import Carried, Given, Homes, Loop, Source, Still
from stretto._engine.rolling.stretches import LEAST_COPIES

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


class _Place(NamedTuple):
    """Where a variable is made: by which copy of a loop, and which output of which step it is."""

    loop: Loop
    copy: int
    step: int
    output: int

    def like(self, other: _Place) -> bool:
        """Whether it differs by the copy alone."""
        return self.loop is other.loop and self[2:] == other[2:]


def exchange(program: Program, loops: Sequence[Loop], homes: Homes) -> Exchange:
    """What these loops give, where they all stand in the program."""
    reader = _Reader(program, loops, homes)
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

    def __init__(self, program: Program, loops: Sequence[Loop], homes: Homes) -> None:
        self.equations, self.homes = program.equations, homes
        self.owners: list[Loop | None] = [None] * len(program.equations)
        for loop in loops:
            self.owners[loop.start : loop.end] = [loop] * (loop.end - loop.start)
        self.found = Exchange({id(loop): Use({}, {}, {}) for loop in loops}, {})
        self.needed: set[Atom] = set()
        self.need(program.outputs)

    def place(self, atom: Atom) -> _Place | None:
        """Where a loop makes it; ``None`` for what no loop makes."""
        home = self.homes.get(atom)
        loop = None if home is None else self.owners[home[0]]
        if home is None or loop is None:
            return None
        copy, j = divmod(home[0] - loop.start, loop.period)
        return _Place(loop, copy, loop.views + j, home[1])

    def need(self, atoms: Iterable[Atom]) -> None:
        """Note that these are read outside of loops, or where a loop begins."""
        for atom in atoms:
            if atom not in self.needed:
                self.needed.add(atom)
                made = self.place(atom)
                if made is not None:
                    outs = self.found.uses[id(made.loop)].outs
                    outs.setdefault((made.step, made.output), []).append(made.copy)

    def equation(self, e: Equation) -> None:
        """One outside of loops."""
        if self.needed.isdisjoint(e.outputs) and not observable(e.primitive.effects):
            return
        parts = self.parts(e)
        for part in parts:
            if isinstance(part, Gathered):
                self.ask(part.link)
                self.found.gathered[id(e)] = parts
            else:
                self.need([part])

    def loop(self, loop: Loop) -> None:
        """One, after all that follows it."""
        use = self.found.uses[id(loop)]
        use.outs = {key: sorted(copies) for key, copies in sorted(use.outs.items())}
        if not use.live:
            return
        for source in sources_of(loop):
            if isinstance(source, Still):
                self.need([source.atom])
            elif isinstance(source, Carried):
                self.need(source.first)
            elif isinstance(source, Given):
                link = self.link(source)
                if link is None:
                    self.need(source.atoms)
                else:
                    use.links[source] = link
                    self.ask(link)

    def ask(self, link: Link) -> None:
        """Note that many copies of an output are read."""
        self.found.uses[id(link.loop)].asked[link.kept] = None

    def link(self, given: Given) -> Link | None:
        """The loop that all arrays are from, if it is one.

        It may be that one array is what the loop begins with, and the others what it carries on.
        """
        found = [self.place(v) for v in given.atoms]
        inside = [home for home in found if home is not None]
        if len(inside) < len(found) - 1 or not inside:
            return None
        loop, _, step, output = inside[0]
        if any([not home.like(inside[0]) for home in inside]):
            return None
        if len(inside) == len(found):
            return Link(loop, (step, output, ()), tuple([home.copy for home in inside]))
        begin = given.atoms[found.index(None)]
        if Carried(step, output, (begin,)) not in sources_of(loop):
            return None
        copies = [0 if home is None else home.copy + 1 for home in found]
        if max(copies) == loop.copies:
            return None
        return Link(loop, (step, output, (begin,)), tuple(copies))

    def parts(self, equation: Equation) -> list[Atom | Gathered]:
        """The operands; in a concatenation those of consecutive copies of a loop in one."""
        if not isinstance(equation.primitive, Concatenate) or len(equation.inputs) < LEAST_COPIES:
            return list(equation.inputs)
        parts: list[Any] = []
        run: list[tuple[Atom, _Place]] = []

        def end() -> None:
            if len(run) < LEAST_COPIES:
                parts.extend([atom for atom, _ in run])
            else:
                atom, (loop, _, step, output) = run[0]
                copies = tuple([home.copy for _, home in run])
                parts.append(Gathered(Link(loop, (step, output, ()), copies), atom.type.shape))
            run.clear()

        for atom in equation.inputs:
            at = self.homes.get(atom)
            maker = None if at is None else self.equations[at[0]]
            reshaped = maker is not None and isinstance(maker.primitive, Reshape)
            home = self.place(maker.inputs[0] if maker is not None and reshaped else atom)
            if not _follows(run, atom, home):
                end()
            if home is None:
                parts.append(atom)
            else:
                run.append((atom, home))
        end()
        return parts


def sources_of(loop: Loop) -> Iterable[Source]:
    """The sources of all operands."""
    return (source for step in loop.steps for source in step.sources)


def _follows(run: Sequence[tuple[Atom, _Place]], atom: Atom, home: _Place | None) -> bool:
    """Whether this comes from the next copy, or from the one before, as the others do."""
    if not run or home is None:
        return False
    last, place = run[-1]
    step = home.copy - place.copy
    steady = len(run) < 2 or step == place.copy - run[-2][1].copy
    return home.like(place) and atom.type is last.type and steady and abs(step) == 1
