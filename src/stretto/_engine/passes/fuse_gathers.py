"""Make one operation of a gather with how its indices are found, or of a bag, for a kernel.

A bag is rows at indices that are read only to be added up, as an embedding of bags does, however it
is written: their sum, their mean, or their maximum; they may be weighted, and some may not count. A
gather alone is the kernel's where its result is read from memory. Where XLA computes what reads it
element by element, it is part of that, and stays XLA's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.primitive import Kernel
from stretto._engine.core.program import Atom, Equation, Literal, Program, Var
from stretto._engine.core.rewriting import drop_dead, remember, with_equations
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import is_packed
from stretto._engine.higher_order.cond import Cond
from stretto._engine.higher_order.scan import Scan
from stretto._engine.higher_order.while_loop import While
from stretto._engine.kernels import DTYPES
from stretto._engine.ops.arithmetic import Add, Div, Mul
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.comparison import Lt, Select
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.fused_gather import Bag, FusedGather
from stretto._engine.ops.identities import OptimizationBarrier
from stretto._engine.ops.index.primitives import Gather
from stretto._engine.ops.iota import Iota
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.reducing.reduce import ReduceMax
from stretto._engine.ops.row_program import Views
from stretto._engine.ops.shape import Concatenate

_WORTH = 1 << 10
"""The elements read from which a kernel is called."""

_LEAST_BYTES = 64
"""The bytes of a row, as those of the widest vectors: 32 take XLA 0.9 of the time."""

_SINGLE = (4, 8)
"""The bytes of elements that are read one by one."""

_WORTH_OF_SINGLE = 1 << 11
"""The elements from which a kernel is called for single ones."""

_APART = 16
"""The elements of a table for each that is read from which single ones are a kernel's. They come
from memory then, and it asks for more of them at a time: 4,096 of as many rows of 1,000 take 0.6 of
the time of XLA's kernel, which is as quick at those that lie near each other."""

_LOOPS = (Cond, Scan, While)
"""What holds programs that read arrays."""

_NEUTRAL = {ReduceSum: 0.0, ReduceMax: -np.inf}
"""What changes nothing in a reduction, by its class."""

_ALONE = (DotGeneral, OptimizationBarrier)
"""What is no part of other kernels, of all that is counted as such."""


def fuse_gathers(program: Program) -> Program:
    """Return the program with gathers, and sums of what they read, as operations of their own.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> bags = lambda w, i: w[i].mean(1)
    >>> graph = make_graph(bags)(snp.ones((50, 64)), snp.zeros((8, 5), "int32"))
    >>> [e.primitive.name for e in fuse_gathers(graph).equations]
    ['fused_gather']
    """
    return remember(program, "fused gathers", _fused)


def _fused(program: Program) -> Program:
    # Without a call for each operation: most programs have none of these.
    if not any([e.primitive.__class__ is Gather for e in program.equations]):
        return program
    finder = _Finder(program)
    calls = {call.outputs[0]: call for e in program.equations for call in finder.calls_of(e)}
    if not calls:
        return program
    equations = [calls.get(e.outputs[0], e) if e.outputs else e for e in program.equations]
    return drop_dead(with_equations(program, equations))


class _Places(NamedTuple):
    """Where a gather reads: its indices as they were given, and what is done to them."""

    indices: Any
    vectors: bool
    wraps: bool = False
    counting: tuple[tuple[int, int], ...] = ()


