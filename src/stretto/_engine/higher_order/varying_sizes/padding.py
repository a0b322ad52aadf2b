"""Programs of sizes that vary, as programs of the fixed sizes of a bucket.

Each operation is replaced by what its ``padded`` rule does. Derivatives and vectorized programs are
made before, so that first-order operations alone need the rule. At the end stands what softmax and
its like spare: ``below_greatest`` finds values whose padding need not be replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.errors import SizeError
from stretto._engine.core.interpreter import splat, state
from stretto._engine.core.position import Place
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.program import Atom, Equation, Literal, Program
from stretto._engine.core.recorder import record, standing
from stretto._engine.core.rewriting import remembered
from stretto._engine.core.sizes import Size, SizeVariable
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.ops.arithmetic import DIV, SUB
from stretto._engine.ops.broadcast import BroadcastInDim, ReduceSum
from stretto._engine.ops.bucket import Bucket, too_great
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.exponential import EXP
from stretto._engine.ops.iota import SizeOf
from stretto._engine.ops.layout import Reshape
from stretto._engine.ops.reducing.reduce import ReduceMax

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
    return remembered(program, key, lambda p: _padded(p, variables, most))


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
