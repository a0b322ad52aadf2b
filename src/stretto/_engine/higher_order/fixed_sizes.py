"""Programs of sizes that vary, as programs of fixed sizes: padded to a bucket, or packed.

What belongs to sizes that vary is in four layers, each part as low as it can be used:

- ``core/sizes``: the algebra: sizes as values, their normal form, bounds and comparisons;
  ``core/size_guards``: what is asked of the sizes of a call, while a function is traced for them.
- ``ops/varying_sizes``: what the ``padded`` rules of operations compute with, and the way from a
  rectangle of examples to rows and back; ``ops/iota``: a size as an operation.
- here: programs for a bucket by these rules, and for examples that lie one behind the other;
  ``sized_call``: the operation that stands for either while programs are transformed, and the pass
  that writes it in place when a program is lowered.
- ``api/varying_sizes``: ``jit(dynamic_axes=…)``, buckets, and ragged arrays.

Padded, each operation is replaced by what its ``padded`` rule does. Derivatives and vectorized
programs are made before, so that first-order operations alone need the rule. ``below_greatest``
finds what softmax and its like spare: values whose padding need not be replaced.

Packed, an operation that treats each element of an example alone, as activations, norms and
products with weights do, is applied to the elements of all examples at once, of which there are as
many as there are: no rectangle, no padding. The others, which see an example as a whole, are mapped
over a rectangle (``padded``). Values go from one form to the other where they are needed in the
other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.vmap import to_axis, vmap_program
from stretto._engine.core.errors import SizeError
from stretto._engine.core.interpreter import splat, state
from stretto._engine.core.position import Place
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.program import Atom, Equation, Literal, Program
from stretto._engine.core.recorder import record, standing
from stretto._engine.core.rewriting import remember
from stretto._engine.core.sizes import Size, SizeVariable, size_of
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.ops.arithmetic import ADD, DIV, SUB
from stretto._engine.ops.broadcast import BroadcastInDim, ReduceSum, reduce_sum
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.exponential import EXP
from stretto._engine.ops.fused_attention import FusedAttention
from stretto._engine.ops.iota import SizeOf
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.reducing.reduce import ReduceMax
from stretto._engine.ops.varying_sizes import (
    Bucket,
    examples_of_rows,
    for_each_row,
    starts,
    to_rectangle,
    to_rows,
    too_great,
    varying,
)

_SIZE = array_type((), np.dtype(np.int32))


def variables_of(program: Program) -> tuple[SizeVariable, ...]:
    """Return the size variables in the types of a program, in the order in which they come."""
    found: dict[SizeVariable, None] = {}
    types = [*program.in_types, *[v.type for e in program.equations for v in e.outputs]]
    for type in [*types, *program.out_types]:
        for n in type.shape:
            if isinstance(n, Size):
                found.update(dict.fromkeys(n.variables()))
    return tuple(found)


def padded_program(
    program: Program, variables: Sequence[SizeVariable], most: Mapping[SizeVariable, int]
) -> Program:
    """Return the program for a bucket in which each variable is at most so great.

    It takes the true sizes, one int32 for each variable, and then the carriers of the arguments. It
    gives the carriers of the results.
    """
    key = "padded", tuple([(v, most[v]) for v in variables])
    return remember(program, key, lambda p: _padded(p, variables, most))


def notes_of(
    program: Program, variables: Sequence[SizeVariable], most: Mapping[SizeVariable, int]
) -> list[Note]:
    """Note what the rules of a program's operations do for a bucket."""
    notes: list[Note] = []
    _padded(program, variables, most, notes)
    return notes


def _padded(
    program: Program,
    variables: Sequence[SizeVariable],
    most: Mapping[SizeVariable, int],
    notes: list[Note] | None = None,
) -> Program:
    sizes = [_SIZE] * len(variables)
    bounds = Bucket(most, {})

    def run(*args: Any) -> Any:
        at = Padding(most, dict(zip(variables, args, strict=False)))
        at.notes = notes
        return at.run(program, args[len(variables) :]), None

    types = [*sizes, *map(bounds.carrier, program.in_types)]
    result, _, captured = record(run, types, (), program.name)
    assert not captured, "a rule for sizes that vary captured a value"
    return result


