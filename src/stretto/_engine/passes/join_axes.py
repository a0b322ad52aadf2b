"""Join the last axes of arrays, such as those of images, where XLA works element by element.

XLA's kernels run along the last axis. Where what is repeated along it differs along others, as the
factors of channels do, nothing makes one loop of several axes, and an axis that does not fill
vectors is computed one element at a time. Results have the same elements in the same order, so
reshapes between them and the rest of a program cost nothing.

Times with the two axes of images joined, divided by those without, of batches of 2 on one thread
with 512-bit vectors:

===================  ======  ======  ======  ======  =======
channels and size    1152×7  672×14  240×28  144×56  96×112
===================  ======  ======  ======  ======  =======
factor, SiLU         0.23    0.20    0.57    1.06    1.02
its gradient         0.21    0.18    0.55    1.01    0.99
factor, ReLU         0.39    0.4     0.35    1.09    0.99
sums of channels     0.53    0.48    0.54    0.71    0.84
===================  ======  ======  ======  ======  =======
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from stretto._engine.core.program import Atom, Equation, Literal, Program, Var
from stretto._engine.core.rewriting import remember, types_made, with_equations
from stretto._engine.core.sizes import is_size
from stretto._engine.ops.broadcast import BroadcastInDim, ReduceSum
from stretto._engine.ops.comparison import Select
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.identities import OptimizationBarrier
from stretto._engine.ops.layout import Reshape
from stretto._engine.ops.reducing.reduce import ReduceMax, ReduceMin

_LEAST = 1 << 12
"""The elements of the smallest array whose axes are joined."""

_ALONG = (ReduceSum, ReduceMax, ReduceMin)
_IN_PLACE = (Elementwise, Select, ConvertElementType, OptimizationBarrier)


def join_axes(program: Program) -> Program:
    """Return the program with the last axes of arrays joined where operations treat them alike.

    >>> import stretto as st, stretto.numpy as snp
    >>> program = st.make_graph(lambda x, a: abs(x * a))(
    ...     snp.ones((2, 64, 7, 7)), snp.ones((64, 1, 1))
    ... )
    >>> [e.outputs[0].type.shape for e in join_axes(program).equations][-4:]
    [(2, 64, 49), (2, 64, 49), (2, 64, 49), (2, 64, 7, 7)]
    """
    return remember(program, "joined axes", _joined)


def _joined(program: Program) -> Program:
    types = types_made(program)
    if any([is_size(n) for t in types for n in t.shape]):
        return program
    if not any([t.ndim > 2 and t.size >= _LEAST for t in types]):
        return program
    groups = _Groups(program)
    return with_equations(program, _Joined(program, groups).equations) if groups.joins else program


class _Groups:
    """Arrays that have the same axes: each is made of the others element by element."""

    def __init__(self, program: Program) -> None:
        self._parent: dict[Any, Any] = {}
        self._first: dict[Any, int] = {}
        """The first of the axes that are joined, by group."""
        for e in program.equations:
            if _is_in_place(e):
                for a in e.inputs:
                    if isinstance(a, Var) and a.type.shape:
                        self._unite(e.outputs[0], a)
        for e in program.equations:
            primitive: Any = e.primitive
            if isinstance(primitive, BroadcastInDim):
                (x,), (out,) = e.inputs, e.outputs
                there = {
                    d
                    for d, n in zip(primitive.dims, x.type.shape, strict=True)
                    if n == primitive.shape[d]
                }
                self._apart(out, there)
            elif isinstance(primitive, _ALONG):
                self._apart(e.inputs[0], {*primitive.axes})
        self.joins = any([self.first(v) is not None for v in self._first])

    def _root(self, v: Any) -> Any:
        while v in self._parent:
            v = self._parent[v]
        return v

    def _unite(self, one: Any, other: Any) -> None:
        one, other = self._root(one), self._root(other)
        if one is not other:
            self._parent[other] = one

    def _apart(self, a: Atom, axes: set[int]) -> None:
        """Note that an operation treats these axes in another way than the others."""
        if not isinstance(a, Var):
            return
        shape, root = a.type.shape, self._root(a)
        kinds = [(axis, axis in axes) for axis, n in enumerate(shape) if n != 1]
        while len(kinds) > 1 and kinds[-1][1] == kinds[-2][1]:
            kinds.pop()
        first = kinds[-1][0] if len(kinds) > 1 else 0
        self._first[root] = max(first, self._first.get(root, 0))

    def first(self, a: Atom) -> int | None:
        """Return the first of an array's axes that are joined; None if none are."""
        if not isinstance(a, Var):
            return None
        shape = a.type.shape
        first = self._first.get(self._root(a), 0)
        if not math.prod(shape[:first]) > 1 or len([n for n in shape[first:] if n != 1]) < 2:
            return None
        return first if math.prod(shape) >= _LEAST else None


