"""Programs over rows as the instructions of a kernel (``kernels/rows.h``).

All operations of such a program work on arrays of one shape, of which some axes, the *columns*,
make up rows, or on one value a row. So softmax, norms, their gradients and what users write like
them can be done row by row, while a row is in the cache. What an operation reads may be repeated
along some axes: it is read where it lies, by strides. Columns are the last axes, or others lie
behind them, as pixels behind channels. Rows may be stretches, each with values of its own
(*parts*), as the channels of a group have weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.program import Atom, Equation, Literal, Program, Var
from stretto._engine.core.types import ArrayType
from stretto._engine.ops import (
    arithmetic,
    bits,
    comparison,
    exponential,
    extrema,
    rounding,
    trigonometric,
)
from stretto._engine.ops.broadcast import BroadcastInDim, ReduceSum
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.identities import OptimizationBarrier
from stretto._engine.ops.iota import Iota
from stretto._engine.ops.layout import Reshape
from stretto._engine.ops.reducing.reduce import ReduceMax, ReduceMin
from stretto._engine.ops.shape import Slice
from stretto._engine.ops.special import error_functions

_BOOL = np.dtype(bool)

_NAMES = """load copy add sub mul div max min neg abs exp exp_difference log log1p expm1 sqrt rsqrt
eq ne lt le gt ge is_finite and or not select number is_column sum sum_of_products greatest least
first add_up mul_add sub_mul sum_of_differences sum_of_squared_differences mul_mul add_mul add_add
tanh sech_squared logistic logistic_slope sign erf erfc tanh_pair logistic_pair
"""
CODES = {name: code for code, name in enumerate(_NAMES.split())}
"""The kernel's operations, in its order."""

ELEMENTWISE: dict[type, str] = {
    arithmetic.Add: "add",
    arithmetic.Sub: "sub",
    arithmetic.Mul: "mul",
    arithmetic.Div: "div",
    arithmetic.Neg: "neg",
    arithmetic.Abs: "abs",
    extrema.Max: "max",
    extrema.Min: "min",
    arithmetic.Sign: "sign",
    exponential.Exp: "exp",
    exponential.Log: "log",
    exponential.Log1p: "log1p",
    exponential.Logistic: "logistic",
    exponential.LogisticSlope: "logistic_slope",
    trigonometric.Tanh: "tanh",
    trigonometric.SechSquared: "sech_squared",
    error_functions.Erf: "erf",
    error_functions.Erfc: "erfc",
    exponential.Sqrt: "sqrt",
    exponential.Rsqrt: "rsqrt",
    comparison.Eq: "eq",
    comparison.Ne: "ne",
    comparison.Lt: "lt",
    comparison.Le: "le",
    comparison.Gt: "gt",
    comparison.Ge: "ge",
    comparison.Select: "select",
    rounding.IsFinite: "is_finite",
}
CURVES = (
    error_functions.Erf,
    error_functions.Erfc,
    exponential.Exp,
    exponential.Log,
    exponential.Log1p,
    exponential.Logistic,
    exponential.LogisticSlope,
    trigonometric.SechSquared,
    trigonometric.Tanh,
)
"""Functions that differ in their last bits wherever they are computed: XLA's are up to 4 units
off, and 60 for ``Erfc``, the kernel's 1 to 4. So a small program that has one is a call although
its bits are not XLA's: 32 x 128 of GELU take 11 microseconds, and 74 by XLA."""
OF_BOOLS: dict[type, str] = {bits.And: "and", bits.Or: "or", bits.Not: "not"}
_OF_SCALARS: dict[type, str] = {
    exponential.Expm1: "expm1",
}
"""Operations that the kernel does one by one, so of one value a row alone."""
_REDUCTIONS: dict[type, str] = {ReduceSum: "sum", ReduceMax: "greatest", ReduceMin: "least"}

_CHUNK, _KEPT, _SCALAR, _PART, _LITERAL, _NONE = range(6)
_FLOATS, _BOOLS, _INTEGERS, _LONGS = range(4)
_AXES = 4
_MOST = 96

Kind = str
"""What a value is: ``rows``, ``scalars`` (one a row), ``parts`` (one a stretch of a row), or
``sums`` over rows (one a column). What is read from outside may be ``columns``, too: one a column,
where others lie behind."""