class Note(NamedTuple):
    """A note of what a rule did: the operation, where it was called, and the ways."""

    name: str
    place: Place | None
    done: frozenset[str]


class Padding(Bucket):
    """A bucket that can evaluate programs; with ``notes`` it writes down what rules do."""

    notes: list[Note] | None = None

    def run(self, program: Program, args: Sequence[Any]) -> list[Any]:
        """Run a program, with carriers for its arguments and results."""
        known: dict[Atom, Any] = dict(zip(program.inputs, args, strict=True))

        def read(atom: Atom) -> Any:
            if isinstance(atom, Literal):
                return splat(atom.value, self.carrier(atom.type))
            return known[atom]

        recorder = state.interpreter.recorder
        below = below_greatest(program)
        for equation in program.equations:
            primitive: Any = equation.primitive
            values = [read(a) for a in equation.inputs]
            if not _keeps_numbers(primitive):
                self.check(equation.inputs, values)
            types = [a.type for a in equation.inputs]
            outs = [v.type for v in equation.outputs]
            with standing(recorder, equation.place):
                if equation.outputs and equation.outputs[0] in below.differences:
                    axes = below.differences[equation.outputs[0]]
                    values[0] = self.filled(values[0], types[0], -np.inf, axes)
                if asks_for_sizes(primitive) or _varies([*types, *outs]):
                    outer, self.types, self.outs = (self.types, self.outs), types, outs
                    self.done.clear()
                    result = primitive.padded(self, *values)
                    self.types, self.outs = outer
                    if self.notes is not None and not primitive.holds_programs:
                        done = frozenset(self.done)
                        self.notes.append(Note(primitive.name, equation.place, done))
                else:
                    result = primitive(*values)
            results = result if primitive.multiple else (result,)
            for v, value in zip(equation.outputs, results, strict=True):
                expected = self.shape(v.type.shape)
                if value.shape != expected:
                    raise AssertionError(
                        f"{primitive.name}: the padded rule gave {value.type} for {v.type}, not "
                        f"{expected}"
                    )
                known[v] = value
                if v in below.zeros:
                    self.zeros[id(value)] = value, below.zeros[v]
        outs = [read(a) for a in program.outputs]
        self.check(program.outputs, outs)
        return outs

    def check(self, atoms: Sequence[Atom], values: Sequence[Any]) -> None:
        """Refuse a size that is too great for the type that it has in the program.

        Converted to floats it is exact up to their rounding.
        """
        for atom, value in zip(atoms, values, strict=True):
            if value.type.dtype != atom.type.dtype:
                size, most = self.greatest()
                way_out = f"use snp.asarray({size}, float), or 64-bit types (config.enable_x64)"
                raise SizeError(too_great(size, most, "values", way_out))

    def closed(self, program: Program) -> tuple[Program, list[Any]]:
        """Give the program of fixed sizes, and the values that come before its other arguments."""
        variables = [*self.values]
        if self.notes is None:
            fixed = padded_program(program, variables, self.most)
        else:
            fixed = _padded(program, variables, self.most, self.notes)
        return fixed, [self.values[v] for v in variables]


def asks_for_sizes(primitive: Primitive) -> bool:
    """Say if sizes may vary inside, though they do not in its types."""
    return primitive.holds_programs or isinstance(primitive, SizeOf)


def _keeps_numbers(primitive: Primitive) -> bool:
    """Say if this converts to a type that holds any size, rounded at most."""
    return isinstance(primitive, ConvertElementType) and (
        primitive.dtype.itemsize == 8 or kind_of(primitive.dtype) not in ("int", "uint")
    )


def _varies(types: Sequence[ArrayType]) -> bool:
    return any([t.varies for t in types])


# Softmax and its like

Axes = tuple[int, ...]


class BelowGreatest(NamedTuple):
    """The values of a program that are below their greatest, by the axes along which it is so."""

    differences: dict[Atom, Axes]
    """Values less their greatest; padding of these values is to be -inf."""
    zeros: dict[Atom, Axes]
    """Values whose padding then counts as 0."""