def _is_in_place(e: Equation) -> bool:
    """Say whether each element of the one result is made of those in its place."""
    if not isinstance(e.primitive, _IN_PLACE) or len(e.outputs) != 1:
        return False
    shape = e.outputs[0].type.shape
    return all([a.type.shape in (shape, ()) for a in e.inputs])


class _Joined:
    """The equations of a program, with axes joined."""

    def __init__(self, program: Program, groups: _Groups) -> None:
        self.program, self.groups = program, groups
        self.equations: list[Equation] = []
        self._seen: dict[tuple[Atom, tuple[int, ...]], Atom] = {}
        """Arrays by the value whose elements they have, and their shape."""
        self._made: dict[Atom, Var] = {}
        """The array that was made for a value, in another shape than its own."""
        for e in program.equations:
            self._write(e)
        for a in program.outputs:
            self._shaped(a, a.type.shape)

    def _write(self, e: Equation) -> None:
        primitive: Any = e.primitive
        if _is_in_place(e):
            out = e.outputs[0]
            first = self.groups.first(out)
            if first is not None:
                shape = _join(out.type.shape, first)
                inputs = [self._shaped(a, shape if a.type.shape else ()) for a in e.inputs]
                self._make(
                    Equation(primitive, inputs, [Var(out.type.with_shape(shape))], e.place), out
                )
                return
        elif isinstance(primitive, BroadcastInDim):
            first = self.groups.first(e.outputs[0])
            if first is not None:
                self._broadcast(e, first)
                return
        elif isinstance(primitive, _ALONG):
            first = self.groups.first(e.inputs[0])
            if first is not None:
                self._reduce(e, first)
                return
        inputs = [self._shaped(a, a.type.shape) for a in e.inputs]
        self.equations.append(Equation(primitive, inputs, e.outputs, e.place))

    def _broadcast(self, e: Equation, first: int) -> None:
        primitive: Any = e.primitive
        (x,), (out,) = e.inputs, e.outputs
        shape = _join(primitive.shape, first)
        places = [*zip(primitive.dims, x.type.shape, strict=True)]
        before = [(d, n) for d, n in places if d < first]
        behind = math.prod([n for d, n in places if d >= first])
        dims = [d for d, _ in before] + ([first] if behind != 1 else [])
        own = tuple([n for _, n in before] + ([behind] if behind != 1 else []))
        made = BroadcastInDim(shape, tuple(dims))
        result = [Var(out.type.with_shape(shape))]
        self._make(Equation(made, [self._shaped(x, own)], result, e.place), out)

    def _reduce(self, e: Equation, first: int) -> None:
        primitive: Any = e.primitive
        (x,), (out,) = e.inputs, e.outputs
        axes = [axis for axis in primitive.axes if axis < first]
        large = [axis for axis, n in enumerate(x.type.shape) if axis >= first and n != 1]
        axes += [first] if large[0] in primitive.axes else []
        shape = _join(x.type.shape, first)
        made = type(primitive)(tuple(axes))
        left = tuple([n for axis, n in enumerate(shape) if axis not in axes])
        result = [Var(out.type.with_shape(left))]
        self._make(Equation(made, [self._shaped(x, shape)], result, e.place), out)

    def _make(self, e: Equation, value: Var) -> None:
        """Add an equation whose result has a value's elements."""
        (made,) = e.outputs
        if made.type.shape == value.type.shape:
            made = value
            e = Equation(e.primitive, e.inputs, [value], e.place)
        else:
            self._made[value] = made
            self._seen[value, made.type.shape] = made
        self.equations.append(e)

    def _shaped(self, a: Atom, shape: tuple[int, ...]) -> Atom:
        """Return an array with a value's elements, in order, in this shape."""
        if isinstance(a, Literal):
            return a if a.type.shape == shape else Literal(a.value, a.type.with_shape(shape))
        made = self._made.get(a, a)
        if made.type.shape == shape:
            return made
        found = self._seen.get((a, shape))
        if found is None:
            found = a if a.type.shape == shape else Var(a.type.with_shape(shape))
            self._seen[a, shape] = found
            self.equations.append(Equation(Reshape(shape), [made], [found]))
        return found


def _join(shape: Sequence[int], first: int) -> tuple[int, ...]:
    return (*shape[:first], math.prod(shape[first:]))
