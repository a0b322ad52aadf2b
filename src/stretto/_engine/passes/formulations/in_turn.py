"""Members in a loop, and behind the loop, for all at once, what updates their own inputs.

A step of training reads weights, and moments that optimizers keep, and gives new ones. In a loop
over members each is read from the array of all, and written to another; XLA then copies what is
donated, and needs memory for both. Updates do not compute: they take as long as memory does. So the
loop computes what they need, of which there is less than of weights and moments together, and they
come behind, in place where they are donated. (Five ViT-S in turn take 1.6 GB of temporary memory
with the updates inside.)

Kernels are told which elements of arrays they read and write, so with them nothing is moved, and
the updates stay inside (``by_kernels``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stretto._engine import higher_order
from stretto._engine.autodiff.evaluate import record_closed
from stretto._engine.core.config import config
from stretto._engine.core.program import Literal, Program, Var
from stretto._engine.core.rewriting import used_inputs, written_out
from stretto._engine.core.types import ArrayType, bytes_of
from stretto._engine.higher_order.family import Call
from stretto._engine.kernels import DTYPES, kernels
from stretto._engine.ops.layout import reshape

_WORTH = 0.5
"""What the updates need may be at most this fraction of what they save the loop to move."""

_OTHERS = 0.05
"""The fraction of what leaves a program that kernels need not be able to write."""


class Halves(NamedTuple):
    """The program of one member, in two."""

    loop: Program
    """Has the inputs of the whole, and gives what ``behind`` needs."""
    behind: Program
    """Has the inputs of the whole and behind them the outputs of ``loop``; gives the outputs."""


def by_kernels(program: Program) -> bool:
    """Say whether kernels read the elements of arrays, and write into them, nearly all that leaves.

    Then nothing is moved into a loop or out of it, one member at a time, and updates stay inside:
    each gradient is used as soon as it is there. (Five GPT-2 of four layers take 440 ms with the
    updates inside, 540 with them behind, and 490 at once.)
    """
    if kernels is None or not config.kernels:
        return False
    others = [v for v in program.outputs if v.type.dtype not in DTYPES]
    return _size(others) <= _OTHERS * _size(program.outputs)


def halves(program: Program, over: Sequence[bool]) -> Halves | None:
    """Return the two halves of a member's program; ``None`` where all belongs into the loop."""
    key = ("halves", *over)
    if key not in program.cache:
        program.cache[key] = _halves(_opened(program), over)
    return program.cache[key]


def _opened(program: Program) -> Program:
    """Return the program with what calls of programs call in their place."""
    while any([type(e.primitive) is Call for e in program.equations]):
        program = written_out(
            program, lambda e: e.primitive.program if type(e.primitive) is Call else None
        )
    return program


def _halves(program: Program, over: Sequence[bool]) -> Halves | None:
    own = {v for v, m in zip(program.inputs, over, strict=True) if m}
    behind = _updates(program, own)
    if not behind:
        return None
    inside = [e for i, e in enumerate(program.equations) if i not in behind]
    last = [e for i, e in enumerate(program.equations) if i in behind]
    made = {v for e in inside for v in e.outputs}
    needed = dict.fromkeys(a for e in last for a in e.inputs if a in made)
    needed.update(dict.fromkeys(a for a in program.outputs if a in made))
    read = {a for e in inside for a in e.inputs}
    given = dict.fromkeys(program.outputs)
    saved = _size([v for v in own if v not in read]) + _size([a for a in given if a not in made])
    cut = _size([v for v in needed if v not in given])
    if not needed or cut > _WORTH * saved:
        return None
    inputs = [*program.inputs, *needed]
    return Halves(
        Program(program.inputs, inside, list(needed), program.name),
        Program(inputs, last, program.outputs, program.name),
    )


def _updates(program: Program, own: set[Var]) -> set[int]:
    """Return the places of the equations to compute behind the loop.

    These are operations by element that nothing else waits for. Of them the first ones stay in the
    loop as long as that does not add to what the loop reads and gives.
    """
    users: dict[Any, list[int]] = {}
    for i, e in enumerate(program.equations):
        for a in e.inputs:
            users.setdefault(a, []).append(i)
    behind: set[int] = set()
    for i in range(len(program.equations) - 1, -1, -1):
        primitive: Any = program.equations[i].primitive
        by_element = primitive.light and primitive.splat and not primitive.effects
        if by_element and behind.issuperset(users.get(program.equations[i].outputs[0], ())):
            behind.add(i)
    given = set(program.outputs)
    read = {a for i, e in enumerate(program.equations) if i not in behind for a in e.inputs}
    late = {v for i in behind for v in program.equations[i].outputs}
    for i in sorted(behind):
        e = program.equations[i]
        reads = {a for a in e.inputs if not isinstance(a, Literal)}
        if reads & late:
            continue
        made = [a for a in reads if a not in program.inputs]
        spared = [a for a in made if a not in given and behind.intersection(users[a]) == {i}]
        added = [*e.outputs, *[a for a in reads & own if a not in read]]
        if reads and _size(added) <= _size(spared):
            behind.discard(i)
            late.difference_update(e.outputs)
            read |= reads
    return behind


def _size(values: Sequence[Any]) -> int:
    return sum([bytes_of(v.type) for v in values])


def in_turns(
    program: Program,
    size: int,
    count: int,
    over: Sequence[bool],
    types: Sequence[ArrayType],
    behind: Callable[..., Any] | None = None,
) -> Program:
    """Return a loop over members, ``count`` of them in each iteration.

    ``program`` is for so many; ``behind`` gets all members' inputs and what the loop gives, and
    returns the outputs.
    """
    used = used_inputs(program)
    kept = [i for i, u in enumerate(used) if u]
    still = [i for i in kept if not over[i]]
    moving = [i for i in kept if over[i]]
    inputs = [program.inputs[i] for i in (*still, *moving)]
    body = Program(inputs, program.equations, program.outputs, program.name)
    loop = higher_order.scan.Scan(body, size // count, len(still), 0)

    def run(*xs: Any) -> Any:
        own = [xs[i] for i in moving]
        if count > 1:
            own = [reshape(x, (size // count, count, *x.shape[1:])) for x in own]
        outs = loop(*[xs[i] for i in still], *own)
        if count > 1:
            outs = [reshape(o, (size, *o.shape[2:])) for o in outs]
        return (outs if behind is None else behind(*xs, *outs)), None

    return record_closed(run, types, f"vmap_{program.name}")[0]
