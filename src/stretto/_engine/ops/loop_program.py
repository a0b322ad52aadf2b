"""Bodies of loops as the instructions of a kernel (``kernels/recurrent.h``).

Such a body takes rows through products by matrices that do not change and element-wise operations,
as recurrent layers do, forward and backward. All its values are of one *lead*, the axes along which
rows are counted, and have columns of their own; the first axes of the lead may be members that have
matrices of their own. Slices of columns are read where they lie, and zeros around columns are
written once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.program import Atom, Equation, Literal, Program, Var
from stretto._engine.core.types import ArrayType
from stretto._engine.kernels import DTYPES
from stretto._engine.ops import arithmetic, comparison
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.index.dynamic import DynamicSlice, DynamicUpdateSlice
from stretto._engine.ops.index.primitives import ScatterAdd
from stretto._engine.ops.row_program import (
    CODES,
    ELEMENTWISE,
    OF_BOOLS,
    View,
    Views,
    literal_bits,
)
from stretto._engine.ops.shape import Concatenate, Pad, Slice

_BOOL = np.dtype(bool)
_WHOLE, _NEAR, _CARRY, _NEXT, _STACK, _INPUT, _LITERAL = range(7)
_PRODUCT, _TO_NEXT, _TO_STACK, _LOAD = -1, -2, -3, 0
_FLOATS, _BOOLS = range(2)
_VALUES, _SLOTS, _ARRAYS = 256, 128, 64


class _Unfit(Exception):
    """The kernel has nothing for this."""


class _Value:
    """Rows of one turn."""

    def __init__(self, kind: int, index: int, width: int, is_bool: bool) -> None:
        self.kind, self.index, self.width, self.is_bool = kind, index, width, is_bool
        self.slot = -1


class _Columns(NamedTuple):
    """Some columns of a value; of a value of one column, ``at`` -1 is that one repeated."""

    value: _Value
    at: int
    width: int

    def part(self, start: int, stop: int) -> _Columns:
        """Return some of these columns."""
        return _Columns(self.value, self.at + start if self.at >= 0 else -1, stop - start)


class _Piece(NamedTuple):
    """Columns that are put between zeros."""

    start: int
    stop: int
    columns: _Columns
    added: bool
    """Whether they were added to zeros, which leaves no -0."""


class _Matrix(NamedTuple):
    """A matrix that does not change, with its strides in elements."""

    input: int
    depth: int
    columns: int
    member: int
    k: int
    n: int


class _Line(NamedTuple):
    """An instruction of the kernel."""

    op: int
    width: int
    out: _Value | int
    out_at: int
    operands: tuple[_Columns, ...]
    index: int = 0
    """Of a product's matrix, or of the carry or the stack that is written."""


class Product(NamedTuple):
    """A product of rows by a matrix that does not change."""

    rows: Atom
    matrix: Atom
    shared: int
    """How many of the first axes both have."""
    summed: int
    """The axis of the matrix that is summed."""

    @property
    def lead(self) -> tuple[int, ...]:
        """The axes along which rows are counted."""
        return self.rows.type.shape[:-1]


def product_of(e: Equation, fixed: Callable[[Atom], bool]) -> Product | None:
    """Return how an equation multiplies rows by something ``fixed``, if it does so."""
    primitive: Any = e.primitive
    if not isinstance(primitive, DotGeneral) or primitive.precision is not None:
        return None
    kept = [fixed(a) for a in e.inputs]
    dtypes = {a.type.dtype for a in (*e.inputs, *e.outputs)}
    if kept.count(True) != 1 or len(dtypes) > 1 or not dtypes <= {*DTYPES}:
        return None
    at = kept.index(True)
    matrix, rows = e.inputs[at], e.inputs[1 - at]
    shared, summed = primitive.shared, primitive.summed
    count = len(shared[0])
    if shared[0] != tuple(range(count)) or shared[1] != shared[0] or len(summed[0]) != 1:
        return None
    if matrix.type.ndim != count + 2 or summed[1 - at] != (rows.type.ndim - 1,):
        return None
    if at == 0 and rows.type.ndim > count + 1:
        return None  # its columns come first
    return Product(rows, matrix, count, summed[at][0])


