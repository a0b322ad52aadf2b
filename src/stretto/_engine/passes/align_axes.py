"""Do element-wise work in the order of axes in which it is read.

A product of what all members share and of what each has puts members behind its rows, and what is
computed from it element by element has the axes in that order, until it meets values whose members
come first. There an array is turned, as large as all of them. A kernel writes a product in any
order of axes, and a product of one term is element-wise work, so the turning goes in front of it.

This is done where rows are multiplied by a vector as well, so that ``fuse_rows`` finds all of it in
one order. Elsewhere XLA turns an array in the kernel that reads it: training steps of ten networks
4-64-4 over 256 examples took 1.1 of the time with GELU, 0.9 with softplus, and 1 with others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from stretto._engine.core.position import Place
from stretto._engine.core.program import Equation, Literal, Program, Var
from stretto._engine.core.rewriting import drop_dead, remember
from stretto._engine.core.sizes import is_size
from stretto._engine.kernels import multiplies
from stretto._engine.ops.broadcast import BroadcastInDim, ReduceSum
from stretto._engine.ops.comparison import Select
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.identities import OptimizationBarrier
from stretto._engine.ops.layout import Transpose
from stretto._engine.ops.product_strides import geometry, row_major
from stretto._engine.ops.reducing.reduce import ReduceMax, ReduceMin

Order = tuple[int, ...]

_LEAST = 1 << 12
"""The elements of an array from which it matters how it is read."""

_IN_PLACE = (Elementwise, Select, ConvertElementType, OptimizationBarrier)
_ALONG = (ReduceSum, ReduceMax, ReduceMin)


def align_axes(program: Program) -> Program:
    """Return the program with transposes of element-wise results in front of products.

    >>> import stretto as st, stretto.numpy as snp
    >>> def layers(x, w, v):  # members of w come first where the result is read
    ...     y = snp.tanh(snp.tensordot(x, w, axes=(1, 1)))
    ...     return snp.einsum("rmc,mc->mr", y, v), snp.transpose(y, (1, 0, 2)) * 2
    >>> args = snp.ones((64, 32)), snp.ones((5, 32, 16)), snp.ones((5, 16))
    >>> graph = st.make_graph(layers)(*args)
    >>> [e.primitive.name for e in graph.equations]
    ['dot_general', 'tanh', 'dot_general', 'transpose', 'mul']
    >>> [e.primitive.name for e in align_axes(graph).equations]
    ['dot_general', 'transpose', 'tanh', 'dot_general', 'mul']
    """
    return remember(program, "aligned axes", _aligned)


def _aligned(program: Program) -> Program:
    equations = program.equations
    turning = [e for e in equations if e.primitive.__class__ is Transpose and _is_large(e)]
    if not turning or not any([e.primitive.__class__ is DotGeneral for e in equations]):
        return program
    aligned = _Aligned(program)
    for e in turning:
        aligned.consider(e)
    return aligned.program_with_orders() if aligned.order else program


def _is_large(e: Equation) -> bool:
    type = e.outputs[0].type
    return not any(map(is_size, type.shape)) and type.size >= _LEAST


def _turned(of_axes: Sequence[Any], order: Order) -> tuple[Any, ...]:
    return tuple([of_axes[axis] for axis in order])


def _sorted(order: Iterable[int]) -> Order:
    return tuple(sorted(order))


def _inverse(order: Order) -> Order:
    return tuple([order.index(axis) for axis in range(len(order))])


def _is_in_place(e: Equation) -> bool:
    """Say whether each element of the one result is made of those in its place."""
    if not isinstance(e.primitive, _IN_PLACE) or len(e.outputs) != 1:
        return False
    shape = e.outputs[0].type.shape
    return len(shape) > 2 and all([a.type.shape == shape for a in e.inputs])


class _Aligned:
    """A program, and the orders of axes that its arrays get."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.makers: dict[Any, Equation] = {v: e for e in program.equations for v in e.outputs}
        self.readers: dict[Any, list[Equation]] = {}
        for e in program.equations:
            for a in {*e.inputs}:
                if isinstance(a, Var):
                    self.readers.setdefault(a, []).append(e)
        self.outputs = {*program.outputs}
        self.order: dict[Any, Order] = {}
        """The new order of an array's axes, for those that get one."""

    def consider(self, e: Equation) -> None:
        """Have what this transpose reads in its order, if less is turned around then."""
        primitive: Any = e.primitive
        (x,), order = e.inputs, primitive.permutation
        if not isinstance(x, Var) or x in self.order or not self._turns(e):
            return
        values = self._beside(x)
        if not any([self._meets_vector(v) for v in values]):
            return
        if any([self._in_any_order(v, order) for v in values]):
            as_it_is = self._cost(values, tuple(range(len(order))))
            if self._cost(values, order) < as_it_is:
                for v in values:
                    self.order[v] = order

    def _beside(self, x: Var) -> set[Var]:
        """Return the values that are made of each other element by element."""
        found, stack = {x}, [x]
        while stack:
            v = stack.pop()
            for e in (*self.readers.get(v, ()), *([self.makers[v]] if v in self.makers else [])):
                if _is_in_place(e):
                    new = {a for a in (*e.inputs, *e.outputs) if isinstance(a, Var)} - found
                    found |= new
                    stack += new
        return found

    def _meets_vector(self, v: Var) -> bool:
        """Say whether rows of a value are multiplied by a vector, which a call may do beside it."""
        for e in self.readers.get(v, ()):
            if isinstance(e.primitive, DotGeneral):
                k = 0 if e.inputs[0] is v else 1
                free = e.primitive.free_of(*[a.type.ndim for a in e.inputs])[1 - k]
                sizes = [e.inputs[1 - k].type.shape[axis] for axis in free]
                if e.primitive.summed[k] == (v.type.ndim - 1,) and all([n == 1 for n in sizes]):
                    return True
        return False

    def _turns(self, e: Equation) -> bool:
        """Say whether a transpose moves elements: a product reads them where they lie."""
        (out,) = e.outputs
        readers = self.readers.get(out, [])
        return out in self.outputs or not all(
            [isinstance(r.primitive, DotGeneral) for r in readers]
        )

    def _in_any_order(self, v: Var, order: Order) -> bool:
        """Say whether it is a product that can be made in this order of axes as well."""
        e = self.makers.get(v)
        if e is None or not isinstance(e.primitive, DotGeneral):
            return False
        product, (x, y) = e.primitive, [a.type for a in e.inputs]
        if product.summed[0] and all([x.shape[axis] == 1 for axis in product.summed[0]]):
            return True
        if product.precision is not None or not multiplies(x.dtype, y.dtype, v.type.dtype):
            return False
        lying = row_major(x.shape), row_major(y.shape)
        found = geometry(*lying, product.summed, product.shared, order)
        return found is not None and found.is_quicker(x.dtype, v.type.dtype)

    def _cost(self, values: Iterable[Var], order: Order) -> int:
        """Return the elements that are turned around where these values have this order."""
        cost = 0
        for v in values:
            maker = self.makers.get(v)
            made = maker is None or not _is_in_place(maker)
            cost += v.type.size * (made and self._has_to_turn(v, order))
            readers = [e for e in self.readers.get(v, ()) if not _is_in_place(e)]
            as_before = v in self.outputs
            for e in readers:
                if isinstance(e.primitive, Transpose):
                    cost += v.type.size * (e.primitive.permutation != order and self._turns(e))
                else:
                    as_before |= self._renumbered(e, {v: order}) is None
            cost += v.type.size * (as_before and order != _sorted(order))
        return cost

    def _has_to_turn(self, v: Var, order: Order) -> bool:
        """Say whether what comes from elsewhere has to be turned around to have this order."""
        maker = self.makers.get(v)
        if maker is not None and isinstance(maker.primitive, Transpose):
            origin = self.makers.get(maker.inputs[0])
            order = _turned(maker.primitive.permutation, order)
        else:
            origin = maker
        if origin is not None and isinstance(origin.primitive, BroadcastInDim):
            return False
        return order != _sorted(order) and not (origin is maker and self._in_any_order(v, order))

    def _renumbered(self, e: Equation, orders: dict[Any, Order]) -> Any:
        """Return an operation that does the same with operands in these orders, if there is one."""
        primitive: Any = e.primitive
        if isinstance(primitive, _ALONG):
            order = orders[e.inputs[0]]
            kept = [axis for axis in order if axis not in primitive.axes]
            axes = tuple(sorted([order.index(axis) for axis in primitive.axes]))
            return type(primitive)(axes) if kept == sorted(kept) else None
        if not isinstance(primitive, DotGeneral):
            return None
        pairs = [primitive.summed, primitive.shared]
        free = primitive.free_of(*[a.type.ndim for a in e.inputs])
        for k, a in enumerate(e.inputs):
            if a not in orders:
                continue
            place = _inverse(orders[a])
            left = [place[axis] for axis in free[k]]
            if left != sorted(left):
                return None
            for n, own in enumerate(pairs):
                new = [*own]
                new[k] = tuple([place[axis] for axis in own[k]])
                pairs[n] = new[0], new[1]
        return dataclasses.replace(primitive, summed=pairs[0], shared=pairs[1])

    def program_with_orders(self) -> Program:
        """Return the program with arrays in their orders."""
        return _Writer(self).program()

    def renumbered(self, e: Equation) -> Any:
        """Return an operation on its operands in the orders that they get, if there is one."""
        own = {a: self.order[a] for a in e.inputs if a in self.order}
        return self._renumbered(e, own) if own else None