class _Finder:
    """Finds gathers for kernels in a program."""

    def __init__(self, program: Program) -> None:
        self.makers: dict[Any, Equation] = {v: e for e in program.equations for v in e.outputs}
        self.uses = Counter([a for e in program.equations for a in e.inputs])
        self.uses.update(program.outputs)
        self.readers: dict[Atom, list[Equation]] = {}
        for e in program.equations:
            for a in e.inputs:
                self.readers.setdefault(a, []).append(e)
        self.views = Views(self.makers)

    def calls_of(self, e: Equation) -> Iterator[Equation]:
        """Return the operation that a gather becomes, with what reads it, if it becomes one."""
        if e.primitive.__class__ is not Gather or not _suits(e) or not self._is_array(e.inputs[0]):
            return
        bag = self._bag(e)
        if bag is not None:
            yield bag
        elif _is_quicker(e) and self._is_stored(e.outputs[0]):
            yield self._call(e, e.outputs[0], ())

    def _call(self, e: Equation, out: Var, beside: Sequence[Any], bag: Bag | None = None) -> Any:
        """Return the equation of a gather, and of what is done with it until ``out``."""
        places = self._places(e)
        inputs: tuple[Any, ...] = (e.inputs[0], places.indices, *beside)
        if len({*inputs}) < len(inputs):
            places = _Places(e.inputs[1], True)
            inputs = (e.inputs[0], e.inputs[1], *beside)
        made: dict[Any, Equation] = {}

        def need(a: Any) -> None:
            if not isinstance(a, Literal) and a not in inputs and a not in made:
                for one in self.makers[a].inputs:
                    need(one)
                made[a] = self.makers[a]

        need(out)
        inner = Program(inputs, [*made.values()], [out], "gather")
        gather: Any = e.primitive
        op = FusedGather(inner, gather, *places[1:], bag)
        return Equation(op, inputs, (out,), e.place)

    # Bags

    def _reader(self, a: Any, family: Any) -> Equation | None:
        """Return what reads a value, if that is one operation of a family, and nothing else is."""
        (e,) = self.readers.get(a, [None]) if self.uses[a] == 1 else (None,)
        return e if e is not None and isinstance(e.primitive, family) else None

    def _bag(self, e: Equation) -> Equation | None:
        """Return the operation for a gather whose rows are only added up."""
        value, weights, counts = e.outputs[0], [], []
        if value.type.dtype not in DTYPES or not _is_of_rows(e):
            return None
        product = self._reader(value, Mul)
        if product is not None:
            weights = [a for a in product.inputs if a is not value]
            value = product.outputs[0]
        choice = self._reader(value, Select)
        if choice is not None and choice.inputs[1] is value:
            counts = [choice.inputs[0]]
            value = choice.outputs[0]
        last = self._reader(value, (ReduceSum, ReduceMax))
        if last is None or not all([self._is_by_row(a, e) for a in (*weights, *counts)]):
            return None
        op: Any = last.primitive
        neutral = _NEUTRAL[op.__class__]
        unlike = choice is not None and not _is(choice.inputs[2], neutral)
        if unlike or (neutral and product) or {*op.axes} & {*_numbers(e).offset_dims}:
            return None
        kind = "greatest" if neutral else "weighted" if product else "sum"
        out, divisor = last.outputs[0], None
        quotient = None if neutral else self._reader(out, Div)
        if quotient is not None and quotient.inputs[0] is out:
            by = quotient.inputs[1]
            if isinstance(by, Literal):
                out, divisor = quotient.outputs[0], float(by.value)
        bag = Bag(kind, op.axes, bool(counts), divisor)
        return self._call(e, out, (*weights, *counts), bag)

    def _is_by_row(self, a: Any, gather: Equation) -> bool:
        """Say whether a value is the same along the rows that a gather reads."""
        if isinstance(a, Literal) or a.type.shape != gather.outputs[0].type.shape:
            return False
        strides = self.views(a)[1].strides
        return not any([strides[d] for d in _numbers(gather).offset_dims])

    def _is_array(self, a: Any) -> bool:
        """Say whether a value is an array, in any order of axes, and nothing to be computed.

        XLA computes what a gather reads, and no more, where the table is made element by element,
        as by a conversion.
        """
        for kinds in ((Transpose,), (Reshape,)):
            while (e := self.makers.get(a)) is not None and isinstance(e.primitive, kinds):
                a = e.inputs[0]
        return e is None or isinstance(e.primitive, _ALONE) or not _is_part(e.primitive)

    # A gather alone

    def _is_stored(self, a: Atom) -> bool:
        """Say whether nothing that reads a value computes it anew, as part of its own kernel."""
        for e in self.readers.get(a, ()):
            primitive = e.primitive
            alike = isinstance(primitive, Select) and e.inputs[1] is e.inputs[2]
            if isinstance(primitive, Reshape) or primitive.same or alike:
                if not self._is_stored(e.outputs[0]):
                    return False
            elif not isinstance(primitive, _ALONE) and _is_part(primitive):
                return False
        return True

    # Indices

    def _places(self, e: Equation) -> _Places:
        """Return where a gather reads."""
        as_given = _Places(e.inputs[1], True)
        moved, x = _numbers(e).start_index_map, e.inputs[0].type
        gather: Any = e.primitive
        maker = self.makers.get(e.inputs[1])
        if maker is None:
            return as_given
        batch = e.inputs[1].type.shape[:-1]
        parts = maker.inputs if isinstance(maker.primitive, Concatenate) else e.inputs[1:]
        if len(parts) != len(moved):
            return as_given
        found: list[tuple[Any, bool]] = []
        counting: list[tuple[int, int]] = []
        for k, part in enumerate(parts):
            column = self.makers.get(part)
            if column is None or not isinstance(column.primitive, Reshape):
                return as_given
            (line,) = column.inputs
            if line.type.shape != batch:
                return as_given
            line, wraps = self._wrapped(line, x.shape[moved[k]])
            axis = self._counts(line)
            if (
                axis is not None
                and batch[axis] <= x.shape[moved[k]] - gather.slice_sizes[moved[k]] + 1
            ):
                counting.append((k, axis))
            else:
                found.append((line, wraps))
        if len(found) != 1 or isinstance(found[0][0], Literal):
            return as_given
        return _Places(found[0][0], False, found[0][1], tuple(counting))

    def _wrapped(self, a: Any, size: int) -> tuple[Any, bool]:
        """Return indices as they were before negative ones were counted from the end."""
        choice = self.makers.get(a)
        if choice is None or not isinstance(choice.primitive, Select):
            return a, False
        mask, moved, plain = choice.inputs
        less, more = self.makers.get(mask), self.makers.get(moved)
        if (
            less is not None
            and more is not None
            and isinstance(less.primitive, Lt)
            and isinstance(more.primitive, Add)
            and less.inputs[0] is more.inputs[0] is plain
            and _is(less.inputs[1], 0)
            and _is(more.inputs[1], size)
        ):
            return plain, True
        return a, False

    def _counts(self, a: Any) -> int | None:
        """Return the axis along which a value counts from 0 on, if it is such."""
        if isinstance(a, Literal):
            return None
        base, view = self.views(a)
        maker = self.makers.get(base)
        if maker is None or not isinstance(maker.primitive, Iota) or base.type.ndim != 1:
            return None
        along = [d for d, stride in enumerate(view.strides) if stride]
        return along[0] if len(along) == 1 and view.strides[along[0]] == 1 else None