class Instructions(NamedTuple):
    """What the kernel is told to run a loop."""

    numbers: tuple[int, ...]
    members: int
    """How many of the first axes of a turn's rows are members with matrices of their own."""

    def by_members(self, stacks: Sequence[View]) -> tuple[tuple[int, ...], list[bool]]:
        """Return the numbers for stacks that lie so, and have members in front of turns.

        The flags say of which stacks that are read this is known; others lie row by row.
        """
        numbers, count = [*self.numbers], self.members
        numbers[_APART] = 1
        first = self.numbers[_CONSTS] + self.numbers[_CONSTS + 1]
        rows: dict[int, list[int]] = {}
        for n in range(self.numbers[_CONSTS + 3]):
            at = _HEAD + n * _VIEW
            rows.setdefault(self.numbers[at] - first, []).append(at)
        known = []
        for n, (shape, strides) in enumerate(stacks):
            plain = _strides(shape, _row_major(shape[:-1], shape[-1])[1], count)
            own = None if strides[-1] != 1 else _strides(shape, strides[:-1], count)
            tables = rows.get(n, [])
            fits = all([(*numbers[at + 2 : at + 5],) == plain for at in tables])
            known.append(own is not None and plain is not None and fits)
            for at in tables if known[-1] else ():
                numbers[at + 2 : at + 5] = own or ()
        return tuple(numbers), known


_APART, _CONSTS, _HEAD, _VIEW = 5, 6, 15, 6


def _strides(
    shape: Sequence[int], strides: Sequence[int], members: int
) -> tuple[int, int, int] | None:
    """Return the strides of turns, members and rows in a stack, if each has one."""
    try:
        count = 1 + members
        own = _joined(shape[1:count], strides[1:count])
        return strides[0], own, _joined(shape[count:-1], strides[count:])
    except _Unfit:
        return None


def instructions(
    body: Program, consts: int, carry: int, length: int, reverse: bool
) -> Instructions | None:
    """Return what the kernel is told to run a loop over a body; None if it cannot."""
    try:
        found = _Compiler(body, consts, carry)
        numbers = found.numbers(length, reverse)
        return Instructions(numbers, found.shared if numbers[1] > 1 else 0)
    except _Unfit:
        return None


def _needs(condition: object) -> None:
    if not condition:
        raise _Unfit


