"""Loops whose number of steps is only known when they run: ``while_loop``.

One primitive holds the condition and the body. It has a forward derivative and no reverse one,
since memory for an unknown number of residuals cannot be laid out. What ``scan`` needs to decide
the types of a carry is here, too.

Solvers write ``(error > tolerance) & (count < 100)``: such a loop ends soon, whatever the data, and
so may run in the thread of its caller; ``most_steps`` reads that from the condition.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from stretto._engine import higher_order
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_program
from stretto._engine.autodiff.linearize import apply_linear
from stretto._engine.autodiff.vmap import to_axis, vmap_program
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.cells import collecting
from stretto._engine.core.config import config
from stretto._engine.core.primitive import NamedAxis, Refused, observable
from stretto._engine.core.program import Atom, Equation, Literal, Program, Var
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import live, restrict, silence_effects, used_inputs, with_inputs
from stretto._engine.core.sizes import unnamed
from stretto._engine.core.types import ArrayType, array_type, kind_of, promote
from stretto._engine.higher_order import family
from stretto._engine.higher_order.refs import while_writing
from stretto._engine.ops.arithmetic import Add
from stretto._engine.ops.bits import And
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import Ge, Gt, Le, Lt, full, select, zeros_like
from stretto._engine.ops.convert import ConvertElementType, convert
from stretto._engine.ops.index.dynamic import dynamic_index_in_dim, dynamic_update_index_in_dim
from stretto._engine.ops.layout import move_to_front, reshape
from stretto._engine.ops.reducing.reduce import reduce_or

C = TypeVar("C")

_INTERPRET_UP_TO = 1000  # equations
_SUPPOSED_STEPS = 10
_NO_REVERSE = (
    "the number of steps is unknown, so there is no reverse derivative: use lax.scan, or "
    "lax.fori_loop with static bounds; forward derivatives (jvp, jacfwd) work"
)


class While(family.ControlFlow):
    """While ``cond`` holds for the carry, apply ``body`` to it.

    Operands: the constants of ``cond`` (``cond_consts`` of them), those of ``body``, the carry.
    """

    cond: Program
    body: Program
    cond_consts: int
    body_consts: int
    transpose = Refused(_NO_REVERSE)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.body.out_types

    def _parts(self, args: Sequence[Any]) -> list[list[Any]]:
        return family.split(args, self.cond_consts, self.body_consts)

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Step by step; after so many operations it is a long loop, and the rest is compiled."""
        cond_consts, body_consts, carry = self._parts(args)
        done, each = 0, len(self.cond.equations) + len(self.body.equations)
        while done <= _INTERPRET_UP_TO or config.disable_jit:
            if not bool(evaluate(self.cond, [*cond_consts, *carry])[0]):
                return carry
            carry = evaluate(self.body, [*body_consts, *carry])
            done += each + 1
        rest = [*cond_consts, *body_consts, *carry]
        return family.call(record(lambda *xs: (self(*xs), None), [x.type for x in rest])[0], rest)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Interpret it at first: most loops are short."""
        return False

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """Return the work of the number of steps that a loop is assumed to take."""
        return _SUPPOSED_STEPS * super().work(types, outs)

    @property
    def open_loop(self) -> bool:
        """True: it is a loop."""
        return True

    def most_work(self, inputs: Sequence[Atom]) -> float:
        """Return the work of as many steps as it takes at most; infinite if nobody knows."""
        cond_consts, body_consts, carry = self._parts(inputs)
        steps = most_steps(self.cond, len(cond_consts), self.body, len(body_consts), carry)
        return math.inf if steps is None else steps * (self.cond.work + self.body.work)

    def trimmed(self, equation: Equation, needed: Sequence[bool]) -> Equation:
        """Return the loop without carries that neither an output nor the condition depends on."""
        cond = live(self.cond)
        cond_reads = used_inputs(cond)

        def read(carry: tuple[bool, ...]) -> Sequence[bool]:
            return used_inputs(restrict(self.body, carry))[self.body_consts :]

        wanted = [n or r for n, r in zip(needed, cond_reads[self.cond_consts :], strict=True)]
        carry = settle_carry(tuple(wanted), read)
        body = restrict(self.body, carry)
        cond_consts = cond_reads[: self.cond_consts]
        body_consts = used_inputs(body)[: self.body_consts]
        kept = [*cond_consts, *body_consts, *carry]
        if cond is self.cond and body is self.body and all(kept):
            return equation
        loop = While(
            with_inputs(cond, [*cond_consts, *carry]),
            with_inputs(body, [*body_consts, *carry]),
            sum(cond_consts),
            sum(body_consts),
        )
        return family.cut(equation, loop, kept, carry)

    def where(self, equation: Equation, live: Var, keep_rules: bool) -> Equation:
        """Return the loop, which takes no step where the flag is false."""
        cond = family.holding_where(self.cond, keep_rules)
        loop = While(cond, self.body, self.cond_consts + 1, self.body_consts)
        return Equation(loop, [live, *equation.inputs], equation.outputs, equation.place)

    def lower(self, b: Any, *operands: Any) -> Any:
        """Write StableHLO ``while`` over constants and carry."""
        fixed = self.cond_consts + self.body_consts

        def cond(*state: Any) -> Any:
            return b.program(self.cond, [*state[: self.cond_consts], *state[fixed:]])

        def body(*state: Any) -> Any:
            aliases = family.same_places(state[self.cond_consts : fixed], state[fixed:])
            new = b.program(self.body, state[self.cond_consts :], aliases=aliases)
            return [*state[:fixed], *new]

        return b.while_loop(cond, body, operands)[fixed:]

    def _with_tangents(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[While, list[Any], tuple[bool, ...]]:
        """Return the loop over carry and tangents, its operands, and which carries have tangents.

        A tangent that becomes non-zero is carried from the start.
        """
        cond_consts, body_consts, carry = self._parts(primals)
        _, dconsts, dcarry = self._parts(tangents)
        const_mask = tuple(t is not None for t in dconsts)
        mask = settle_carry(
            tuple(t is not None for t in dcarry),
            lambda m: jvp_program(self.body, (*const_mask, *m), m)[1],
        )
        program, _ = jvp_program(self.body, (*const_mask, *mask), mask)
        moving = [t for t in dconsts if t is not None]
        starts = [
            zeros_like(c) if t is None else t
            for c, t, m in zip(carry, dcarry, mask, strict=True)
            if m
        ]
        count, n, m = len(carry), len(body_consts), len(moving)

        def body(*xs: Any) -> Any:
            consts, dcs, cs, dxs = family.split(xs, n, m, count)
            return evaluate(program, [*consts, *cs, *dcs, *dxs]), None

        def cond(*xs: Any) -> Any:
            return evaluate(self.cond, xs[: self.cond_consts + count]), None

        state = [*(c.type for c in carry), *(t.type for t in starts)]
        body_program = record(
            body, [*(c.type for c in body_consts), *(t.type for t in moving), *state]
        )[0]
        cond_program = record(cond, [*(c.type for c in cond_consts), *state])[0]
        new = While(cond_program, body_program, self.cond_consts, n + m)
        return new, [*cond_consts, *body_consts, *moving, *carry, *starts], mask

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        loop, operands, mask = self._with_tangents(primals, tangents)
        outs = loop(*operands)
        douts = iter(outs[len(mask) :])
        return outs[: len(mask)], [next(douts) if m else None for m in mask]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the loop, and a linear one over tangents, which computes the values again.

        The latter can be applied to tangents; transposing it is refused.
        """
        loop, operands, mask = self._with_tangents(primals, tangents)
        again = While(
            silence_effects(loop.cond),
            silence_effects(loop.body),
            loop.cond_consts,
            loop.body_consts,
        )
        douts = iter(apply_linear(again, *operands)[len(mask) :] if any(mask) else ())
        return self(*primals), [next(douts) if m else None for m in mask]

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Run until every example has stopped; a stopped example keeps its carry.

        If the condition depends on no example, the loop stays as it is, over larger arrays. If it
        does, and the loop has an observable effect, that must not happen for examples that have
        stopped; then each example gets its own loop, one after the other.
        """
        values = [x if a is None else move_to_front(x, a) for x, a in zip(args, axes, strict=True)]
        over = [a is not None for a in axes]
        cond_over, body_over, carry_over = self._parts(over)
        mask = settle_carry(
            tuple(carry_over), lambda m: vmap_program(self.body, size, (*body_over, *m), m)[1]
        )
        cond_varies = vmap_program(self.cond, size, (*cond_over, *mask))[1][0]
        if cond_varies and observable(self.effects):
            return self._one_by_one(size, values, over), (0,) * len(mask)
        if cond_varies:
            mask = (True,) * len(mask)
        cond, _ = vmap_program(self.cond, size, (*cond_over, *mask))
        body, _ = vmap_program(self.body, size, (*body_over, *mask), mask)
        cond_consts, body_consts, carry = self._parts(values)
        carry = [
            to_axis(c, size, 0 if o else None, 0 if m else None)
            for c, o, m in zip(carry, carry_over, mask, strict=True)
        ]
        if cond_varies:
            cond, body = self._until_all_stop(cond, self._stepping(body, size, body_over), size)
            body_consts = [*cond_consts, *body_consts]
        outs = While(cond, body, len(cond_consts), len(body_consts))(
            *cond_consts, *body_consts, *carry
        )
        return outs, tuple(0 if m else None for m in mask)

    def _one_by_one(self, size: int, values: Sequence[Any], over: Sequence[bool]) -> Sequence[Any]:
        """Return the last carries of all examples, along a new leading axis."""

        def step(state: Any) -> Any:
            i, stacks = state
            here = [dynamic_index_in_dim(x, i, 0, False) if o else x for x, o in zip(values, over)]
            outs = self(*here)
            new = [dynamic_update_index_in_dim(s, x, i, 0) for s, x in zip(stacks, outs)]
            return i + 1, new

        types = self.body.out_types
        stacks = [full((unnamed(size), *t.shape), 0, t.dtype, t.weak_type) for t in types]
        first = full((), 0, np.dtype(np.int32))
        return loop_while("while_loop", lambda s: s[0] < unnamed(size), step, (first, stacks), ())[
            1
        ]

    def _stepping(self, body: Program, size: int, body_over: Sequence[bool]) -> Program:
        """Give the vectorized body with one more input in front: which examples are still running.

        Its outputs matter for these alone. The body is run for all, so that where it holds a loop
        of its own, that must not wait for an example that has stopped.
        """
        running = Var(array_type((unnamed(size),), np.dtype(bool)))
        if not family.has_open_loop(self.body):
            return Program([running, *body.inputs], body.equations, body.outputs, body.name)
        mapped = (*body_over, *(True,) * len(self.body.outputs))
        if any(isinstance(effect, NamedAxis) for effect in self.effects):
            program = family.only_where(self.body, keep_rules=True)
            return vmap_program(program, size, (True, *mapped), (True,) * len(program.outputs))[0]
        # A branch of its own, so that derivatives of operations with rules are theirs.
        stopped = Program(self.body.inputs, (), self.body.inputs[self.body_consts :])

        def step(running: Any, *args: Any) -> Any:
            branches = higher_order.cond.Cond((stopped, self.body), unnamed(size), mapped, False)
            return branches(convert(running, np.dtype(np.int32)), *args), None

        return record(step, [running.type, *body.in_types], name=body.name)[0]

    def _until_all_stop(self, cond: Program, body: Program, size: int) -> tuple[Program, Program]:
        """Give a condition that holds while any example runs, and a body that steps only those."""
        n = self.cond_consts

        def any_runs(*args: Any) -> Any:
            running = evaluate(cond, args)[0]
            return [reduce_or(running, (0,))], None

        def step(*args: Any) -> Any:
            cond_consts, body_consts, carry = family.split(args, n, self.body_consts)
            running = evaluate(cond, [*cond_consts, *carry])[0]
            new = evaluate(body, [running, *body_consts, *carry])
            outs = []
            for c, x in zip(carry, new, strict=True):
                wide = reshape(running, (unnamed(size),) + (1,) * (x.ndim - 1))
                outs.append(select(broadcast_to(wide, x.shape), x, c))
            return outs, None

        state = cond.in_types[n:]
        consts = [*cond.in_types[:n], *body.in_types[1 : 1 + self.body_consts]]
        return record(any_runs, cond.in_types)[0], record(step, [*consts, *state])[0]

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        cond, sizes = at.closed(self.cond)
        body, _ = at.closed(self.body)
        cond_consts, body_consts, carry = self._parts(args)
        count = len(sizes)
        loop = While(cond, body, self.cond_consts + count, self.body_consts + count)
        return loop(*sizes, *cond_consts, *sizes, *body_consts, *carry)


def settle_carry(mask: tuple[bool, ...], step: Callable[[Any], Any]) -> tuple[bool, ...]:
    """Return the least mask of the carry that one step of the loop does not enlarge."""
    while True:
        after = tuple(step(mask))[: len(mask)]
        larger = tuple(a or b for a, b in zip(mask, after, strict=True))
        if larger == mask:
            return mask
        mask = larger


def settle_types(
    caller: str, record_body: Callable[[Sequence[ArrayType]], Any], carry: Sequence[Any], names: Any
) -> tuple[Any, list[Any]]:
    """Record the body, and convert weakly typed values of the carry to what it returns for them.

    It is recorded again only where a dtype changes by that. Where a weak type gives way to the same
    dtype, its operations stand.

    Raises ``TypeError``, which names each leaf for which the body returns yet another type.
    """
    values = list(carry)
    recorded = record_body([v.type for v in values])
    while True:  # ends: each iteration moves a type up in the promotion lattice, which is finite
        stronger, other, wrong = False, False, []
        for i, out in enumerate(recorded[0].out_types[: len(values)]):
            v = values[i]
            dtype, weak = promote([(v.dtype, v.weak_type), (out.dtype, out.weak_type)], caller)
            fits = v.shape == out.shape
            if fits and v.weak_type and (v.dtype, True) != (dtype, weak):
                stronger, other = True, other or v.dtype != dtype
                values[i] = convert(v, dtype, weak)
            elif not fits or v.dtype != dtype or not (out.weak_type or out.dtype == dtype):
                wrong.append(f"{names[i]} is {v.type}, but {out} is returned for it")
        if wrong:
            raise TypeError(
                f"{caller}: the carry must keep its type; {'; '.join(wrong)}. Convert one, e.g. "
                f"with .astype(), or give it the other's shape"
            )
        types = [v.type for v in values]
        if other:
            recorded = record_body(types)
        elif stronger:
            recorded = (_retyped(recorded[0], types), *recorded[1:])
        else:
            return recorded, values


def _retyped(program: Program, types: Sequence[ArrayType]) -> Program:
    """Return the same operations on first inputs of these types, which differ by being less weak.

    Conversions that change nothing any more are left out.
    """
    now: dict[Any, Any] = {
        v: Var(t) for v, t in zip(program.inputs, types, strict=False) if v.type != t
    }
    equations = []
    for e in program.equations:
        if now.keys().isdisjoint(e.inputs):
            equations.append(e)
            continue
        inputs = [now.get(a, a) for a in e.inputs]
        outs = e.primitive.out_types(tuple([a.type for a in inputs]))
        if isinstance(e.primitive, ConvertElementType) and outs[0] == inputs[0].type:
            now[e.outputs[0]] = inputs[0]
            continue
        now.update({v: Var(t) for v, t in zip(e.outputs, outs, strict=True) if v.type != t})
        equations.append(Equation(e.primitive, inputs, [now.get(v, v) for v in e.outputs], e.place))
    first, last = ([now.get(a, a) for a in atoms] for atoms in (program.inputs, program.outputs))
    return Program(first, equations, last, program.name)


def with_out_types(program: Program, types: Sequence[ArrayType], count: int) -> Program:
    """Return the program with its first ``count`` outputs converted to these types."""
    if program.out_types[:count] == tuple(types):
        return program

    def fun(*args: Any) -> Any:
        outs = evaluate(program, args)
        head = [convert(o, t.dtype, t.weak_type) for o, t in zip(outs, types, strict=False)]
        return [*head, *outs[count:]], None

    return record(fun, program.in_types, name=program.name)[0]


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], C], init_val: Any) -> C:
    """Apply ``body_fun`` to a carry for as long as ``cond_fun`` of it holds.

    Forward derivatives work; reverse ones do not, since the number of steps is not known.

    Args:
        cond_fun: a function from the carry to a boolean scalar.
        body_fun: a function from the carry to the next, of the same structure, shapes and dtypes.
        init_val: the first carry, a tree of arrays.

    Returns:
        The last carry.

    Raises:
        TypeError: the carry changes its structure or a type, or ``cond_fun`` does not return a
            boolean scalar.

    >>> import stretto as st
    >>> st.lax.while_loop(lambda x: x < 100, lambda x: x * 2, 3)
    Array(192, dtype=int32, weak_type=True)
    """
    with boundary:
        names = tree.paths(init_val, "init_val")
        return loop_while("while_loop", cond_fun, body_fun, init_val, names)


def loop_while(
    caller: str,
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    names: Sequence[str],
) -> Any:
    """Run ``while_loop`` on behalf of ``caller``; messages call the carry's leaves by ``names``."""
    if config.disable_jit:
        last = family.while_in_python(caller, cond_fun, body_fun, init_val)
        if last is not None:
            return last[0]
    leaves, structure = tree.flatten(init_val)
    argument = tree.structure((init_val,))

    written: list[Any] = []
    trial = collecting(body_fun, written)

    def record_body(types: Sequence[ArrayType]) -> Any:
        recorded = family.record_tree(trial, argument, types, caller, names)
        family.check_carry(caller, structure, recorded[1])
        return recorded

    (body, _, body_consts), init = settle_types(
        caller, record_body, family.values_of(leaves, caller), names
    )
    if written:
        again = functools.partial(loop_while, caller)
        return while_writing(again, cond_fun, body_fun, init_val, names, written)
    types = [v.type for v in init]
    count = len(types)
    body = with_out_types(body, types, count)
    cond, cond_structure, cond_consts = family.record_tree(cond_fun, argument, types, caller, names)
    out = cond.out_types
    is_leaf = cond_structure == tree.structure(0)
    if not is_leaf or out[0].shape or kind_of(out[0].dtype) != "bool":
        got = list(out) if is_leaf else f"a tree of {list(out)}"
        raise TypeError(f"{caller}: cond_fun must return a boolean scalar, got {got}")
    loop = While(
        family.captured_first(cond, count),
        family.captured_first(body, count),
        len(cond_consts),
        len(body_consts),
    )
    return tree.unflatten(structure, loop(*cond_consts, *body_consts, *init))