def _numbers(gather: Equation) -> Any:
    op: Any = gather.primitive
    return op.dimension_numbers


def _is(a: Atom, value: float) -> bool:
    return isinstance(a, Literal) and bool(a.value == value)


def _suits(e: Equation) -> bool:
    """Say whether a kernel may read what a gather does."""
    (x, indices), (out,) = [a.type for a in e.inputs], [v.type for v in e.outputs]
    if any([is_size(n) for t in (x, indices, out) for n in t.shape]) or is_packed(x.dtype):
        return False
    operands = not any([isinstance(a, Literal) for a in e.inputs])
    return operands and e.inputs[0] is not e.inputs[1] and out.size >= _WORTH


def _is_of_rows(e: Equation) -> bool:
    """Say whether a gather reads rows of some length that lie side by side."""
    table, out = e.inputs[0].type, e.outputs[0].type
    own, last = _numbers(e).offset_dims, table.ndim - 1
    if not own or own[-1] != out.ndim - 1 or last in _numbers(e).collapsed_slice_dims:
        return False
    return out.shape[-1] * out.dtype.itemsize >= _LEAST_BYTES


def _is_quicker(e: Equation) -> bool:
    """Say whether a kernel is quicker than XLA at a gather that is not a bag."""
    if _is_of_rows(e):
        return True
    x, out = e.inputs[0].type, e.outputs[0].type
    single = not any([out.shape[d] > 1 for d in _numbers(e).offset_dims])
    many = _WORTH_OF_SINGLE <= out.size <= x.size // _APART
    return single and many and out.dtype.itemsize in _SINGLE


def _is_part(primitive: Any) -> bool:
    """Say whether XLA makes an operation part of a kernel with what it reads; a function may be."""
    if primitive.holds_programs:
        return not isinstance(primitive, _LOOPS)
    kernel = primitive.kernel or (Kernel.ONE if primitive.light else Kernel.WRITTEN)
    return kernel is not Kernel.WRITTEN
