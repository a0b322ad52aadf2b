"""Have few calls for ragged arrays, with attention as operations, before they are written out.

A kernel that is told how long examples are reads and writes them where they lie, one behind the
other: no rectangle is made, and nothing is computed for padding. Once a call is written for a
bucket, padding is in the way, so attention is looked for in the programs of the true sizes. What a
gradient reads is made by another call than the gradient itself, so calls for the same examples are
looked at as one program, in which a large prime stands for the size that varies. They become one
call where nothing outside stands between them: what is passed from one to the other lies one
example behind the other, and would be put into rectangles again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stretto._engine.core.primitive import Primitive, observable
from stretto._engine.core.program import Equation, Literal, Program, Var, literal_key
from stretto._engine.core.rewriting import changed_inside, drop_dead, in_order, remember
from stretto._engine.core.sizes import size_of
from stretto._engine.higher_order.fixed_sizes import Padding, variable_of_rows, variables_of
from stretto._engine.higher_order.scan import Scan
from stretto._engine.higher_order.sized_call import SizedCall
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.exponential import Exp
from stretto._engine.ops.fused_attention import FusedAttention, Geometry
from stretto._engine.ops.iota import SizeOf
from stretto._engine.passes.fuse_attention import fuse_attention, is_worth_it
from stretto._engine.passes.hoist_products import hoist_products
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
    for key in {key: None for e in program.equations if (key := _examples_of(e)) is not None}:
        places = [n for n, e in enumerate(program.equations) if _examples_of(e) == key]
        program = _in_calls(program, places)
    return program


def _examples_of(e: Equation) -> Any:
    """Return what calls for the same examples have in common; None for other operations."""
    call: Any = e.primitive
    if not isinstance(call, SizedCall) or not call.rooms or observable(call.effects):
        return None
    if not len(call.batch) == len(call.variables) == 1 or not _is_of(call.program, call.variables):
        return None
    return call.variables, call.most, call.batch, call.rooms, e.inputs[0]


def _is_of(program: Program, variables: Sequence[Any]) -> bool:
    """Say whether no other sizes vary in a program, nor in those that its operations hold."""
    if not {*variables_of(program)} <= {*variables}:
        return False
    holding: list[Any] = [e.primitive for e in program.equations if e.primitive.holds_programs]
    return not any(
        [
            isinstance(primitive, SizedCall)
            or not all([_is_of(inner, variables) for inner in primitive.programs()])
            for primitive in holding
        ]
    )


class _Part(NamedTuple):
    """An equation of all calls together, and the call that it is of."""

    equation: Equation
    call: int


def _in_calls(program: Program, places: Sequence[int]) -> Program:
    """Return the program with calls at these places as few, and with attention as operations."""
    sets = _sets(program, places)
    merges = len({*sets.values()}) < len(places)
    inner = [_program_of(program.equations[n]) for n in places]
    kinds = {e.primitive.__class__ for one in inner for e in one.equations}
    if not merges and not {Exp, DotGeneral} <= kinds and Scan not in kinds:
        return program
    together = _Together(program, sets)
    if not together.improve() and not merges:
        return program
    calls = [*together.apart()]
    equations = in_order(program, {place: calls[n] for place, n in sets.items()})
    return Program(program.inputs, equations, program.outputs, program.name)


def _sets(program: Program, places: Sequence[int]) -> dict[int, int]:
    """Return for each call in which set it is: those of a set can be one call.

    What one makes may be read by another of its set, but by nothing outside that yet another reads.
    """
    sets: dict[int, int] = {}
    made: dict[Any, int] = {}
    """The set that makes a value."""
    needs: dict[Any, set[int]] = {}
    """The sets that a value outside is made of."""
    of: dict[int, set[int]] = {}
    """The sets that each set reads from, directly or by values outside."""

    def reaches(some: set[int], target: int) -> bool:
        seen, stack = {*some}, [*some]
        while stack:
            more = of[stack.pop()] - seen
            seen |= more
            stack += more
        return target in seen

    own = {*places}
    for n, e in enumerate(program.equations):
        atoms = [a for a in e.inputs if not isinstance(a, Literal)]
        far = {s for a in atoms for s in needs.get(a, ())}
        near = {made[a] for a in atoms if a in made}
        if n not in own:
            needs.update(dict.fromkeys(e.outputs, far | near))
            continue
        least = max(far | near, default=0)  # so that a set reads from those before it alone
        fits = [s for s in of if s >= least and not reaches(far | (near - {s}), s)]
        sets[n] = fits[-1] if fits else len(of)
        of.setdefault(sets[n], set()).update(far | (near - {sets[n]}))
        made.update(dict.fromkeys(e.outputs, sets[n]))
    return sets


def _program_of(call: Equation) -> Program:
    primitive: Any = call.primitive
    return primitive.program


class _Together:
    """Calls for the same examples as one program of the size that varies."""

    def __init__(self, program: Program, sets: Mapping[int, int]) -> None:
        self.first = program.equations[min(sets)]
        self.sizes: Any = self.first.primitive
        self.given: dict[Any, tuple[Any, bool]] = {}
        """What comes from outside: the operand, and whether each example has its own."""
        self.made: dict[Any, int] = {}
        """The set of calls that makes a value."""
        self.results: list[list[tuple[Any, Any, bool]]] = [[] for _ in {*sets.values()}]
        """Of each set, the results that are read outside: what they are inside, and outside; and
        whether they are added up."""
        self._inside: dict[Any, Any] = {}
        """What results of calls are inside."""
        self._alike: dict[Any, Any] = {}
        """What other values outside are inside, of those that all examples share."""
        self._entered: dict[Any, Any] = {}
        self._seen: dict[Any, Sequence[Any]] = {}
        """The results of operations on the same values, which are done once."""
        self._beside: dict[Any, Sequence[Any]] = {}
        """The same of operations outside: what all examples share is made there for gradients."""
        self.parts: list[_Part] = []
        read = {a for n, e in enumerate(program.equations) if n not in sets for a in e.inputs}
        read.update(program.outputs)
        for n, e in enumerate(program.equations):
            if n in sets:
                self._add(e, sets[n], read)
            elif _is_done_once(e.primitive) and self._inside.keys().isdisjoint(e.inputs):
                key = (e.primitive, *[self._name(self._alike.get(a, a)) for a in e.inputs])
                self._alike.update(zip(e.outputs, self._seen.get(key, ()), strict=False))
                self._beside.setdefault(key, e.outputs)

    def _add(self, call: Equation, n: int, read: set[Any]) -> None:
        """Add the equations of a call, of whose results some are read outside."""
        primitive: Any = call.primitive
        known: dict[Any, Any] = {}
        marks = primitive.over[0][1:]
        for v, a, mapped in zip(_program_of(call).inputs, call.inputs[1:], marks, strict=True):
            same = self._inside.get(a, self._alike.get(a))
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
                self.parts.append(_Part(Equation(e.primitive, reads, outs, e.place), n))
        summed = primitive.summed or (False,) * len(call.outputs)
        for v, a, added in zip(call.outputs, _program_of(call).outputs, summed, strict=True):
            a = known.get(a, a)
            if not added:
                self._inside[v] = a
            if v in read or added:
                self.results[n].append((a, v, added))

    def _enter(self, a: Any, v: Any, mapped: bool) -> Any:
        """Return what an operand is inside, by default a variable."""
        known = self._entered.setdefault((_key(a), v.type, mapped), v)
        self.given[known] = a, mapped
        return known

    def _name(self, a: Any) -> Any:
        """Return what a value is known by, inside and outside."""
        outside, mapped = self.given.get(a, (None, True))
        return _key(a) if mapped else _key(outside)

    def improve(self) -> bool:
        """Gather products out of loops, make attention one operation; say whether there is any."""
        stand = _Standing(self.sizes.variables[0])
        stood = [stand.equation(p.equation) for p in self.parts]
        outs = [stand.atom(a) for results in self.results for a, _, _ in results]
        whole = drop_dead(Program(map(stand.atom, self.given), stood, outs))
        loops = hoist_products(whole)
        found = fuse_attention(loops)
        if found is whole:
            return False
        true = {id(e): p.equation for p, e in zip(self.parts, stood, strict=True)}
        try:
            parts = [self._part(e, true, stand) for e in found.equations]
        except Unlike:
            return False
        self.parts = parts
        outs = iter([*map(stand.back, found.outputs)])
        self.results = [[(next(outs), v, added) for _, v, added in each] for each in self.results]
        return True

    def _part(self, e: Equation, true: Mapping[int, Equation], stand: _Standing) -> _Part:
        """Return the equation that another stands for, and the set that it is of."""
        primitive: Any = e.primitive
        if isinstance(primitive, FusedAttention):
            own = [true.get(id(one)) or stand.true(one) for one in primitive.program.equations]
            inputs, outputs = ([*map(stand.back, atoms)] for atoms in (e.inputs, e.outputs))
            program = Program(inputs, own, outputs, primitive.program.name)
            fused = FusedAttention(program, stand.geometry(primitive.geometry))
            self.check(fused.geometry, inputs)
            equation = Equation(fused, inputs, outputs, e.place)
        else:
            equation = true.get(id(e)) or stand.true(e)
        atoms = [a for a in (*equation.inputs, *equation.outputs) if a in self.made]
        n = max([self.made[a] for a in atoms], default=0)
        demand(all([self.made.setdefault(v, n) == n for v in equation.outputs]))
        return _Part(equation, n)

    def check(self, geometry: Geometry, reads: Sequence[Any]) -> None:
        """Refuse what is too small for a kernel, and arrays of steps that lie by rows."""
        (most,) = self.sizes.most
        rows, keys = geometry.rows or most, geometry.keys or most
        demand(is_worth_it(geometry._replace(rows=rows, keys=keys)))
        arrays = len([step for step in geometry.steps if step.place])
        for a in reads[3 : 3 + arrays]:
            demand(variable_of_rows(a.type) is None)

    def apart(self) -> Iterator[Equation]:
        """Return a call for each set, with its own equations."""
        outside: dict[Any, Any] = {}
        passed = self.passed()
        for n in range(len(self.results)):
            equations = [p.equation for p in self.parts if p.call == n]
            made = {v for e in equations for v in e.outputs}
            results = [*self.results[n], *[(v, None, False) for v in passed if v in made]]
            atoms = [a for e in equations for a in e.inputs] + [a for a, _, _ in results]
            needed = [a for a in atoms if not isinstance(a, Literal) and a not in made]
            inputs = [*dict.fromkeys(needed)]
            given = [self.given[v] if v in self.given else (outside[v], True) for v in inputs]
            outputs = [a for a, _, _ in results]
            inner = Program(inputs, equations, outputs, _program_of(self.first).name)
            marks = (True, *[mapped for _, mapped in given])
            summed = tuple([added for _, _, added in results])
            primitive: Any = dataclasses.replace(
                self.sizes, program=inner, over=(marks,), summed=summed if any(summed) else ()
            )
            operands = [self.first.inputs[0], *[a for a, _ in given]]
            types = primitive.infer(*[a.type for a in operands])
            outs = [
                Var(type) if v is None else v
                for (_, v, _), type in zip(results, types, strict=True)
            ]
            outside.update({a: v for (a, was, _), v in zip(results, outs, strict=True) if not was})
            yield Equation(primitive, operands, outs, self.first.place)

    def passed(self) -> list[Any]:
        """Return the values that a call makes and a later one reads."""
        reads = [(a, n) for e, n in self.parts for a in e.inputs]
        reads += [(a, n) for n, results in enumerate(self.results) for a, _, _ in results]
        return [*dict.fromkeys([a for a, n in reads if self.made.get(a, n) != n])]


class _Standing:
    """A program in which a prime stands for the size that varies."""

    def __init__(self, variable: Any) -> None:
        self.bounds = Padding({variable: _STANDS}, {})
        self.size = size_of(variable)
        self.atoms: dict[Any, Any] = {}
        self.backs: dict[Any, Any] = {}
        self.programs: dict[int, tuple[Program, Program]] = {}
        """What stands for a program, and that program, by the identity of the former."""

    def atom(self, a: Any) -> Any:
        """Return what stands for a value."""
        if isinstance(a, Literal):
            return Literal(a.value, self.bounds.carrier(a.type))
        if a not in self.atoms:
            stands = self.atoms[a] = Var(self.bounds.carrier(a.type))
            self.backs[stands] = a
        return self.atoms[a]

    def back(self, a: Any) -> Any:
        """Return what a value stands for."""
        type = a.type.with_shape(self.number(a.type.shape))
        if isinstance(a, Literal):
            return Literal(a.value, type)
        if a not in self.backs:
            self.backs[a] = Var(type)
            self.atoms[self.backs[a]] = a
        return self.backs[a]

    def true(self, e: Equation) -> Equation:
        """Return the equation that another stands for, made by a pass."""
        inputs, outputs = ([*map(self.back, atoms)] for atoms in (e.inputs, e.outputs))
        primitive: Any = e.primitive
        if primitive.holds_programs and not isinstance(primitive, Scan):
            true = primitive.with_programs(self.true_program)
        else:
            true = type(primitive)(**{k: self.number(v) for k, v in primitive.parameters()})
        return Equation(true, inputs, outputs, e.place)

    def true_program(self, program: Program) -> Program:
        """Return the program that another one stands for."""
        if id(program) in self.programs:
            return self.programs[id(program)][1]
        atoms = [*program.inputs, *[v for e in program.equations for v in e.outputs]]
        if all([self.number(a.type.shape) == a.type.shape for a in atoms]):
            return program
        return Program(
            map(self.back, program.inputs),
            map(self.true, program.equations),
            map(self.back, program.outputs),
            program.name,
        )

    def number(self, value: Any) -> Any:
        """Return a parameter, in which sizes are numbers, with the sizes."""
        if isinstance(value, Program):
            return self.true_program(value)
        if isinstance(value, (tuple, list)):
            kind: Any = value.__class__
            parts = [self.number(v) for v in value]
            return kind(parts) if kind in (tuple, list) else kind(*parts)
        if value.__class__ is not int or abs(value) < _STANDS // 2:
            return value
        times, rest = divmod(value + _STANDS // 2, _STANDS)
        rest -= _STANDS // 2
        demand(abs(times) < _STANDS // 2 and abs(rest) < _STANDS // 4)
        return self.size * times + rest

    def equation(self, e: Equation) -> Equation:
        """Return what stands for an equation."""
        inputs, outputs = ([*map(self.atom, atoms)] for atoms in (e.inputs, e.outputs))
        primitive = e.primitive if isinstance(e.primitive, SizeOf) else self.static(e.primitive)
        return Equation(primitive, inputs, outputs, e.place)

    def static(self, value: Any) -> Any:
        """Return what stands for an operation, or for one of its parameters."""
        if isinstance(value, Program):
            return self.program(value)
        if not isinstance(value, Primitive) or not value.holds_programs:
            return self.bounds.static(value)
        primitive: Any = value
        if not isinstance(primitive, Scan):
            return primitive.with_programs(self.program)
        given = {name: self.static(v) for name, v in value.parameters()}
        changed = any([given[name] is not v for name, v in value.parameters()])
        return type(value)(**given) if changed else value

    def program(self, program: Program) -> Program:
        """Return what stands for a program that an operation holds; itself if nothing varies."""
        if not variables_of(program):
            return program
        stands = Program(
            map(self.atom, program.inputs),
            map(self.equation, program.equations),
            map(self.atom, program.outputs),
            program.name,
        )
        self.programs[id(stands)] = stands, program
        return stands

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