class _Compiler:
    """Finds for each operation of a body what the kernel does, and gives values their places."""

    def __init__(self, body: Program, consts: int, carry: int) -> None:
        self.body, self.consts, self.carry = body, consts, carry
        self.definers = {v: e for e in body.equations for v in e.outputs}
        self.views = Views(self.definers)
        self.fixed = {v: n for n, v in enumerate(body.inputs[:consts])}
        self.moving = {v: consts + carry + n for n, v in enumerate(body.inputs[consts + carry :])}
        self.values: list[_Value] = []
        self.lines: list[_Line] = []
        self.literals: dict[int, int] = {}
        self.inputs: dict[Any, _Value] = {}
        self.tables: list[tuple[int, ...]] = []
        self.matrices: dict[_Matrix, int] = {}
        self.columns: dict[Any, _Columns] = {}
        self.pieces: dict[Any, tuple[_Piece, ...]] = {}
        self.products: dict[Equation, Product] = {}
        self._find_lead()
        for c, v in enumerate(body.inputs[consts : consts + carry]):
            _needs(v.type.dtype == self.dtype)
            self.columns[v] = self._whole(self._value(_CARRY, c, self._width(v.type, own=True)))
        read = self._read()
        for e in body.equations:
            if e.outputs[0] in read:
                self._translate(e)
        self._give()

    def _find_lead(self) -> None:
        """Find the axes of rows and of members from the products."""
        fixed = lambda a: self.views(a)[0] in self.fixed
        for e in self.body.equations:
            found = product_of(e, fixed)
            if found is not None:
                self.products[e] = found
        _needs(self.products)
        one = next(iter(self.products.values()))
        self.lead, self.dtype = one.lead, one.rows.type.dtype
        self.shared = max([p.shared for p in self.products.values()])
        for p in self.products.values():
            _needs(p.lead == self.lead and p.rows.type.dtype == self.dtype)
            _needs(p.shared in (0, self.shared))
        self.rank = len(self.lead)

    def _read(self) -> set[Any]:
        """Return what the outputs need."""
        read = {*self.body.outputs}
        for e in reversed(self.body.equations):
            if not read.isdisjoint(e.outputs):
                read.update(e.inputs)
        return read

    # Values

    def _width(self, type: ArrayType, own: bool = False) -> int:
        """Return the columns of a value; ``own``: if there is one of it for each row."""
        shape = type.shape
        if len(shape) == self.rank + 1 and shape[:-1] == self.lead:
            return shape[-1]
        _needs(shape == self.lead or (not own and not shape))
        return 1

    def _value(self, kind: int, index: int, width: int, is_bool: bool = False) -> _Value:
        value = _Value(kind, index, width, is_bool)
        self.values.append(value)
        return value

    def _whole(self, value: _Value) -> _Columns:
        return _Columns(value, 0, value.width)

    def _new(self, type: ArrayType) -> _Columns:
        return self._whole(self._value(_WHOLE, 0, self._width(type), type.dtype == _BOOL))

    def _literal(self, literal: Literal, width: int) -> _Columns:
        bits = literal_bits(literal, self.dtype)
        key = "literal", bits
        if key not in self.inputs:
            index = self.literals.setdefault(bits, len(self.literals))
            self.inputs[key] = self._value(_LITERAL, index, 1)
        return _Columns(self.inputs[key], -1, width)

    def _zero(self, type: ArrayType) -> Literal:
        return Literal(self.dtype.type(0), type)

    def _operand(self, atom: Atom) -> _Columns:
        """Return where an operand lies; it is put together before, if it is in pieces."""
        width = self._width(atom.type)
        if isinstance(atom, Literal):
            return self._literal(atom, width)
        if atom not in self.columns and atom in self.pieces:
            self.columns[atom] = self._put_together(atom)
        found = self.columns.get(atom)
        if found is None:
            found = self.columns[atom] = self._viewed(atom, width)
        return found

    def _viewed(self, atom: Atom, width: int) -> _Columns:
        base, view = self.views(atom)
        e = self.definers.get(base)
        if e is not None and isinstance(e.primitive, BroadcastInDim) and len(e.inputs) == 1:
            (inner,) = e.inputs
            if isinstance(inner, Literal):
                return self._literal(inner, width)
        strides = [0 if n == 1 else s for n, s in zip(*view, strict=True)]
        lead, column = tuple(strides[: self.rank]), sum(strides[self.rank :])
        if not view.shape:
            lead = (0,) * self.rank
        if base in self.fixed or base in self.moving:
            return self._input(base, lead, column, width)
        _needs(base is not atom and not isinstance(base, Literal))
        own = self._operand(base)  # each value of the body has rows of its own
        _needs(own.width == (width if column else 1))
        if own.width == width:
            return own
        return _Columns(own.value, -1, width) if own.at == 0 else self._alone(own, width)

    def _alone(self, one: _Columns, width: int) -> _Columns:
        """Return one column of several, repeated: it is copied, if it is not alone already."""
        if one.at > 0:
            out = self._whole(self._value(_WHOLE, 0, 1, one.value.is_bool))
            self._write("copy", out, one)
            one = out
        return _Columns(one.value, -1, width)

    def _input(self, base: Any, lead: tuple[int, ...], column: int, width: int) -> _Columns:
        _needs(base.type.dtype in (self.dtype, _BOOL) and (column == 1 or not column))
        members = _joined(self.lead[: self.shared], lead[: self.shared])
        rows = _joined(self.lead[self.shared :], lead[self.shared :])
        own = width if column else 1
        key = base, members, rows, own
        if key not in self.inputs:
            moves = base in self.moving
            turn = math.prod(base.type.shape) if moves else 0
            is_bool = base.type.dtype == _BOOL
            index = self.moving[base] if moves else self.fixed[base]
            self.tables.append((index, _BOOLS if is_bool else _FLOATS, turn, members, rows, 1))
            value = self.inputs[key] = self._value(_INPUT, len(self.tables) - 1, own, is_bool)
            self.lines.append(_Line(_LOAD, own, value, 0, ()))
        return _Columns(self.inputs[key], 0 if own == width else -1, width)

    # Operations

    def _write(self, op: str, out: _Columns, *operands: _Columns) -> None:
        self.lines.append(_Line(CODES[op], out.width, out.value, out.at, operands))

    def _translate(self, e: Equation) -> None:
        primitive: Any = e.primitive
        _needs(len(e.outputs) == 1)
        (out,) = e.outputs
        if all([isinstance(a, Literal) for a in e.inputs]) or self.views.is_view(out):
            return  # it is looked up where it is read
        family = type(primitive)
        if e in self.products:
            self._multiply(self.products[e], out)
        elif family in (Slice, DynamicSlice):
            self._slice(e)
        elif not self._place_between_zeros(e):
            op = self._elementwise(e)
            operands = [self._operand(a) for a in e.inputs]
            columns = self._new(out.type)
            for x in operands:
                _needs(x.width == columns.width or x.at < 0)
            operands = [
                x if x.width == columns.width else self._alone(x, columns.width) for x in operands
            ]
            if op == "square":
                op, operands = "mul", operands * 2
            self._write(op, columns, *operands)
            self.columns[out] = columns

    def _elementwise(self, e: Equation) -> str:
        """Return the kernel's operation for an element-wise one."""
        primitive: Any = e.primitive
        family, out = type(primitive), e.outputs[0].type
        dtypes = {a.type.dtype for a in e.inputs}
        _needs(out.dtype in (self.dtype, _BOOL) and dtypes <= {self.dtype, _BOOL})
        if family in OF_BOOLS:
            return OF_BOOLS[family]
        if family is comparison.Select:
            return "select"
        if family is ConvertElementType:
            _needs(out.dtype == self.dtype)
            return "number" if dtypes == {_BOOL} else "copy"
        _needs(dtypes == {self.dtype})
        if family is arithmetic.Square:
            return "square"
        known = ELEMENTWISE.get(family)
        _needs(known)
        return known  # type: ignore[return-value]

    def _multiply(self, product: Product, out: Var) -> None:
        base, view = self.views(product.matrix)
        strides = view.strides
        depth, columns = product.summed, 2 * product.shared + 1 - product.summed
        members = _joined(self.lead[: product.shared], strides[: product.shared])
        sizes = view.shape[depth], view.shape[columns]
        matrix = _Matrix(self.fixed[base], *sizes, members, strides[depth], strides[columns])
        index = self.matrices.setdefault(matrix, len(self.matrices))
        rows = self._operand(product.rows)
        _needs(rows.at >= 0)
        self.columns[out] = self._new(out.type)
        self.lines.append(_Line(_PRODUCT, sizes[1], self.columns[out].value, 0, (rows,), index))

    def _slice(self, e: Equation) -> None:
        primitive: Any = e.primitive
        (out,) = e.outputs
        x = e.inputs[0]
        shape = x.type.shape
        if isinstance(primitive, Slice):
            starts, sizes = primitive.starts, out.type.shape
            _needs(all([stride == 1 for stride in primitive.strides]))
        else:
            starts, sizes = self._starts(e.inputs[1:], shape, out.type.shape), out.type.shape
        _needs(len(shape) == self.rank + 1 and sizes[:-1] == shape[:-1])
        start, stop = starts[-1], starts[-1] + sizes[-1]
        for piece in self.pieces.get(x, ()):
            if piece.start <= start and stop <= piece.stop and not piece.added:
                self.columns[out] = piece.columns.part(start - piece.start, stop - piece.start)
                return
        apart = [p.stop <= start or stop <= p.start for p in self.pieces.get(x, ())]
        if apart and all(apart):
            self.columns[out] = self._literal(self._zero(out.type), stop - start)
        else:
            self.columns[out] = self._operand(x).part(start, stop)

    def _starts(
        self, atoms: Sequence[Atom], shape: Sequence[int], sizes: Sequence[int]
    ) -> list[int]:
        """Return where a slice begins, which is moved so that it fits."""
        known = [self._known(a) for a in atoms]
        return _moved([int(k) for k in known], shape, sizes)

    def _known(self, atom: Atom) -> np.ndarray:
        """Return the value of what is made of literals."""
        if isinstance(atom, Literal):
            return atom.array()
        e = self.definers.get(atom)
        _needs(e is not None and e.inputs and not e.primitive.multiple)
        _needs(e and all([isinstance(a, Literal) for a in e.inputs]))
        return e.primitive.reference(*[a.array() for a in e.inputs])  # type: ignore[union-attr]

    def _place_between_zeros(self, e: Equation) -> bool:
        """Note where an operation puts columns; say whether it does that alone."""
        primitive: Any = e.primitive
        (out,) = e.outputs
        shape = out.type.shape
        if len(shape) != self.rank + 1 or shape[:-1] != self.lead or out.type.dtype != self.dtype:
            return False
        before: tuple[_Piece, ...] = ()
        added = False
        if isinstance(primitive, Pad):
            x, value = e.inputs
            _needs(_is_zero(value) and not any([any(c) for c in primitive.config[:-1]]))
            start, high, between = primitive.config[-1]
            _needs(start >= 0 and high >= 0 and not between)
        elif isinstance(primitive, DynamicUpdateSlice):
            whole, x, *starts = e.inputs
            _needs(x.type.shape[:-1] == self.lead)
            start = self._starts(starts, shape, x.type.shape)[-1]
            if not _is_zero(whole):
                _needs(whole in self.pieces)
                same = start, start + x.type.shape[-1]
                before = tuple([p for p in self.pieces[whole] if (p.start, p.stop) != same])
        elif isinstance(primitive, ScatterAdd):
            whole, indices, x = e.inputs
            if not _is_zero(whole):
                _needs(whole in self.pieces)
                before = self.pieces[whole]
            start, added = self._scattered(primitive, indices, x, shape), True
        elif isinstance(primitive, Concatenate) and primitive.axis == self.rank:
            for a in e.inputs:
                start = before[-1].stop if before else 0
                before += (_Piece(start, start + a.type.shape[-1], self._operand(a), False),)
            self.pieces[out] = before
            return True
        elif isinstance(primitive, arithmetic.Add) and all([a in self.pieces for a in e.inputs]):
            found = [p._replace(added=True) for a in e.inputs for p in self.pieces[a]]
            found.sort(key=lambda p: p.start)
            if any([p.stop > q.start for p, q in itertools.pairwise(found)]):
                return False
            self.pieces[out] = tuple(found)
            return True
        else:
            return False
        stop = start + x.type.shape[-1]
        _needs(all([p.stop <= start or stop <= p.start for p in before]))
        piece = _Piece(start, stop, self._operand(x), added)
        before = tuple([p._replace(added=p.added or added) for p in before])
        self.pieces[out] = tuple(sorted([*before, piece], key=lambda p: p.start))
        return True

    def _scattered(self, primitive: Any, indices: Atom, x: Atom, shape: tuple[int, ...]) -> int:
        """Return where a scatter adds all of a slice."""
        numbers = primitive.dimension_numbers
        rank = self.rank + 1
        plain = numbers.update_window_dims == tuple(range(rank))
        _needs(plain and not numbers.inserted_window_dims and not numbers.operand_batching_dims)
        _needs(x.type.shape[:-1] == self.lead)
        known = self._known(indices)
        _needs(known.shape == (len(numbers.scatter_dims_to_operand_dims),))
        starts = [0] * rank
        for axis, start in zip(numbers.scatter_dims_to_operand_dims, known, strict=True):
            starts[axis] = int(start)
        _needs(starts == _moved(starts, shape, x.type.shape))
        return starts[-1]

    def _put_together(self, atom: Atom) -> _Columns:
        """Write columns and the zeros between them, from the first: vectors may end behind them."""
        out = self._new(atom.type)
        zero = self._zero(atom.type)
        at = 0
        for piece in (*self.pieces[atom], None):
            start = piece.start if piece else out.width
            if at < start:
                self._write("copy", out.part(at, start), self._literal(zero, start - at))
            if piece:
                part, at = out.part(piece.start, piece.stop), piece.stop
                if piece.added:  # -0 + 0 is 0
                    self._write("add", part, piece.columns, self._literal(zero, part.width))
                else:
                    self._write("copy", part, piece.columns)
        return out

    def _give(self) -> None:
        """Write the carries and the stacks; what is nothing else is computed there."""
        taken: set[int] = set()
        given: list[tuple[int, int, _Columns]] = []
        for n, atom in enumerate(self.body.outputs):
            self._width(atom.type, own=True)
            columns = self._operand(atom)
            _needs(atom.type.dtype == self.dtype or (n >= self.carry and atom.type.dtype == _BOOL))
            op, index = (_TO_NEXT, n) if n < self.carry else (_TO_STACK, n - self.carry)
            given.append((op, index, columns))
            type = _BOOLS if atom.type.dtype == _BOOL else _FLOATS
            self.lines.append(_Line(op, columns.width, type, 0, (columns,), index))
        for op, index, (value, at, width) in sorted(given, key=lambda one: one[0]):
            own = value.kind == _WHOLE and not at and width == value.width and not value.is_bool
            if own and id(value) not in taken:
                taken.add(id(value))
                value.kind, value.index = (_STACK if op == _TO_STACK else _NEXT), index

    # Places

    def _give_slots(self) -> int:
        """Give values places in scratch, which are used again; return how many there are."""
        phase, phases, last = 0, {}, {}
        for n, line in enumerate(self.lines):
            own = phase + 1 if line.op == _PRODUCT else phase  # all rows, before the next ones
            values = [x.value for x in line.operands]
            values += [line.out] if isinstance(line.out, _Value) else []
            for value in values:
                last[id(value)] = n
                seen = phases.setdefault(id(value), set())
                seen.update((phase, own))
            phase = own + 1 if line.op == _PRODUCT else phase
        for value in self.values:
            if value.kind == _WHOLE and len(phases.get(id(value), ())) == 1:
                value.kind = _NEAR
        near: list[int] = []
        whole: list[int] = []
        ended: list[int] = []  # by a few rows, while others are still to come
        count = 0
        for n, line in enumerate(self.lines):
            values = [x.value for x in line.operands]
            if isinstance(line.out, _Value):
                values.append(line.out)
            if line.op == _PRODUCT:
                whole += ended
                ended.clear()
            for value in values:
                if value.slot < 0 and value.kind in (_WHOLE, _NEAR, _STACK, _INPUT):
                    pool = near if value.kind == _NEAR else whole
                    value.slot = pool.pop() if pool else count
                    count += value.slot == count
            for value in {id(v): v for v in values}.values():
                if value.slot >= 0 and last[id(value)] == n:
                    (near if value.kind == _NEAR else ended).append(value.slot)
        return count

    def numbers(self, length: int, reverse: bool) -> tuple[int, ...]:
        """Return the numbers in the kernel's order."""
        slots = self._give_slots()
        members = math.prod(self.lead[: self.shared])
        rows = math.prod(self.lead[self.shared :])
        widths = [self._width(a.type) for a in self.body.outputs]
        stacks = len(widths) - self.carry
        _needs(members and rows and all([v.width for v in self.values]))
        _needs(all([m.depth and m.columns for m in self.matrices]))
        counts = [len(self.values), slots, len(self.matrices), len(self.literals), len(self.lines)]
        _needs(counts[0] <= _VALUES and slots <= _SLOTS and counts[2] <= _ARRAYS)
        _needs(len(self.body.inputs) <= _ARRAYS and len(widths) <= _ARRAYS)
        numbers = [int(self.dtype.itemsize == 8), members, rows, length, int(reverse), 0]
        numbers += [self.consts, self.carry, stacks, len(self.tables), *counts]
        numbers += [n for table in self.tables for n in table]
        for v in self.values:
            numbers += [v.kind, v.index, v.slot, v.width]
        numbers += [n for matrix in self.matrices for n in matrix]
        numbers += [*widths, *self.literals]
        place = {id(v): n for n, v in enumerate(self.values)}
        for line in self.lines:
            out = place[id(line.out)] if isinstance(line.out, _Value) else line.out
            sources = [place[id(x.value)] for x in line.operands]
            ats = [x.at for x in line.operands]
            if line.op < _LOAD:
                sources.append(line.index)
            missing = 3 - len(sources)
            numbers += [line.op, line.width, out, line.out_at, *sources, *[-1] * missing]
            numbers += [*ats, *[0] * (3 - len(ats))]
        return tuple([int(n) for n in numbers])


def _row_major(lead: Sequence[int], width: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    strides = [width * math.prod(lead[k + 1 :]) for k in range(len(lead))]
    return tuple(lead), tuple(strides)


def _joined(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return the stride of axes as one."""
    stride, inner = 0, 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        _needs(inner == 1 or s == stride * inner)
        stride = s if inner == 1 else stride
        inner *= n
    return stride


def _moved(starts: Sequence[int], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return where a slice begins, moved so that it fits."""
    return [
        min(max(start, 0), n - size) for start, n, size in zip(starts, shape, sizes, strict=True)
    ]


def _is_zero(a: Any) -> bool:
    return isinstance(a, Literal) and not a.value and not np.signbit(a.value)