def below_greatest(program: Program) -> BelowGreatest:
    """Find values less their greatest, their exponentials, and quotients of these by their sums.

    With -inf as the padding of x, that of exp(x - max(x)) is 0. It is NaN only where the greatest
    is NaN or -inf, and then all that is valid beside it is NaN, too. So whatever adds it up along
    the axes of the maximum gives the same as without padding, and so it is with the quotient by its
    sum. This spares selections over all scores of an attention, which keep XLA from computing the
    exponential, the sum and the product in one kernel.
    """
    known = BelowGreatest({}, {})
    makers: dict[Any, Equation] = {v: e for e in program.equations for v in e.outputs}
    for equation in program.equations:
        primitive: Any = equation.primitive
        if primitive is SUB:
            x, y = equation.inputs
            axes = _spread(y, ReduceMax, x, makers)
            if axes and all(map(_has_elements, x.type.shape)):
                known.differences[equation.outputs[0]] = axes
        elif primitive is EXP:
            axes = known.differences.get(equation.inputs[0])
            if axes:
                known.zeros[equation.outputs[0]] = axes
        elif primitive is DIV:
            x, y = equation.inputs
            axes = known.zeros.get(x)
            if axes and _spread(y, ReduceSum, x, makers) == axes:
                known.zeros[equation.outputs[0]] = axes
    return known


def _has_elements(n: Any) -> bool:
    return n.bounds()[0] >= 1 if isinstance(n, Size) else True


def _spread(y: Atom, kind: type[Any], x: Atom, makers: Mapping[Atom, Equation]) -> Axes | None:
    """Return the axes of a reduction of this kind of ``x``, if ``y`` repeats that along them."""
    repeat = makers.get(y)
    if repeat is None or not isinstance(repeat.primitive, BroadcastInDim):
        return None
    shape, dims = x.type.shape, repeat.primitive.dims
    (inner,) = repeat.inputs
    maker = makers.get(inner)
    kept = False
    if maker is not None and isinstance(maker.primitive, Reshape):
        kept, maker = True, makers.get(maker.inputs[0])
    if maker is None or not isinstance(maker.primitive, kind) or y.type.shape != shape:
        return None
    if _same(maker.inputs[0], makers) is not x:
        return None
    reduction: Any = maker.primitive
    axes = tuple(reduction.axes)
    if kept:  # with 1 in the place of the axes
        ones = tuple([1 if d in axes else n for d, n in enumerate(shape)])
        fits = inner.type.shape == ones and dims == tuple(range(len(shape)))
    else:
        fits = dims == tuple([d for d in range(len(shape)) if d not in axes])
    return axes if fits else None


def _same(atom: Atom, makers: Mapping[Atom, Equation]) -> Atom:
    """Return the value that operations without an effect on it were applied to."""
    maker = makers.get(atom)
    while maker is not None and maker.primitive.same:
        (atom,) = maker.inputs
        maker = makers.get(atom)
    return atom


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
    return remember(program, key, lambda p: _packed(p, examples, over, summed))


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
        if isinstance(primitive, FusedAttention):
            self._attend(equation, primitive)
            return
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

    def _attend(self, equation: Equation, primitive: FusedAttention) -> None:
        """Apply attention to all examples at once, where they lie."""
        (variable,) = self.examples.variables
        room, most = self.examples.rooms[variable], self.examples.most[variable]
        has_rows = lambda a: self.examples.room(a.type) is not None
        forms, values = [], []
        for a in equation.inputs:
            shared = not has_rows(a) and self._is_shared(a)
            forms.append("rows" if has_rows(a) else "shared" if shared else "each")
            read = self._as_rows if has_rows(a) else self._as_shared if shared else self._as_each
            values.append(read(a))
        outs = ["rows" if has_rows(v) else "each" for v in equation.outputs]
        mapped = (True, *[form != "shared" for form in forms])
        packed = packed_program(primitive.program, self.examples, mapped, ())
        lengths = self.sizes[variable]
        begins = starts(lengths)
        args = [*values, lengths, begins]
        program, _, _ = record(
            lambda *all: (evaluate(packed, [all[-2], *all[:-2]]), None), [x.type for x in args]
        )
        fused: Any = primitive.of_examples(program, self.examples.count, most, room, forms, outs)
        for v, x, form in zip(equation.outputs, fused(*args), outs, strict=True):
            (self.rows if form == "rows" else self.each)[v] = x

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
