"""Make one operation of attention, and one of its gradients, for kernels that store no scores.

What is looked for is a product, a softmax along its last axis, and a product with that, whoever
wrote them: scores may be scaled, have arrays added and masks, and axes may be in any order, in
groups, or repeated. The softmax may be divided by its sums before or after the second product.
Gradients are found where they read the exponentials again. All values between that others read
would have to be stored, so then nothing is changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.program import Equation, Literal, Program, is_number
from stretto._engine.core.rewriting import drop_dead, in_order, remember, with_equations
from stretto._engine.core.sizes import is_size
from stretto._engine.kernels import DTYPES
from stretto._engine.ops.arithmetic import Add, Div, Mul, Neg, Sub
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.comparison import Eq, Ge, Gt, Le, Lt, Select
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.exponential import Exp
from stretto._engine.ops.fused_attention import FusedAttention, Geometry, Place, Step
from stretto._engine.ops.identities import OptimizationBarrier
from stretto._engine.ops.iota import Iota
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.reducing.reduce import ReduceMax
from stretto._engine.passes.tracked_axes import (
    Axis,
    Dims,
    Unlike,
    demand,
    fresh,
    is_repeated,
    is_view,
    leaves_of,
    of_operand,
    of_result,
    other_side,
    sides,
)

_WORTH = 1 << 12
"""The multiply-adds of one pair of matrices from which a kernel is called."""
_WORTH_GRADIENTS = 1 << 10
"""The scores of a pair from which gradients are: of 16 by 16 they take 1.3 of the time of products
and rows, of 32 by 32 0.95."""
_FEATURES = (8, 256)
"""The least and the most features and columns: longer rows leave no room in the cache."""
_STEPS = 4


def fuse_attention(program: Program) -> Program:
    """Return the program with attention as one operation each, and its gradients as one.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> from stretto import nn
    >>> q = snp.ones((2, 64, 32))
    >>> graph = make_graph(nn.functional.scaled_dot_product_attention)(q, q, q)
    >>> [e.primitive.name for e in fuse_attention(graph).equations]
    ['fused_attention']
    """
    return remember(program, "fused attention", _fused)


def _fused(program: Program) -> Program:
    # Without a call for each operation: most programs have none of these.
    kinds = {e.primitive.__class__ for e in program.equations}
    if not {Exp, DotGeneral, ReduceMax, ReduceSum} <= kinds:
        return program
    graph = _Graph(program)
    calls: dict[int, Equation] = {}
    for e in program.equations:
        if e.primitive.__class__ is Exp:
            for call in graph.calls_for(e):
                calls.update({graph.place[v]: call for v in call.outputs})
    return drop_dead(with_equations(program, in_order(program, calls))) if calls else program


class _Operand:
    """An array that a product reads: what it is a view of, times a number, and its axes."""

    def __init__(self, graph: _Graph, atom: Any, dims: Dims, scaled: bool = False) -> None:
        self.scale = 1.0
        while True:
            e = graph.made(atom)
            if e is None or isinstance(atom, Literal):
                break
            if is_repeated(e) and not isinstance(e.inputs[0], Literal):
                dims = of_operand(e, dims)
                atom = e.inputs[0]
                continue
            number = _multiplied(e, atom) if scaled else None
            if number is None or self.scale != 1:
                break
            atom, self.scale = number
        demand(not isinstance(atom, Literal))
        self.atom, self.dims = atom, dims

    def has(self, axis: Axis) -> bool:
        """Say whether it differs along an axis."""
        return not {*axis.leaves()}.isdisjoint(leaves_of(self.dims))

    def like(self, other: _Operand) -> bool:
        """Say whether it is the same array, with the same axes of those that both name."""
        return self.atom is other.atom and self.scale == other.scale


def _multiplied(e: Equation, result: Any) -> tuple[Any, float] | None:
    """Return what an equation multiplies by a number, and the number."""
    if not isinstance(e.primitive, (Mul, Div)) or result.type.dtype not in DTYPES:
        return None
    numbers = [a for a in e.inputs if isinstance(a, Literal)]
    others = [a for a in e.inputs if not isinstance(a, Literal)]
    if len(numbers) != 1 or (isinstance(e.primitive, Div) and e.inputs[1] is not numbers[0]):
        return None
    value = float(numbers[0].value)
    value = 1 / value if isinstance(e.primitive, Div) and value else value
    info = np.finfo(result.type.dtype)
    normal = math.isfinite(value) and float(info.tiny) <= abs(value) <= float(info.max)
    return (others[0], value) if normal else None


class _Attention:
    """Attention that was found, in parts."""

    def __init__(self, graph: _Graph, exp: Equation) -> None:
        self.graph = graph
        self.inside: set[int] = set()
        """The places of equations whose results are only read by these, or by what is found."""
        self.exp = exp.outputs[0]
        self.shape = self.exp.type.shape
        self.dims = fresh(self.shape)
        demand(self.dims[-1])
        self.steps: list[tuple[Step, Any]] = []
        self.take(exp)
        difference = graph.made_by(exp.inputs[0], Sub)
        self.take(difference)
        scores, shift = difference.inputs
        self.scores = scores
        self.shift = self.scalar(shift, self.dims)
        self.guarded = self.subtracts_greatest()
        self.product(scores)
        self.normalized()

    def take(self, e: Equation) -> None:
        """Have an equation inside."""
        self.inside.update([self.graph.place[v] for v in e.outputs])

    def scalar(self, atom: Any, dims: Dims) -> Any:
        """Return what is repeated along rows, of which it has one value each."""
        while (e := self.graph.made(atom)) is not None and is_repeated(e):
            dims = of_operand(e, dims)
            atom = e.inputs[0]
        demand(not isinstance(atom, Literal))
        lead = leaves_of(self.dims[:-1])
        demand(leaves_of(dims) == lead and math.prod(atom.type.shape) == math.prod(self.shape[:-1]))
        return atom

    def reduced(self, atom: Any, kind: type, of: Any) -> bool:
        """Say whether an array is this reduction of another along its rows."""
        e = self.graph.made(atom)
        while e is not None and is_view(e):
            e = self.graph.made(e.inputs[0])
        if e is None or not isinstance(e.primitive, kind):
            return False
        primitive: Any = e.primitive
        self.take(e)
        source = e.inputs[0]
        while source is not of:
            other = self.graph.made(source)
            if other is None or not is_view(other) or other.inputs[0].type != source.type:
                return False
            if isinstance(other.primitive, Transpose):
                return False
            source = other.inputs[0]
        return tuple(primitive.axes) == (len(self.shape) - 1,)

    def subtracts_greatest(self) -> bool:
        """Say whether zero is subtracted where the greatest score is -inf; else the greatest is."""
        e = self.graph.made(self.shift)
        if e is not None and isinstance(e.primitive, Select):
            condition, zero, greatest = e.inputs
            demand(is_number(zero, 0) and self.is_least(condition))
            demand(self.reduced(greatest, ReduceMax, self.scores))
            self.take(e)
            return True
        demand(self.reduced(self.shift, ReduceMax, self.scores))
        return False

    def is_least(self, condition: Any) -> bool:
        """Say whether a condition holds where a row's greatest score is -inf."""
        e = self.graph.made(condition)
        if e is None or not isinstance(e.primitive, Eq):
            return False
        self.take(e)
        number = is_number(e.inputs[1], -np.inf)
        return number and self.reduced(e.inputs[0], ReduceMax, self.scores)

    def is_total(self, atom: Any) -> bool:
        """Say whether this is the sum of exponentials; 1 where rows are all hidden, if guarded."""
        e = self.graph.made(atom)
        if self.guarded:
            if e is None or not isinstance(e.primitive, Add):
                return False
            atom, ones = e.inputs
            self.take(e)
            one = self.graph.made(ones)
            if one is None or not isinstance(one.primitive, ConvertElementType):
                return False
            self.take(one)
            if not self.is_least(one.inputs[0]):
                return False
        return self.reduced(atom, ReduceSum, self.exp)

    def product(self, scores: Any) -> None:
        """Go back from scores to the product that makes them."""
        graph = self.graph
        atom, dims = scores, self.dims
        while True:
            e = graph.made(atom)
            demand(e is not None)
            primitive: Any = e.primitive
            if isinstance(primitive, DotGeneral):
                break
            self.take(e)
            if is_view(e):
                dims = of_operand(e, dims)
                atom = e.inputs[0]
                continue
            number = _multiplied(e, atom)
            if number is not None:
                atom = number[0]
                self.steps.append((Step("multiply", number[1]), None))
            elif isinstance(primitive, Select):
                atom = self.masked(e, dims)
            else:
                demand(isinstance(primitive, Add))
                ways = [a for a in e.inputs if graph.makes_scores(a)]
                demand(len(ways) == 1)
                (other,) = [a for a in e.inputs if a is not ways[0]]
                atom = ways[0]
                self.steps.append((Step("add"), _Operand(graph, other, dims)))
        demand(len(self.steps) <= _STEPS and graph.plain(e))
        self.steps.reverse()
        self.take(e)
        key = self.dims[-1][0]
        rows, keys, self.feature = sides(e, dims, key)
        self.q = _Operand(graph, *rows, scaled=True)
        self.k = _Operand(graph, *keys)
        demand(not self.q.has(key) and self.k.has(key))

    def masked(self, e: Equation, dims: Dims) -> Any:
        """Note what a choice does; return what it chooses from."""
        condition, x, y = e.inputs
        inverted = isinstance(x, Literal)
        scores, number = (y, x) if inverted else (x, y)
        demand(isinstance(number, Literal) and not isinstance(scores, Literal))
        demand(condition.type.shape == scores.type.shape)
        constant = float(number.value)  # type: ignore[union-attr]
        demand(not math.isnan(constant) and constant != math.inf)
        mask = _Operand(self.graph, condition, dims)
        rows = leaves_of(self.dims[:-1])
        offset = self.graph.causal(mask, rows[-1], self.dims[-1][0], inverted) if rows else None
        if offset is not None:
            self.steps.append((Step("causal", constant, offset), None))
        else:
            self.steps.append((Step("select", constant, int(inverted)), mask))
        return scores

    def normalized(self) -> None:
        """Go from exponentials to the result, divided by sums before or after the product."""
        graph = self.graph
        self.early = None
        for e, _, dims in graph.readers_of(self.exp, self.dims):
            if isinstance(e.primitive, Div) and e.inputs[0].type.shape == self.shape:
                demand(dims == self.dims and self.early is None)
                self.total = self.scalar(e.inputs[1], self.dims)
                demand(self.is_total(self.total))
                self.early = e.outputs[0]
                self.take(e)
        weights = self.exp if self.early is None else self.early
        for e, atom, dims in graph.readers_of(weights, self.dims):
            if not isinstance(e.primitive, DotGeneral) or not graph.plain(e):
                continue
            demand(e.inputs[0] is not e.inputs[1])
            other, other_dims, out, sums = other_side(e, atom, dims)
            if [leaf for axis in sums for leaf in axis.leaves()] != self.dims[-1][0].leaves():
                continue
            known = {*leaves_of(self.dims)}
            new = [leaf for leaf in leaves_of(other_dims) if leaf not in known]
            demand(len(new) == 1 and not hasattr(self, "v"))
            self.column = new[0]
            self.v = _Operand(graph, other, other_dims)
            self.take(e)
            self.result(e.outputs[0], out)
        demand(hasattr(self, "v"))
        demand(self.divided)

    def result(self, v: Any, dims: Dims) -> None:
        """Follow the result of the second product as far as it is only divided and turned."""
        graph = self.graph
        self.divided = self.early is not None
        while graph.reader_count(v) == 1 and v not in graph.outputs:
            (e,) = graph.readers[v]
            if is_view(e) and not isinstance(e.primitive, OptimizationBarrier):
                try:
                    after = of_result(e, dims)
                except Unlike:
                    break
                if leaves_of(after)[-1:] != [self.column]:
                    break
                dims = after
            elif isinstance(e.primitive, Div) and not self.divided and e.inputs[0] is v:
                self.total = self.scalar(e.inputs[1], dims)
                demand(self.is_total(self.total))
                self.divided = True
            else:
                break
            self.take(e)
            v = e.outputs[0]
        self.out, self.out_dims = v, dims
        demand(leaves_of(dims)[-1:] == [self.column])

    # Calls

    def axes(self) -> tuple[list[Axis], Axis | None]:
        """Return the axes of the batch, and that of rows."""
        lead = leaves_of(self.dims[:-1])
        if lead and not (self.k.has(lead[-1]) or self.v.has(lead[-1])):
            return lead[:-1], lead[-1]
        return lead, None

    def place(self, dims: Dims, row: Axis | None, column: Axis | None) -> Place:
        """Return where the axes are in an array; of them none is in parts, which it would have."""
        batch, _ = self.axes()
        flat = leaves_of(dims)
        demand({*flat} <= {*batch, row, column})
        split = [tuple([leaf.size for axis in group for leaf in axis.leaves()]) for group in dims]
        at = lambda axis: flat.index(axis) if axis in flat else -1
        return Place(tuple(split), tuple([at(axis) for axis in batch]), at(row), at(column))

    def geometry(self) -> tuple[Geometry, list[Any]]:
        """Return what the kernel needs to know, and the arrays of steps."""
        batch, row = self.axes()
        key = self.dims[-1][0]
        demand(row is not None or not any([step.kind == "causal" for step, _ in self.steps]))
        steps = [
            (step if operand is None else step._replace(place=self.place(operand.dims, row, key)))
            for step, operand in self.steps
        ]
        places = [
            self.place(self.q.dims, row, self.feature),
            self.place(self.k.dims, key, self.feature),
            self.place(self.v.dims, key, self.column),
            self.place(self.out_dims, row, self.column),
        ]
        geometry = Geometry(
            tuple([axis.size for axis in batch]),
            1 if row is None else row.size,
            key.size,
            self.feature.size,
            self.column.size,
            self.q.scale,
            tuple(steps),
            self.guarded,
            gradient=False,
            kept=False,
            places=tuple(places),
        )
        return geometry, [operand.atom for _, operand in self.steps if operand is not None]

    def call(self, kept: bool) -> Equation:
        """Return attention as one operation; ``kept`` has what gradients need as results."""
        geometry, arrays = self.geometry()
        demand(is_worth_it(geometry))
        inputs = (self.q.atom, self.k.atom, self.v.atom, *arrays)
        outs = (self.out, self.shift, self.total) if kept else (self.out,)
        return self.graph.call(geometry._replace(kept=kept), inputs, outs)