def most_steps(
    cond: Program, cond_consts: int, body: Program, body_consts: int, carry: Sequence[Atom]
) -> float | None:
    """Return the most steps of a loop of these programs, which take constants, then the carry.

    Known are loops whose condition asks, perhaps beside other things, for a count to be below a
    constant, where the count begins with a constant and each step adds one.

    Returns:
        The number; None if nobody knows.
    """
    counts = []
    for k, limit in _limits(cond, cond_consts):
        step = _step(body, body_consts, k)
        first = carry[k]
        if step is not None and step > 0 and isinstance(first, Literal):
            counts.append(max((limit - float(first.value)) / step, 0.0) + 1)
    return min(counts, default=None)


def _limits(cond: Program, consts: int) -> list[tuple[int, float]]:
    """Find the numbers of the carry that are below constants where the condition holds."""
    made: dict[Atom, Equation] = {v: e for e in cond.equations for v in e.outputs}
    carry = cond.inputs[consts:]
    asked: list[Atom] = [cond.outputs[0]]
    limits = []
    while asked:
        e = made.get(asked.pop())
        if e is None:
            continue
        operation = e.primitive
        if isinstance(operation, And):
            asked += e.inputs
        elif isinstance(operation, (Lt, Le, Gt, Ge)):
            low, high = e.inputs if isinstance(operation, (Lt, Le)) else e.inputs[::-1]
            if isinstance(low, Var) and low in carry and isinstance(high, Literal):
                limits.append((carry.index(low), float(high.value)))
    return limits


def _step(body: Program, consts: int, k: int) -> float | None:
    """Return the constant that each step adds to the k-th number of the carry, if it does that."""
    before, after = body.inputs[consts + k], body.outputs[k]
    for e in body.equations:
        if after in e.outputs and isinstance(e.primitive, Add) and before in e.inputs:
            added = e.inputs[1 - list(e.inputs).index(before)]
            return float(added.value) if isinstance(added, Literal) else None
    return None
