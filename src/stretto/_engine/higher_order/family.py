"""Operations that hold programs: their base class, and what is asked of all of them.

They have several outputs, are interpreted by running their programs, and are recorded from Python
functions of trees. Their rules transform the programs, so that the derivative of a loop, for
example, is a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.autodiff.linearize import taken_as_linear
from stretto._engine.core import tree
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import as_value, constant
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import live
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.comparison import full


class ControlFlow(Primitive, abstract=True):
    """An operation that holds programs. ``interpret`` runs it on values."""

    multiple = True
    holds_programs = True

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Compute the outputs by running the programs under the current interpreter."""
        raise NotImplementedError

    def programs(self) -> list[Program]:
        """Return the programs among its parameters."""
        return [
            p
            for _, value in self.parameters()
            for p in (value if isinstance(value, tuple) else (value,))
            if isinstance(p, Program)
        ]

    def linear_parts(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Linearize an operation that is linear in the arguments that have tangents.

        The primals of these are zero. The derivative is the operation itself, so the user's own
        forward rules are not called: it may be such a rule that applies the operation to tangents,
        and calling it again would never end.
        """
        return self.with_programs(taken_as_linear).linearize(primals, tangents)

    @property
    def effects(self) -> frozenset[Any]:
        """The effects of the programs."""
        return frozenset().union(*[p.effects for p in self.programs()])

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """Return the work of all programs, each run once."""
        return sum(p.work for p in self.programs())

    def out_types(self, types: tuple[ArrayType, ...]) -> tuple[ArrayType, ...]:
        """Return the output types; not cached, since that would keep the programs alive."""
        return tuple(self.infer(*types))

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(v.to_host() for v in self.interpret(*map(constant, arrays)))

    def with_programs(self, change: Callable[[Program], Program]) -> ControlFlow:
        """Return the same operation with each program changed; the same object if none is."""

        def changed(value: Any) -> Any:
            if isinstance(value, tuple):
                changes = tuple([changed(v) for v in value])
                return value if changes == value else changes  # which may be a named one
            return change(value) if isinstance(value, Program) else value

        old = {name: getattr(self, name) for name in self._parameters}
        new = {name: changed(value) for name, value in old.items()}
        return self if new == old else type(self)(**new)

    def trimmed(self, equation: Equation, needed: Sequence[bool]) -> Equation:
        """Return the equation, which applies this operation, reduced to what is needed.

        Outputs that are not ``needed`` go, then operands that nothing inside reads any more, and
        dead work inside. By default only the latter: all outputs and operands stay.
        """
        changed = self.with_programs(live)
        if changed is self:
            return equation
        return Equation(changed, equation.inputs, equation.outputs, equation.place)

    def called(self) -> Program | None:
        """Return the program, if the operation means calling one program and nothing else."""
        return None

    def inlined(self) -> Program | None:
        """Return the program that may be written in place of the operation, if there is one."""
        return None

    def most_work(self, inputs: Sequence[Atom]) -> float:
        """Return the most work that it may do for these operands, if it is a loop; else none."""
        return 0.0

    @property
    def open_loop(self) -> bool:
        """Say if it holds a loop of which data decide how many steps it takes."""
        return any([has_open_loop(program) for program in self.programs()])

    def where(self, equation: Equation, live: Var, keep_rules: bool) -> Equation | None:
        """Return the equation for ``only_where``, or None where it knows no way."""
        return None

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """Run the program in place: derivatives have been taken already."""
        program = self.inlined()
        if program is None:
            raise MissingRuleError(
                f"{self.name} takes no size that varies: give it fixed sizes, as by padding and a "
                f"mask of one's own"
            )
        return tuple(at.run(program, args))


def cut(
    equation: Equation, primitive: Primitive, inputs: Sequence[bool], outputs: Sequence[bool]
) -> Equation:
    """Return the equation with another operation, and only the marked inputs and outputs."""
    return Equation(
        primitive,
        [a for a, kept in zip(equation.inputs, inputs, strict=True) if kept],
        [v for v, kept in zip(equation.outputs, outputs, strict=True) if kept],
        equation.place,
    )


def has_open_loop(program: Program) -> bool:
    """Say if the program holds a loop of which data decide how many steps it takes."""
    known = program.cache.get("open loop")
    if known is None:
        held = [e.primitive for e in program.equations if isinstance(e.primitive, ControlFlow)]
        known = program.cache["open loop"] = any([operation.open_loop for operation in held])
    return known


def may_take_long(program: Program) -> bool:
    """Say if the program may run for a second or longer."""
    if has_long_loop(program):
        return True
    # To add up all work would take longer than to write it: ten calls for each operation.
    large = any([v.type.size > _LARGE for e in program.equations for v in e.inputs])
    return large and program.work > _SECOND


def has_long_loop(program: Program) -> bool:
    """Say if the program holds a loop that is long, or of which nobody knows how long it is.

    What counts is the work, but loops take more than by estimate, since to begin a step takes some
    0.1 to 1 µs.
    """
    known = program.cache.get("long loop")
    if known is None:
        held = [e for e in program.equations if isinstance(e.primitive, ControlFlow)]
        known = program.cache["long loop"] = any([_is_long(e) for e in held])
    return known


_SECOND = 2e10
"""The work, in units of ``Primitive.work``, that takes a second on one core."""
_LARGE = 1 << 14
"""The elements of an array without which a program without loops takes no second."""
_STEPS = 4e6
"""The work of a loop of a million steps of one small operation."""


def _is_long(equation: Equation) -> bool:
    operation: Any = equation.primitive
    if operation.most_work(equation.inputs) > _STEPS:
        return True
    return any([has_long_loop(program) for program in operation.programs()])


def or_zeros(value: Any, type: ArrayType) -> Any:
    """Return the value; for ``None``, zeros of this type."""
    return full(type.shape, 0, type.dtype, type.weak_type) if value is None else value


def split(values: Sequence[Any], *sizes: int) -> list[list[Any]]:
    """Return consecutive parts with these sizes, then the rest."""
    parts, start = [], 0
    for size in sizes:
        parts.append(list(values[start : start + size]))
        start += size
    return [*parts, list(values[start:])]


def values_of(leaves: Sequence[Any], caller: str) -> list[Any]:
    """Return the leaves of an argument as values."""
    return [as_value(leaf, caller, "a leaf of the argument") for leaf in leaves]


def record_tree(
    fun: Callable[..., Any],
    structure: Any,
    types: Sequence[ArrayType],
    caller: str,
    names: Sequence[str] = (),
) -> tuple[Program, Any, list[Any]]:
    """Record a function of trees: the program, the structure of its result, captured values.

    ``names`` are what messages call the leaves.
    """

    def flat(*leaves: Any) -> Any:
        out = fun(*tree.unflatten(structure, leaves))
        out_leaves, out_structure = tree.flatten(out)
        return values_of(out_leaves, caller), out_structure

    return record(flat, types, names, getattr(fun, "__name__", caller).replace("<lambda>", caller))


class leaf:  # in lower case, as messages show its name: "a leaf and a tuple"
    """Stands for any array when two structures are compared."""


def parting(one: Any, other: Any, root: str) -> str:
    """Return the path, from ``root``, at which two structures differ, and what each has there."""
    first, second = (tree.unflatten(s, [leaf()] * s.num_leaves) for s in (one, other))
    return tree.difference(first, second, root)


def check_carry(caller: str, structure: Any, returned: Any) -> None:
    """Raise ``TypeError`` unless the carry returned has the structure of the one given."""
    if returned != structure:
        raise TypeError(
            f"{caller}: the carry returned must have the structure of the one given; they part "
            f"at {parting(structure, returned, 'carry')}"
        )


def captured_first(program: Program, own: int) -> Program:
    """Return the program with its captured inputs in front of its ``own``, the order in loops."""
    if len(program.inputs) == own:
        return program
    inputs = [*program.inputs[own:], *program.inputs[:own]]
    return Program(inputs, program.equations, program.outputs, program.name)
