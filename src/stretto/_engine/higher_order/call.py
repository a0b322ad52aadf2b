"""The call that a jitted function leaves in the program of another: one program, applied.

A function that is called twice is traced and written once. Each rule maps the call to a call of the
transformed program, so this is the simplest operation that holds a program.

``only_where`` makes calls of programs whose loops do not start where a flag is false. Where
examples go different ways, and all are computed for all of them, a loop may meet arguments that it
was not meant for, and never end: one branch multiplies until the number is small, and the others'
numbers do not get smaller. So a program that is run for an example that does not want its result is
told so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_call
from stretto._engine.autodiff.linearize import apply_linear, linearize_program
from stretto._engine.autodiff.transpose import parts_read, transpose_call
from stretto._engine.autodiff.vmap import vmap_program
from stretto._engine.core.config import config
from stretto._engine.core.program import Equation, Program, Var
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import restricted, used_inputs, with_inputs
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.higher_order.family import ControlFlow, cut, has_open_loop
from stretto._engine.ops.bitwise import And
from stretto._engine.ops.layout import move_to_front


class Call(ControlFlow):
    """Apply a program to its inputs."""

    program: Program
    takes_masked = True
    pushes_masked = True
    only_compiled = True  # whoever wrote jit asked for a compiled program

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        for i, (got, expected) in enumerate(zip(types, self.program.in_types, strict=True)):
            if got.shape != expected.shape or got.dtype != expected.dtype:
                raise TypeError(f"{self.program.name}: input {i} is {got}, expected {expected}")
        return self.program.out_types

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the program here."""
        return evaluate(self.program, args)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile as a whole, which is what ``jit`` asks for."""
        return not config.disable_jit

    @property
    def accumulates(self) -> tuple[int, ...]:
        """The inputs that the program reads a part of."""
        return tuple([i for i, part in enumerate(parts_read(self.program)) if part])

    def called(self) -> Program:
        """Return the program."""
        return self.program

    def inlined(self) -> Program | None:
        """Return the program."""
        return self.program

    def of(self, program: Program) -> Call:
        """Return the same kind of call, of a program derived from this one."""
        return Call(program)

    def trimmed(self, equation: Equation, needed: Sequence[bool]) -> Equation:
        """Return a call of the program restricted to these outputs, with what it reads."""
        program = restricted(self.program, needed)
        used = used_inputs(program)
        if program is self.program and all(used):
            return equation
        return cut(equation, self.of(with_inputs(program, used)), used, needed)

    def lower(self, b: Any, *operands: Any) -> Any:
        return b.call(self.program, operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        run = lambda program, values: self.of(program)(*values)
        return jvp_call(self.program, primals, tangents, run)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return a call for the values and residuals, and a linear one for the tangents."""
        return linearize_call(self.program, call, primals, tangents)

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        return transpose_call(self.program, cts, args, lambda back, values: self.of(back)(*values))

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        mapped = tuple(a is not None for a in axes)
        program, mask = vmap_program(self.program, size, mapped)
        values = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        return self.of(program)(*values), tuple(0 if m else None for m in mask)

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        program, sizes = at.closed(self.program)
        return self.of(program)(*sizes, *args)


def call(program: Program, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the program's outputs for these values."""
    return Call(program)(*args)


def linearize_call(
    program: Program,
    run: Callable[[Program, Sequence[Any]], Sequence[Any]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[Any, Any]:
    """Return the program's values, computed by ``run``, and a linear call for the tangents."""
    split = linearize_program(program, tuple(t is not None for t in tangents))
    count = len(split.active_out)
    outs = run(split.primal, primals)
    douts = iter(())
    if any(split.active_out):
        moving = [t for t in tangents if t is not None]
        douts = iter(apply_linear(Call(split.linear), *moving, *outs[count:]))
    return outs[:count], [next(douts) if m else None for m in split.active_out]


_BOOL = array_type((), np.dtype(bool))


def only_where(program: Program, keep_rules: bool = False) -> Program:
    """Give the program with one more input in front, a boolean: where it is false, no loop starts.

    Then the outputs are anything, and they are there soon. Only loops of which data decide how many
    steps they take are changed.

    Args:
        program: what is to be run.
        keep_rules: whether derivatives are still to be taken: then loops inside of operations that
            have rules of their own are left as they are.

    Returns:
        The program; the same one if it holds no such loop, but for its input.
    """
    key = ("only where", keep_rules)
    changed = program.cache.get(key)
    if changed is None:
        live = Var(_BOOL)
        equations = [_where(e, live, keep_rules) for e in program.equations]
        changed = Program([live, *program.inputs], equations, program.outputs, program.name)
        program.cache[key] = changed
    return changed


def holding_where(cond: Program, keep_rules: bool) -> Program:
    """Do the same for the condition of a loop, which then does not hold where the flag is false."""
    changed = only_where(cond, keep_rules)
    live, holds = changed.inputs[0], Var(_BOOL)
    both = Equation(And(), [live, changed.outputs[0]], [holds])
    return Program(changed.inputs, [*changed.equations, both], [holds], changed.name)


def _where(equation: Equation, live: Var, keep_rules: bool) -> Equation:
    operation = equation.primitive
    if not isinstance(operation, ControlFlow) or not operation.open_loop:
        return equation
    changed = operation.where(equation, live, keep_rules)
    if changed is not None:
        return changed
    program = operation.called() if keep_rules else _run(operation, equation)
    if program is None or not has_open_loop(program):
        return equation
    inputs = [live, *equation.inputs]
    call = Call(only_where(program, keep_rules))
    return Equation(call, inputs, equation.outputs, equation.place)


def _run(operation: ControlFlow, equation: Equation) -> Program:
    """Return what the operation does, as a program."""

    def fun(*args: Any) -> tuple[Sequence[Any], None]:
        return operation.interpret(*args), None

    types = [a.type for a in equation.inputs]
    return operation.inlined() or record(fun, types, name=operation.name)[0]
