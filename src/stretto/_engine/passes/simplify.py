"""Simplify a program: equal work once, no detours, constants folded, sums and products merged.

``simplify`` is one walk over the equations, in order. An equation is replaced by something simpler
if its primitive knows something that gives the same bits (``Primitive.simpler``), and by an earlier
equation that computes the same. Programs that operations hold are simplified separately: nothing
moves into them or out of them.

``factor_dot_sums`` makes contractions of sums of products over the axes that these share. A
gradient that is taken for each example and then added up is a product for each, written and read
again. It is one product that is summed over the examples, too.

``merge_all_reduces`` makes one collective of sums over devices that can be taken at once. ``psum``
of a tree is a sum for each leaf, and the derivative of what all devices share is one for each
array. Each would be a message between all devices. Those of one dtype, along the same axes, of
which none needs another one's result, become one; and sums along one axis after another become one
along all of these.
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
from stretto._engine.core.rewriting import changed_inside, drop_dead, live, remember, with_equations
from stretto._engine.core.types import ArrayType, is_inexact
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.collective.primitives import Total, TotalsTogether
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.iota import Constant, Held
from stretto._engine.ops.layout import Transpose

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
        elsewhere = primitive.calls_python or primitive.only_compiled or primitive.by_platform
        return not (elsewhere or primitive.holds_programs or primitive.effects)
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
    return remember(program, "simplify", _simplify)


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
        if Literal in [a.__class__ for a in atoms]:
            atoms = [a if a.__class__ is Var else literals[a] for a in atoms]
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


def factor_dot_sums(program: Program) -> Program:
    """Return the program with such sums as products over more axes.

    >>> import stretto as st, stretto.numpy as snp
    >>> def slope(w, x):
    ...     return st.vmap(st.grad(lambda w, x: snp.sin(x @ w).sum()), (None, 0))(w, x).sum(0)
    >>> program = factor_dot_sums(st.make_graph(slope)(snp.ones((4, 3)), snp.ones((8, 4))))
    >>> [e.primitive.summed for e in program.equations if e.primitive.name == "dot_general"]
    [((1,), (0,)), ((0,), (0,))]
    """
    return remember(program, "factor_dot_sums", _factor_dot_sums)


def _factor_dot_sums(program: Program) -> Program:
    program = changed_inside(program, factor_dot_sums)
    makers: dict[Atom, Equation] = {}
    """The products, and what turns products, whose results are read once."""
    once = _read_once(program)
    equations: list[Equation] = []
    for e in program.equations:
        primitive: Any = e.primitive
        maker = makers.get(e.inputs[0]) if e.inputs else None
        if isinstance(primitive, DotGeneral) or (isinstance(primitive, Transpose) and maker):
            if e.outputs[0] in once:
                makers[e.outputs[0]] = e
        elif isinstance(primitive, ReduceSum) and maker and is_inexact(e.inputs[0].type.dtype):
            made = _with_sum(e, maker, makers)
            if made is not None:
                equations += made
                continue
        equations.append(e)
    return live(with_equations(program, equations))


def _read_once(program: Program) -> set[Atom]:
    """Return what one operation reads, and nothing else."""
    uses: dict[Atom, int] = {}
    for a in [a for e in program.equations for a in e.inputs] + 2 * [*program.outputs]:
        uses[a] = uses.get(a, 0) + 1
    return {a for a, n in uses.items() if n == 1}


def _with_sum(
    total: Equation, maker: Equation, makers: dict[Atom, Equation]
) -> list[Equation] | None:
    """Return the operations for the sum of a product.

    It is None if it is over other axes than shared ones.
    """
    primitive: Any = total.primitive
    axes, order = primitive.axes, None
    if isinstance(maker.primitive, Transpose):
        turned: Any = maker.primitive
        axes = tuple([turned.permutation[a] for a in axes])
        order = [d for d in turned.permutation if d not in axes]
        maker = makers[maker.inputs[0]]
        if isinstance(maker.primitive, Transpose):
            return None
    product: Any = maker.primitive
    if not axes or max(axes) >= len(product.shared[0]):
        return None
    added, kept = [
        tuple([tuple([a for i, a in enumerate(pair) if (i in axes) is wanted])
               for pair in product.shared])
        for wanted in (True, False)
    ]  # fmt: skip
    summed = tuple([(*old, *new) for old, new in zip(product.summed, added, strict=True)])
    one = DotGeneral(summed, kept, product.precision, product.preferred)
    if order is None or order == sorted(order):
        return [Equation(one, maker.inputs, total.outputs, maker.place)]
    result = Var(one.infer(*[a.type for a in maker.inputs]))
    permutation = tuple([sorted(order).index(d) for d in order])
    return [
        Equation(one, maker.inputs, [result], maker.place),
        Equation(Transpose(permutation), [result], total.outputs, total.place),
    ]


def merge_all_reduces(program: Program) -> Program:
    """Return the program with its sums over devices taken together.

    The values are the same, but for rounding.
    """
    return remember(program, "merge_all_reduces", _merge_all_reduces)


def _merge_all_reduces(program: Program) -> Program:
    program = changed_inside(program, merge_all_reduces)
    if sum([isinstance(e.primitive, Total) for e in program.equations]) < 2:
        return program
    sums = _chained(program)
    # Sums are taken in turns: those of a turn need the results of turns before it alone.
    turns: dict[Atom, int] = {}
    order: list[tuple[float, Equation]] = []
    alike: dict[tuple[int, tuple[Any, ...], np.dtype], list[Equation]] = {}
    for e in program.equations:
        if id(e) in sums and sums[id(e)] is None:
            continue  # part of a later one
        e = sums.get(id(e)) or e
        turn = max([turns.get(a, 0) for a in e.inputs], default=0)
        if isinstance(e.primitive, TotalsTogether):
            alike.setdefault((turn, e.primitive.axes, e.inputs[0].type.dtype), []).append(e)
            turn += 1
        else:
            order.append((turn, e))
        turns.update(dict.fromkeys(e.outputs, turn))
    for (turn, axes, _), those in alike.items():
        inputs = [a for e in those for a in e.inputs]
        outputs = [v for e in those for v in e.outputs]
        joined = Equation(TotalsTogether(axes), inputs, outputs, those[0].place)
        order.append((turn + 0.5, joined))
    order.sort(key=lambda pair: pair[0])  # stable: otherwise in the order of the program
    return with_equations(program, [e for _, e in order])


def _chained(program: Program) -> dict[int, Equation | None]:
    """Return the sums by number: each along all axes of its chain.

    It is None for one that is in a later one.
    """
    uses: dict[Atom, int] = {}
    for atom in [*program.outputs, *[a for e in program.equations for a in e.inputs]]:
        uses[atom] = uses.get(atom, 0) + 1
    made: dict[Atom, Equation] = {}
    found: dict[int, Equation | None] = {}
    for e in program.equations:
        primitive: Any = e.primitive
        if not isinstance(primitive, Total):
            continue
        (x,), axes = e.inputs, ((primitive.axis, primitive.size),)
        before = made.get(x)
        if before is not None and uses[x] == 1:
            inner: Any = found[id(before)]
            found[id(before)] = None
            (x,), axes = inner.inputs, tuple(sorted((*inner.primitive.axes, *axes), key=str))
        found[id(e)] = Equation(TotalsTogether(axes), [x], e.outputs, e.place)
        made[e.outputs[0]] = e
    return found
