"""Writes to arrays that a loop carries wait for the next turn.

A loop that reads elements of an array and sets others, in place, must read before it writes. XLA
fuses a read into whatever uses it, may then find no order between read and write, and copies the
whole array in each turn. Here a turn ends with what is to be written, and where, and the next
begins by writing it. All reads then come behind the writes, and depend on them. What was to be
written last is written behind the loop. ``prepare`` calls this; decision 65 has the measurements.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

from stretto._engine.autodiff.evaluate import Values
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import changed_inside, holds_programs, remember, with_equations
from stretto._engine.higher_order.family import split
from stretto._engine.higher_order.scan import Scan
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.writes import (
    READS,
    changes_nothing,
    is_write,
    seen_behind,
    sees_behind,
    small_part,
    update_of,
)


def delay_writes(program: Program) -> Program:
    """Return the program whose loops write at the beginning of the next turn; the same values.

    >>> import stretto as st, stretto.numpy as snp
    >>> def run(x):
    ...     step = lambda i, x: x.at[i].set(snp.sin(x[i - 1]))
    ...     return st.lax.fori_loop(1, 1000, step, x)
    >>> program = st.make_graph(run)(snp.ones(1000))
    >>> for version in (program, delay_writes(program)):
    ...     (body,) = [
    ...         p for e in version.equations for p in getattr(e.primitive, "programs", list)()
    ...     ]
    ...     names = [e.primitive.name for e in body.equations]
    ...     print(names.index("gather") < names.index("scatter"), len(body.outputs))
    True 2
    False 4
    """
    return remember(program, "delay_writes", _delay_writes)


def _delay_writes(program: Program) -> Program:
    if not holds_programs(program):
        return program
    program = changed_inside(program, delay_writes)
    equations: list[Equation] = []
    for e in program.equations:
        primitive = e.primitive
        if isinstance(primitive, Scan) and primitive.length > 1 and primitive.carry:
            loop = _Loop(e)
            equations += loop.delayed() if loop.chains else [e]
        else:
            equations.append(e)
    return with_equations(program, equations)


class _Chain:
    """The writes, one after the other, by which a turn changes the array that it carries.

    Each waits with its operands behind the first: with those that differ from turn to turn, and
    always with what is written, so that there is something that changes nothing at first.
    """

    def __init__(self, carried: Var, writes: list[Equation], fixed: Sequence[Atom]) -> None:
        self.carried = carried
        self.writes = writes
        self.waiting = [
            (w, i)
            for w in writes
            for i, a in enumerate(w.inputs)
            if i and (i == update_of(w.primitive) or (a.__class__ is Var and a not in fixed))
        ]

    @property
    def pending(self) -> list[Atom]:
        """The operands with which the writes of a turn wait."""
        return [w.inputs[i] for w, i in self.waiting]

    def first(self, x: Any, known: Values) -> list[Any]:
        """Return what to wait with at first, so that nothing is changed in ``x``."""
        values: dict[tuple[int, int], Any] = {}
        for w in self.writes:
            operands = [
                full(a.type.shape, 0, a.type.dtype) if (w, i) in self.waiting else known.of(a)
                for i, a in enumerate(w.inputs[1:], 1)
            ]
            update = update_of(w.primitive)
            operands[update - 1] = changes_nothing(w.primitive, x, *operands)
            values.update({(id(w), i): value for i, value in enumerate(operands, 1)})
        found = [(values[id(w), i], w.inputs[i].type) for w, i in self.waiting]
        return [convert(value, t.dtype, t.weak_type) for value, t in found]

    def written(self, x: Any, pending: Sequence[Any], known: Values) -> Any:
        """Return the array with what waits written."""
        waits = {(id(w), i): value for (w, i), value in zip(self.waiting, pending, strict=True)}
        for w in self.writes:
            operands = [
                waits[id(w), i] if (id(w), i) in waits else known.of(a)
                for i, a in enumerate(w.inputs[1:], 1)
            ]
            x = known.at(w, lambda w=w, x=x, operands=operands: w.primitive(x, *operands))
        return x


class _Loop:
    """The equation of a ``scan``, and how its body changes what it carries."""

    def __init__(self, equation: Equation) -> None:
        self.equation = equation
        self.loop: Any = equation.primitive
        self.body: Program = self.loop.body
        self.made: dict[Atom, Equation] = {v: e for e in self.body.equations for v in e.outputs}
        self.readers: dict[Atom, list[Equation]] = collections.defaultdict(list)
        for e in self.body.equations:
            for a in {*e.inputs}:
                self.readers[a].append(e)
        self.given = collections.Counter(self.body.outputs)
        self.behind: dict[int, tuple[_Chain, int]] = {}
        """Maps the ``id`` of each read of what a write gives to the chain, and to that write."""
        chains = [self._chain(k) for k in range(self.loop.carry)]
        self.chains = {k: chain for k, chain in enumerate(chains) if chain is not None}

    def _chain(self, k: int) -> _Chain | None:
        """Return the writes by which a turn changes this carried array, if they can wait."""
        carried = self.body.inputs[self.loop.consts + k]
        array = carried.type
        atom = self.body.outputs[k]
        writes: list[Equation] = []
        while atom is not carried:
            e = self.made.get(atom)
            if e is None or not is_write(e.primitive, array):
                return None
            part = e.inputs[update_of(e.primitive)].type
            if not small_part(part, array) or not _promises_nothing(e):
                return None
            writes.insert(0, e)
            atom = e.inputs[0]
        if not writes or self.given[self.body.outputs[k]] != 1:
            return None
        chain = _Chain(carried, writes, self.body.inputs[: self.loop.consts])
        reads: dict[int, tuple[_Chain, int]] = {}
        for count, write in enumerate(writes, 1):
            after = writes[count] if count < len(writes) else None
            version = write.outputs[0]
            if after is not None and (self.given[version] or version in after.inputs[1:]):
                return None
            for e in self.readers[version]:
                if e is after:
                    continue
                if not _can_wait(e, writes[:count]):
                    return None
                reads[id(e)] = chain, count
        first = [e for e in self.readers[carried] if e is not writes[0]]
        if not first and not reads and carried not in writes[0].inputs[1:]:
            return None
        self.behind |= reads
        return chain

    def delayed(self) -> list[Equation]:
        """Return the loop that writes at the beginning of turns, and the last writes behind it."""
        loop, equation = self.loop, self.equation
        types = [a.type for a in equation.inputs]
        program, _, captured = record(lambda *xs: (self._run(xs), None), types)
        assert not captured, "a loop is recorded anew from its operands alone"
        renamed: dict[Any, Any] = dict(zip(program.inputs, equation.inputs, strict=True))
        renamed.update(zip(program.outputs, equation.outputs, strict=True))
        return [
            Equation(
                e.primitive,
                [renamed.get(a, a) for a in e.inputs],
                [renamed.get(v, v) for v in e.outputs],
                equation.place if e.primitive.__class__ is loop.__class__ else e.place,
            )
            for e in program.equations
        ]

    def _run(self, operands: Sequence[Any]) -> list[Any]:
        """Apply the new loop to these operands, and write what then waits."""
        loop = self.loop
        consts, carry, xs = split(operands, loop.consts, loop.carry)
        outside = Values(zip(self.body.inputs, consts, strict=False))
        pending = {k: chain.first(carry[k], outside) for k, chain in self.chains.items()}
        waiting = [v for values in pending.values() for v in values]
        types = [v.type for v in (*consts, *carry, *waiting)]
        types += [v.type for v in self.body.inputs[loop.consts + loop.carry :]]
        body, _, _ = record(lambda *args: (self._turn(args), None), types, name=self.body.name)
        new = loop.over(body, len(consts), len(carry) + len(waiting))
        outs = list(new(*consts, *carry, *waiting, *xs))
        carry, waiting, ys = split(outs, len(carry), len(waiting))
        sizes = [len(values) for values in pending.values()]
        for (k, chain), values in zip(self.chains.items(), split(waiting, *sizes), strict=False):
            carry[k] = chain.written(carry[k], values, outside)
        return [*carry, *ys]

    def _turn(self, args: Sequence[Any]) -> list[Any]:
        """Write what waits, and have what the turn would write wait."""
        loop, body = self.loop, self.body
        sizes = [len(chain.waiting) for chain in self.chains.values()]
        consts, carry, waiting, xs = split(args, loop.consts, loop.carry, sum(sizes))
        known = Values(zip(body.inputs, [*consts, *carry, *xs], strict=True))
        for chain, values in zip(self.chains.values(), split(waiting, *sizes), strict=False):
            known[chain.carried] = chain.written(known[chain.carried], values, known)
        writes = {id(w) for chain in self.chains.values() for w in chain.writes}
        for e in body.equations:
            if id(e) in writes:
                continue
            if id(e) in self.behind:
                known[e.outputs[0]] = known.at(e, lambda e=e: self._seen(e, known))
            else:
                known.apply(e)
        ends = [a for chain in self.chains.values() for a in chain.pending]
        for k, chain in self.chains.items():
            known[body.outputs[k]] = known[chain.carried]
        outs = [known.of(a) for a in body.outputs]
        return [*outs[: loop.carry], *map(known.of, ends), *outs[loop.carry :]]

    def _seen(self, read: Equation, known: Values) -> Any:
        """Return what a read behind writes gives, from the array in front of them."""
        chain, count = self.behind[id(read)]
        x = known[chain.carried]
        indices = [known.of(a) for a in read.inputs[1:]]
        value: Any = read.primitive(x, *indices)
        for w in chain.writes[:count]:
            operands = [known.of(a) for a in w.inputs[1:]]
            value = seen_behind(read.primitive, w.primitive, x, value, indices, operands)
        out = read.outputs[0].type
        return convert(value, out.dtype, out.weak_type)


def _can_wait(e: Equation, writes: Sequence[Equation]) -> bool:
    """Say whether it is a read whose result is known without these writes."""
    if not isinstance(e.primitive, READS) or e.inputs[0] in e.inputs[1:]:
        return False
    index = e.inputs[1].type.dtype
    return all(
        [sees_behind(e.primitive, w.primitive, [a.type for a in w.inputs], index) for w in writes]
    )


def _promises_nothing(write: Equation) -> bool:
    """Say whether all its windows may be at one place, as those of what waits at first are."""
    primitive: Any = write.primitive
    if not getattr(primitive, "unique_indices", False):
        return True
    return dataclasses.replace(primitive, unique_indices=False).distinct(write.inputs[1].type)
