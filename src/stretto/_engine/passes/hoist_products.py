"""Products that the steps of a loop compute one by one are gathered into one, outside the loop.

A product in the body of a ``scan`` need not wait for its turn if it does not depend on the carry,
or the carry does not depend on it:

- products that are only added up, such as the steps' parts of a weight's gradient, become one that
  sums over the steps too: a long sum for many short ones, and no total to read and write each time;
- a product with a constant that is only stacked, such as a model's outputs, becomes one behind it;
- a product of an input's slice and a constant, such as a cell's weights for its input, becomes a
  product of the whole stack in front of the loop.

Only products whose steps' own values are smaller than what the steps share are gathered: a weight,
or a total. Others are as fast one by one. ``prepare`` calls this; decision 41 has the measurements.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from stretto._engine.core.position import Place
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.rewriting import changed_inside, holds_programs, remember, with_equations
from stretto._engine.core.types import bytes_of
from stretto._engine.higher_order.family import split
from stretto._engine.higher_order.scan import Scan
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.layout import Reshape, Transpose

_MOST = 4
"""Gathered operands may take so many times the bytes that a loop reads and stacks anyway."""


def hoist_products(program: Program) -> Program:
    """Return the program with products moved out of its loops; the same values up to rounding.

    >>> import stretto as st, stretto.numpy as snp
    >>> def run(w, xs):
    ...     return st.lax.scan(lambda c, x: (snp.tanh(c + x @ w), None), snp.ones(4), xs)[0]
    >>> product, loop = hoist_products(
    ...     st.make_graph(run)(snp.ones((3, 4)), snp.ones((5, 3)))
    ... ).equations
    >>> print(product.primitive.name, product.outputs[0].type)
    dot_general float32[5,4]
    >>> print(loop.primitive.body)
    { body(a:f32[4], b:f32[4])
      c:f32[4] = add a b
      d:f32[4] = tanh c
      return d }
    """
    return remember(program, "hoist_products", _hoist_products)


def _hoist_products(program: Program) -> Program:
    if not holds_programs(program):
        return program
    program = changed_inside(program, hoist_products)
    equations: list[Equation] = []
    for e in program.equations:
        primitive = e.primitive
        # Without a carry it is a map, which people choose to have one step's results at a time.
        if isinstance(primitive, Scan) and primitive.length > 1 and primitive.carry:
            before, e, behind = gathered(e)
            equations += [*before, e, *behind]
        else:
            equations.append(e)
    return with_equations(program, equations)


def gathered(
    e: Equation, all_sums: bool = False
) -> tuple[list[Equation], Equation, list[Equation]]:
    """Return a loop without the products that can be gathered, and those, before and behind it.

    With ``all_sums`` small products that are added up are gathered as well, sums over what is not
    stacked yet, and products of what is stacked anyway: all that only leaves a loop.
    """
    e, behind = _Loop(e, all_sums).with_products_behind()
    before, e = _Loop(e).with_products_before()
    return before, e, behind


class _Outside(NamedTuple):
    """Compute a value outside of the loop by operations, one after the other."""

    primitives: list[Any]
    operands: list[Atom]
    place: Place | None

    def written(self, result: Var) -> list[Equation]:
        """Return the equations, the last of which defines the result."""
        equations, operands = [], self.operands
        for primitive in self.primitives:
            (type,) = primitive.out_types(tuple([a.type for a in operands]))
            equations.append(Equation(primitive, operands, [Var(type)], self.place))
            operands = equations[-1].outputs
        equations[-1].outputs = [result]
        return equations


class _Loop:
    """The equation of a ``scan``, and what is moved out of it.

    ``held`` are the arrays outside that are a variable's value at every step; ``stacks`` those
    that hold its value at each step, because the loop reads or gives them, or as they were added.
    """

    def __init__(self, equation: Equation, all_sums: bool = False) -> None:
        self.equation, self.all_sums = equation, all_sums
        self.loop: Any = equation.primitive
        carry, self.body = self.loop.carry, self.loop.body
        self.consts, self.carried, self.slices = split(self.body.inputs, self.loop.consts, carry)
        held, self.starts, self.inputs = split(equation.inputs, self.loop.consts, carry)
        self.held: dict[Atom, Atom] = dict(zip(self.consts, held, strict=True))
        self.stacks: dict[Atom, Atom] = {
            **dict(zip(self.body.outputs[carry:], equation.outputs[carry:], strict=True)),
            **dict(zip(self.slices, self.inputs, strict=True)),
        }
        self.room = _MOST * sum([bytes_of(a.type) for a in self.stacks.values()])
        self.made = {v: e for e in self.body.equations for v in e.outputs}
        self.reads = collections.Counter([a for e in self.body.equations for a in e.inputs])
        self.reads.update(self.body.outputs)
        self.added: dict[Atom, Var] = {}

    def with_products_before(self) -> tuple[list[Equation], Equation]:
        """Return products of slices and constants, in front of the loop, and the loop with them."""
        before, left = [], []
        results: dict[Var, Var] = {}  # inside, outside
        for e in self.body.equations:
            at = self._moving(e)
            if at is None or e.inputs[at] not in self.slices or not self._fit(e.outputs):
                left.append(e)
            else:
                stack = results[e.outputs[0]] = self._new_stack(e.outputs[0])
                before += self._of_all_steps(e, at, []).written(stack)
        if not before:
            return before, self.equation
        return before, self._with(
            Program([*self.body.inputs, *results], left, self.body.outputs, self.body.name),
            self.loop.carry,
            [*self.equation.inputs, *results.values()],
            self.equation.outputs,
        )

    def with_products_behind(self) -> tuple[Equation, list[Equation]]:
        """Move products that are only stacked or added up out of the loop, behind it."""
        outputs, carry = self.equation.outputs, self.loop.carry
        equations, behind = list(self.body.equations), []
        results: dict[Var, Atom] = {}  # outside, inside
        terms = [self._terms(k) for k in range(carry)]
        moved = self._moved([t for added in terms for t in added])
        carried, starts = [], []
        for k, added in enumerate(terms):
            total: Atom = self.starts[k]
            outside = [t for t in added if t in moved]
            if len(outside) < max(len(added), 1):  # the loop carries the others
                value: Atom = self.body.outputs[k]
                total = outputs[k]
                if outside:
                    total, value = Var(total.type), self.carried[k]
                    for t in added:
                        if t not in moved:
                            value = _add(value, t, Var(value.type), equations)
                results[total] = value
                carried.append(self.carried[k])
                starts.append(self.starts[k])
            for t in outside:
                part = Var(t.type)
                behind += moved[t].written(part)
                out = outputs[k] if t is outside[-1] else Var(part.type)
                total = _add(total, part, out, behind)
        for out, value in zip(outputs[carry:], self.body.outputs[carry:], strict=True):
            e, layout = self._source(value)
            at = None if e is None else self._moving(e)
            if e is None or at is None or not self._fit([e.inputs[at]]):
                results[out] = value
            else:
                behind += self._of_all_steps(e, at, layout).written(out)
        if not behind:
            return self.equation, behind
        results |= {stack: value for value, stack in self.added.items()}
        body = Program(
            [*self.consts, *carried, *self.slices], equations, results.values(), self.body.name
        )
        inputs = [*self.held.values(), *starts, *self.inputs]
        return self._with(body, len(carried), inputs, [*results]), behind

    def _with(
        self, body: Program, carry: int, inputs: Sequence[Atom], outputs: Sequence[Var]
    ) -> Equation:
        """Return the equation of a loop over this body, without inputs that it does not read."""
        loop = self.loop.over(body, len(self.held), carry)
        return loop.trimmed(
            Equation(loop, inputs, outputs, self.equation.place), [True] * len(outputs)
        )

    def _source(self, value: Atom) -> tuple[Equation | None, list[Any]]:
        """Return what makes a value, and its changes of layout, if nothing else reads it."""
        layout: list[Any] = []
        while True:
            e = self.made.get(value)
            if e is None or self.reads[value] != 1:
                return None, layout
            if not isinstance(e.primitive, Reshape | Transpose):
                return e, layout[::-1]
            layout.append(e.primitive)
            value = e.inputs[0]

    def _moving(self, e: Equation) -> int | None:
        """Return which operand of a product differs from step to step, where the other is larger.

        The constant is larger than the result and that operand together, unless all products of
        what is stacked anyway are gathered.
        """
        if not isinstance(e.primitive, DotGeneral):
            return None
        own = [i for i, a in enumerate(e.inputs) if self._own(a)]
        if len(own) != 1:
            return None
        (at,) = own
        if self.all_sums and e.inputs[at] in self.stacks:
            return at
        constant = e.inputs[1 - at].type.size
        return at if constant > e.inputs[at].type.size + e.outputs[0].type.size else None

    def _of_all_steps(self, e: Equation, at: int, layout: Sequence[Any]) -> _Outside:
        """Return the products of all steps at once, in a stack; ``at``: the operand that is one."""
        product: Any = e.primitive
        operands = [
            self._stack(a) if i == at else self.held.get(a, a) for i, a in enumerate(e.inputs)
        ]
        ranks = [a.type.ndim for a in operands]
        axes = (0, None) if at == 0 else (None, 0)
        product, axis = product.mapped(*ranks, *axes)
        rank = e.outputs[0].type.ndim + 1
        order = (axis, *[d for d in range(rank) if d != axis])
        first = [product, Transpose(order)] if axis else [product]
        return _Outside([*first, *map(self._of_stack, layout)], operands, e.place)

    def _of_stack(self, layout: Any) -> Any:
        """Return the change of layout of each step's value in a stack."""
        if isinstance(layout, Transpose):
            return Transpose((0, *[d + 1 for d in layout.permutation]))
        return Reshape((self.loop.length, *layout.shape))

    def _terms(self, k: int) -> list[Atom]:
        """Return what each step adds to a carried value, if it does nothing else with it."""
        terms, rest = [], [self.body.outputs[k]]
        while rest:
            value = rest.pop()
            e = self.made.get(value)
            if e is not None and e.primitive is ADD and self.reads[value] == 1:
                rest += e.inputs[::-1]
            else:
                terms.append(value)
        carried = self.carried[k]
        if self.reads[carried] != 1 or carried not in terms:
            return []
        return [t for t in terms if t is not carried]

    def _moved(self, terms: Sequence[Atom]) -> dict[Atom, _Outside]:
        """Return how to add up all steps' terms: large products, and sums of what is stacked."""
        moved: dict[Atom, _Outside] = {}
        sums: list[tuple[Atom, Equation, list[Any]]] = []
        for term in terms:
            e, layout = self._source(term)
            if e is None:
                continue
            if isinstance(e.primitive, ReduceSum):
                sums.append((term, e, layout))
            elif self._adds_much(e) and self._fit(e.inputs):
                product: Any = e.primitive
                operands = [self._stack(a) for a in e.inputs]
                moved[term] = _Outside(
                    [_over_steps(product, *operands), *layout], operands, e.place
                )
        for term, e, layout in sums:
            primitive: Any = e.primitive
            own = self.all_sums and self._own(e.inputs[0])
            if e.inputs[0] in self.stacks or (own and self._fit([e.inputs[0]])):
                total = ReduceSum((0, *[a + 1 for a in primitive.axes]))
                moved[term] = _Outside([total, *layout], [self._stack(e.inputs[0])], e.place)
        return moved

    def _adds_much(self, e: Equation) -> bool:
        """Say whether it is a product of two values of a step that is larger than both together."""
        if not isinstance(e.primitive, DotGeneral) or not all(map(self._own, e.inputs)):
            return False
        if self.all_sums:
            return True
        # A Runge–Kutta solver, whose weights are smaller, took 1.09 of its time with them gathered.
        return e.outputs[0].type.size > sum([a.type.size for a in e.inputs])

    def _own(self, a: Atom) -> bool:
        """Say whether each step has its own value of it."""
        return isinstance(a, Var) and a not in self.held

    def _fit(self, values: Sequence[Atom]) -> bool:
        """Say whether there is room to stack these values; if so, it is taken."""
        new = [v for v in {*values} if v not in self.stacks]
        size = self.loop.length * sum([bytes_of(v.type) for v in new])
        if size > self.room:
            return False
        self.room -= size
        return True

    def _stack(self, value: Atom) -> Atom:
        """Return the stack of all steps' values, which is added if need be."""
        if value not in self.stacks:
            self.stacks[value] = self.added[value] = self._new_stack(value)
        return self.stacks[value]

    def _new_stack(self, value: Atom) -> Var:
        return Var(value.type.with_shape((self.loop.length, *value.type.shape)))


def _over_steps(product: DotGeneral, x: Atom, y: Atom) -> DotGeneral:
    """Return the product of these stacks that sums over their first axes, too."""
    each, _ = product.mapped(x.type.ndim, y.type.ndim, 0, 0)
    (step_x, *shared_x), (step_y, *shared_y) = each.shared
    summed = (step_x, *each.summed[0]), (step_y, *each.summed[1])
    return dataclasses.replace(each, summed=summed, shared=(tuple(shared_x), tuple(shared_y)))


def _add(total: Atom, term: Atom, result: Var, equations: list[Equation]) -> Var:
    """Have the equations add the term to the total; what the result is."""
    equations.append(Equation(ADD, [total, term], [result]))
    return result