class _Gradients:
    """The gradients of attention, where they read its exponentials."""

    def __init__(self, of: _Attention) -> None:
        self.of, self.graph = of, of.graph
        self.take = of.take
        found = [
            e
            for e, _, dims in self.graph.readers_of(of.exp, of.dims)
            if isinstance(e.primitive, Mul) and dims == of.dims and self.place(e) not in of.inside
        ]
        demand(len(found) == 1)
        self.of_scores(found[0])
        self.of_values()
        self.of_operands(found[0].outputs[0])

    def place(self, e: Equation) -> int:
        return self.graph.place[e.outputs[0]]

    def of_scores(self, e: Equation) -> None:
        """Read ``(x vᵀ + beside) * exponentials``."""
        of, graph = self.of, self.graph
        self.take(e)
        others = [a for a in e.inputs if a is not of.exp]
        demand(len(others) == 1)
        added = graph.made_by(others[0], Add)
        self.take(added)
        ways = [a for a in added.inputs if graph.makes_scores(a)]
        demand(len(ways) == 1)
        (beside,) = [a for a in added.inputs if a is not ways[0]]
        self.beside = of.scalar(beside, of.dims)
        value = ways[0]
        if of.early is not None:
            self.of_weights(value)
            divided = graph.made_by(value, Div)
            self.take(divided)
            value, by = divided.inputs
            demand(of.scalar(by, of.dims) is of.total)
        atom, dims = value, of.dims
        while (e := graph.made(atom)) and is_view(e):
            self.take(e)
            dims = of_operand(e, dims)
            atom = e.inputs[0]
        demand(isinstance(e.primitive, DotGeneral) and graph.plain(e))
        self.take(e)
        key = of.dims[-1][0]
        rows, keys, self.column = sides(e, dims, key)
        self.x, v = _Operand(graph, *rows), _Operand(graph, *keys)
        self.pairs: list[Any] = [(v, key, self.column, of.v, key, of.column)]

    def of_weights(self, value: Any) -> None:
        """Check that what is added is minus the sum of weights times the gradient of weights."""
        of, graph = self.of, self.graph
        e = graph.made_by(self.beside, ReduceSum)
        demand(of.reduced(self.beside, ReduceSum, e.inputs[0]))
        product = graph.made_by(e.inputs[0], Mul)
        others = [a for a in product.inputs if a is not of.early]
        demand(len(others) == 1)
        negative = graph.made_by(others[0], Neg)
        demand(negative.inputs[0] is value)
        self.take(product)
        self.take(negative)

    def of_values(self) -> None:
        """Find the product of exponentials, or of weights, with the gradient of the result."""
        of, graph = self.of, self.graph
        weights = of.exp if of.early is None else of.early
        key = of.dims[-1][0]
        self.d_v: Any = None
        for e, atom, dims in graph.readers_of(weights, of.dims):
            if not isinstance(e.primitive, DotGeneral) or self.place(e) in of.inside:
                continue
            other, other_dims, out, sums = other_side(e, atom, dims)
            demand(graph.plain(e) and self.d_v is None and key not in sums)
            x2 = _Operand(graph, other, other_dims)
            column = self.new(x2.dims)
            self.take(e)
            self.d_v = (*graph.turned(self, e.outputs[0], out), column)
            self.pairs.append((x2, self.row, column, self.x, self.row, self.column))
        demand(self.d_v is not None)

    def of_operands(self, v: Any) -> None:
        """Follow the gradient of scores back through steps to the products for keys and queries."""
        of, graph = self.of, self.graph
        steps = [one for one in reversed(of.steps) if one[0].kind != "add"]
        dims = of.dims
        while True:
            readers = graph.readers.get(v, [])
            demand(v not in graph.outputs)
            if len(readers) != 1 or isinstance(readers[0].primitive, DotGeneral):
                break
            (e,) = readers
            if is_view(e):
                dims = of_result(e, dims)
            else:
                demand(steps)
                self.undoes(e, v, steps.pop(0), dims)
            self.take(e)
            v = e.outputs[0]
        demand(not steps)
        self.d_q: Any = None
        self.d_k: Any = None
        key = of.dims[-1][0]
        for e, atom, own in graph.readers_of(v, dims):
            demand(isinstance(e.primitive, DotGeneral) and graph.plain(e))
            side, side_dims, out, sums = other_side(e, atom, own)
            other = _Operand(graph, side, side_dims, key not in sums)
            feature = self.new(other.dims)
            self.take(e)
            result = (*graph.turned(self, e.outputs[0], out), feature)
            if key in sums:
                demand(self.d_q is None and len(sums) == 1)
                self.d_q = result
                self.pairs.append((other, key, feature, of.k, key, of.feature))
            else:
                demand(self.d_k is None)
                self.d_k = result
                self.pairs.append((other, self.row, feature, of.q, self.row, of.feature))
        demand(self.d_q is not None and self.d_k is not None)

    def undoes(self, e: Equation, v: Any, step: tuple[Step, Any], dims: Dims) -> None:
        """Check that an operation is a step's own gradient."""
        of, graph = self.of, self.graph
        (kind, constant, offset, _), mask = step
        if kind == "multiply":
            number = _multiplied(e, e.outputs[0])
            demand(number is not None and number[0] is v and number[1] == constant)
            return
        demand(isinstance(e.primitive, Select))
        condition, x, y = e.inputs
        inverted = y is v
        demand(is_number(x if inverted else y, 0) and (x is v or inverted))
        again = _Operand(graph, condition, dims)
        if kind == "causal":
            row = leaves_of(of.dims[:-1])[-1]
            demand(graph.causal(again, row, of.dims[-1][0], inverted) == offset)
        else:
            demand(again.atom is mask.atom and inverted == bool(offset))
            self.pairs.append((again, self.row, of.dims[-1][0], mask, self.row, of.dims[-1][0]))

    @property
    def row(self) -> None:
        """The axis of rows, which is known at the end: None stands for it."""
        return None

    def new(self, dims: Dims) -> Axis:
        """Return the one axis that is not one of the scores'."""
        known = {*leaves_of(self.of.dims)}
        found = [leaf for leaf in leaves_of(dims) if leaf not in known]
        demand(len(found) == 1)
        return found[0]

    def call(self) -> Equation:
        """Return the gradients as one operation."""
        of = self.of
        geometry, arrays = of.geometry()
        _, row = of.axes()
        key = of.dims[-1][0]
        for one, one_row, one_column, other, other_row, other_column in self.pairs:
            demand(one.like(other))
            places = (
                of.place(one.dims, one_row or row, one_column),
                of.place(other.dims, other_row or row, other_column),
            )
            demand(places[0] == places[1])
        given = of.place(self.x.dims, row, self.column)
        d_q = of.place(self.d_q[1], row, self.d_q[2])
        d_k = of.place(self.d_k[1], key, self.d_k[2])
        d_v = of.place(self.d_v[1], key, self.d_v[2])
        _, k, v, _ = geometry.places
        sums = [[axis < 0 for axis in place.batch] for place in (d_k, d_v, d_q, given)]
        demand(sums[0] == sums[1] and not any(sums[2] + sums[3]))
        for axis, is_sum in enumerate(sums[0]):
            demand(not is_sum or (k.batch[axis] < 0 and v.batch[axis] < 0))
        demand(row is None or (d_q.row >= 0 and given.row >= 0))
        late = of.early is not None
        geometry = geometry._replace(
            gradient=True, kept=not late, places=(*geometry.places, given, d_q, d_k, d_v)
        )
        extra = (of.total, of.out) if late else (self.beside,)
        inputs = (of.q.atom, of.k.atom, of.v.atom, *arrays, of.shift, self.x.atom, *extra)
        outs = (self.d_q[0], self.d_k[0], self.d_v[0])
        demand(not self.graph.depends(extra, self.d_v[0]))
        demand(geometry.rows * geometry.keys >= _WORTH_GRADIENTS)
        return self.graph.call(geometry, inputs, outs)


