"""Bodies of loops are written so that they touch only the parts of arrays that they change.

Of an array that a loop carries, a step often changes one element, by a write to a part. Written
otherwise, the step, its derivative and what the derivative keeps are as large as the array, and a
loop over all of its elements takes time that grows with their square:

- ``where(c, x.at[i].set(u), x)`` is ``x.at[i].set(where(c, u, x[i]))``;
- a branch that gives ``x.at[i].set(u)``, beside others that give ``x``, is one that gives ``i`` and
  ``u``, or some place and what is there;
- ``x[3]`` is a slice of ``x`` from a start that might differ from step to step, whose cotangent is
  added in place;
- a call of a jitted function that does such things is written out.

Decision 65 has the measurements, and ``passes/delay_writes`` is what makes it count.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.autodiff.evaluate import Values, evaluate
from stretto._engine.core.program import Atom, Equation, Program
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import drop_dead, written_out
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.cond import Cond
from stretto._engine.higher_order.family import Call
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.comparison import SELECT, full, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.dynamic import DynamicSlice
from stretto._engine.ops.index.writes import (
    NEUTRAL,
    READS,
    WRITES,
    changes_nothing,
    is_write,
    large,
    small_part,
    update_of,
)
from stretto._engine.ops.shape import Slice


def narrow_body(body: Program) -> Program:
    """Return the body, whose inputs and outputs stay, touching parts of arrays; the same values.

    >>> import stretto as st, stretto.numpy as snp
    >>> def step(x, i):
    ...     return snp.where(i > 3, x.at[i].set(2.0), x)
    >>> program = st.make_graph(step)(snp.ones(1000), 0)
    >>> for version in (program, narrow_body(program)):
    ...     (select,) = [e for e in version.equations if "select" in e.primitive.name][-1:]
    ...     print(select.outputs[0].type)
    float32[1000]
    float32[]
    """
    if not any([large(t) for t in body.in_types]):
        return body
    body = _calls_written_out(body)
    step = _Step(body)
    if not step.changes:
        return body
    run = lambda *args: (step.run(args), None)
    program, _, captured = record(run, body.in_types, name=body.name)
    assert not captured, "a body is recorded anew from its inputs alone"
    return drop_dead(program)


def _calls_written_out(body: Program) -> Program:
    """Return the body with calls in place that read parts of large arrays, or write them."""

    def opened(e: Equation) -> Program | None:
        if type(e.primitive) is not Call:
            return None
        program = e.primitive.program
        parts = zip(e.inputs, _touched(program), strict=True)
        if not any([part and large(a.type) for a, part in parts]):
            return None
        return _calls_written_out(program)

    if not any([opened(e) for e in body.equations]):
        return body
    return written_out(body, opened)


def _touched(program: Program) -> list[bool]:
    """Find the inputs of which an equation reads or writes a part, here or in a call."""
    atoms: set[Atom] = set()
    for e in program.equations:
        if isinstance(e.primitive, READS + WRITES):
            atoms.add(e.inputs[0])
        elif type(e.primitive) is Call:
            parts = _touched(e.primitive.program)
            atoms.update([a for a, part in zip(e.inputs, parts, strict=True) if part])
    return [v in atoms for v in program.inputs]


def _writes_to(
    atom: Atom, base: Atom | None, made: dict[Atom, Equation], reads: dict[Atom, int]
) -> tuple[Atom, list[Equation]]:
    """Give the array that ``atom`` is made from by writes to parts, up to ``base``; and the writes.

    Nothing else reads what they give.
    """
    writes: list[Equation] = []
    while atom is not base:
        e = made.get(atom)
        if e is None or not is_write(e.primitive, atom.type) or reads[atom] != 1:
            break
        if not small_part(e.inputs[update_of(e.primitive)].type, atom.type):
            break
        writes.insert(0, e)
        atom = e.inputs[0]
    return atom, writes


class _Step:
    """A body, and what of it is to be written otherwise."""

    def __init__(self, body: Program) -> None:
        self.body = body
        self.made: dict[Atom, Equation] = {v: e for e in body.equations for v in e.outputs}
        self.reads: dict[Atom, int] = collections.Counter(
            [a for e in body.equations for a in e.inputs]
        )
        for a in body.outputs:
            self.reads[a] += 1
        self.changes: dict[int, Any] = {}
        """The functions of values that are called in place of equations, by the ``id`` of these."""
        for e in body.equations:
            if e.primitive is SELECT:
                self._select(e)
            elif isinstance(e.primitive, Slice):
                self._slice(e)
            elif isinstance(e.primitive, Cond) and e.primitive.size is None:
                self._cond(e)

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Return the outputs for these inputs, under a recorder."""
        known = Values(zip(self.body.inputs, args, strict=True))
        for e in self.body.equations:
            change = self.changes.get(id(e))
            if change is not None:
                known.at(e, lambda change=change: change(known))
            else:  # writes that are made otherwise are dead then
                known.apply(e)
        return [convert(known.of(a), a.type.dtype, a.type.weak_type) for a in self.body.outputs]

    def _select(self, e: Equation) -> None:
        """Return a choice between an array and what writes make of it."""
        condition, x, y = e.inputs
        maker = self.made.get(condition)
        if maker is not None and isinstance(maker.primitive, BroadcastInDim):
            condition = maker.inputs[0]
        if condition.type.shape or x is y:
            return
        for changed, base, taken in ((x, y, True), (y, x, False)):
            found, writes = _writes_to(changed, base, self.made, self.reads)
            if found is not base or not writes:
                continue

            def chosen(
                known: Values, base: Any = base, writes: Any = writes, taken: bool = taken
            ) -> None:
                array, holds = known.of(base), known.of(condition)
                for w in writes:
                    operands = [known.of(a) for a in w.inputs[1:]]
                    at = update_of(w.primitive) - 1
                    new, nothing = operands[at], changes_nothing(w.primitive, array, *operands)
                    operands[at] = select(holds, *((new, nothing) if taken else (nothing, new)))
                    array = w.primitive(array, *operands)
                known[e.outputs[0]] = array

            self.changes[id(e)] = chosen
            return

    def _slice(self, e: Equation) -> None:
        """Return a small part of a large array, from a fixed place."""
        primitive: Any = e.primitive
        x, out = e.inputs[0], e.outputs[0].type
        if not small_part(out, x.type) or {*primitive.strides} != {1}:
            return

        def sliced(known: Values) -> None:
            starts = [full((), start, np.dtype(np.int32)) for start in primitive.starts]
            known[e.outputs[0]] = DynamicSlice(out.shape)(known.of(x), *starts)

        self.changes[id(e)] = sliced

    def _cond(self, e: Equation) -> None:
        """Have branches that give an operand, or what writes make of it, give what to write."""
        cond: Any = e.primitive
        found = [_of_branches(cond.branches, k) for k in range(len(e.outputs))]
        if not any(found):
            return

        def branches(known: Values) -> None:
            index, *operands = [known.of(a) for a in e.inputs]
            new = [_giving_writes(branch, i, found) for i, branch in enumerate(cond.branches)]
            outs = iter(Cond(tuple(new))(index, *operands))
            for v, writes in zip(e.outputs, found, strict=True):
                if writes is None:
                    known[v] = next(outs)
                    continue
                array = operands[writes.operand]
                for primitive, types in writes.chain:
                    array = primitive(array, *[next(outs) for _ in types])
                known[v] = array

        self.changes[id(e)] = branches


