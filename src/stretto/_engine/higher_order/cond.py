"""Branches: ``cond`` and ``switch``.

One primitive chooses among branches by an integer. Under ``vmap``, if examples choose differently,
it remains one operation that knows its branches, so that differentiation sees branches and not
selections: what an untaken branch computes, such as NaN, stays out of values and derivatives.

A mapped branch runs in one of two ways, of which the cheaper by estimate is taken when it is
evaluated or lowered. Selecting runs every branch for every example, then selects. Routing sorts the
examples by branch and runs each branch on its own examples, a part at a time; its cost is that of
moving them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_program
from stretto._engine.autodiff.linearize import apply_linear, linearize_program
from stretto._engine.autodiff.masked import put_together, take_apart, with_zeros
from stretto._engine.autodiff.transpose import Masks, masked_transpose, open_cotangents, parts_read
from stretto._engine.autodiff.vmap import vmap_program
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.cells import collecting, giving, write_all
from stretto._engine.core.config import config
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import NamedAxis, observable
from stretto._engine.core.program import Atom, Equation, Program, Var, literal
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import restrict, used_inputs, with_inputs
from stretto._engine.core.sizes import unnamed
from stretto._engine.core.types import ArrayType, array_type, kind_of, promote
from stretto._engine.core.typing import ArrayLike
from stretto._engine.higher_order import family
from stretto._engine.higher_order.refs import Apart
from stretto._engine.higher_order.while_loop import loop_while
from stretto._engine.ops.broadcast import broadcast_to, reduce_sum
from stretto._engine.ops.comparison import eq, full, le, lt, ne, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import clamp
from stretto._engine.ops.index.dynamic import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from stretto._engine.ops.index.gather_scatter import gather
from stretto._engine.ops.index.geometry import GatherDimensionNumbers
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import move_to_front, reshape
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.ops.sort import argsort

_INDEX = np.dtype(np.int32)


class Cond(family.ControlFlow):
    """The branch with the number that the first operand gives, applied to the other operands.

    The first operand is an int32, in range. With a ``size`` it is a vector of that length, with one
    number for each example, and ``mapped`` says which operands have a leading axis of examples; all
    outputs then have one.
    """

    branches: tuple[Program, ...]
    takes_masked = True
    size: int | None = None
    mapped: tuple[bool, ...] = ()
    routed: bool = True
    """True if examples may be brought to their branch."""

    def infer(self, index: ArrayType, *types: ArrayType) -> tuple[ArrayType, ...]:
        outs = self.branches[0].out_types
        if self.size is None:
            return outs
        return tuple(t.with_shape((self.size, *t.shape)) for t in outs)

    def interpret(self, index: Any, *args: Any) -> Sequence[Any]:
        """Run the branch; for many examples, in the way that ``run_mapped`` chooses."""
        if self.size is None:
            return evaluate(self.branches[int(index)], args)
        return self._run_mapped(index, *args)

    def _run_mapped(self, index: Any, *args: Any) -> list[Any]:
        assert self.size is not None
        way = run_mapped if self.routed else select_branches
        return way(self.branches, self.size, self.mapped, index, args)

    @property
    def accumulates(self) -> tuple[int, ...]:
        """The operands that a branch reads a part of, unless examples choose their own branches."""
        if self.size is not None:
            return ()
        parts = zip(*map(parts_read, self.branches), strict=True)
        return tuple([i for i, marks in enumerate(parts, 1) if any(marks)])

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Interpret: one branch runs once."""
        return False

    def trimmed(self, equation: Equation, needed: Sequence[bool]) -> Equation:
        """Restrict the branches to these outputs, with the operands that any of them reads."""
        branches = [restrict(branch, needed) for branch in self.branches]
        used = [any(marks) for marks in zip(*map(used_inputs, branches), strict=True)]
        if all(used) and all([new is b for new, b in zip(branches, self.branches, strict=True)]):
            return equation
        mapped = [m for m, u in zip(self._mapped(len(used)), used, strict=True) if u]
        branches = [with_inputs(branch, used) for branch in branches]
        return family.cut(equation, self._with(branches, mapped), [True, *used], needed)

    def where(self, equation: Equation, live: Var, keep_rules: bool) -> Equation:
        """Return the branches, which are told."""
        branches = [family.only_where(branch, keep_rules) for branch in self.branches]
        index, *operands = equation.inputs
        told = self._with(branches, (False, *self._mapped(len(operands))))
        return Equation(told, [index, live, *operands], equation.outputs, equation.place)

    def lower(self, b: Any, index: Any, *operands: Any) -> Any:
        """Write StableHLO ``case``; for many examples, the way that ``run_mapped`` chooses."""
        if self.size is not None:
            return b.inline_many(self._run_mapped, index, *operands)
        return b.case(index, [lambda p=p: b.program(p, operands) for p in self.branches])

    def _with(self, branches: Sequence[Program], mapped: Sequence[bool]) -> Cond:
        over = tuple(mapped) if self.size is not None else ()
        return Cond(tuple(branches), self.size, over, self.routed)

    def _mapped(self, count: int) -> tuple[bool, ...]:
        return self.mapped if self.size is not None else (False,) * count

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        index, *args = primals
        active = tuple(t is not None for t in tangents[1:])
        masks = [jvp_program(branch, active)[1] for branch in self.branches]
        force = tuple(map(any, zip(*masks, strict=True)))
        branches = [jvp_program(branch, active, force)[0] for branch in self.branches]
        mapped = self._mapped(len(args))
        moving = [m for m, a in zip(mapped, active, strict=True) if a]
        new = self._with(branches, (*mapped, *moving))
        outs = new(index, *args, *(t for t in tangents if t is not None))
        douts = iter(outs[len(force) :])
        return outs[: len(force)], [next(douts) if f else None for f in force]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Take branches that give residuals (zeros for others' residuals), then linear ones."""
        index, *args = primals
        active = tuple(t is not None for t in tangents[1:])
        masks = [linearize_program(branch, active).active_out for branch in self.branches]
        force = tuple(map(any, zip(*masks, strict=True)))
        parts = [linearize_program(branch, active, force) for branch in self.branches]
        residuals = [p.residual_types for p in parts]
        count = len(force)
        forward, linear = [], []
        for i, part in enumerate(parts):
            own = iter(part.primal.outputs[count:])
            outputs: list[Atom] = list(part.primal.outputs[:count])
            for k, types in enumerate(residuals):
                outputs.extend(next(own) if k == i else literal(0, t) for t in types)
            primal = part.primal
            forward.append(Program(primal.inputs, primal.equations, outputs, primal.name))
            linear.append(_with_others(part.linear, sum(active), residuals, i))
        mapped = self._mapped(len(args))
        outs = self._with(forward, mapped)(index, *args)
        moving = [m for m, a in zip(mapped, active, strict=True) if a]
        kept = sum(map(len, residuals))
        step = self._with(linear, (*moving, *((True,) * kept)))
        douts = iter(())
        if any(force):
            moving = [t for t in tangents if t is not None]
            douts = iter(apply_linear(step, index, *moving, *outs[count:]))
        return outs[:count], [next(douts) if f else None for f in force]

    def transpose(self, cts: Any, index: Any, *args: Any) -> Sequence[Any]:
        """Run the branches backwards; operands that examples share get the sum of cotangents."""
        linear = tuple(isinstance(a, Linear) for a in args)
        active = tuple(ct is not None for ct in cts)
        force = (True,) * sum(linear)
        given = take_apart(cts, self.size is not None)
        asked = tuple([a.masked for a in args if isinstance(a, Linear)])
        masks = Masks(given.form, given.types, asked)
        masks, forms = open_cotangents(self.branches, linear, active, masks)
        totals = [a.so_far for a in args if isinstance(a, Linear)]
        onto = tuple([t is not None for t in totals])
        branches = [
            masked_transpose(b, linear, active, force, onto, masks)[0] for b in self.branches
        ]
        mapped = self._mapped(len(args))
        known = [m for m, is_linear in zip(mapped, linear, strict=True) if not is_linear]
        moving = [*given.values, *[t for t in totals if t is not None]]
        new = self._with(branches, (*known, *((True,) * len(moving)), *given.rows))
        fixed = [a for a in args if not isinstance(a, Linear)]
        outs = new(index, *fixed, *moving, *given.arrays)
        rows = None if self.size is None else [*known, *given.rows]
        back = iter(put_together(forms, outs, [*fixed, *given.arrays], rows))
        out: list[Any] = [None]
        for is_linear, is_mapped in zip(linear, mapped, strict=True):
            ct = next(back) if is_linear else None
            shared = self.size is not None and not is_mapped
            out.append(reduce_sum(with_zeros(ct), (0,)) if shared and ct is not None else ct)
        return out

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Run one vectorized branch if the index is not mapped; else one for each example.

        A branch that works across examples needs all of them, no matter which examples take it:
        then, with a mapped index, all branches run for all examples and the results are selected.
        """
        args = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        index, *rest = args
        over = [a is not None for a in axes[1:]]
        if self.size is not None:
            return self._vmap_again(size, index, rest, [a is not None for a in axes])
        if axes[0] is not None:
            if any(isinstance(effect, NamedAxis) for effect in self.effects):
                outs: Any = select_branches(self.branches, size, tuple(over), index, rest, True)
            else:
                outs = Cond(self.branches, unnamed(size), tuple(over))(index, *rest)
            return outs, (0,) * len(outs)
        masks = [vmap_program(branch, size, tuple(over))[1] for branch in self.branches]
        force = tuple(map(any, zip(*masks, strict=True)))
        branches = [vmap_program(branch, size, tuple(over), force)[0] for branch in self.branches]
        return Cond(tuple(branches))(index, *rest), tuple(0 if f else None for f in force)

    def _vmap_again(self, size: int, index: Any, rest: list[Any], over: list[bool]) -> Any:
        """Merge two axes of examples into one."""
        inside = self.size
        assert inside is not None

        def merge(x: Any, outer: bool, inner: bool) -> Any:
            shape = x.shape[outer + inner :]
            x = reshape(x, (size if outer else 1, inside if inner else 1, *shape))
            both = broadcast_to(x, (size, inside, *shape))
            return reshape(both, (size * inside, *shape))

        either = [o or m for o, m in zip(over[1:], self.mapped, strict=True)]
        merged = [
            merge(x, o, m) if e else x
            for x, o, m, e in zip(rest, over[1:], self.mapped, either, strict=True)
        ]
        new = Cond(self.branches, size * inside, tuple(either), self.routed)
        outs = new(merge(index, over[0], True), *merged)
        return [reshape(o, (size, inside, *o.shape[1:])) for o in outs], (0,) * len(outs)

    def padded(self, at: Any, index: Any, *args: Any) -> Sequence[Any]:
        sizes: list[Any] = []
        branches = []
        for branch in self.branches:
            fixed, sizes = at.closed(branch)
            branches.append(fixed)
        mapped = (*[False] * len(sizes), *self.mapped) if self.size is not None else ()
        size = None if self.size is None else at.bound(self.size)
        return Cond(tuple(branches), size, mapped, self.routed)(index, *sizes, *args)


def _with_others(
    linear: Program, moving: int, residuals: Sequence[Sequence[ArrayType]], own: int
) -> Program:
    """Return the linear branch with inputs for the residuals of every branch, in order."""
    inputs = list(linear.inputs[:moving])
    mine = iter(linear.inputs[moving:])
    for k, types in enumerate(residuals):
        inputs.extend(next(mine) if k == own else Var(t) for t in types)
    return Program(inputs, linear.equations, linear.outputs, linear.name)


def _branch_programs(
    caller: str,
    functions: dict[str, Callable[..., Any]],
    operands: Sequence[Any],
    written: list[Any],
) -> tuple[list[Program], Any, list[Any]]:
    """Return programs of one signature for the branches, their result's structure, all operands.

    ``functions`` are the branches, by what messages call them; one given twice is traced once.
    Where all results have one dtype, that of the first, which is ``false_fun`` of ``cond``, says
    whether the common one is weak. The references from outside that any of the branches writes to
    are added to ``written``; then the result is a pair of that of the branches and the values of
    these.
    """
    leaves, structure = tree.flatten(tuple(operands))
    names = tree.paths(tuple(operands), "operands")
    apart = Apart(leaves)
    if len(apart.leaves) < len(leaves):
        functions = {k: _with_refs(f, structure, apart) for k, f in functions.items()}
        leaves, names = apart.leaves, apart.of(names)
        structure = tree.structure(tuple(leaves))
    values = family.values_of(leaves, caller)
    types = [v.type for v in values]
    distinct = {id(f): f for f in functions.values()}

    def record_all(wrap: Any) -> list[Any]:
        traced = {
            i: family.record_tree(wrap(f, written), structure, types, caller, names)
            for i, f in distinct.items()
        }
        return [traced[id(f)] for f in functions.values()]

    recorded = record_all(collecting)
    if written:  # each branch gives the values of what any of them writes
        recorded = record_all(giving)
    branch_names = list(functions)
    first = recorded[0]
    for i, (_, out, _) in enumerate(recorded[1:], 1):
        if out != first[1]:
            raise TypeError(
                f"{caller}: branches must return trees of one structure; those of "
                f"{branch_names[0]} and {branch_names[i]} part at "
                f"{family.parting(first[1], out, 'result')}"
            )
    targets = []
    paths = tree.paths(tree.unflatten(first[1], range(first[1].num_leaves)), "result")
    for path, *outs in zip(paths, *(p.out_types for p, _, _ in recorded), strict=True):
        strong = {t.dtype for t in outs if not t.weak_type}
        if len({t.dtype for t in outs}) == 1:
            dtype, weak = outs[0].dtype, outs[0].weak_type
        else:
            dtype, weak = promote([(t.dtype, t.weak_type) for t in outs], caller)
        if len({t.shape for t in outs}) > 1 or not strong <= {dtype}:
            each = ", ".join(f"{t} in {name}" for t, name in zip(outs, branch_names, strict=True))
            raise TypeError(f"{caller}: branches must return equal types; {path} is {each}")
        targets.append(array_type(outs[0].shape, dtype, weak))
    captured = list({id(c): c for _, _, cs in recorded for c in cs}.values())
    programs = [
        _aligned(program, len(types), [id(c) for c in cs], captured, targets)
        for program, _, cs in recorded
    ]
    return programs, first[1], [*captured, *values]


def _with_refs(fun: Callable[..., Any], structure: Any, apart: Apart) -> Callable[..., Any]:
    """Return the branch as a function of the leaves of its operands that are no references."""
    return functools.wraps(fun, updated=())(
        lambda *values: fun(*tree.unflatten(structure, apart.together(values)))
    )


def _aligned(
    program: Program, own: int, ids: list[int], captured: list[Any], targets: list[ArrayType]
) -> Program:
    """Return the program with inputs for what any branch captured, and the common output types."""
    own_inputs = dict(zip(ids, program.inputs[own:], strict=True))
    outer = [own_inputs.get(id(c), Var(c.type)) for c in captured]
    inputs = [*outer, *program.inputs[:own]]
    aligned = Program(inputs, program.equations, program.outputs, program.name)
    if program.out_types == tuple(targets):
        return aligned

    def converted(*args: Any) -> Any:
        outs = evaluate(aligned, args)
        return [convert(o, t.dtype, t.weak_type) for o, t in zip(outs, targets, strict=True)], None

    return record(converted, aligned.in_types, name=program.name)[0]


def chosen(
    caller: str, index: Any, functions: dict[str, Callable[..., Any]], operands: Sequence[Any]
) -> Any:
    """Return the result of the function with this index; what it wrote to references is written."""
    written: list[Any] = []
    programs, structure, values = _branch_programs(caller, functions, operands, written)
    passed_on = _passed_on(programs)
    if passed_on:
        programs = [
            Program(
                p.inputs,
                p.equations,
                [o for k, o in enumerate(p.outputs) if k not in passed_on],
                p.name,
            )
            for p in programs
        ]
    outs = iter(Cond(tuple(programs))(index, *values))
    count = structure.num_leaves
    everything = [values[passed_on[k]] if k in passed_on else next(outs) for k in range(count)]
    result = tree.unflatten(structure, everything)
    if not written:
        return result
    write_all(written, result[1])
    return result[0]


def _passed_on(programs: Sequence[Program]) -> dict[int, int]:
    """Return the outputs that are an operand, the same one in each branch; and which operand."""
    positions = [{v: i for i, v in enumerate(p.inputs)} for p in programs]
    found: dict[int, int] = {}
    for k, outs in enumerate(zip(*[p.outputs for p in programs], strict=True)):
        operands = {at.get(o, -1) for at, o in zip(positions, outs, strict=True)}  # type: ignore[call-overload]
        if len(operands) == 1 and -1 not in operands:
            found[k] = operands.pop()
    return found


class _NotGiven:
    """Stands for an argument that was left out, where None could be an argument."""

    def __repr__(self) -> str:
        return "<not given>"


_NOT_GIVEN = _NotGiven()


def _operands(caller: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    """Return the operands, or the one given by name."""
    if isinstance(operand, _NotGiven):
        return operands
    if operands:
        raise TypeError(f"{caller}: give operands by position or one as operand=, not both")
    return (operand,)


def _of_own(
    true_operand: Any, true_fun: Any, false_operand: Any, false_fun: Any
) -> tuple[Callable[..., Any], Callable[..., Any], tuple[Any, Any]]:
    """Return the branches as functions of both operands, of which each takes its own."""
    return (
        functools.wraps(true_fun, updated=())(lambda own, _: true_fun(own)),
        functools.wraps(false_fun, updated=())(lambda _, own: false_fun(own)),
        (true_operand, false_operand),
    )


def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> Any:
    """Apply one of several functions to the operands, the one that ``index`` numbers.

    Only that one runs, also under ``vmap`` as long as the index is not mapped.

    Args:
        index: an integer or boolean scalar, clamped into the range of ``branches``.
        branches: functions of the operands that return trees of one structure and equal types.
        *operands: trees of arrays.
        operand: stands for one operand, by name.

    Returns:
        What the branch returns, a tree of arrays.

    Raises:
        TypeError: ``index`` is not an integer scalar, or the branches return different types.
        ValueError: there is no branch.

    >>> import stretto as st
    >>> st.lax.switch(1, [lambda x: x, lambda x: -x], 3.0)
    Array(-3., dtype=float32, weak_type=True)
    """
    with boundary:
        number = as_value(index, "switch", "index")
        if number.ndim or kind_of(number.dtype) not in ("int", "uint", "bool"):
            raise TypeError(f"switch: index must be an integer scalar, got {number.type}")
        if not branches:
            raise ValueError("switch: needs at least one branch")
        operands = _operands("switch", operands, operand)
        if config.disable_jit and (known := family.concrete_array(number)) is not None:
            branch = branches[min(max(int(known), 0), len(branches) - 1)]
            return family.call_in_python("switch", branch, *operands)
        functions = {f"branch {i}": branch for i, branch in enumerate(branches)}
        bounded = clamp(0, convert(number, _INDEX), len(branches) - 1)
        return chosen("switch", bounded, functions, operands)


def cond(
    pred: ArrayLike,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> Any:
    """Apply ``true_fun`` to the operands if ``pred`` holds, and ``false_fun`` otherwise.

    Only that one runs, also under ``vmap`` as long as ``pred`` is not mapped. As
    ``cond(pred, x, true_fun, y, false_fun)``, each function has an operand of its own.

    Args:
        pred: a boolean scalar, or a number, which holds unless it is zero.
        true_fun: a function of the operands that returns a tree of arrays.
        false_fun: another, whose result has the same structure and types.
        *operands: trees of arrays.
        operand: stands for one operand, by name.

    Returns:
        What the function returns, a tree of arrays.

    Raises:
        TypeError: ``pred`` is not a scalar, or the two functions return different types.

    >>> import stretto as st
    >>> st.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    with boundary:
        condition = as_value(pred, "cond", "pred")
        if condition.ndim:
            raise TypeError(
                f"cond: pred must be a scalar, got {condition.type}; use snp.where to choose by "
                f"element, or vmap"
            )
        operands = _operands("cond", operands, operand)
        if len(operands) == 2 and not callable(true_fun) and callable(operands[1]):
            true_fun, false_fun, operands = _of_own(true_fun, false_fun, *operands)
        if config.disable_jit and (known := family.concrete_array(condition)) is not None:
            return family.call_in_python("cond", true_fun if bool(known) else false_fun, *operands)
        branches = {"false_fun": false_fun, "true_fun": true_fun}
        index = convert(
            condition if kind_of(condition.dtype) == "bool" else ne(condition, 0), _INDEX
        )
        return chosen("cond", index, branches, operands)


_COUNT = np.dtype(np.int32)
_PARTS = 8
_WORTH = 1 << 22  # in units of Primitive.work; moving the examples takes some 10^6 of these


def run_mapped(
    branches: Sequence[Program], size: int, mapped: Sequence[bool], index: Any, args: Sequence[Any]
) -> list[Any]:
    """Return, for each of ``size`` examples, the outputs of the branch that its index chooses.

    ``mapped`` says which of ``args`` have a leading axis of examples; all outputs have one.
    """
    way = _routed if worth_routing(branches, size) else select_branches
    return way(branches, size, tuple(mapped), index, args)


def worth_routing(branches: Sequence[Program], size: int) -> bool:
    """Say if routing saves more than moving the examples costs.

    Branches with an observable effect are always routed, as they must not run for examples that do
    not take them.
    """
    if any(observable(branch.effects) for branch in branches):
        return True
    work = [branch.work for branch in branches]
    mean = sum(work) / len(work)
    return size * (sum(work) - (1 + 1 / _PARTS) * mean) > _WORTH


def select_branches(
    branches: Sequence[Program],
    size: int,
    mapped: tuple[bool, ...],
    index: Any,
    args: Any,
    keep_rules: bool = False,
) -> list[Any]:
    """Run all branches on all examples; parameters and outputs are those of ``run_mapped``.

    With ``keep_rules`` derivatives of this are still to be taken.
    """
    outs: list[Any] = []
    for i, branch in enumerate(branches):
        here = eq(index, i)
        results = _results(branch, size, mapped, here, args, keep_rules)
        if not i:
            outs = results
            continue
        for k, (old, new) in enumerate(zip(outs, results, strict=True)):
            lead = new.shape[:1] + (1,) * (new.ndim - 1)
            outs[k] = select(broadcast_to(reshape(here, lead), new.shape), new, old)
    return outs


def _routed(
    branches: Sequence[Program], size: int, mapped: tuple[bool, ...], index: Any, args: Any
) -> list[Any]:
    """Run each branch on the examples that take it, in parts of a fixed size.

    After sorting, the examples of one branch lie together. Shapes are static, so the last part of a
    branch may reach into the next branch's examples; what it writes there is overwritten when that
    branch's turn comes, so results are exact for any number of examples a branch.
    """
    part = 1 if any(observable(b.effects) for b in branches) else -(-size // _PARTS)
    order = convert(argsort(index), _COUNT)
    padded = concatenate([order, full((part,), 0, _COUNT)], 0)
    start = full((), 0, _COUNT)
    outs = [full((size + part, *t.shape), 0, t.dtype) for t in branches[0].out_types]
    for i, branch in enumerate(branches):
        end = reduce_sum(convert(le(index, i), _COUNT), (0,))

        def step(state: Any, branch: Program = branch) -> Any:
            at, end, outs = state
            members = dynamic_slice_in_dim(padded, at, part)
            own = lt(iota(_COUNT, part), broadcast_to(end - at, (part,)))
            operands = [_rows(x, members) if m else x for x, m in zip(args, mapped, strict=True)]
            results = _results(branch, part, mapped, own, operands)
            written = [
                dynamic_update_slice_in_dim(old, convert(new, old.dtype), at, 0)
                for old, new in zip(outs, results, strict=True)
            ]
            return at + part, end, written

        outs = loop_while("switch", lambda s: s[0] < s[1], step, (start, end, outs), ())[2]
        start = end
    positions = argsort(order)
    return [_rows(slice_in_dim(o, 0, size), positions) for o in outs]


def _results(
    branch: Program,
    size: int,
    mapped: tuple[bool, ...],
    here: Any,
    args: Any,
    keep_rules: bool = False,
) -> list[Any]:
    """Return the outputs of a branch run on so many examples, of which ``here`` says which take it.

    A loop in it that ends for these alone must not wait for the others.
    """
    if family.has_open_loop(branch):
        branch, mapped, args = family.only_where(branch, keep_rules), (True, *mapped), [here, *args]
    return evaluate(vmap_program(branch, size, mapped, (True,) * len(branch.outputs))[0], args)


def _rows(x: Any, positions: Any) -> Any:
    """Return ``x[places]``, for places in range."""
    numbers = GatherDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,))
    indices = reshape(positions, (*positions.shape, 1))
    return gather(x, indices, numbers, (1, *x.shape[1:]), mode="promise_in_bounds")
