"""The values that derivatives keep from the way forward, and ``checkpoint``s that would save them.

While a function is traced, each linearization notes its residuals; here they are found again in the
program. What is computed element by element from other kept values does not count: the compiler
computes it again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from stretto._engine.api.explain.words import short, where
from stretto._engine.autodiff.jvp import Dual
from stretto._engine.autodiff.vmap import Batched
from stretto._engine.core.cards import size
from stretto._engine.core.interpreter import Value
from stretto._engine.core.position import Position
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.recorder import Traced
from stretto._engine.core.types import bytes_of
from stretto._engine.higher_order.checkpoint import Checkpoint
from stretto._engine.higher_order.scan import Scan
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.thresholds import HALF, Costs
from stretto._engine.passes.formulations.mapped import Mapped

_MOST = 5
"""The most lines of the user's code that are printed."""

_CHEAP = (Costs(), HALF)
"""The measured costs of arithmetic, as against those of exponentials and their like."""

_WORTH = 0.1
"""The least share of what is kept that a checkpoint must save to be advised."""


@dataclasses.dataclass(frozen=True)
class Kept:
    """The results of one line that are kept: bytes, in so many arrays."""

    position: str
    bytes: int
    count: int


@dataclasses.dataclass(frozen=True)
class Saving:
    """The bytes that a checkpoint of something that repeats would save, by estimate."""

    position: str
    function: str
    times: int
    bytes: int
    loop: bool
    """True for the body of a ``scan``."""


def kept_lines(kept: Sequence[Kept], savings: Sequence[Saving]) -> list[str]:
    """Return both as lines of text."""
    if not kept:
        return []
    lines = [f"kept for derivatives: {size(sum(k.bytes for k in kept))}, by line:"]
    lines += short([f"{size(k.bytes)} in {k.count}  {k.position}" for k in kept], _MOST)
    for s in savings[:2]:
        lines.append(
            f"checkpoint: about {size(s.bytes)} less at {s.position}, which repeats {s.times} times"
        )
        plain = s.function.isidentifier() and not s.function.startswith("__")
        name = s.function if plain else "f"
        if s.loop:
            lines.append(f"  as st.lax.scan(st.checkpoint({name}), ...) computes it again")
        else:
            lines.append(
                f"  as st.checkpoint({name})(...) computes it again, {name} being what repeats"
            )
    return lines


def _atom(value: Any) -> Any:
    """Return the variable behind a value that is being transformed; None if it is not traced."""
    while isinstance(value, (Dual, Batched)):
        value = value.primal if isinstance(value, Dual) else value.value
    return value.atom if isinstance(value, Traced) else None


class _Step(NamedTuple):
    """An equation of a program whose calls are opened."""

    equation: Equation
    inputs: list[Atom]
    outputs: list[Var]


class _Found(NamedTuple):
    """The values kept, by line, and those that checkpoints would save."""

    lines: dict[str, list[int]]
    savings: list[Saving]


def kept_of(
    program: Program, residuals: Iterable[Value], temporaries: int
) -> tuple[tuple[Kept, ...], tuple[Saving, ...]]:
    """Return what is kept, by line, and where checkpoints would save, both largest first.

    Where that is more than all ``temporaries``, the compiler computes some of it again by itself,
    and a checkpoint saves that much less.
    """
    noted = {_atom(value) for value in residuals} - {None}
    found = _Found({}, [])
    _search(program, noted, 1, found)
    total = sum(map(sum, found.lines.values()))
    kept = [Kept(line, sum(sizes), len(sizes)) for line, sizes in found.lines.items()]
    share = min(1.0, temporaries / max(total, 1))
    worth = [
        dataclasses.replace(s, bytes=round(share * s.bytes))
        for s in found.savings
        if s.bytes > _WORTH * total
    ]
    return (
        tuple(sorted(kept, key=lambda k: -k.bytes)),
        tuple(sorted(worth, key=lambda s: -s.bytes)),
    )


def _search(program: Program, noted: set[Any], times: int, found: _Found) -> None:
    """Add what is kept of this program, so many times, and of the programs inside it."""
    steps: list[_Step] = []
    kept: dict[Atom, None] = {}
    _open(program, {}, noted, steps, kept)
    costly = _costly(steps, kept)
    _repeats(steps, costly, times, found)
    for step in steps:
        own = [k for k, v in enumerate(step.outputs) if v in costly]
        primitive: Any = step.equation.primitive
        if isinstance(primitive, Mapped) and own:
            inside = {primitive.member.outputs[k] for k in own}
            _search(primitive.member, inside, times * primitive.size, found)
        elif isinstance(primitive, Scan) and own:
            _loop(step, own, times, found)
        elif own:
            line = found.lines.setdefault(where(step.equation.position), [])
            line += [times * bytes_of(step.outputs[k].type) for k in own]
        elif primitive.holds_programs and not isinstance(primitive, Checkpoint):
            members = primitive.size if isinstance(primitive, Mapped) else 1
            for inner in primitive.programs():
                _search(inner, noted, times * members, found)