def is_worth_it(g: Geometry) -> bool:
    """Say whether there is enough to do for a kernel, and in sizes that it has room for."""
    least, most = _FEATURES
    sizes = g.features, g.columns
    fits = least <= min(sizes) and max(sizes) <= most
    return fits and g.rows * g.keys * (g.features + g.columns) >= _WORTH


class _Graph:
    """A program, with who makes and who reads each value."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.outputs = {a for a in program.outputs if not isinstance(a, Literal)}
        self.maker: dict[Any, Equation] = {}
        self.place: dict[Any, int] = {}
        self.readers: dict[Any, list[Equation]] = {}
        for n, e in enumerate(program.equations):
            for v in e.outputs:
                self.maker[v] = e
                self.place[v] = n
            for a in dict.fromkeys(e.inputs):
                if not isinstance(a, Literal):
                    self.readers.setdefault(a, []).append(e)

    def made(self, atom: Any) -> Any:
        """Return the equation that makes a value; None if there is none."""
        return self.maker.get(atom)

    def made_by(self, atom: Any, kind: type) -> Any:
        """Return the equation that makes a value, which has to be of a kind."""
        e = self.maker.get(atom)
        if e is None or not isinstance(e.primitive, kind):
            raise Unlike
        return e

    def calls_for(self, exp: Equation) -> list[Equation]:
        """Return the calls for attention with these exponentials, and for its gradients."""
        type = exp.outputs[0].type
        if type.dtype not in DTYPES or type.ndim < 2 or any(map(is_size, type.shape)):
            return []
        if not all(type.shape):
            return []
        try:
            found = _Attention(self, exp)
            for operand in (found.q, found.k, found.v):
                demand(operand.atom.type.dtype == type.dtype)
            leaks = self.leaks(found.inside) - {found.out}
            if leaks <= {found.shift, found.total}:
                call = found.call(kept=bool(leaks))
                demand(not leaks or not self.depends(call.inputs, *leaks))
                return [call]
            gradients = _Gradients(found)
            more = [one[0] for one in (gradients.d_q, gradients.d_k, gradients.d_v)]
            leaks = self.leaks(found.inside) - {found.out, *more}
            demand(leaks <= {found.shift, found.total})
            call, back = found.call(kept=True), gradients.call()
            demand(not self.depends(call.inputs, found.shift, found.total))
        except Unlike:
            return []
        return [call, back]

    def leaks(self, inside: set[int]) -> set[Any]:
        """Return the results of equations at these places that others read."""

        def is_inside(e: Equation) -> bool:
            places = [self.place[v] for v in e.outputs]
            if inside.issuperset(places):
                return True
            return is_repeated(e) and all([read_inside(v) for v in e.outputs])

        def read_inside(v: Any) -> bool:
            return v not in self.outputs and all([is_inside(e) for e in self.readers.get(v, ())])

        made = [v for n in inside for v in self.program.equations[n].outputs]
        return {v for v in made if not read_inside(v)}

    def depends(self, atoms: Sequence[Any], *targets: Any) -> bool:
        """Say whether any of these values depends on a target."""
        first = min([self.place[v] for v in targets])
        stack, seen = [*atoms], set()
        while stack:
            v = stack.pop()
            if v in targets:
                return True
            if isinstance(v, Literal) or v in seen or self.place.get(v, -1) <= first:
                continue
            seen.add(v)
            stack += self.maker[v].inputs
        return False

    def reader_count(self, v: Any) -> int:
        return len(self.readers.get(v, ()))

    def plain(self, e: Equation) -> bool:
        """Say whether it is a product as kernels compute it."""
        primitive: Any = e.primitive
        dtype = e.outputs[0].type.dtype
        alike = dtype in DTYPES and all([a.type.dtype == dtype for a in e.inputs])
        return alike and primitive.precision is None

    def readers_of(self, v: Any, dims: Dims) -> list[tuple[Equation, Any, Dims]]:
        """Return who reads a value, or a view of it: with what is read, and its axes."""
        found: list[tuple[Equation, Any, Dims]] = []
        for e in self.readers.get(v, ()):
            if is_view(e):
                own = of_result(e, dims, may_split=True)
                found += self.readers_of(e.outputs[0], own)
            else:
                found.append((e, v, dims))
        return found

    def turned(self, of: _Gradients, v: Any, dims: Dims) -> tuple[Any, Dims]:
        """Follow a result as far as it is only turned."""
        while self.reader_count(v) == 1 and v not in self.outputs:
            (e,) = self.readers[v]
            if not isinstance(e.primitive, (Transpose, Reshape)):
                break
            try:
                dims = of_result(e, dims)
            except Unlike:
                break
            of.take(e)
            v = e.outputs[0]
        return v, dims

    def makes_scores(self, atom: Any) -> bool:
        """Say whether an array is a product, or made of one by steps and views."""
        for _ in range(2 * _STEPS + 4):
            e = self.made(atom)
            if e is None or isinstance(atom, Literal):
                return False
            if isinstance(e.primitive, DotGeneral):
                return True
            if isinstance(e.primitive, Select):
                atom = e.inputs[2] if isinstance(e.inputs[1], Literal) else e.inputs[1]
            elif isinstance(e.primitive, Add):
                ways = [a for a in e.inputs if self.makes_scores(a)]
                return bool(ways)
            elif is_view(e) or isinstance(e.primitive, (Mul, Div)):
                others = [a for a in e.inputs if not isinstance(a, Literal)]
                atom = others[0]
            else:
                return False
        return False

    def causal(self, mask: _Operand, row: Axis, key: Axis, inverted: bool) -> int | None:
        """Return the offset of a mask that hides later keys, if it is one."""
        atom, dims = mask.atom, mask.dims
        e = self.made(atom)
        while e is not None and isinstance(e.primitive, Select):
            condition, yes, no = e.inputs
            if not (is_number(yes, 1) and is_number(no, 0)):
                return None
            again = _Operand(self, condition, dims)
            atom, dims = again.atom, again.dims
            e = self.made(atom)
        if e is None or not isinstance(e.primitive, (Ge, Gt, Le, Lt)):
            return None
        left, right = [self.counted(a, dims) for a in e.inputs]
        if left is None or right is None:
            return None
        family = type(e.primitive)
        if inverted:
            family = {Ge: Lt, Gt: Le, Le: Gt, Lt: Ge}[family]
        (first, one), (second, other) = left, right
        if family in (Le, Lt):
            first, one, second, other = second, other, first, one
        if first is not row or second is not key:
            return None
        return one - other - (family in (Gt, Lt))

    def counted(self, atom: Any, dims: Dims) -> tuple[Axis, int] | None:
        """Return the axis whose indices an array has, and the number that is added to them."""
        offset = 0
        while True:
            e = self.made(atom)
            if e is None:
                return None
            if is_repeated(e):
                dims = of_operand(e, dims)
                atom = e.inputs[0]
            elif isinstance(e.primitive, (Add, Sub)) and isinstance(e.inputs[1], Literal):
                sign = 1 if isinstance(e.primitive, Add) else -1
                offset += sign * int(e.inputs[1].value)
                atom = e.inputs[0]
            else:
                break
        if not isinstance(e.primitive, Iota):
            return None
        group = [leaf for axis in dims[e.primitive.dimension] for leaf in axis.leaves()]
        return (group[0], offset) if len(group) == 1 else None

    def call(self, geometry: Geometry, inputs: Sequence[Any], outs: Sequence[Any]) -> Equation:
        """Return one operation for what makes these results of those values."""
        places: set[int] = set()
        stack = [v for v in outs if v not in inputs]
        while stack:
            e = self.maker[stack.pop()]
            n = self.place[e.outputs[0]]
            if n not in places:
                places.add(n)
                read = [a for a in e.inputs if not isinstance(a, Literal) and a not in inputs]
                demand(all([a in self.maker for a in read]))
                stack += read
        written = [self.program.equations[n] for n in sorted(places)]
        own = Program(inputs, written, outs, "attention")
        place = self.maker[outs[0]].place
        return Equation(FusedAttention(own, geometry), tuple(inputs), tuple(outs), place)
