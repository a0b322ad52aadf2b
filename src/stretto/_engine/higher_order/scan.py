"""Loops with a known number of steps: ``scan``.

One primitive steps a body over the leading axis of its inputs, carrying a state. It has forward and
reverse derivatives: the backward pass is the same kind of loop, run in reverse over the residuals
that the forward pass kept.

What the body computes from constants alone is moved in front of the loop (``hoist_constants``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_program
from stretto._engine.autodiff.linearize import apply_linear, linearize_program
from stretto._engine.autodiff.masked import everywhere, put_together, take_apart, with_conditions
from stretto._engine.autodiff.transpose import masked_backward, parts_read
from stretto._engine.autodiff.vmap import to_axis, vmap_program
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.cells import collecting
from stretto._engine.core.config import config
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Linear, constant
from stretto._engine.core.primitive import observable
from stretto._engine.core.program import Atom, Equation, Literal, Program, Var
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import drop_dead, restrict, used_inputs, with_inputs
from stretto._engine.core.sizes import at_least, is_size
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.higher_order.family import (
    ControlFlow,
    captured_first,
    check_carry,
    cut,
    only_where,
    or_zeros,
    record_tree,
    same_places,
    scan_in_python,
    split,
    values_of,
)
from stretto._engine.higher_order.narrowed import narrow_body
from stretto._engine.higher_order.refs import holds_refs, scan_over_refs, scan_writing
from stretto._engine.higher_order.while_loop import settle_carry, settle_types, with_out_types
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import lt, select, zeros_like
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import move_axis, move_to_front

C = TypeVar("C")
Y = TypeVar("Y")

_COUNTER = np.dtype(np.int32)
_INTERPRET_UP_TO = 4000


class Scan(ControlFlow):
    """Step ``body``, a function from (consts, carry, x) to (carry, y), over the leading axis.

    Operands: ``consts`` constants, ``carry`` carried values, then the stacked inputs; outputs: the
    last carry, then the stacked outputs. In ``reverse`` the steps go from the last to the first.
    The compiled loop has ``unroll`` steps in each iteration.
    """

    body: Program
    takes_masked = True
    length: int
    consts: int
    carry: int
    reverse: bool = False
    unroll: int = 1

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """Return the carry, and the body's other outputs with a leading axis."""
        outs = self.body.out_types
        stacked = [t.with_shape((self.length, *t.shape)) for t in outs[self.carry :]]
        return (*outs[: self.carry], *stacked)

    def _parts(self, args: Sequence[Any]) -> list[list[Any]]:
        return split(args, self.consts, self.carry)

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Step by step, on arrays."""
        consts, carry, xs = self._parts(args)
        slices = [x.to_host() for x in xs]
        outs = [
            np.empty((self.length, *t.shape), t.dtype) for t in self.body.out_types[self.carry :]
        ]
        order = range(self.length)
        for i in reversed(order) if self.reverse else order:
            here = [constant(x[i, ...], t.type.weak_type) for x, t in zip(slices, xs, strict=True)]
            results = evaluate(self.body, [*consts, *carry, *here])
            carry, ys = results[: self.carry], results[self.carry :]
            for out, y in zip(outs, ys, strict=True):
                out[i] = y.to_host()
        types = self.body.out_types[self.carry :]
        return [*carry, *(constant(o, t.weak_type) for o, t in zip(outs, types, strict=True))]

    @property
    def accumulates(self) -> tuple[int, ...]:
        """The constants that steps read a part of."""
        return tuple([i for i, part in enumerate(parts_read(self.body)[: self.consts]) if part])

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile if interpreting every operation of every step would take longer."""
        return self.length * len(self.body.equations) > _INTERPRET_UP_TO

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        return at_least(self.length) * self.body.work

    def most_work(self, inputs: Sequence[Atom]) -> float:
        """Return the work of all steps."""
        return at_least(self.length) * self.body.work

    def trimmed(self, equation: Equation, needed: Sequence[bool]) -> Equation:
        """Give the loop without the other stacks, and without carries that no output depends on."""
        stacks = tuple(needed[self.carry :])

        def read(carry: tuple[bool, ...]) -> Sequence[bool]:
            return used_inputs(restrict(self.body, (*carry, *stacks)))[self.consts :]

        carry = settle_carry(tuple(needed[: self.carry]), read)
        body = restrict(self.body, (*carry, *stacks))
        consts, _, xs = split(used_inputs(body), self.consts, self.carry)
        kept = [*consts, *carry, *xs]
        if body is self.body and all(kept):
            return equation
        loop = self.over(with_inputs(body, kept), sum(consts), sum(carry))
        return cut(equation, loop, kept, (*carry, *stacks))

    def where(self, equation: Equation, live: Var, keep_rules: bool) -> Equation:
        """Return the loop over the body, which is told."""
        loop = self.over(only_where(self.body, keep_rules), self.consts + 1, self.carry)
        return Equation(loop, [live, *equation.inputs], equation.outputs, equation.place)

    def lower(self, b: Any, *operands: Any) -> Any:
        """Write StableHLO ``while`` with a counter, slices of inputs and updates of outputs.

        Each iteration takes ``unroll`` steps; left-over steps, or a single iteration, need no loop.
        """
        consts, carry, xs = self._parts(operands)
        out_types = self.body.out_types[self.carry :]
        stacked = [array_type((self.length, *t.shape), t.dtype) for t in out_types]
        if not self.length:
            return [*carry, *[b.splat(0, t) for t in stacked]]
        body, taken = self._in_place(b, xs)
        stacks = [b.unwritten(t) for k, t in enumerate(stacked) if k not in taken]
        sizes = (1, len(consts), len(carry), len(xs))
        unroll = 1 if is_size(self.length) else self.unroll
        turns, rest = divmod(self.length, unroll)

        def cond(*state: Any) -> Any:
            return [b.compare("LT", state[0], b.scalar(turns * unroll, _COUNTER))]

        def arrays_of(xs: Sequence[Any], stacks: Sequence[Any]) -> list[Any]:
            rest = iter(stacks)
            return [xs[taken[k]] if k in taken else next(rest) for k in range(len(stacked))]

        def steps(count: int, state: Sequence[Any]) -> Any:
            (i,), consts, carry, xs, stacks = split(state, *sizes)
            for _ in range(count):
                at = i
                if self.reverse:
                    last = b.scalar(self.length - 1, _COUNTER)
                    at = b.emit("subtract", last, i, out=i.type)
                here = [b.slice_at(x, at) for x in xs]
                operands = [*consts, *carry, *here]
                arrays = arrays_of(xs, stacks)
                into = {len(carry) + k: (array, at) for k, array in enumerate(arrays)}
                aliases = same_places(consts, carry)
                results = b.program(body, operands, aliases=aliases, stacks=into)
                carry, ys = results[: self.carry], results[self.carry :]
                arrays = [b.update_at(s, y, at) for s, y in zip(arrays, ys, strict=True)]
                stacks = [array for k, array in enumerate(arrays) if k not in taken]
                for k, j in taken.items():
                    xs[j] = arrays[k]
                i = b.emit("add", i, b.scalar(1, _COUNTER), out=i.type)
            return [i, *consts, *carry, *xs, *stacks]

        state = [b.scalar(0, _COUNTER), *consts, *carry, *xs, *stacks]
        if is_size(turns) or turns > 1:
            state = b.while_loop(cond, lambda *state: steps(unroll, state), state)
        elif turns:
            state = steps(unroll, state)
        outs = split(steps(rest, state), *sizes)
        return [*outs[2], *arrays_of(outs[3], outs[4])]

    def _in_place(self, b: Any, xs: Sequence[Any]) -> tuple[Program, dict[int, int]]:
        """Return the body, and the stacks whose elements are put where those of ``xs`` were read.

        They are those that are to take the memory of an input, if the body can do that. The body is
        the same whether they are: so that results do not depend on it.
        """
        body, found = b.in_place(self.body)
        first = self.consts + self.carry
        pairs = {(k - self.carry, i - first) for k, i in found if k >= self.carry and i >= first}
        if not pairs:
            return self.body, {}
        homes = b.homes[self.carry :]
        taken = {k: j for k, j in pairs if homes[k] is not None and homes[k].name == xs[j].name}
        return body, taken

    def onnx(self, b: Any, *operands: Any) -> Any:
        """Write ``Scan``; short loops, step by step."""
        consts, carry, xs = self._parts(operands)
        outs = self.body.out_types[self.carry :]
        step = lambda *state: b.program(self.body, [*consts, *state])
        return b.scan(step, carry, xs, outs, self.length, self.reverse)

    def over(self, body: Program, consts: int, carry: int, *, back: bool = False) -> Scan:
        """Return the same loop over another body, in the opposite direction if ``back``."""
        return Scan(body, self.length, consts, carry, self.reverse != back, self.unroll)

    def _reordered(
        self, program: Program, groups: Sequence[Sequence[int]], outputs: Sequence[int]
    ) -> Program:
        """Give the program with its inputs in the order that the groups give, and these outputs."""
        order = [i for group in groups for i in group]
        return Program(
            [program.inputs[i] for i in order],
            program.equations,
            [program.outputs[i] for i in outputs],
            program.name,
        )

    def _fixpoint(self, masks: Sequence[Sequence[bool]], step: Any) -> Any:
        """Find the parts of the carry to mark: the least mask that a step does not enlarge.

        ``step`` gives the mask of the outputs, for masks of the inputs and of forced outputs.
        """
        const_mask, carry_mask, xs_mask = masks
        rest = (False,) * (len(self.body.outputs) - self.carry)
        return settle_carry(
            tuple(carry_mask), lambda m: step((*const_mask, *m, *xs_mask), (*m, *rest))
        )

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        consts, carry, xs = self._parts(primals)
        dconsts, dcarry, dxs = self._parts(tangents)
        masks = [[t is not None for t in part] for part in (dconsts, dcarry, dxs)]
        mask = self._fixpoint(masks, lambda active, force: jvp_program(self.body, active, force)[1])
        active = (*masks[0], *mask, *masks[2])
        force = (*mask, *(False,) * (len(self.body.outputs) - self.carry))
        program, has_tangent = jvp_program(self.body, active, force)
        starts = [
            zeros_like(c) if t is None else t
            for c, t, m in zip(carry, dcarry, mask, strict=True)
            if m
        ]
        moving = [[t for t in dconsts if t is not None], [t for t in dxs if t is not None]]
        # The program's inputs are consts, carry, xs, dconsts, dcarry, dxs; the loop wants each
        # tangent next to its own group.
        n = [len(consts), len(carry), len(xs), len(moving[0]), len(starts), len(moving[1])]
        numbered = split(range(sum(n)), *n)
        outs = len(has_tangent)
        positions_with = [i for i, t in enumerate(has_tangent) if t]
        tangent_at = dict(zip(positions_with, range(outs, outs + len(positions_with)), strict=True))
        carried, stacked = range(self.carry), range(self.carry, outs)
        order = [
            *carried,
            *(tangent_at[i] for i in carried if i in tangent_at),
            *stacked,
            *(tangent_at[i] for i in stacked if i in tangent_at),
        ]
        body = self._reordered(program, [numbered[k] for k in (0, 3, 1, 4, 2, 5)], order)
        new = self.over(body, n[0] + n[3], n[1] + n[4])
        results = new(*consts, *moving[0], *carry, *starts, *xs, *moving[1])
        c, dc, y, dy = split(results, n[1], n[4], outs - self.carry)[:4]
        tangent = iter([*dc, *dy])
        return [*c, *y], [next(tangent) if t else None for t in has_tangent]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return a loop that stacks each step's residuals, and a linear loop over them.

        Residuals that are constants of the loop, or depend on these alone, need not be stacked;
        those that are inputs or outputs of each step are stacked already.
        """
        consts, carry, xs = self._parts(primals)
        dconsts, dcarry, dxs = self._parts(tangents)
        masks = [[t is not None for t in part] for part in (dconsts, dcarry, dxs)]
        mask = self._fixpoint(
            masks, lambda active, force: linearize_program(self.body, active, force).active_out
        )
        active = (*masks[0], *mask, *masks[2])
        force = (*mask, *(False,) * (len(self.body.outputs) - self.carry))
        parts = linearize_program(self.body, active, force)
        linear = parts.linear
        outs = len(parts.active_out)
        first, primal = hoist_constants(parts.primal, self.consts, lambda _: True)
        consts = evaluate(first, consts)
        residuals = primal.outputs[outs:]
        still_at: dict[Any, Any] = dict(zip(primal.inputs, consts, strict=False))
        stack_at: dict[Any, Any] = dict(
            zip(primal.inputs[len(consts) + self.carry :], xs, strict=True)
        )
        available = {*still_at, *stack_at, *primal.outputs[self.carry : outs]}
        kept = [outs + k for k, atom in enumerate(residuals) if atom not in available]
        forward = self._reordered(primal, [range(len(primal.inputs))], [*range(outs), *kept])
        results = self.over(drop_dead(forward), len(consts), self.carry)(*consts, *carry, *xs)
        values = list(results[:outs])
        stack_at.update(zip(forward.outputs[self.carry :], results[self.carry :], strict=True))

        starts = [
            zeros_like(c) if t is None else t
            for c, t, m in zip(carry, dcarry, mask, strict=True)
            if m
        ]
        moving = [[t for t in dconsts if t is not None], [t for t in dxs if t is not None]]
        if not any(parts.active_out):
            return values, [None] * outs
        # Inputs of the program are dconsts, dcarry, dxs, residuals; the loop wants consts first.
        n = [len(moving[0]), len(starts), len(moving[1])]
        dc, dk, dx, res = split(range(len(linear.inputs)), *n)
        still = [r for r, atom in zip(res, residuals, strict=True) if atom in still_at]
        stacked = [r for r, atom in zip(res, residuals, strict=True) if atom not in still_at]
        body = self._reordered(linear, [dc, still, dk, dx, stacked], range(len(linear.outputs)))
        held = [still_at[atom] for atom in residuals if atom in still_at]
        stacks = [stack_at[atom] for atom in residuals if atom not in still_at]
        step = self.over(body, n[0] + len(held), n[1])
        douts = iter(apply_linear(step, *moving[0], *held, *starts, *moving[1], *stacks))
        return values, [next(douts) if m else None for m in parts.active_out]

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        """Take the steps backwards: carry cotangents, and sum those of the constants."""
        consts, carry, xs = self._parts(args)
        lin_consts, lin_carry, lin_xs = (
            [isinstance(a, Linear) for a in part] for part in (consts, carry, xs)
        )
        # A carry that starts from a known value is nevertheless linear after the first step.
        linear = (*lin_consts, *(True,) * self.carry, *lin_xs)
        known_consts = [c for c in consts if not isinstance(c, Linear)]
        known_xs = [x for x in xs if not isinstance(x, Linear)]
        ct_carry, ct_ys = list(cts[: self.carry]), list(cts[self.carry :])
        types = self.body.in_types
        const_types = [t for t, is_l in zip(types[: self.consts], lin_consts, strict=True) if is_l]
        carry_types = types[self.consts : self.consts + self.carry]
        xs_types = types[self.consts + self.carry :]
        moving_types = [t for t, is_l in zip(xs_types, lin_xs, strict=True) if is_l]
        still_types = [t for t, is_l in zip(xs_types, lin_xs, strict=True) if not is_l]
        active_ys = tuple([ct is not None for ct in ct_ys])
        ys_types = [
            t for t, a in zip(self.body.out_types[self.carry :], active_ys, strict=True) if a
        ]

        # A condition on stacks goes along with them; one on carries, if it is the same for all.
        first = [or_zeros(everywhere(ct), t) for ct, t in zip(ct_carry, carry_types, strict=True)]
        given = take_apart([*first, *ct_ys], by_row=True)
        whole, stacks = given.apart()
        n, held = len(const_types) + self.carry, len(known_consts)
        masked = [False] * n + [a.masked for a in xs if isinstance(a, Linear)]
        forms: list[Any] = []

        def step(*values: Any) -> Any:
            sizes = held, len(whole), len(const_types), len(given.values), len(still_types)
            known, same, sums, cts, still, own = split(values, *sizes)
            nonzero = iter(given.again(cts, same, own))
            ct_out = [next(nonzero) if a else None for a in ((True,) * self.carry + active_ys)]
            totals = [*sums, *[None] * (self.carry + len(moving_types))]
            back = masked_backward(self.body, linear, [*known, *still], ct_out, masked, totals)
            kept = [with_conditions(ct, [*known, *same, *still, *own]) for ct in back]
            forms[:] = [form for _, form in kept[n:]]
            sums, ct_in, ct_x = split([ct for ct, _ in kept], len(const_types), self.carry)
            ct_in = [or_zeros(ct, t) for ct, t in zip(ct_in, carry_types, strict=True)]
            ct_x = [or_zeros(ct, t) for ct, t in zip(ct_x, moving_types, strict=True)]
            return [*sums, *ct_in, *ct_x], None

        known_types = [c.type for c in known_consts]
        types = [*known_types, *(a.type for a in whole), *const_types, *carry_types, *ys_types]
        own = [*types, *still_types, *(a.type.with_shape(a.shape[1:]) for a in stacks)]
        body, _, captured = record(step, own, name=f"transpose_{self.body.name}")
        body = captured_first(body, len(own))  # a user's rule may capture arrays from outside
        known_consts = [*captured, *known_consts, *whole]
        body = narrow_body(with_out_types(body, [*const_types, *carry_types], n))
        new = self.over(body, len(known_consts), n, back=True)
        starts = [or_zeros(c.so_far, c.type) for c in consts if isinstance(c, Linear)]
        outs = new(*known_consts, *starts, *given.values, *known_xs, *stacks)
        sums, ct_in, ct_x = split(outs, len(const_types), self.carry)
        arrays = [*known_consts[len(captured) :], *known_xs, *stacks]
        rows = [False] * (held + len(whole)) + [True] * len([*known_xs, *stacks])
        of_consts, of_xs = iter(sums), iter(put_together(forms, ct_x, arrays, rows))
        return [
            *(next(of_consts) if is_l else None for is_l in lin_consts),
            *(ct if is_l else None for ct, is_l in zip(ct_in, lin_carry, strict=True)),
            *(next(of_xs) if is_l else None for is_l in lin_xs),
        ]

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Run one loop over all examples at once; what depends on no example stays unmapped."""
        consts, carry, xs = self._parts(args)
        const_axes, carry_axes, xs_axes = self._parts(axes)
        masks = [[a is not None for a in part] for part in (const_axes, carry_axes, xs_axes)]
        mask = self._fixpoint(
            masks, lambda over, force: vmap_program(self.body, size, over, force)[1]
        )
        force = (*mask, *(False,) * (len(self.body.outputs) - self.carry))
        body, out_mask = vmap_program(self.body, size, (*masks[0], *mask, *masks[2]), force)
        consts = [
            x if a is None else move_to_front(x, a) for x, a in zip(consts, const_axes, strict=True)
        ]
        carry = [
            to_axis(x, size, a, 0 if m else None)
            for x, a, m in zip(carry, carry_axes, mask, strict=True)
        ]
        xs = [x if a is None else move_axis(x, a, 1) for x, a in zip(xs, xs_axes, strict=True)]
        new = self.over(body, self.consts, self.carry)
        outs = new(*consts, *carry, *xs)
        return outs, tuple(
            (0 if i < self.carry else 1) if m else None for i, m in enumerate(out_mask)
        )

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """Take the most steps that there are; past the last true one the carry stays as it is."""
        body, sizes = at.closed(self.body)
        consts, carry, xs = self._parts(args)
        consts = [*sizes, *consts]
        if not is_size(self.length):
            return self._with(body, self.length, consts, carry)(*consts, *carry, *xs)
        most = at.bound(self.length)

        def steps(*operands: Any) -> Any:
            consts_, before, (goes_on, *here) = split(operands, len(consts), len(carry))
            outs = evaluate(body, [*consts_, *before, *here])
            kept = [
                select(broadcast_to(goes_on, new.shape), new, old)
                for new, old in zip(outs[: self.carry], before, strict=True)
            ]
            return [*kept, *outs[self.carry :]], None

        # An input of the steps, and no counter that they carry: so a kernel may run them all.
        goes_on = lt(iota(_COUNTER, most), broadcast_to(at.size(self.length), (most,)))
        xs = [goes_on, *xs]
        types = [v.type for v in (*consts, *carry)]
        types += [x.type.with_shape(x.shape[1:]) for x in xs]
        whole, _, _ = record(steps, types)
        return tuple(self._with(whole, most, consts, carry)(*consts, *carry, *xs))

    def _with(
        self, body: Program, length: int, consts: Sequence[Any], carry: Sequence[Any]
    ) -> Scan:
        """Return a loop of another body and length, in the same order."""
        return Scan(body, length, len(consts), len(carry), self.reverse, self.unroll)