def _open(
    program: Program,
    names: dict[Atom, Atom],
    noted: set[Any],
    steps: list[_Step],
    kept: dict[Atom, None],
) -> None:
    """Append the program's equations to ``steps``, with those of calls in place of the calls."""
    for equation in program.equations:
        inputs = [names.get(a, a) for a in equation.inputs]
        primitive: Any = equation.primitive
        inner = primitive.inlined() if primitive.holds_programs else None
        is_checkpoint = isinstance(primitive, Checkpoint)
        if inner is None or isinstance(primitive, Mapped):
            outputs = [Var(v.type) for v in equation.outputs]
            names.update(zip(equation.outputs, outputs, strict=True))
            steps.append(_Step(equation, inputs, outputs))
        else:
            inside: dict[Atom, Atom] = dict(zip(inner.inputs, inputs, strict=True))
            # What is inside a checkpoint is not kept, unless it is an output of it.
            _open(inner, inside, set() if is_checkpoint else noted, steps, kept)
            outs: list[Any] = [inside.get(a, a) for a in inner.outputs]
            names.update(zip(equation.outputs, outs, strict=True))
        kept.update({names[v]: None for v in equation.outputs if v in noted})


def _costly(steps: Sequence[_Step], kept: dict[Atom, None]) -> set[Atom]:
    """Return the values kept that take more than cheap work on arguments and other such ones."""
    unknown: set[Atom] = set()
    costly: set[Atom] = set()
    for step in steps:
        primitive: Any = step.equation.primitive
        cheap = isinstance(primitive, Elementwise) and primitive.costs in _CHEAP
        if cheap and not any([a in unknown for a in step.inputs]):
            continue
        for v in step.outputs:
            (costly if v in kept else unknown).add(v)
    return costly


def _loop(step: _Step, own: Sequence[int], times: int, found: _Found) -> None:
    """Return what a ``scan`` stacks of each step, and a checkpoint of its body would not."""
    loop: Any = step.equation.primitive
    body, total = loop.body, 0
    places = {v: e.position for e in body.equations for v in e.outputs}
    position = step.equation.position
    for k in own:
        count = times * bytes_of(step.outputs[k].type)
        place = places.get(body.outputs[k]) or step.equation.position
        found.lines.setdefault(where(place), []).append(count)
        total += count
        position = place
    carried = times * sum(bytes_of(v.type) for v in body.outputs[: loop.carry])
    saved = total - total // loop.length - loop.length * carried
    found.savings.append(Saving(where(position), body.name, loop.length, saved, True))


def _repeats(steps: Sequence[_Step], costly: set[Atom], times: int, found: _Found) -> None:
    """Estimate what checkpoints of functions called again and again, or of loops, would save.

    Each stretch between two arrivals at one place of a function stands for a call. A checkpoint
    keeps what goes into it, and while it is gone back through, it has all that it keeps now.
    """
    last = max([i for i, s in enumerate(steps) if any([v in costly for v in s.outputs])], default=0)
    steps = steps[: last + 1]
    made: dict[Atom, int] = {v: i for i, step in enumerate(steps) for v in step.outputs}
    arrivals: dict[CodeType, dict[int, list[int]]] = {}
    final: dict[CodeType, int] = {}
    previous: Any = None
    for i, step in enumerate(steps):
        place = step.equation.place
        if place is not None:
            final[place[0]] = i
            if place[:2] != previous:
                arrivals.setdefault(place[0], {}).setdefault(place[1], []).append(i)
        previous = place and place[:2]
    for code, by_offset in arrivals.items():
        offset, starts = max(by_offset.items(), key=lambda item: (len(item[1]), -item[1][0]))
        if len(starts) == 1:
            continue
        before = after = most = 0
        for start, end in zip(starts, [*starts[1:], final[code] + 1], strict=True):
            part = steps[start:end]
            mine = sum(bytes_of(v.type) for s in part for v in s.outputs if v in costly)
            enters = {a for s in part for a in s.inputs if made.get(a, start) < start}
            before += mine
            after += sum(bytes_of(a.type) for a in enters)
            most = max(most, mine)
        position = Position(code, offset)
        saved = times * (before - after - most)
        found.savings.append(Saving(where(position), code.co_name, len(starts), saved, False))
