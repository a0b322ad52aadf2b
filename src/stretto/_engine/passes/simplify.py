"""Simplify a program: equal work done once, detours left out, small constants folded.

One walk over the equations, in order. An equation is replaced by something simpler if its primitive
knows something that gives the same bits (``Primitive.simpler``), and by an earlier equation that
computes the same. Programs that operations hold are simplified separately: nothing moves into them
or out of them. ``passes/prepare`` does this before a program is lowered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.primitive import observable
from stretto._engine.core.program import (
    Atom,
    Equation,
    Literal,
    Program,
    Var,
    as_literal,
    literal_key,
    operation_key,
)
from stretto._engine.core.rewriting import drop_dead, remembered
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.iota import Constant, Held

_MOST_ELEMENTS = 256
"""The largest result that is folded: written into the lowered text it takes a kilobyte or two."""

_INEXACT = ("float", "complex")


class Constants(dict[Atom, np.ndarray]):
    """Maps variables to their constant values, if known."""

    def __init__(self) -> None:
        self.atoms: dict[Any, Atom] = {}
        """The first variable for each value, by its type and bytes."""


def fold(equation: Equation, known: Constants) -> Equation | Atom:
    """Return an equation that holds the result, or an atom equal to it, if all operands are known.

    Otherwise the equation itself.
    """
    if any([a not in known and type(a) is not Literal for a in equation.inputs]):
        return equation
    if len(equation.outputs) != 1:
        return equation
    (out,) = equation.outputs
    if not _folds(equation, out.type):
        return equation
    arrays = [a.array() if isinstance(a, Literal) else known[a] for a in equation.inputs]
    with np.errstate(all="ignore"):
        result = np.asarray(equation.primitive.reference(*arrays))
    value = np.ascontiguousarray(result.astype(out.type.dtype, copy=False))
    bits = value.tobytes()
    if bits == bits[: value.itemsize] * value.size:  # all elements are the same
        literal = as_literal(value.reshape(-1)[:1], out.type)
        assert literal is not None
        return literal
    same = known.atoms.setdefault((out.type, bits), out)
    if same is not out:
        return same
    known[out] = value
    if not equation.inputs:
        return equation
    return Equation(Constant(Held(value, out.type)), (), equation.outputs, equation.place)


def _folds(equation: Equation, out: ArrayType) -> bool:
    """Say whether the operation is exact, and its result small."""
    primitive: Any = equation.primitive
    if out.size > _MOST_ELEMENTS:
        return False
    if not equation.inputs:
        return not (primitive.calls_python or primitive.holds_programs or primitive.effects)
    if not primitive.splat:
        return False
    inexact = any([t.kind in _INEXACT for t in (out, *[a.type for a in equation.inputs])])
    return not (inexact and isinstance(primitive, Elementwise))


# The walk


def simplify(program: Program) -> Program:
    """Return the program without unnecessary work; the same object if there is none.

    The outputs for given inputs are the same, bit by bit. Observable effects stay, and so does what
    exists to keep work apart: barriers, and what a checkpoint computes again, which is in a program
    of its own.
    """
    return remembered(program, "simplify", _simplify)


class _Literals(dict[Atom, Atom]):
    """Maps each literal to the first one equal to it, so that equal literals compare as objects."""

    def __init__(self) -> None:
        self._first: dict[Any, Atom] = {}

    def __missing__(self, atom: Any) -> Atom:
        first = self[atom] = self._first.setdefault(literal_key(atom), atom)
        return first


def _simplify(program: Program) -> Program:
    literals, constants = _Literals(), Constants()
    seen: dict[Any, Equation] = {}
    makers: dict[Atom, Equation] = {}
    renamed: dict[Atom, Atom] = {}
    equations: list[Equation] = []
    for equation in program.equations:
        if renamed and not renamed.keys().isdisjoint(equation.inputs):
            inputs = [renamed.get(a, a) for a in equation.inputs]
            equation = _with(equation, equation.primitive, inputs)
        primitive: Any = equation.primitive
        if constants or primitive.reducible or primitive.holds_programs or not equation.inputs:
            reduced = _reduced(equation, makers, constants)
            if isinstance(reduced, (Var, Literal)):
                renamed[equation.outputs[0]] = reduced
                continue
            equation, primitive = reduced, reduced.primitive
        atoms = equation.inputs
        for a in atoms:
            if a.__class__ is Literal:
                atoms = [a if a.__class__ is Var else literals[a] for a in atoms]
                break
        if primitive.commutative and id(atoms[0]) > id(atoms[1]) and _either_way(atoms):
            atoms = atoms[::-1]
        # Comparing programs is slow, so at first only the class and the operands are compared, and
        # programs only if those are equal.
        which = type(primitive) if primitive.holds_programs else primitive
        first = seen.setdefault((which, *atoms), equation)
        if first is not equation:
            first = _first_equal(first, equation, atoms, seen)
        if first is not equation:
            renamed.update(zip(equation.outputs, first.outputs, strict=True))
        else:
            equations.append(equation)
    if not renamed and equations == list(program.equations):
        return program
    outputs = [renamed.get(a, a) for a in program.outputs]
    return drop_dead(Program(program.inputs, equations, outputs, program.name))


def _with(equation: Equation, primitive: Any, inputs: Sequence[Atom]) -> Equation:
    """Return the equation with another operation and other operands."""
    return Equation(primitive, inputs, equation.outputs, equation.place)


def _reduced(
    equation: Equation, makers: dict[Atom, Equation], constants: Constants
) -> Equation | Atom:
    """Return the simplest known equation for the same outputs, or the atom that equals them."""
    primitive: Any = equation.primitive
    if primitive.holds_programs:
        changed = primitive.with_programs(simplify)
        return equation if changed is primitive else _with(equation, changed, equation.inputs)
    while equation.primitive.reducible:
        (x,) = equation.inputs
        simpler = equation.primitive.simpler(x, makers.get(x))
        if simpler is None:
            makers[equation.outputs[0]] = equation
            break
        if not isinstance(simpler, tuple):
            return simpler
        equation = _with(equation, *simpler)
    return fold(equation, constants)


def _either_way(atoms: Sequence[Atom]) -> bool:
    """Say whether the bits are the same in either order.

    Not for complex numbers: the compiler may fuse a product of parts with an addition, and which
    product it is depends on the order.
    """
    return atoms[0].type.kind != "complex"


def _first_equal(
    first: Equation, equation: Equation, atoms: Sequence[Atom], seen: dict[Any, Equation]
) -> Equation:
    """Return the first equation that does the same; ``first`` has the same class and operands."""
    primitive: Any = equation.primitive
    if not primitive.mergeable or observable(primitive.effects):
        return equation
    if not primitive.holds_programs:
        return first
    seen.setdefault((operation_key(first.primitive), *atoms), first)
    return seen.setdefault((operation_key(primitive), *atoms), equation)