def scan(
    f: Callable[[Any, Any], tuple[C, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[C, Y]:
    """Step a function over the leading axis of ``xs``; ``api/vectorize`` has what users may say.

    Args:
        f: a function from ``(carry, x)`` to ``(carry, y)``.
        init: the first carry.
        xs: a tree of arrays, none of them ragged.
        length: the number of steps, if there are no ``xs``.
        reverse: whether to step from the last element to the first.
        unroll: how many steps to write out for each turn.

    Returns:
        The last carry, and ``y`` of all steps.
    """
    with boundary:
        return loop_scan("scan", f, init, xs, length, reverse, tree.paths(init, "init"), unroll)


def loop_scan(
    caller: str,
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    length: int | None,
    reverse: bool,
    names: Sequence[str],
    unroll: int | bool,
) -> tuple[Any, Any]:
    """Run ``scan`` on behalf of ``caller``; messages call the carry's leaves by ``names``."""
    if holds_refs(xs):
        own = _checked(f, tree.structure(init), caller)
        over = lambda f, xs: loop_scan(caller, f, init, xs, length, reverse, names, unroll)
        return scan_over_refs(over, caller, own, xs)
    inputs = values_of(tree.leaves(xs), caller)
    xs_names = tree.paths(xs, "xs")
    for x, name in zip(inputs, xs_names, strict=True):
        if not x.ndim:
            raise ValueError(f"{caller}: xs must have a leading axis; {name} is {x.type}")
    sizes = {x.shape[0]: name for x, name in zip(inputs, xs_names, strict=True)}
    if length is not None:
        sizes.setdefault(integer(length, caller, "length"), "length")
    if len(sizes) != 1:
        raise ValueError(
            f"{caller}: leading sizes must agree; "
            + (", ".join(f"{name} has {n}" for n, name in sizes.items()) or "give xs or length")
        )
    (steps,) = sizes
    if steps < 0:
        raise ValueError(f"{caller}: length must not be negative, got {steps}")
    leaves, structure = tree.flatten(init)
    carry = values_of(leaves, caller)
    here = [x.type.with_shape(x.shape[1:]) for x in inputs]
    both = tree.structure((init, xs))

    step = _checked(f, structure, caller)
    if config.disable_jit and steps.__class__ is int and steps:
        return scan_in_python(caller, step, init, xs, steps, reverse)

    written: list[Any] = []
    trial = collecting(step, written)

    def record_body(types: Sequence[ArrayType]) -> Any:
        return record_tree(trial, both, [*types, *here], caller, [*names, *xs_names])

    (body, out, consts), carry = settle_types(caller, record_body, carry, names)
    if written:
        again = lambda f, *of: loop_scan(caller, f, of[0], xs, steps, reverse, of[1], unroll)
        return scan_writing(again, step, init, names, written)
    count = len(carry)
    body = with_out_types(body, [c.type for c in carry], count)
    turn = max(1, steps) if unroll is True else integer(unroll, caller, "unroll") or 1
    if turn < 1:
        raise ValueError(f"{caller}: unroll must not be negative, got {unroll}")
    body = narrow_body(captured_first(body, count + len(here)))
    if steps:
        first, body = hoist_constants(body, len(consts), no_larger)
        consts = evaluate(first, consts)
    loop = Scan(body, steps, len(consts), count, reverse, turn)
    outs = loop(*consts, *carry, *inputs)
    _, ys_structure = out.children()
    return tree.unflatten(structure, outs[:count]), tree.unflatten(ys_structure, outs[count:])


def _checked(
    f: Callable[[Any, Any], tuple[Any, Any]], structure: Any, caller: str
) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Return the function, whose result must be a pair with a carry of this structure."""

    def body(c: Any, x: Any) -> tuple[Any, Any]:
        result = f(c, x)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(
                f"{caller}: the function must return a pair (carry, y), got {type(result).__name__}"
            )
        check_carry(caller, structure, tree.structure(result[0]))
        return result

    return body


def no_larger(equation: Equation) -> bool:
    """Say if the outputs have no more elements than the inputs, so that keeping them is free."""
    before = sum(a.type.size for a in equation.inputs if type(a) is Var)
    return sum(v.type.size for v in equation.outputs) <= before


def hoist_constants(
    body: Program, consts: int, wanted: Callable[[Equation], bool]
) -> tuple[Program, Program]:
    """Split the body into a program of its first ``consts`` inputs, the constants, and the rest.

    An equation is hoisted into the first if it depends on constants alone, has no observable effect
    and is ``wanted``. The outputs of the first are the constants of the second: those of the body
    that it still reads, and the hoisted results.
    """
    fixed: set[Any] = set(body.inputs[:consts])
    before, after = [], []
    for equation in body.equations:
        still = all([a in fixed or type(a) is Literal for a in equation.inputs])
        if still and wanted(equation) and not observable(equation.primitive.effects):
            before.append(equation)
            fixed.update(equation.outputs)
        else:
            after.append(equation)
    read = {a for e in after for a in e.inputs if type(a) is Var}
    read.update([a for a in body.outputs if type(a) is Var])
    computed = [v for e in before for v in e.outputs]
    handed_on = [v for v in (*body.inputs[:consts], *computed) if v in read]
    first = Program(body.inputs[:consts], before, handed_on, f"constants_of_{body.name}")
    inputs = [*handed_on, *body.inputs[consts:]]
    return first, Program(inputs, after, body.outputs, body.name)