class View(NamedTuple):
    """How an array lies in the memory of another: its shape, and strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _row_major(shape: Sequence[int]) -> View:
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return View(tuple(shape), tuple(strides))


class Views:
    """Finds which array the atoms of a program are read from, through repeats and reshapes."""

    def __init__(self, definers: Mapping[Any, Equation]) -> None:
        self.definers = definers
        self._known: dict[Atom, tuple[Any, View]] = {}

    def __call__(self, atom: Atom) -> tuple[Any, View]:
        """Return the array, and how the atom lies in it."""
        found = self._known.get(atom)
        if found is None:
            found = self._known[atom] = self._find(atom)
        return found

    def is_view(self, atom: Atom) -> bool:
        """Say whether an atom is read from another array."""
        return self(atom)[0] is not atom

    def iota(self, atom: Atom, axis: int) -> bool:
        """Say whether it counts the elements of an axis."""
        base, view = self(atom)
        e = self.definers.get(base)
        if e is None or not isinstance(e.primitive, Iota) or len(view.shape) <= axis:
            return False
        shape, along = base.type.shape, e.primitive.dimension
        step = math.prod(shape[along + 1 :])
        return view.shape[axis] == shape[along] and view.strides[axis] == step

    def _find(self, atom: Atom) -> tuple[Any, View]:
        whole = _row_major(atom.type.shape)
        e = self.definers.get(atom)
        if e is None or len(e.inputs) != 1 or isinstance(e.inputs[0], Literal):
            return atom, whole
        primitive: Any = e.primitive
        if isinstance(primitive, BroadcastInDim):
            base, view = self(e.inputs[0])
            strides = [0] * len(primitive.shape)
            for size, stride, axis in zip(*view, primitive.dims, strict=True):
                strides[axis] = stride if size == primitive.shape[axis] else 0
            return base, View(primitive.shape, tuple(strides))
        if isinstance(primitive, Reshape):
            base, view = self(e.inputs[0])
            if view == _row_major(view.shape):
                return base, whole
            sizes = [n for n in view.shape if n != 1]
            if sizes == [n for n in whole.shape if n != 1]:
                kept = iter([s for n, s in zip(*view, strict=True) if n != 1])
                strides = tuple([next(kept) if n != 1 else 0 for n in whole.shape])
                return base, View(whole.shape, strides)
        elif primitive.same or isinstance(primitive, OptimizationBarrier):
            return self(e.inputs[0])  # a barrier is for XLA's own loops
        return atom, whole


class Read(NamedTuple):
    """How an array is read: what it has one of, and the strides of rows and of their lines."""

    kind: Kind
    lead: tuple[int, ...]
    step: int


class Space(NamedTuple):
    """The shape of the arrays, how many of its axes are columns, and the dtype."""

    shape: tuple[int, ...]
    tail: int
    dtype: np.dtype
    behind: int = 0
    """The axes behind the columns."""
    stretches: int = 0
    """The first axes of the columns along which stretches of a row are counted."""
    over: tuple[int, int] = (0, 0)
    """The first of other axes of the columns, which are in front of some along which rows are
    counted, and the one after the last of them. Stretches of a row are counted along them."""

    @property
    def first(self) -> int:
        """The first axis of the columns, but for those of ``over``."""
        return len(self.shape) - self.tail - self.behind

    @property
    def last(self) -> int:
        """The first axis behind the columns."""
        return len(self.shape) - self.behind

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the columns."""
        return (*range(*self.over), *range(self.first, self.last))

    @property
    def lead(self) -> tuple[int, ...]:
        """The sizes along which rows are counted, of which those behind the columns are one."""
        behind = math.prod(self.shape[self.last :])
        return (*self._outside(self.shape[: self.first]), *[behind] * (self.behind > 0))

    @property
    def columns(self) -> int:
        """The elements of a row."""
        return math.prod([self.shape[k] for k in self.axes])

    @property
    def parts(self) -> int:
        """The stretches of a row."""
        first, last = self.over
        return math.prod(self.shape[first:last] + self.shape[self.first :][: self.stretches])

    def _outside(self, of_axes: Sequence[int]) -> list[int]:
        """Return what there is of the axes that ``over`` leaves out."""
        first, last = self.over
        return [*of_axes[:first], *of_axes[last:]]

    def kind(self, shape: tuple[int, ...]) -> Kind | None:
        """Say what an array of this shape is."""
        if shape == self.shape:
            return "rows"
        if any(self.over):
            ones = [1 if k in self.axes else n for k, n in enumerate(self.shape)]
            padded = [*[1] * (len(ones) - len(shape)), *shape]
            return "scalars" if shape == self.lead or padded == ones else None
        outer, behind = self.shape[: self.first], self.shape[self.last :]
        ones = len(shape) - len(outer) - len(behind)
        if 0 <= ones <= self.tail and shape == (*outer, *[1] * ones, *behind):
            return "scalars" if not self.behind or ones in (0, self.tail) else None
        front = self.shape[: self.first + self.stretches]
        ones = len(shape) - len(front)
        if self.stretches and ones >= 0 and shape == (*front, *[1] * ones):
            return "parts"
        return None

    def operation(self, e: Equation, views: Views) -> tuple[str, Kind] | None:
        """Return what the kernel does for an equation, and what comes out, if it has that."""
        primitive: Any = e.primitive
        if len(e.outputs) != 1:
            return None
        out = e.outputs[0].type
        family = type(primitive)
        if family in _REDUCTIONS:
            return self._reduction(e, _REDUCTIONS[family])
        if family is Slice:
            return self._slice(e)
        kind = self.kind(out.shape)
        if kind is None or out.dtype not in (self.dtype, _BOOL):
            return None
        dtypes = {a.type.dtype for a in e.inputs}
        if family is comparison.Eq and dtypes <= {np.dtype(np.int32), np.dtype(np.int64)}:
            one, other = e.inputs
            counted = kind == "rows" and self.counts(one, views) != self.counts(other, views)
            return ("is_column", kind) if counted else None
        if not dtypes <= {self.dtype, _BOOL}:
            return None
        if family in OF_BOOLS:
            return (OF_BOOLS[family], kind) if out.dtype == _BOOL else None
        if family in _OF_SCALARS:
            return (_OF_SCALARS[family], kind) if kind == "scalars" else None
        if family is comparison.Select:
            return "select", kind
        if family is ConvertElementType and out.dtype == self.dtype:
            return "number" if dtypes == {_BOOL} else "copy", kind
        if family is arithmetic.Square:
            return "square", kind
        known = "clamp" if family is extrema.Clamp else ELEMENTWISE.get(family)
        return (known, kind) if known and dtypes == {self.dtype} else None

    def counts(self, atom: Atom, views: Views) -> bool:
        """Say whether it is the number of each column."""
        return self.tail == 1 and views.iota(atom, self.first)

    def _reduction(self, e: Equation, name: str) -> tuple[str, Kind] | None:
        primitive: Any = e.primitive
        (x,) = e.inputs
        if x.type.dtype != self.dtype:
            return None
        axes, inner = tuple(sorted(primitive.axes)), self.axes[self.stretches :]
        if x.type.shape != self.shape:
            few = set(axes) <= {*self.axes} and {*self.axes[: self.stretches]} <= set(axes)
            return (name, "scalars") if few and self.kind(x.type.shape) == "parts" else None
        if axes == self.axes:
            return name, "scalars"
        if self.stretches and axes == inner:
            return name, "parts"
        if (
            name == "sum"
            and axes
            and axes == tuple([k for k in range(len(self.shape)) if k not in self.axes])
        ):
            return ("add_up", "sums") if self.parts == 1 else None
        return None

    def _slice(self, e: Equation) -> tuple[str, Kind] | None:
        primitive: Any = e.primitive
        (x,) = e.inputs
        one_column = tuple([1 if k in self.axes else n for k, n in enumerate(self.shape)])
        first = e.outputs[0].type.shape == one_column
        if x.type.shape != self.shape or x.type.dtype != self.dtype or not first:
            return None
        return ("first", "scalars") if not any(primitive.starts) else None

    def reads(self, view: View, kind: Kind) -> Read | None:
        """Return how an array is read by operations on values of a kind; None if it cannot be."""
        strides = [0 if n == 1 else s for n, s in zip(*view, strict=True)]
        if view.shape == ():  # the condition of a choice
            return Read("scalars", (0,) * len(self.lead), 0)
        if any(self.over):
            return self._reads_over(view.shape, strides, kind)
        last = len(view.shape) - self.behind
        lead, tail = strides[: self.first], strides[self.first : last]
        if self.behind:
            beside = _step(view.shape[last:], strides[last:])
            if beside is None:
                return None
            lead.append(beside)
        if not any(tail):
            return Read("scalars", tuple(lead), 0)
        sizes = view.shape[self.first : last]
        if self.behind:
            step = _step(sizes, tail)
            if kind != "rows" or step is None or lead[-1] not in (0, 1):
                return None
            return Read("rows" if lead[-1] or self.lead[-1] == 1 else "columns", tuple(lead), step)
        if self.stretches and kind != "scalars" and not any(tail[self.stretches :]):
            step = _step(sizes[: self.stretches], tail[: self.stretches])
            return None if step is None else Read("parts", tuple(lead), step)
        whole = [0 if n == 1 else s for n, s in zip(*_row_major(sizes), strict=True)]
        if kind != "rows" or tail != whole:
            return None
        return Read("rows", tuple(lead), self.columns // self.parts if self.stretches else 0)

    @property
    def whole(self) -> Read:
        """How an array of the shape lies."""
        found = self.reads(_row_major(self.shape), "rows")
        assert found is not None
        return found if self.parts > 1 or self.behind else found._replace(step=self.columns)

    def _reads_over(self, shape: tuple[int, ...], strides: list[int], kind: Kind) -> Read | None:
        """Do the same where rows lie in stretches, with others between."""
        if shape == self.lead:
            return Read("scalars", tuple(strides), 0)
        missing = len(self.shape) - len(shape)
        shape, strides = (*[1] * missing, *shape), [*[0] * missing, *strides]
        first, last = self.over
        lead = tuple(self._outside(strides[: self.first]))
        tail, step = strides[self.first :], _step(shape[first:last], strides[first:last])
        if step is None or (kind == "scalars" and (step or any(tail))):
            return None
        if not any(tail):
            return Read("parts" if step else "scalars", lead, step)
        whole = [0 if n == 1 else s for n, s in zip(*_row_major(shape[self.first :]), strict=True)]
        return Read("rows", lead, step) if tail == whole else None

    def is_own(self, view: View, kind: Kind, own: Kind) -> bool:
        """Say whether a value of the program is read row by row, by operations of a kind."""
        parts = range(self.first, self.first + self.stretches) if own == "parts" else ()
        kept = [
            n if own == "rows" or k not in self.axes or k in parts else 1
            for k, n in enumerate(self.shape)
        ]
        steps = _row_major(kept).strides
        strides = [s if n != 1 else 0 for n, s in zip(kept, steps, strict=True)]
        found = self.reads(view, kind)
        return found is not None and found == self.reads(View(self.shape, tuple(strides)), kind)

    def takes(self, view: View, kind: Kind, type: ArrayType) -> bool:
        """Say whether an array from outside can be read so by operations of a kind."""
        found = self.reads(view, kind)
        if found is None or len(_joined(self.lead, [found.lead])[0]) + (self.behind > 0) > _AXES:
            return False
        integral = type.dtype in (np.dtype(np.int32), np.dtype(np.int64))
        return type.dtype in (self.dtype, _BOOL) or (integral and found.kind == "scalars")


def _step(sizes: Sequence[int], strides: Sequence[int]) -> int | None:
    """Return the stride of axes as one; None if there is no single one."""
    joined, ((*steps,),) = _joined(sizes, [strides])
    return None if len(joined) > 1 else steps[0] if steps else 0


def _joined(
    sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Return axes with as many joined as can be for all the arrays, and their strides."""
    kept: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(sizes):
        if size == 1:
            continue
        if kept and all([own[-1] == s[axis] * size for own, s in zip(steps, strides, strict=True)]):
            kept[-1] *= size
            for own, s in zip(steps, strides, strict=True):
                own[-1] = s[axis]
        else:
            kept.append(size)
            for own, s in zip(steps, strides, strict=True):
                own.append(s[axis])
    return kept, steps


class _Step(NamedTuple):
    """An operation of the kernel: what it makes, and of what."""

    op: str
    kind: Kind
    out: Var
    operands: tuple[Any, ...]
    """Values of the program (``Var``), literals, or inputs (``_Input``)."""
    section: int
    second: Var | None = None
    """A second result, of those in ``_PAIRS``."""


class _Input(NamedTuple):
    """An array from outside, as it is read."""

    base: Var
    read: Read


class Instructions(NamedTuple):
    """What the kernel is told to run a program over rows."""

    numbers: tuple[int, ...]
    inputs: tuple[int, ...]
    """Which of the program's inputs each array is that the kernel reads.

    One that is read in two ways is two.
    """
    shared: tuple[tuple[int, int], ...]
    """The program's outputs and inputs, in pairs, where an output may be put where the input lies:
    nothing reads the input after a row of the output is written."""


def instructions(program: Program, space: Space) -> Instructions | None:
    """Return what the kernel is told to run a program over rows; None if it takes too many values.

    Its outputs that are sums over rows come after the others.
    """
    try:
        return _Compiler(program, space).instructions()
    except _TooLarge:
        return None


class _TooLarge(Exception):
    """There are more values than the kernel has room for."""


class _Compiler:
    """Orders operations by sections, and gives values their places."""

    def __init__(self, program: Program, space: Space) -> None:
        self.program, self.space = program, space
        self.views = Views({v: e for e in program.equations for v in e.outputs})
        self.steps: list[_Step] = []
        self.kinds: dict[Any, Kind] = {}
        self.ready: dict[Any, int] = {}
        """The phase in which a value is known: of scalars, at its beginning."""
        self.inputs: dict[_Input, int] = {}
        self.same: dict[Any, Any] = {}
        """What a value that was multiplied by one is instead."""
        self._translate()
        self._combine()

    def _translate(self) -> None:
        for e in self.program.equations:
            found = self.space.operation(e, self.views)
            if found is None or self.views.is_view(e.outputs[0]):
                continue
            op, kind = found
            (out,) = e.outputs
            whole = op in _REDUCING and e.inputs[0].type.shape == self.space.shape
            reading = "rows" if whole else "parts" if op in _REDUCING else kind
            atoms = list(e.inputs)
            if op == "is_column":
                atoms = [a for a in atoms if not self.space.counts(a, self.views)]
            operands = [self._operand(a, reading) for a in atoms]
            if op == "clamp":  # the greater of it and the least, and the less of that and the most
                above = Var(out.type)
                self.kinds[above], self.ready[above] = (
                    kind,
                    max([self.ready.get(x, 0) for x in operands[:2]]),
                )
                section = 2 * self.ready[above] + (kind == "rows")
                self.steps.append(_Step("max", kind, above, tuple(operands[:2]), section))
                op, operands = "min", [above, operands[2]]
            if op == "square":
                op, operands = "mul", operands * 2
            ones = [isinstance(x, Literal) and op == "mul" and x.value == 1 for x in operands]
            if True in ones and out not in self.program.outputs:
                other = operands[1 - ones.index(True)]
                if not isinstance(other, Literal) and self.kind_of(other) == kind:
                    self.same[out] = other
                    continue
            phase = max([self.ready.get(x, 0) for x in operands])
            if whole and not self._is_rows(operands[0]):
                repeated = Var(e.inputs[0].type)
                self.kinds[repeated] = "rows"
                self.steps.append(_Step("copy", "rows", repeated, tuple(operands), 2 * phase + 1))
                operands = [repeated]
            small = kind in ("scalars", "parts")
            self.kinds[out] = kind
            self.ready[out] = phase + (small and whole)
            section = 2 * phase + (whole or not small)
            self.steps.append(_Step(op, kind, out, tuple(operands), section))

    def _operand(self, atom: Atom, reading: Kind) -> Any:
        if isinstance(atom, Literal):
            return atom
        base, view = self.views(atom)
        base = self.same.get(base, base)
        if base in self.kinds or isinstance(base, _Input):
            return base
        read = self.space.reads(view, reading)
        assert read is not None  # as the pass has asked
        found = _Input(base, read)
        self.inputs.setdefault(found, len(self.inputs))
        return found

    def _combine(self) -> None:
        """Make one operation of several, where the kernel has it."""
        self._repeat_cheap()
        uses: dict[Any, int] = dict.fromkeys(self.program.outputs, 2)
        for step in self.steps:
            for x in step.operands:
                uses[x] = uses.get(x, 0) + 1
        makers = {step.out: n for n, step in enumerate(self.steps)}
        gone: set[int] = set()
        for n, step in enumerate(self.steps):
            new: _Step | None = step
            while new is not None and new.section % 2:
                self.steps[n] = new
                new = self._next(new, uses, makers, gone)
        self.steps = [step for n, step in enumerate(self.steps) if n not in gone]
        self._pair()
        self.steps.sort(key=lambda step: step.section)

    def _pair(self) -> None:
        """Make one operation of a function and its derivative at the same values."""
        places = {
            (step.op, step.operands, step.section): n
            for n, step in enumerate(self.steps)
            if step.kind == "rows"
        }
        for (op, operands, section), n in places.items():
            slope, pair = _PAIRS.get(op, ("", ""))
            other = places.get((slope, operands, section))
            if other is None or self.steps[other].out in self.program.outputs:
                continue
            step, also = self.steps[n], self.steps[other]
            self.steps[min(n, other)] = step._replace(op=pair, second=also.out)
            self.steps[max(n, other)] = also._replace(op="")
        self.steps = [step for step in self.steps if step.op]

    def _next(
        self, step: _Step, uses: Mapping[Any, int], makers: Mapping[Any, int], gone: set[int]
    ) -> _Step | None:
        """Return a step with one that makes an operand of it, if there is an operation for both."""
        for at, x in enumerate(step.operands):
            maker = makers.get(x)
            if maker is None or maker in gone or self.steps[maker].section != step.section:
                continue
            square = len(step.operands) == 2 and step.operands[0] is step.operands[1]
            new = self._joined(step, at, self.steps[maker]) if uses[x] == 1 + square else None
            if new is not None:
                gone.add(maker)
                return new
        return None

    def _joined(self, step: _Step, at: int, inner: _Step) -> _Step | None:
        """Return one operation for a step and the one that makes its operand, if there is one."""
        both = step.op, inner.op
        rest = [x for i, x in enumerate(step.operands) if i != at]
        a, b = inner.operands[0], inner.operands[-1]
        if both == ("exp", "sub"):
            return step._replace(op="exp_difference", operands=(a, b))
        if not self._is_rows(a) and inner.op in ("mul", "add"):
            a, b = b, a
        if not self._is_rows(a):
            return None
        if both == ("sum", "neg"):
            b = Literal(self.space.dtype.type(-1), step.out.type)
        square = len(step.operands) == 2 and step.operands[0] is step.operands[1]
        if both == ("sum_of_products", "sub") and square:
            return step._replace(op="sum_of_squared_differences", operands=(a, b))
        alone = _OF_ONE.get(both)
        if alone is not None:
            return step._replace(op=alone, operands=(a, b))
        beside = _OF_TWO.get(both)
        return step._replace(op=beside, operands=(a, b, *rest)) if beside and not square else None

    def _repeat_cheap(self) -> None:
        """Compute again, in each section, the difference of an input and a scalar.

        To keep it for the whole row costs more than to compute it from what is there anyway.
        """
        fresh: dict[tuple[Any, int], Any] = {}
        cheap = {
            step.out: step
            for step in self.steps
            if step.op == "sub"
            and step.kind == "rows"
            and isinstance(step.operands[0], _Input)
            and self._is_rows(step.operands[0])
            and not self._is_rows(step.operands[1])
        }
        steps: list[_Step] = []
        for step in self.steps:
            operands = []
            for x in step.operands:
                made = cheap.get(x)
                if made is not None and made.section != step.section:
                    key = x, step.section
                    if key not in fresh:
                        fresh[key] = Var(x.type)
                        self.kinds[fresh[key]] = "rows"
                        steps.append(made._replace(out=fresh[key], section=step.section))
                    x = fresh[key]
                operands.append(x)
            steps.append(step._replace(operands=tuple(operands)))
        read = {x for step in steps for x in step.operands} | {*self.program.outputs}
        self.steps = [step for step in steps if step.out in read]

    def kind_of(self, x: Any) -> Kind | None:
        """Say what a value is."""
        if isinstance(x, _Input):
            return x.read.kind
        return self.kinds.get(x)

    def _is_rows(self, x: Any) -> bool:
        return self.kind_of(x) == "rows"

    def instructions(self) -> Instructions:
        """Return what the kernel is told."""
        space, inputs = self.space, list(self.inputs)
        apart = len(space.lead) - (space.behind > 0)  # the axis of what lies behind stays last
        leads = [space.whole.lead, *[x.read.lead for x in inputs]]
        lead, strides = _joined(space.lead[:apart], [own[:apart] for own in leads])
        lead += space.lead[apart:]
        own, *strides = [[*own, *x[apart:]] for own, x in zip(strides, leads, strict=True)]
        if len(lead) > _AXES or len(inputs) > _MOST or len(self.program.outputs) > _MOST:
            raise _TooLarge
        missing = [0] * (_AXES - len(lead))
        plain = [v for v in self.program.outputs if self.kinds[v] != "sums"]
        sums = len(self.program.outputs) - len(plain)
        scalars: dict[Any, int] = {}
        for x in [*inputs, *self.kinds]:
            if self.kind_of(x) in ("scalars", "parts"):
                scalars[x] = len(scalars)
        code = _Code(self, scalars, plain)
        for n, step in enumerate(self.steps):
            code.add(n, step)
        bounds = code.ended()
        numbers = [int(space.dtype.itemsize == 8), *[1 for _ in missing], *lead]
        numbers += [space.columns, space.parts, space.lead[-1] if space.behind else 0]
        numbers += [space.whole.step, *missing, *own]
        numbers += [len(inputs), len(plain), sums, code.chunks.most, code.kept.most]
        numbers += [len(scalars), len(bounds) - 1, len(code.literals), len(code.lines)]
        for x, own in zip(inputs, strides, strict=True):
            numbers += [_type(x.base.type), scalars.get(x, -1), x.read.step, *missing, *own]
        for v in plain:
            each = space.parts if self.kinds[v] == "parts" else 1
            numbers += [_type(v.type), scalars.get(v, -1), each]
        numbers += [*code.literals, *bounds]
        numbers += [n for line in code.lines for n in line]
        place = {v: n for n, v in enumerate(self.program.inputs)}
        read = tuple([place[x.base] for x in inputs])
        return Instructions(tuple(numbers), read, _shared(code.lines, read, len(bounds) - 1))


class _Code:
    """The instructions, and where values are while they run.

    A value that is read in its own section has a buffer for a chunk of columns, which is used again
    after its last reader; one that is read in later sections is kept for whole rows.
    """

    def __init__(self, of: _Compiler, scalars: Mapping[Any, int], plain: Sequence[Any]) -> None:
        self.of, self.scalars, self.plain = of, scalars, plain
        self.lines: list[list[int]] = []
        self.literals: dict[int, int] = {}
        self.chunks, self.kept = _Slots(), _Slots()
        self._bounds = [0]
        self._where: dict[Any, tuple[int, int]] = {
            x: (_SCALAR if of.kind_of(x) == "scalars" else _PART, n) for x, n in scalars.items()
        }
        self._held: dict[Any, int] = {}  # the chunks of the section's values
        self._last: dict[Any, int] = {}  # the last reader in a section
        self._sections: dict[Any, set[int]] = {}  # where it is read
        for n, step in enumerate(of.steps):
            for x in step.operands:
                self._last[x, step.section] = n
                self._sections.setdefault(x, set()).add(step.section)

    def add(self, n: int, step: _Step) -> None:
        """Write an operation."""
        while len(self._bounds) <= step.section:
            self._end_section()
        for x in [x for x, (kind, _) in self._where.items() if kind == _KEPT]:
            if max(self._sections[x]) < step.section:
                self.kept.give(self._where.pop(x)[1])
        operands = [self._operand(x) for x in step.operands]
        operands += [(_NONE, 0)] * (3 - len(operands))
        done = [x for x in self._held if self._last.get((x, step.section), -1) <= n]
        # What nothing reads any more may be written over, but not an input that rows share.
        self._let_go([x for x in done if not isinstance(x, _Input)])
        outs = self.of.program.outputs
        to = outs.index(step.out) if step.out in outs else -1
        kind, at = self._result(step, to)
        if step.second is not None:
            operands[1] = self._result(step._replace(out=step.second), -1)
        self._let_go([x for x in done if x in self._held])
        kinds, places = zip(*operands, strict=True)
        self.lines.append([CODES[step.op], kind, at, to, *kinds, *places])

    def ended(self) -> list[int]:
        """Return where sections begin, and where the last one ends."""
        self._end_section()
        if self.chunks.most > _MOST:
            raise _TooLarge
        return self._bounds

    def _end_section(self) -> None:
        self._bounds.append(len(self.lines))
        self._let_go(list(self._held))

    def _let_go(self, values: Sequence[Any]) -> None:
        for x in values:
            self.chunks.give(self._held.pop(x))
            del self._where[x]

    def _operand(self, x: Any) -> tuple[int, int]:
        """Return where an operand is; an input is loaded before."""
        if isinstance(x, Literal):
            bits = literal_bits(x, self.of.space.dtype)
            return _LITERAL, self.literals.setdefault(bits, len(self.literals))
        if x not in self._where:
            at = self._held[x] = self.chunks.take()
            self._where[x] = _CHUNK, at
            load = [CODES["load"], _CHUNK, at, -1, *[_NONE] * 3, self.of.inputs[x], 0, 0]
            self.lines.append(load)
        return self._where[x]

    def _result(self, step: _Step, to: int) -> tuple[int, int]:
        """Return where a result is put."""
        if step.kind == "sums":
            return _NONE, to - len(self.plain)
        if step.out in self.scalars:
            return self._where[step.out]
        if self._sections.get(step.out, set()) - {step.section}:
            place = _KEPT, self.kept.take()
        else:
            place = _CHUNK, self.chunks.take()
            self._held[step.out] = place[1]
        self._where[step.out] = place
        return place


def _shared(
    lines: Sequence[Sequence[int]], inputs: Sequence[int], sections: int
) -> tuple[tuple[int, int], ...]:
    """Return what may share memory, of a program with no values that are kept for whole rows."""
    if sections > _ELEMENTWISE_SECTIONS:
        return ()
    written: dict[int, int] = {}
    last_read: dict[int, int] = {}
    holds: dict[int, int] = {}  # the input that a buffer has
    for n, (op, kind, out, to, *operands) in enumerate(lines):
        for of, at in zip(operands[:3], operands[3:], strict=True):
            if of == _CHUNK and at in holds:
                last_read[holds[at]] = n
        if kind == _CHUNK:
            holds.pop(out, None)
        if op == CODES["load"]:
            holds[out] = inputs[operands[3]]
            last_read[holds[out]] = n
        if to >= 0:
            written[to] = n
    return tuple([(k, i) for k, n in written.items() for i, m in last_read.items() if m <= n])


_ELEMENTWISE_SECTIONS = 2
"""Those of a program that reduces nothing: of scalars, and of rows."""

_OF_ONE = {
    ("sum", "neg"): "sum_of_products",
    ("sum", "mul"): "sum_of_products",
    ("sum", "sub"): "sum_of_differences",
}
"""What an operation and the one that makes its only operand are together."""

_OF_TWO = {
    ("mul", "sub"): "sub_mul",
    ("mul", "mul"): "mul_mul",
    ("mul", "add"): "add_mul",
    ("add", "mul"): "mul_add",
    ("add", "add"): "add_add",
}
"""The same for operations whose operands may be exchanged, and one of the two."""

_PAIRS = {
    "tanh": ("sech_squared", "tanh_pair"),
    "logistic": ("logistic_slope", "logistic_pair"),
}
"""The derivative of a function, and the operation that does both."""

_REDUCING = frozenset(["sum", "greatest", "least", "first", "add_up"])


class _Slots:
    """Buffers that are used again."""

    def __init__(self) -> None:
        self.free: list[int] = []
        self.most = 0

    def take(self) -> int:
        """Return the number of one that is free."""
        if self.free:
            return self.free.pop()
        self.most += 1
        return self.most - 1

    def give(self, slot: int) -> None:
        """Have it used again."""
        self.free.append(slot)


def _type(type: ArrayType) -> int:
    names: dict[Any, int] = {"bool": _BOOLS, "int32": _INTEGERS, "int64": _LONGS}
    return names.get(type.dtype.name, _FLOATS)


def literal_bits(literal: Literal, dtype: np.dtype) -> int:
    """Return the bits of a literal's element; of a boolean all or none."""
    wide = dtype.itemsize == 8
    if literal.type.dtype == _BOOL:
        return (-1 if literal.value else 0) if wide else (0xFFFFFFFF if literal.value else 0)
    value = np.asarray(literal.value, dtype)
    return int(value.view(np.int64 if wide else np.uint32))
