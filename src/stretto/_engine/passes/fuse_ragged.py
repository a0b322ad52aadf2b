"""Make operations of attention in calls for ragged arrays, before these are written for buckets.

A kernel that is told how long examples are reads and writes them where they lie, one behind the
other: no rectangle is made, and nothing is computed for padding. Once a call is written for a
bucket, padding is in the way, so attention is looked for in the programs of the true sizes. What a
gradient reads is made by another call than the gradient itself, so calls for the same examples are
looked at as one program, in which a large prime stands for the size that varies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from stretto._engine.core.primitive import observable
from stretto._engine.core.program import Equation, Literal, Program, Var, literal_key
from stretto._engine.core.rewriting import changed_inside, drop_dead, remember
from stretto._engine.core.sizes import size_of
from stretto._engine.higher_order.fixed_sizes import Padding, asks_for_sizes, variable_of_rows
from stretto._engine.higher_order.sized_call import SizedCall
from stretto._engine.kernels import kernels
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.exponential import Exp
from stretto._engine.ops.fused_attention import FusedAttention, Geometry
from stretto._engine.passes.fuse_attention import fuse_attention, is_worth_it
from stretto._engine.passes.tracked_axes import Unlike, demand

_STANDS = 1_000_003
"""A prime that no size has as a factor but the one that it stands for."""


def fuse_ragged(program: Program) -> Program:
    """Return the program with attention as one operation in calls for ragged arrays.

    >>> import stretto as st, stretto.numpy as snp
    >>> from stretto import nn
    >>> words = st.ragged([snp.ones((20, 8)), snp.ones((30, 8))])
    >>> attend = lambda x: nn.functional.softmax(x @ x.T, -1) @ x
    >>> graph = st.make_graph(st.vmap(attend))(words)
    >>> calls = [
    ...     e.primitive for e in fuse_ragged(graph).equations if e.primitive.name == "sized_call"
    ... ]
    >>> [e.primitive.name for e in calls[0].program.equations]
    ['fused_attention']
    """
    return remember(program, "fused ragged", _fused)


def _fused(program: Program) -> Program:
    program = changed_inside(program, fuse_ragged)
    if kernels is None:
        return program
    groups: dict[Any, list[int]] = {}
    for n, e in enumerate(program.equations):
        call: Any = e.primitive
        if not isinstance(call, SizedCall) or not call.rooms or observable(call.effects):
            continue
        if len(call.batch) == len(call.variables) == 1:
            key = (call.variables, call.most, call.batch, call.rooms, e.inputs[0])
            groups.setdefault(key, []).append(n)
    for places in groups.values():
        program = _in_calls(program, places)
    return program


class _Part(NamedTuple):
    """An equation of all calls together, and the call that it is of."""

    equation: Equation
    call: int


def _in_calls(program: Program, places: Sequence[int]) -> Program:
    """Return the program, whose equations are as many, with attention in calls at these places."""
    calls = [program.equations[n] for n in places]
    kinds = {e.primitive.__class__ for c in calls for e in _program_of(c).equations}
    if not {Exp, DotGeneral} <= kinds:
        return program
    try:
        together = _Together(program, calls)
        equations = [*program.equations]
        for n, call in zip(places, together.apart(), strict=True):
            equations[n] = call
    except Unlike:
        return program
    return Program(program.inputs, equations, program.outputs, program.name)


def _program_of(call: Equation) -> Program:
    primitive: Any = call.primitive
    return primitive.program


class _Together:
    """Calls for the same examples as one program of the size that varies."""

    def __init__(self, program: Program, calls: Sequence[Equation]) -> None:
        self.calls = calls
        self.sizes: Any = calls[0].primitive
        self.given: dict[Any, tuple[Any, bool]] = {}
        """What comes from outside: the operand, and whether each example has its own."""
        self.made: dict[Any, int] = {}
        """The call that makes a value."""
        self.results: list[list[tuple[Any, Any, bool]]] = []
        """Of each call, the results that are read outside: what they are inside, and outside; and
        whether they are added up."""
        self._inside: dict[Any, Any] = {}
        """What values outside are inside."""
        self._entered: dict[Any, Any] = {}
        self._seen: dict[Any, Sequence[Any]] = {}
        """The results of operations on the same values, which are done once."""
        self._beside: dict[Any, Sequence[Any]] = {}
        """The same of operations outside: what all examples share is made there for gradients."""
        self._parts: list[_Part] = []
        own = {id(call): n for n, call in enumerate(calls)}
        read = {a for e in program.equations if id(e) not in own for a in e.inputs}
        read.update(program.outputs)
        for e in program.equations:
            if id(e) in own:
                self._add(e, own[id(e)], read)
            elif _is_done_once(e.primitive):
                key = (e.primitive, *[self._name(self._inside.get(a, a)) for a in e.inputs])
                self._inside.update(zip(e.outputs, self._seen.get(key, ()), strict=False))
                self._beside.setdefault(key, e.outputs)
        self.parts = self.fused(self._parts)

    def _add(self, call: Equation, n: int, read: set[Any]) -> None:
        """Add the equations of a call, of whose results some are read outside."""
        primitive: Any = call.primitive
        known: dict[Any, Any] = {}
        marks = primitive.over[0][1:]
        for v, a, mapped in zip(_program_of(call).inputs, call.inputs[1:], marks, strict=True):
            same = self._inside.get(a)
            is_known = same is not None and same.type == v.type
            known[v] = same if is_known else self._enter(a, v, mapped)
        for e in _program_of(call).equations:
            reads = [known.get(a, a) for a in e.inputs]
            outs: Sequence[Any] = [Var(v.type) for v in e.outputs]
            if _is_done_once(e.primitive):
                key = (e.primitive, *map(self._name, reads))
                same = self._beside.get(key, ())
                entered = [self._enter(a, v, False) for a, v in zip(same, outs, strict=False)]
                outs = entered or self._seen.setdefault(key, outs)
            known.update(zip(e.outputs, outs, strict=True))
            if not any([v in self.made or v in self.given for v in outs]):
                self.made.update(dict.fromkeys(outs, n))
                self._parts.append(_Part(Equation(e.primitive, reads, outs, e.place), n))
        summed = primitive.summed or (False,) * len(call.outputs)
        results = []
        for v, a, added in zip(call.outputs, _program_of(call).outputs, summed, strict=True):
            a = known.get(a, a)
            if not added:
                self._inside[v] = a
            if v in read or added:
                results.append((a, v, added))
        self.results.append(results)

    def _enter(self, a: Any, v: Any, mapped: bool) -> Any:
        """Return what an operand is inside, by default a variable."""
        known = self._entered.setdefault((_key(a), v.type, mapped), v)
        self.given[known] = a, mapped
        return known

    def _name(self, a: Any) -> Any:
        """Return what a value is known by, inside and outside."""
        outside, mapped = self.given.get(a, (None, True))
        return _key(a) if mapped else _key(outside)

    def fused(self, parts: Sequence[_Part]) -> list[_Part]:
        """Return the equations with attention as one operation."""
        stand = _Standing(self.sizes.variables[0])
        stood = [stand.equation(p.equation) for p in parts]
        outs = [stand.atom(a) for results in self.results for a, _, _ in results]
        found = fuse_attention(drop_dead(Program(map(stand.atom, self.given), stood, outs)))
        back = {v: a for a, v in stand.atoms.items()}
        true = {v: p for p, e in zip(parts, stood, strict=True) for v in e.outputs}
        written: list[_Part] = []
        for e in found.equations:
            primitive: Any = e.primitive
            if not isinstance(primitive, FusedAttention):
                written.append(true[e.outputs[0]])
                continue
            of = {true[v].call for v in e.outputs}
            demand(len(of) == 1)
            reads, results = ([back[v] for v in atoms] for atoms in (e.inputs, e.outputs))
            own = [true[one.outputs[0]].equation for one in primitive.program.equations]
            program = Program(reads, own, results, primitive.program.name)
            fused = FusedAttention(program, stand.geometry(primitive.geometry))
            self.check(fused.geometry, reads)
            written.append(_Part(Equation(fused, reads, results, e.place), of.pop()))
        demand(any([isinstance(p.equation.primitive, FusedAttention) for p in written]))
        return written

    def check(self, geometry: Geometry, reads: Sequence[Any]) -> None:
        """Refuse what is too small for a kernel, and arrays of steps that lie by rows."""
        (most,) = self.sizes.most
        demand(
            is_worth_it(geometry._replace(rows=geometry.rows or most, keys=geometry.keys or most))
        )
        arrays = len([step for step in geometry.steps if step.place])
        for a in reads[3 : 3 + arrays]:
            demand(variable_of_rows(a.type) is None)

    def apart(self) -> Iterator[Equation]:
        """Return the calls, each with its own equations."""
        outside: dict[Any, Any] = {}
        passed = self.passed()
        for n, call in enumerate(self.calls):
            equations = [p.equation for p in self.parts if p.call == n]
            made = {v for e in equations for v in e.outputs}
            results = [*self.results[n]]
            for v in passed:
                if v in made:
                    outside[v] = None
                    results.append((v, None, False))
            atoms = [a for e in equations for a in e.inputs] + [a for a, _, _ in results]
            needed = [a for a in atoms if not isinstance(a, Literal) and a not in made]
            inputs = [*dict.fromkeys(needed)]
            given = [self.given[v] if v in self.given else (outside[v], True) for v in inputs]
            inner = Program(inputs, equations, [a for a, _, _ in results], _program_of(call).name)
            marks = (True, *[mapped for _, mapped in given])
            summed = tuple([added for _, _, added in results])
            old: Any = call.primitive
            primitive: Any = dataclasses.replace(
                old, program=inner, over=(marks,), summed=summed if any(summed) else ()
            )
            operands = [call.inputs[0], *[a for a, _ in given]]
            types = primitive.infer(*[a.type for a in operands])
            outs = [
                Var(type) if v is None else v
                for (_, v, _), type in zip(results, types, strict=True)
            ]
            outside.update({a: v for (a, was, _), v in zip(results, outs, strict=True) if not was})
            yield Equation(primitive, operands, outs, call.place)

    def passed(self) -> list[Any]:
        """Return the values that a call makes and a later one reads."""
        found: dict[Any, None] = {}
        for equation, n in self.parts:
            reads = [*equation.inputs]
            for a in reads:
                if a in self.made and self.made[a] != n:
                    found[a] = None
        for n, results in enumerate(self.results):
            for a, _, _ in results:
                if a in self.made and self.made[a] != n:
                    found[a] = None
        return [*found]


class _Standing:
    """A program in which a prime stands for the size that varies."""

    def __init__(self, variable: Any) -> None:
        self.bounds = Padding({variable: _STANDS}, {})
        self.size = size_of(variable)
        self.atoms: dict[Any, Any] = {}

    def atom(self, a: Any) -> Any:
        """Return what stands for a value."""
        if isinstance(a, Literal):
            return Literal(a.value, self.bounds.carrier(a.type))
        if a not in self.atoms:
            self.atoms[a] = Var(self.bounds.carrier(a.type))
        return self.atoms[a]

    def equation(self, e: Equation) -> Equation:
        """Return what stands for an equation."""
        primitive = e.primitive
        if not asks_for_sizes(primitive):
            primitive = self.bounds.static(primitive)
        inputs, outputs = ([*map(self.atom, atoms)] for atoms in (e.inputs, e.outputs))
        return Equation(primitive, inputs, outputs, e.place)

    def geometry(self, g: Geometry) -> Geometry:
        """Return the geometry with 0 for what stands for the size that varies."""
        others = [*g.batch, g.features, g.columns]
        demand(all([n < _STANDS for n in others]) and _STANDS in (g.rows, g.keys))
        demand(all([n <= _STANDS for n in (g.rows, g.keys)]))
        steps = [s if s.place is None else s._replace(place=self.place(s.place)) for s in g.steps]
        return g._replace(
            rows=g.rows % _STANDS,
            keys=g.keys % _STANDS,
            steps=tuple(steps),
            places=tuple(map(self.place, g.places)),
        )

    def place(self, place: Any) -> Any:
        """Return the same of where the axes are in an array."""
        demand(all([n <= _STANDS for sizes in place.split for n in sizes]))
        return place._replace(split=tuple([tuple([n % _STANDS for n in s]) for s in place.split]))


def _is_done_once(primitive: Any) -> bool:
    return primitive.mergeable and not primitive.holds_programs and not primitive.effects


def _key(a: Any) -> Any:
    return literal_key(a) if isinstance(a, Literal) else a