class _Written:
    """An output of branches: the number of the operand, and the writes that branches make to it."""

    def __init__(self, operand: int) -> None:
        self.operand = operand
        self.chain: list[tuple[Any, tuple[Any, ...]]] = []
        """The primitives, and the types of their operands behind the first."""
        self.of_branches: list[dict[int, Equation]] = []
        """The writes of each branch, by their positions in the chain."""

    def add(self, writes: Sequence[Equation]) -> bool:
        """Merge the writes of a branch into the chain, if the branch can do nothing at the others.

        Doing nothing may mean to write what is there in front of all writes.
        """
        own: dict[int, Equation] = {}
        start = 0
        for w in writes:
            step = (w.primitive, tuple([a.type for a in w.inputs[1:]]))
            positions = [i for i, other in enumerate(self.chain) if i >= start and other == step]
            if not positions:
                positions = [len(self.chain)]
                self.chain.append(step)
            own[positions[0]] = w
            start = positions[0] + 1
        self.of_branches.append(own)
        return all(map(self._still_right, self.of_branches))

    def _still_right(self, own: dict[int, Equation]) -> bool:
        first = min(own, default=len(self.chain))
        idle = [i for i in range(first, len(self.chain)) if i not in own]
        return all([isinstance(self.chain[i][0], NEUTRAL) for i in idle])


def _of_branches(branches: Sequence[Program], k: int) -> _Written | None:
    """Find what makes output ``k`` of these branches, if each gives an operand, or writes to it."""
    written = None
    for branch in branches:
        found = _chain_of(branch, branch.outputs[k])
        if found is None:
            return None
        operand, writes = found
        if written is None:
            written = _Written(operand)
        if operand != written.operand or not written.add(writes):
            return None
    return written if written is not None and written.chain else None


def _chain_of(branch: Program, atom: Atom) -> tuple[int, list[Equation]] | None:
    """Return the number of the input that ``atom`` is made of by writes, and these."""
    made: dict[Atom, Equation] = {v: e for e in branch.equations for v in e.outputs}
    reads: dict[Atom, int] = collections.Counter([a for e in branch.equations for a in e.inputs])
    for a in branch.outputs:
        reads[a] += 1
    base, writes = _writes_to(atom, None, made, reads)
    positions = [i for i, v in enumerate(branch.inputs) if v is base]
    return (positions[0], writes) if positions else None


def _giving_writes(branch: Program, number: int, found: Sequence[_Written | None]) -> Program:
    """Give the branch of this number giving, in place of arrays, the operands of writes to them."""
    wanted: list[Atom] = []
    for a, w in zip(branch.outputs, found, strict=True):
        if w is None:
            wanted.append(a)
        else:
            wanted += [x for e in w.of_branches[number].values() for x in e.inputs[1:]]
    whole = drop_dead(Program(branch.inputs, branch.equations, wanted, branch.name))

    def run(*args: Any) -> Any:
        values = iter(evaluate(whole, args))
        outs: list[Any] = []
        for a, w in zip(branch.outputs, found, strict=True):
            if w is None:
                outs.append(convert(next(values), a.type.dtype, a.type.weak_type))
                continue
            own = w.of_branches[number]
            parts = {i: [next(values) for _ in e.inputs[1:]] for i, e in own.items()}
            for i, (primitive, types) in enumerate(w.chain):
                new = parts[i] if i in parts else _nothing(primitive, types, args[w.operand])
                outs += [convert(o, t.dtype, t.weak_type) for o, t in zip(new, types, strict=True)]
        return outs, None

    return record(run, branch.in_types, name=branch.name)[0]


def _nothing(primitive: Any, types: Sequence[ArrayType], array: Any) -> list[Any]:
    """Return the operands of a write that leaves the array as it is."""
    operands = [full(t.shape, 0, t.dtype) for t in types]
    operands[update_of(primitive) - 1] = changes_nothing(primitive, array, *operands)
    return operands