class _Writer:
    """Writes a program with some of its arrays in other orders of axes."""

    def __init__(self, aligned: _Aligned) -> None:
        self.aligned, self.order = aligned, aligned.order
        self.equations: list[Equation] = []
        self.before: dict[Any, Any] = {}
        """Values in the order of before, under the names that they have now."""
        self.turned: dict[Any, Any] = {}
        """Values in their new order."""

    def program(self) -> Program:
        """Return the whole program."""
        old = self.aligned.program
        self.before.update({v: v for v in old.inputs})
        for e in old.equations:
            self._write(e)
        outputs = [self._as_before(a) for a in old.outputs]
        return drop_dead(Program(old.inputs, self.equations, outputs, old.name))

    def _write(self, e: Equation) -> None:
        primitive: Any = e.primitive
        out = e.outputs[0] if e.outputs else None
        if out in self.order and _is_in_place(e):
            self._make(primitive, [self._in_order(a, self.order[out]) for a in e.inputs], out, e)
        elif out in self.order and isinstance(primitive, BroadcastInDim):
            place = _inverse(self.order[out])
            dims = [place[d] for d in primitive.dims]
            shape = _turned(primitive.shape, self.order[out])
            order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
            x = self._put_in(self._as_before(e.inputs[0]), order, e.place)
            self._make(BroadcastInDim(shape, _sorted(dims)), [x], out, e)
        elif isinstance(primitive, Transpose):
            pass  # where it is read
        else:
            changed = self.aligned.renumbered(e)
            own = lambda a: (
                self._in_order(a, self.order[a]) if a in self.order else self._as_before(a)
            )
            inputs = list(map(own if changed else self._as_before, e.inputs))
            self.before.update({v: v for v in e.outputs})
            self.equations.append(Equation(changed or primitive, inputs, e.outputs, e.place))

    def _make(self, primitive: Any, inputs: list[Any], out: Any, e: Equation) -> None:
        made = self.turned[out] = Var(out.type.with_shape(_turned(out.type.shape, self.order[out])))
        self.equations.append(Equation(primitive, inputs, [made], e.place))

    def _in_order(self, a: Any, order: Order) -> Any:
        """Return a value that gets this order, in it."""
        if isinstance(a, Literal):
            return Literal(a.value, a.type.with_shape(_turned(a.type.shape, order)))
        if a not in self.turned:
            self.turned[a] = self._transposed(a, order)
        return self.turned[a]

    def _as_before(self, a: Any) -> Any:
        """Return a value in the order of before."""
        if isinstance(a, Literal):
            return a
        if a not in self.before:
            self.before[a] = self._transposed(a, _sorted(range(a.type.ndim)))
        return self.before[a]

    def _transposed(self, a: Any, order: Order) -> Any:
        """Return a value with its axes of before in an order, through transposes that made it."""
        place, maker = None, None
        while a not in self.turned and a not in self.before:
            maker = self.aligned.makers[a]
            order = _turned(maker.primitive.permutation, order)  # type: ignore[attr-defined]
            place, (a,) = maker.place, maker.inputs
        source = self.before.get(a)
        if a in self.turned:
            now = tuple([self.order[a].index(axis) for axis in order])
            if source is None or now == _sorted(now):
                source, order = self.turned[a], now
        return self._put_in(source, order, place)

    def _put_in(self, x: Any, order: Order, place: Place | None) -> Any:
        """Return an array with its axes in an order."""
        if order == _sorted(order):
            return x
        made = Var(x.type.with_shape(_turned(x.type.shape, order)))
        self.equations.append(Equation(Transpose(order), [x], [made], place))
        return made
