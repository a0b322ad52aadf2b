"""Programs over examples of different lengths, which lie one behind the other.

An operation that treats each element of an example alone, as activations, norms and products with
weights do, is applied to the elements of all examples at once, of which there are as many as there
are: no rectangle, no padding. The others, which see an example as a whole, are mapped over a
rectangle (``padded``). Values go from one form to the other where they are needed in the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.vmap import to_axis, vmap_program
from stretto._engine.core.interpreter import splat, state
from stretto._engine.core.program import Atom, Equation, Literal, Program
from stretto._engine.core.recorder import record, standing
from stretto._engine.core.rewriting import remembered
from stretto._engine.core.sizes import SizeVariable, size_of
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.higher_order.varying_sizes.padding import (
    Padding,
    asks_for_sizes,
    padded_program,
)
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.ops.broadcast import BroadcastInDim, reduce_sum
from stretto._engine.ops.bucket import varying
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.rows import examples_of_rows, for_each_row, to_rectangle, to_rows

_INT32 = np.dtype(np.int32)
_HEAVY = 16
"""An operation with so much work for each element is worth the way from a rectangle to rows."""


class Examples:
    """A number of examples, their greatest sizes, and the room for the rows of all."""

    def __init__(
        self,
        count: int,
        variables: Sequence[SizeVariable],
        most: Sequence[int],
        rooms: Sequence[int],
    ) -> None:
        self.count = count
        self.variables = tuple(variables)
        self.most = dict(zip(variables, most, strict=True))
        self.rooms = dict(zip(variables, rooms, strict=True))

    def room(self, type: ArrayType) -> int | None:
        """Return the rows that values of this type have together; None for no rows."""
        variable = variable_of_rows(type)
        return None if variable is None else self.rooms[variable]


def variable_of_rows(type: ArrayType) -> SizeVariable | None:
    """Return the variable that the first axis of a type is, if all others are fixed."""
    if varying(type) != [0]:
        return None
    size: Any = type.shape[0]
    variable = next(size.variables())
    return variable if size == size_of(variable) else None


def packed_program(
    program: Program, examples: Examples, over: tuple[bool, ...], summed: tuple[bool, ...]
) -> Program:
    """Return the program for all examples.

    It takes the sizes, an int32 for each example and variable, and then the arguments: rows where
    the type has rows, else an array of all examples where ``over`` says so. It gives results in
    the same forms; those that are ``summed`` are added up over the examples.
    """
    parts = examples.count, tuple(examples.most.items()), tuple(examples.rooms.items())
    key = ("packed", *parts, over, summed)
    return remembered(program, key, lambda p: _packed(p, examples, over, summed))


def _packed(
    program: Program, examples: Examples, over: tuple[bool, ...], summed: tuple[bool, ...]
) -> Program:
    sizes = len(examples.variables)
    bounds = Padding(examples.most, {})

    def run(*args: Any) -> Any:
        return _Packing(program, examples, args[:sizes], args[sizes:], over).run(summed), None

    types = [array_type((examples.count,), _INT32)] * sizes
    for type, mapped in zip(program.in_types, over[sizes:], strict=True):
        room, carrier = examples.room(type), bounds.carrier(type)
        if room is not None:
            types.append(type.with_shape((room, *type.shape[1:])))
        else:
            lead = (examples.count,) if mapped else ()
            types.append(type.with_shape((*lead, *carrier.shape)))
    result, _, captured = record(run, types, (), program.name)
    assert not captured, "a rule for sizes that vary captured a value"
    return result


class _Packing:
    """One program being written; each value in one form or several."""

    def __init__(
        self,
        program: Program,
        examples: Examples,
        sizes: Sequence[Any],
        args: Sequence[Any],
        over: Sequence[bool],
    ) -> None:
        self.program, self.examples = program, examples
        self.sizes = dict(zip(examples.variables, sizes, strict=True))
        self.makers: dict[Any, Equation] = {v: e for e in program.equations for v in e.outputs}
        self.rows: dict[Atom, Any] = {}
        """The elements of all examples."""
        self.each: dict[Atom, Any] = {}
        """Arrays, or rectangles, of all examples."""
        self.shared: dict[Atom, Any] = {}
        """The values that are the same for all examples."""
        self.waiting: list[Equation] = []
        """The operations to be mapped over the examples, once a result of them is needed."""
        self._numbers: dict[SizeVariable, Any] = {}
        for v, x, mapped in zip(program.inputs, args, over[len(sizes) :], strict=True):
            has_rows = examples.room(v.type) is not None
            form = self.rows if has_rows else self.each if mapped else self.shared
            form[v] = x
        self._uses: dict[Atom, list[Equation | None]] = {}
        for e in program.equations:
            for a in e.inputs:
                if not isinstance(a, Literal):
                    self._uses.setdefault(a, []).append(e)

    def run(self, summed: Sequence[bool]) -> list[Any]:
        """Return the results in the forms that ``packed_program`` names."""
        outputs = self.program.outputs
        ways = summed or (False,) * len(outputs)
        for a, added in zip(outputs, ways, strict=True):
            if not added and not isinstance(a, Literal):
                self._uses.setdefault(a, []).append(None)
        sums = [a for a, added in zip(outputs, ways, strict=True) if added]
        self._note_sums(sums)
        recorder = state.interpreter.recorder
        for equation in self.program.equations:
            with standing(recorder, equation.place):
                self._apply(equation)
        results = []
        for a, added in zip(outputs, ways, strict=True):
            if added:
                results.append(self._total(a))
            elif self.examples.room(a.type) is not None:
                results.append(self._as_rows(a))
            else:
                results.append(self._as_each(a))
        return results

    # Forms

    def _number(self, variable: SizeVariable) -> Any:
        """Return the example that each row is of."""
        if variable not in self._numbers:
            room = self.examples.rooms[variable]
            self._numbers[variable] = examples_of_rows(self.sizes[variable], room)
        return self._numbers[variable]

    def _as_rows(self, atom: Atom) -> Any:
        variable = variable_of_rows(atom.type)
        assert variable is not None
        if isinstance(atom, Literal):
            shape = (self.examples.rooms[variable], *atom.type.shape[1:])
            return splat(atom.value, atom.type.with_shape(shape))
        if atom not in self.rows:
            x = self._as_each(atom)
            self.rows[atom] = to_rows(x, self.sizes[variable], self._number(variable))
        return self.rows[atom]

    def _as_each(self, atom: Atom) -> Any:
        if atom not in self.each:
            variable = variable_of_rows(atom.type)
            if atom in self.rows and variable is not None:
                most = self.examples.most[variable]
                self.each[atom] = to_rectangle(self.rows[atom], self.sizes[variable], most)
            else:
                self._flush()
                if atom not in self.each:
                    self.each[atom] = to_axis(self._as_shared(atom), self.examples.count, None, 0)
        return self.each[atom]

    def _as_shared(self, atom: Atom) -> Any:
        return splat(atom.value, atom.type) if isinstance(atom, Literal) else self.shared[atom]

    def _is_shared(self, atom: Atom) -> bool:
        return (isinstance(atom, Literal) and not varying(atom.type)) or atom in self.shared

    # Operations

    def _apply(self, equation: Equation) -> None:
        """Apply an operation now, or have it wait until examples are mapped."""
        if not any(v in self._uses for v in equation.outputs):
            return
        primitive: Any = equation.primitive
        types = [a.type for a in (*equation.inputs, *equation.outputs)]
        if not any(map(varying, types)) and not asks_for_sizes(primitive):
            if all(map(self._is_shared, equation.inputs)):
                out = primitive(*map(self._as_shared, equation.inputs))
                outs = out if primitive.multiple else (out,)
                self.shared.update(zip(equation.outputs, outs, strict=True))
                return
        elif self._by_rows(equation):
            others = [a for a in equation.inputs if not varying(a.type)]
            if not all(map(self._is_shared, others)):
                if isinstance(primitive, BroadcastInDim):
                    self._spread(equation)
            elif self._worth_rows(equation):
                values = [
                    self._as_rows(a) if varying(a.type) else self._as_shared(a)
                    for a in equation.inputs
                ]
                outs = self._of_rows(equation, values)
                self.rows.update(zip(equation.outputs, outs, strict=True))
                return
            elif not any(varying(a.type) for a in equation.inputs):
                # Repeated values are at hand in either form.
                outs = self._of_rows(equation, list(map(self._as_shared, equation.inputs)))
                self.rows.update(zip(equation.outputs, outs, strict=True))
        self.waiting.append(equation)

    def _by_rows(self, equation: Equation) -> bool:
        """Say if an operation computes rows of the same rows."""
        types = [[a.type for a in atoms] for atoms in (equation.inputs, equation.outputs)]
        moving = [t for part in types for t in part if varying(t)]
        variables = {variable_of_rows(t) for t in moving}
        if len(variables) != 1 or None in variables or not all(map(varying, types[1])):
            return False
        return equation.primitive.by_rows(*types)

    def _worth_rows(self, equation: Equation) -> bool:
        """Say if operands are rows, or else there is so much to do that they should be."""
        moving = [a for a in equation.inputs if varying(a.type) and not isinstance(a, Literal)]
        if any(a in self.rows for a in moving):
            return True
        bounds = Padding(self.examples.most, {})
        types, outs = (
            [bounds.carrier(a.type) for a in atoms] for atoms in (equation.inputs, equation.outputs)
        )
        largest = max(t.size for t in (*types, *outs))
        return bool(moving) and equation.primitive.work(types, outs) >= _HEAVY * largest

    def _spread(self, equation: Equation) -> None:
        """Return what is repeated for each element of an example, as rows besides."""
        primitive: Any = equation.primitive
        (x,), (out,) = equation.inputs, equation.outputs
        variable = variable_of_rows(out.type)
        assert variable is not None and isinstance(primitive, BroadcastInDim)
        taken = for_each_row(self._as_each(x), self._number(variable))
        shape = (self.examples.rooms[variable], *out.type.shape[1:])
        self.rows[out] = BroadcastInDim(shape, (0, *primitive.dims))(taken)

    def _of_rows(self, equation: Equation, values: Sequence[Any]) -> Sequence[Any]:
        """Return the operation on the rows of all examples, as if these were one."""
        atoms = dict(zip(equation.inputs, values, strict=True))
        types = [a.type for a in (*equation.inputs, *equation.outputs)]
        variable = next(v for t in types if (v := variable_of_rows(t)) is not None)
        total = reduce_sum(self.sizes[variable], (0,))
        at = Padding({variable: self.examples.rooms[variable]}, {variable: total})
        inputs = [a for a in atoms if not isinstance(a, Literal)]
        program = Program(inputs, [equation], equation.outputs, self.program.name)
        return at.run(program, [atoms[a] for a in inputs])

    def _flush(self) -> None:
        """Map what is waiting over the examples."""
        equations, self.waiting = self.waiting, []
        if not equations:
            return
        inside = set(map(id, equations))
        made = {v for e in equations for v in e.outputs}
        inputs = list(
            dict.fromkeys(
                a
                for e in equations
                for a in e.inputs
                if not isinstance(a, Literal) and a not in made
            )
        )
        outputs = [
            v
            for e in equations
            for v in e.outputs
            if any(use is None or id(use) not in inside for use in self._uses.get(v, ()))
        ]
        if not outputs:
            return
        program = Program(inputs, equations, outputs, self.program.name)
        fixed = padded_program(program, self.examples.variables, self.examples.most)
        values = [self.shared[a] if a in self.shared else self._as_each(a) for a in inputs]
        sizes = [self.sizes[v] for v in self.examples.variables]
        mapped = (*[True] * len(sizes), *[a not in self.shared for a in inputs])
        force = tuple([bool(varying(v.type)) for v in outputs])
        several, mask = vmap_program(fixed, self.examples.count, mapped, force)
        for v, x, m in zip(outputs, evaluate(several, [*sizes, *values]), mask, strict=True):
            (self.each if m else self.shared)[v] = x

    # Sums over examples

    def _sums_rows(self, atom: Atom) -> Equation | None:
        """Return the operation that adds up rows to this value, if one does."""
        equation = self.makers.get(atom)
        if equation is None or not equation.primitive.sums_rows([a.type for a in equation.inputs]):
            return None
        variables = {variable_of_rows(a.type) for a in equation.inputs}
        return equation if len(variables) == 1 and None not in variables else None

    def _parts(self, atom: Atom) -> Sequence[Atom] | None:
        """Return the values whose sums make the sum of this one."""
        equation = self.makers.get(atom)
        if equation is None or varying(atom.type):
            return None
        moves = isinstance(equation.primitive, (Reshape, Transpose))
        return equation.inputs if moves or equation.primitive is ADD else None

    def _note_sums(self, atoms: Sequence[Atom]) -> None:
        """Note the uses of values that sums over examples are made of."""
        for a in atoms:
            if isinstance(a, Literal):
                continue
            equation, parts = self._sums_rows(a), self._parts(a)
            if equation is None and parts is not None:
                self._note_sums(parts)
                continue
            for x in [a] if equation is None else equation.inputs:
                self._uses.setdefault(x, []).append(None)

    def _total(self, atom: Atom) -> Any:
        """Give the sum of a value over all examples: that of all rows, where it is one of rows."""
        equation = self._sums_rows(atom)
        if equation is not None:
            return self._of_rows(equation, list(map(self._as_rows, equation.inputs)))[0]
        parts = self._parts(atom)
        if parts is None or isinstance(atom, Literal):
            return reduce_sum(self._as_each(atom), (0,))
        maker: Any = self.makers[atom].primitive
        return maker(*map(self._total, parts))
