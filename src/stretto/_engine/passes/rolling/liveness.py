"""Find what is read of each loop's outputs, by other loops and by the rest of the program.

The program is walked from its end, as when dead work is dropped, to see which outputs of which
copies are read, and by what. Outputs that another loop reads copy by copy, or that a concatenation
puts together, stay in the array in which the loop stacks them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from stretto._engine.core.primitive import observable
from stretto._engine.core.program import Atom, Equation, Program
from stretto._engine.ops.joining import Concatenate
from stretto._engine.ops.layout import Reshape
from stretto._engine.passes.rolling.operands import Carried, Given, Homes, Loop, Source, Still
from stretto._engine.passes.rolling.stretches import LEAST_COPIES

Kept: TypeAlias = tuple[int, int, tuple[Atom, ...]]
"""What a loop stacks: (step, output, first).

If ``first`` is empty it is the output as each copy computes it; otherwise it is the carried value
as each copy receives it, and ``first`` is ``Carried.first``.
"""


class Link(NamedTuple):
    """Arrays that are the outputs of some copies of a loop."""

    loop: Loop
    kept: Kept
    copies: tuple[int, ...]


class Gathered(NamedTuple):
    """Consecutive operands of a concatenation, from neighbouring copies, each reshaped first."""

    link: Link
    shape: tuple[int, ...]


@dataclasses.dataclass(slots=True)
class Use:
    """Hold what is used of a loop's outputs, and which operands are outputs of other loops."""

    outs: dict[tuple[int, int], list[int]]
    """Maps (step, output) to the copies whose output is read outside of loops."""
    asked: dict[Kept, None]
    """Holds what is read of many copies, in the order in which it was found."""
    links: dict[Given, Link]
    """The operands that are outputs of another loop."""

    @property
    def live(self) -> bool:
        """Whether any of its outputs is used."""
        return bool(self.outs or self.asked)


class Exchange(NamedTuple):
    """The uses of all loops, and the concatenations of their outputs."""

    uses: dict[int, Use]
    """The use of each loop, by its ``id``."""
    gathered: dict[int, list[Atom | Gathered]]
    """The operands of concatenations that gather outputs of a loop, by the equation's ``id``."""


class _Output(NamedTuple):
    """A step's output in a copy of a loop, which is a variable."""

    loop: Loop
    copy: int
    step: int
    output: int

    def like(self, other: _Output) -> bool:
        """Say whether the two differ in nothing but the copy."""
        return self.loop is other.loop and self[2:] == other[2:]


def exchange(program: Program, loops: Sequence[Loop], homes: Homes) -> Exchange:
    """Return what is read of the outputs of these loops, if all of them are made."""
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
    return reader.result


class _Reader:
    """Walks a program from its end, and notes what is needed."""

    def __init__(self, program: Program, loops: Sequence[Loop], homes: Homes) -> None:
        self.equations, self.homes = program.equations, homes
        self.owners: list[Loop | None] = [None] * len(program.equations)
        for loop in loops:
            self.owners[loop.start : loop.end] = [loop] * (loop.end - loop.start)
        self.result = Exchange({id(loop): Use({}, {}, {}) for loop in loops}, {})
        self.needed: set[Atom] = set()
        self.need(program.outputs)

    def output_of(self, atom: Atom) -> _Output | None:
        """Return where a loop computes the atom; ``None`` if no loop does."""
        home = self.homes.get(atom)
        loop = None if home is None else self.owners[home[0]]
        if home is None or loop is None:
            return None
        copy, j = divmod(home[0] - loop.start, loop.period)
        return _Output(loop, copy, loop.views + j, home[1])

    def need(self, atoms: Iterable[Atom]) -> None:
        """Note that these are read outside of loops, or where a loop begins."""
        for atom in atoms:
            if atom not in self.needed:
                self.needed.add(atom)
                one = self.output_of(atom)
                if one is not None:
                    outs = self.result.uses[id(one.loop)].outs
                    outs.setdefault((one.step, one.output), []).append(one.copy)

    def equation(self, e: Equation) -> None:
        """Visit an equation outside of loops."""
        if self.needed.isdisjoint(e.outputs) and not observable(e.primitive.effects):
            return
        parts = self.parts(e)
        for part in parts:
            if isinstance(part, Gathered):
                self.ask(part.link)
                self.result.gathered[id(e)] = parts
            else:
                self.need([part])

    def loop(self, loop: Loop) -> None:
        """Visit a loop, after everything that follows it."""
        use = self.result.uses[id(loop)]
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
        self.result.uses[id(link.loop)].asked[link.kept] = None

    def link(self, given: Given) -> Link | None:
        """Return the link to the loop that all arrays are from, if there is one such loop.

        One of the arrays may be the initial value of what the loop carries, and the others what
        the copies compute of it.
        """
        found = [self.output_of(v) for v in given.atoms]
        inside = [one for one in found if one is not None]
        if len(inside) < len(found) - 1 or not inside:
            return None
        loop, _, step, output = inside[0]
        if any([not one.like(inside[0]) for one in inside]):
            return None
        if len(inside) == len(found):
            return Link(loop, (step, output, ()), tuple([one.copy for one in inside]))
        begin = given.atoms[found.index(None)]
        if Carried(step, output, (begin,)) not in sources_of(loop):
            return None
        copies = [0 if one is None else one.copy + 1 for one in found]
        if max(copies) == loop.copies:
            return None
        return Link(loop, (step, output, (begin,)), tuple(copies))

    def parts(self, equation: Equation) -> list[Atom | Gathered]:
        """Return the operands.

        In a concatenation, those from consecutive copies of a loop count as one.
        """
        if not isinstance(equation.primitive, Concatenate) or len(equation.inputs) < LEAST_COPIES:
            return list(equation.inputs)
        parts: list[Any] = []
        run: list[tuple[Atom, _Output]] = []

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
            home = self.output_of(maker.inputs[0] if maker is not None and reshaped else atom)
            if not _follows(run, atom, home):
                end()
            if home is None:
                parts.append(atom)
            else:
                run.append((atom, home))
        end()
        return parts


def sources_of(loop: Loop) -> Iterable[Source]:
    """Return the sources of all operands."""
    return (source for step in loop.steps for source in step.sources)


def _follows(run: Sequence[tuple[Atom, _Output]], atom: Atom, home: _Output | None) -> bool:
    """Say whether the atom continues the run, from the next copy or the one before."""
    if not run or home is None:
        return False
    last, one = run[-1]
    step = home.copy - one.copy
    steady = len(run) < 2 or step == one.copy - run[-2][1].copy
    return home.like(one) and atom.type is last.type and steady and abs(step) == 1
