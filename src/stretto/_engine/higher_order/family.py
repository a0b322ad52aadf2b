"""Operations that hold programs: their base class, and the simplest, a call.

They have several outputs, are interpreted by running their programs, and are recorded from Python
functions of trees. Their rules transform the programs, so that the derivative of a loop, for
example, is a loop.

A jitted function leaves a call in the program of another: one program, applied. A function that is
called twice is traced and written once. Each rule maps the call to a call of the transformed
program.

``only_where`` makes calls of programs whose loops do not start where a flag is false. Where
examples go different ways, and all are computed for all of them, a loop may meet arguments that it
was not meant for, and never end: one branch multiplies until the number is small, and the others'
numbers do not get smaller. So a program that is run for an example that does not want its result is
told so.

With ``disable_jit`` Python runs branches and loops: functions are called with the values of each
step, instead of being recorded once, so that ``print``, ``if`` and debuggers in them work. Where a
condition is traced, as by a ``vmap`` around it, Python cannot decide, and the usual way is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_call
from stretto._engine.autodiff.linearize import apply_linear, linearize_program, taken_as_linear
from stretto._engine.autodiff.transpose import parts_read, transpose_call
from stretto._engine.autodiff.vmap import vmap_program
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Tracer, as_value, constant
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import live, restrict, used_inputs, with_inputs
from stretto._engine.core.types import ArrayType, array_type, promote
from stretto._engine.ops.bits import And
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import expand_dims, move_to_front, reshape
from stretto._engine.ops.shape import concatenate, slice_in_dim


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
        known = program.cache["long loop"] = any([_is_long(e) for e in held]) or any(
            [e.primitive.endless for e in program.equations]
        )
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


def same_places(consts: Sequence[Any], carry: Sequence[Any]) -> dict[int, int]:
    """Return the output of a loop's body that may take the memory of each carry, by input.

    >>> same_places("ab", "xyz")
    {2: 0, 3: 1, 4: 2}
    """
    return {len(consts) + k: k for k in range(len(carry))}


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
        program = restrict(self.program, needed)
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


def concrete_array(x: Any) -> Any:
    """Return the concrete array behind a value; None where there is none."""
    while isinstance(x, Tracer):
        x = x.concrete()
    return x


def call_in_python(caller: str, function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of the function, with values as leaves, for arguments like that."""
    return _with_values(caller, function(*[_with_values(caller, a) for a in args]))


def while_in_python(
    caller: str, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Any
) -> tuple[Any] | None:
    """Return the last carry, in a tuple; None where the condition is traced."""
    structure = tree.structure(carry)
    carry = _with_values(caller, carry)
    while True:
        goes_on = concrete_array(as_value(cond_fun(carry), caller, "the result of cond_fun"))
        if goes_on is None:
            return None
        if not bool(goes_on):
            return (carry,)
        carry = call_in_python(caller, body_fun, carry)
        check_carry(caller, structure, tree.structure(carry))


def scan_in_python(
    caller: str,
    f: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    xs: Any,
    length: int,
    reverse: bool,
) -> tuple[Any, Any]:
    """Return the last carry and the stacked results of ``length`` steps, at least one.

    ``f`` checks what it returns.
    """
    leaves, structure = tree.flatten(xs)
    values = values_of(leaves, caller)
    carry, steps = _with_values(caller, carry), []
    for i in range(length)[:: -1 if reverse else 1]:
        x = tree.unflatten(structure, [_element(v, i) for v in values])
        carry, y = call_in_python(caller, f, carry, x)
        steps.append(y)
    return carry, tree.map(lambda *ys: _stacked(caller, ys), *steps[:: -1 if reverse else 1])


def map_one_by_one(
    caller: str,
    flat: Callable[..., Sequence[Any]],
    size: int,
    args: Sequence[Any],
    axes: Sequence[int | None],
) -> list[Any]:
    """Return the outputs of ``flat`` for each of the examples along ``axes``, stacked in front."""
    moved = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
    each = [
        flat(*[x if a is None else _element(x, i) for x, a in zip(moved, axes, strict=True)])
        for i in range(size)
    ]
    return [_stacked(caller, outs) for outs in zip(*each, strict=True)]


def _with_values(caller: str, x: Any) -> Any:
    leaves, structure = tree.flatten(x)
    return tree.unflatten(structure, values_of(leaves, caller))


def _element(x: Any, i: int) -> Any:
    return reshape(slice_in_dim(x, i, i + 1), x.shape[1:])


def _stacked(caller: str, values: Sequence[Any]) -> Any:
    dtype, weak = promote([(v.type.dtype, v.type.weak_type) for v in values], caller)
    return concatenate([expand_dims(convert(v, dtype, weak), 0) for v in values], 0)
