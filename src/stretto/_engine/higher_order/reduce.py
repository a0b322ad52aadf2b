"""Reductions by any operation: ``reduce`` over axes, ``reduce_window`` over windows.

The user's function is traced. If its program is a single addition, product, maximum and so on, the
reduction becomes the primitive for that (for windows, of ``ops/reducing/window``); otherwise it
keeps the program.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate, record_closed
from stretto._engine.autodiff.jvp import jvp_flat
from stretto._engine.autodiff.vmap import vmap_flat, vmap_program
from stretto._engine.core import tree
from stretto._engine.core.errors import EscapedTracerError, MissingRuleError
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.primitive import NOT_LINEAR, Primitive
from stretto._engine.core.program import Literal, Program
from stretto._engine.core.rewriting import used_inputs, with_inputs
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, kind_of, promote
from stretto._engine.core.typing import ShardingLike
from stretto._engine.higher_order.family import ControlFlow, parting, split
from stretto._engine.higher_order.scan import Scan
from stretto._engine.ops.arithmetic import Add, Mul, add, multiply
from stretto._engine.ops.bits import OR, And, Or, Xor, bitwise_and, bitwise_or, bitwise_xor
from stretto._engine.ops.broadcast import ReduceSum, broadcast_to
from stretto._engine.ops.comparison import full, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.convolution.geometry import check_front, dilated, pads
from stretto._engine.ops.elementwise import align_mapped
from stretto._engine.ops.extrema import Max, Min, maximum, minimum
from stretto._engine.ops.layout import canonical_axes, check_axes, laid_out, reshape
from stretto._engine.ops.reducing.reduce import (
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceProd,
    ReduceXor,
    lines_first,
)
from stretto._engine.ops.reducing.window import (
    PLAIN,
    AxisWindow,
    ReduceWindowAnd,
    ReduceWindowMax,
    ReduceWindowMin,
    ReduceWindowOr,
    ReduceWindowProd,
    ReduceWindowSum,
    ReduceWindowXor,
    WindowReduction,
    Windows,
    patches,
    window_attributes,
    window_shape,
)
from stretto._engine.ops.shape import concatenate, slice_in_dim

_BOOL = np.dtype(bool)
_STEPS = 16
"""The most steps that take less time to interpret than to compile, even if run a few times."""

_BLOCK = 32
"""The elements that XLA combines one after the other on a CPU; it reduces more in such blocks."""


def _line(x: Any, i: int) -> Any:
    return reshape(slice_in_dim(x, i, i + 1), x.shape[1:])


class Combination(ControlFlow, abstract=True):
    """A reduction by a program of two elements, each of one part for each operand.

    Operands: arrays of one shape, then as many scalars to start from, which should be identities of
    the program. A subclass provides two ways to compute it without XLA: ``lines``, in XLA's order
    on a CPU, one element after the other, which is the definition; and ``in_pairs``, of neighbours,
    which is less deep, and the same if the program is associative.
    """

    computation: Program
    transpose = NOT_LINEAR

    def composed(self, *args: Any) -> list[Any]:
        """Return the same by other operations, which have derivatives."""
        if is_monoid(self.computation, args[len(args) // 2 :]):
            return self.in_pairs(*args)
        return self.one_by_one(*args)

    def in_pairs(self, *args: Any) -> list[Any]:
        """Return the same for an associative program, and an identity to start from."""
        raise NotImplementedError

    def lines(self, arrays: Sequence[Any], starts: Sequence[Any]) -> tuple[list[Any], Any]:
        """Return the operands with the elements to combine along a first axis, and a mask, or None.

        The mask is a boolean array like them that says which elements to combine.
        """
        raise NotImplementedError

    def steps(self, type: ArrayType) -> int:
        """Count the elements of an operand of this type that are combined to one."""
        raise NotImplementedError

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Return one element after the other."""
        return self.one_by_one(*args)

    def one_by_one(self, *args: Any) -> list[Any]:
        """Return one element after the other: in a loop if there are many."""
        arrays, starts = split(args, len(args) // 2)
        lines, mask = self.lines(arrays, starts)
        n, *shape = lines[0].shape
        outs = [broadcast_to(s, tuple(shape)) for s in starts]
        if not n or not outs[0].size:
            return outs
        if is_size(n) or n > _STEPS:
            rows = lines if mask is None else [*lines, mask]

            def step(*xs: Any) -> Any:
                old, new = xs[: len(outs)], self.combine(*xs[: 2 * len(outs)])
                if mask is None:
                    return new, None
                return [select(xs[-1], x, y) for x, y in zip(new, old, strict=True)], None

            types = [x.type for x in outs] + [x.type.with_shape(tuple(shape)) for x in rows]
            body = record_closed(step, types, self.name)[0]
            return list(Scan(body, n, 0, len(outs))(*outs, *rows))
        for i in range(n):
            new = self.combine(*outs, *[_line(x, i) for x in lines])
            outs = (
                new
                if mask is None
                else [select(_line(mask, i), x, old) for x, old in zip(new, outs, strict=True)]
            )
        return outs

    def combine(self, *args: Any) -> list[Any]:
        """Apply the program element by element to arrays of one shape."""
        shape, size = args[0].shape, args[0].size
        count = len(args) // 2
        mapped, _ = vmap_program(self.computation, size, (True,) * len(args), (True,) * count)
        return [reshape(x, shape) for x in evaluate(mapped, [reshape(x, (size,)) for x in args])]

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile if there is much to do: XLA needs no memory for the steps in between."""
        return types[0].size >= 1 << 14 or self.steps(types[0]) > _STEPS

    def check(self, types: Sequence[ArrayType]) -> ArrayType:
        """Return the first operand's type; ``TypeError`` if the operands do not match."""
        arrays, starts = types[: len(types) // 2], types[len(types) // 2 :]
        dtypes = tuple(t.dtype for t in self.computation.out_types)
        fits = all(
            x.dtype == s.dtype == d and x.shape == types[0].shape and not s.shape
            for x, s, d in zip(arrays, starts, dtypes, strict=True)
        )
        if not fits:
            raise TypeError(
                f"{self.name}: expected operands of one shape, and scalars of the same dtypes, got "
                f"{', '.join(map(str, arrays))} and {', '.join(map(str, starts))}"
            )
        return types[0]

    def lowered(self, b: Any, op: str, operands: Sequence[Any], attributes: str) -> list[Any]:
        """Write StableHLO's operation with the program as its region, or ``composed``.

        It takes no loops, branches, arrays and calls of Python.
        """
        types = self.computation.in_types
        region = b.scalar_program(types, lambda *parts: b.program(self.computation, parts))
        if region is None:
            return b.inline_many(self.composed, *operands)
        return b.emit_many(op, operands, b.outs, attributes, (region,))

    def onnx(self, b: Any, *operands: Any) -> Any:
        """Write ``composed``."""
        return b.inline_many(self.composed, *operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Take the tangents of ``composed``; the values are computed without derivatives."""
        return self(*primals), jvp_flat(self.composed, primals, tangents)[1]

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """Reduce each element beside whether it is one, and not padding, which is passed over."""
        count = len(args) // 2
        inside = at.inside(at.types[0].shape, self.along)
        program, sizes = at.closed(self.computation)
        if any(used_inputs(program)[: len(sizes)]):
            raise MissingRuleError(
                f"{self.name}: the computation uses a size that varies: make it an operand, with "
                f"an initial value of its own, or use scan"
            )
        program = with_inputs(program, (*[False] * len(sizes), *[True] * 2 * count))
        if inside is not None:
            program = _passing_over(program)
            there = full((), True, _BOOL)
            args = (*args[:count], inside, *args[count:], there)
        op = dataclasses.replace(at.static(self), computation=program)
        return tuple([at.fit(x, t) for x, t in zip(op(*args), at.outs, strict=False)])

    @property
    def along(self) -> Sequence[int]:
        """The axes along which elements are combined."""
        raise NotImplementedError

    def mapped(
        self, size: int, args: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[list[Any], int] | None:
        """Return the operands, mapped along one axis, and that; ``None`` for a mapped scalar."""
        count = len(args) // 2
        if any(a is not None for a in axes[count:]):
            return None
        arrays, axis = align_mapped(size, args[:count], axes[:count])
        return [*arrays, *args[count:]], axis


def _passing_over(program: Program) -> Program:
    """Return the program of elements beside marks: what is not marked changes nothing."""
    count = len(program.outputs)

    def marked(*args: Any) -> Any:
        first, second = split(args, count + 1)
        both = evaluate(program, [*first[:count], *second[:count]])
        here, there = first[count], second[count]
        kept = [
            select(there, select(here, new, y), x)
            for new, x, y in zip(both, first, second, strict=False)
        ]
        return [*kept, OR(here, there)], None

    elements = [t.with_shape(()) for t in program.in_types[:count]]
    types = [*elements, array_type((), _BOOL)]
    return record_closed(marked, [*types, *types], program.name)[0]


class Reduce(Combination):
    """The elements over some axes combined by a program."""

    axes: tuple[int, ...]

    @property
    def along(self) -> Sequence[int]:
        """The axes that are combined."""
        return self.axes

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x = self.check(types)
        check_axes(self.name, x, self.axes)
        shape = tuple(n for d, n in enumerate(x.shape) if d not in self.axes)
        return tuple(t.with_shape(shape) for t in self.computation.out_types)

    def composed(self, *args: Any) -> list[Any]:
        """Compose it beyond a block of XLA's, of associative programs alone."""
        steps = self.steps(args[0].type)
        if not is_size(steps) and steps <= _BLOCK:
            return super().composed(*args)
        if is_monoid(self.computation, ()) is False:
            raise MissingRuleError(
                f"{self.name}: the computation is not associative, so its result over {steps} "
                f"elements depends on the order that the compiler chooses, and its derivative (and "
                f"vmap over initial values) cannot be that of another order: use scan, or up to "
                f"{_BLOCK} elements, which are taken one after the other"
            )
        return self.in_pairs(*args)

    def in_pairs(self, *args: Any) -> list[Any]:
        """Return pairs of neighbours, then pairs of pairs; in order, at logarithmic depth."""
        arrays, starts = split(args, len(args) // 2)
        lines = [lines_first(x, self.axes) for x in arrays]
        n, *shape = lines[0].shape
        outs = [broadcast_to(s, tuple(shape)) for s in starts]
        if not n or not outs[0].size:
            return outs
        if is_size(n):
            return self.one_by_one(*args)
        while n > 1:
            even = n - n % 2
            last = [slice_in_dim(x, even, n) for x in lines]
            pairs = [slice_in_dim(x, i, even, 2) for i in (0, 1) for x in lines]
            lines = self.combine(*pairs)
            if even < n:
                lines = [concatenate([x, end], 0) for x, end in zip(lines, last, strict=True)]
            n = lines[0].shape[0]
        return self.combine(*outs, *[reshape(x, shape) for x in lines])

    def lines(self, arrays: Sequence[Any], starts: Sequence[Any]) -> tuple[list[Any], None]:
        """Combine all elements, so that there is no mask."""
        return [lines_first(x, self.axes) for x in arrays], None

    def steps(self, type: ArrayType) -> int:
        """Return the size of the axes."""
        return math.prod(type.shape[d] for d in self.axes)

    def lower(self, b: Any, *operands: Any) -> list[Any]:
        """Write StableHLO ``reduce``; the program for one element, which XLA returns as it is."""
        if self.steps(operands[0].type) == 1:
            return b.inline_many(self.interpret, *operands)
        attributes = f"dimensions = {b.ints(self.axes)}"
        return self.lowered(b, "reduce", operands, attributes)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Return the reduction over the other axes; if a scalar is mapped, by other operations."""
        placed = self.mapped(size, args, axes)
        if placed is None:
            return vmap_flat(self.composed, size, args, axes)
        values, axis = placed
        shifted = tuple(a if a < axis else a + 1 for a in self.axes)
        outs = Reduce(self.computation, shifted)(*values)
        return outs, (axis - sum(a < axis for a in shifted),) * len(outs)


def combination(
    caller: str, operands: Any, init_values: Any, computation: Callable[[Any, Any], Any]
) -> tuple[list[Any], list[Any], Program, Any]:
    """Give the operands and initial values as flat lists, the computation's program, the structure.

    Raises ``ValueError`` or ``TypeError`` if they do not match.
    """
    leaves, structure = tree.flatten(operands)
    arrays = [as_value(x, caller, "an operand") for x in leaves]
    starts = [as_value(x, caller, "an initial value") for x in tree.leaves(init_values)]
    if not arrays:
        raise ValueError(f"{caller}: expected at least one operand, got none")
    if tree.structure(init_values) != structure:
        raise ValueError(
            f"{caller}: initial values must have the structure of the operands; they part at "
            f"{parting(structure, tree.structure(init_values), 'operand')}"
        )
    for x in arrays:
        if x.shape != arrays[0].shape:
            raise ValueError(
                f"{caller}: operands must have one shape, got {arrays[0].type} and {x.type}"
            )
    for start in starts:
        if start.ndim:
            raise ValueError(f"{caller}: initial values must be scalars, got {start.type}")
    types = [array_type((), x.dtype) for x in arrays]

    def flat(*elements: Any) -> Any:
        pair = [tree.unflatten(structure, part) for part in split(elements, len(types))]
        out, out_structure = tree.flatten(computation(*pair))
        if out_structure.num_leaves != structure.num_leaves:
            raise TypeError(
                f"{caller}: the computation must return what it takes, {len(types)} elements; got "
                f"{out_structure.num_leaves}"
            )
        results = [as_value(x, caller, "the computation's result") for x in out]
        for result, t in zip(results, types, strict=True):
            if result.shape or (result.dtype != t.dtype and not result.weak_type):
                raise TypeError(
                    f"{caller}: the computation must return elements like those it takes, {t}; got "
                    f"{result.type}"
                )
        return [convert(r, t.dtype) for r, t in zip(results, types, strict=True)], None

    try:
        program, _ = record_closed(flat, [*types, *types], caller)
    except EscapedTracerError as error:
        raise TypeError(
            f"{caller}: the computation uses a traced value from outside; make it an operand, "
            f"with an initial value of its own, or use scan"
        ) from error
    return arrays, starts, program, structure


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: ShardingLike | None = None,
) -> Any:
    """Combine the elements over some axes by any associative function.

    A ``computation`` that is ``lax.add``, ``mul``, ``max``, ``min`` or bitwise becomes that
    reduction, and the initial value is combined with its result once. For others the initial value
    should leave every element as it is. One that is not associative takes up to 32 elements in
    row-major order, starting from the initial value, and more in blocks of 32, compiled or not, on
    a CPU; so do its derivative and ``vmap`` over initial values, which refuse more than 32. With
    loops, branches, arrays or calls of Python inside it is taken to be associative beyond 32.

    Args:
        operands: an array, or a tree of arrays of one shape.
        init_values: the initial scalars, a tree of the same structure.
        computation: a function of two elements of ``operands`` that returns one.
        dimensions: the axes to combine over.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The combinations, without the axes ``dimensions``; of the dtypes of ``operands``.

    Raises:
        TypeError: ``computation`` returns something unlike what it takes, or uses traced values
            from outside.
        ValueError: shapes or structures differ, an initial value is not a scalar, there is no
            operand, or an axis is out of bounds or named twice; or the result cannot be split as
            ``out_sharding`` says.

    Source: StableHLO, ``reduce``.

    >>> import stretto as st
    >>> x = st.numpy.array([[3.0, 4.0], [5.0, 12.0]])
    >>> st.lax.reduce(x, 0.0, st.numpy.hypot, (1,))
    Array([ 5., 13.], dtype=float32)
    """
    caller = "reduce"
    if out_sharding is not None:
        result = reduce(operands, init_values, computation, dimensions)
        return tree.map(lambda out: laid_out(out, out_sharding, caller), result)
    arrays, starts, program, structure = combination(caller, operands, init_values, computation)
    axes = tuple(sorted(canonical_axes(tuple(dimensions), arrays[0].ndim, caller)))
    monoid = monoid_of(program)
    if monoid is not None:
        out = monoid.whole(axes)(*arrays) if axes else arrays[0]
        outs = [monoid.started(caller, out, starts[0])]
    else:
        starts = [start_of(caller, x, s) for x, s in zip(arrays, starts, strict=True)]
        outs = Reduce(program, axes)(*arrays, *starts)
    return tree.unflatten(structure, outs)


_SAMPLES = 24
"""The triples of elements that a program is tried with; one that is not associative shows."""


class Monoid(NamedTuple):
    """An associative, commutative operation with an identity, and its reductions."""

    whole: Callable[[tuple[int, ...]], Primitive]
    window: type[WindowReduction]
    combine: Callable[[Any, Any], Any]

    def started(self, caller: str, out: Any, start: Any) -> Any:
        """Combine ``out``, a reduction that began with the identity, with ``start``."""
        neutral = self.window.identity(start.dtype)
        if not isinstance(start, Tracer) and np.asarray(start) == neutral:
            return out
        return self.combine(start_of(caller, out, start), out)


_MONOIDS: dict[type[Primitive], Monoid] = {
    Add: Monoid(ReduceSum, ReduceWindowSum, add),
    Mul: Monoid(ReduceProd, ReduceWindowProd, multiply),
    Max: Monoid(ReduceMax, ReduceWindowMax, maximum),
    Min: Monoid(ReduceMin, ReduceWindowMin, minimum),
    And: Monoid(ReduceAnd, ReduceWindowAnd, bitwise_and),
    Or: Monoid(ReduceOr, ReduceWindowOr, bitwise_or),
    Xor: Monoid(ReduceXor, ReduceWindowXor, bitwise_xor),
}
_OF_TRUTH: dict[type[Primitive], type[Primitive]] = {Add: Or, Mul: And}


def monoid_of(program: Program) -> Monoid | None:
    """Return the monoid, if the program is the one operation of a known monoid."""
    if len(program.equations) != 1:
        return None
    (equation,) = program.equations
    whole = [*equation.outputs] == [*program.outputs]
    if not whole or len(program.inputs) != 2 or {*equation.inputs} != {*program.inputs}:
        return None
    kind = type(equation.primitive)
    if kind_of(program.in_types[0].dtype) == "bool":
        kind = _OF_TRUTH.get(kind, kind)
    return _MONOIDS.get(kind)


def start_of(caller: str, x: Any, start: Any) -> Any:
    """Return an initial value in the dtype of its operand."""
    dtype, _ = promote([(x.dtype, False), (start.dtype, start.weak_type)], caller)
    if dtype != x.dtype:
        raise TypeError(
            f"{caller}: expected an initial value of dtype {x.dtype.name}, got {start.type}"
        )
    return convert(start, dtype)


def is_monoid(program: Program, starts: Sequence[Any]) -> bool | None:
    """Return whether a program is associative, and ``starts`` leave every element as it is.

    It is tried on random elements. None if that cannot be told: some operation has no value here,
    or an initial value is traced.
    """
    count = len(program.outputs)
    if any([isinstance(start, Tracer) for start in starts]):
        return None
    rng = np.random.default_rng(0)
    dtypes = [v.type.dtype for v in program.inputs[:count]]
    x, y, z = ([_samples(rng, dtype) for dtype in dtypes] for _ in range(3))
    every = (True,) * (2 * count), (True,) * count
    pairs, _ = vmap_program(program, _SAMPLES, *every)
    with np.errstate(all="ignore"):
        try:
            left = _values(pairs, [*_values(pairs, [*x, *y]), *z])
            right = _values(pairs, [*x, *_values(pairs, [*y, *z])])
            kept: list[np.ndarray] = []
            if starts:
                start = [np.repeat(np.asarray(s), _SAMPLES) for s in starts]
                kept = [*_values(pairs, [*start, *x]), *_values(pairs, [*x, *start])]
        except MissingRuleError:
            return None
    return all(map(_alike, [*left, *kept], [*right, *x, *x][: len(left) + len(kept)]))


def _samples(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """Return random elements: a few of each sign, for floats and integers."""
    kind = kind_of(dtype)
    if kind == "bool":
        return rng.random(_SAMPLES) < 0.5
    if kind in ("int", "uint"):
        return rng.integers(0 if kind == "uint" else -4, 5, _SAMPLES).astype(dtype)
    real = rng.uniform(-2, 2, _SAMPLES)
    return (real + 1j * rng.uniform(-2, 2, _SAMPLES) if kind == "complex" else real).astype(dtype)


def _alike(x: np.ndarray, y: np.ndarray) -> bool:
    """Say if arrays are equal to rounding, where both are numbers."""
    if kind_of(x.dtype) not in ("float", "complex"):
        return np.array_equal(x, y)
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known].astype(complex), y[known].astype(complex)
    # Rounding of a few operations, also in bfloat16; what is not associative is far off somewhere.
    return bool(np.all(np.abs(x - y) <= 0.06 * (1 + np.abs(x))))


def _values(program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return a program's outputs by NumPy; ``MissingRuleError`` where an operation has none."""
    known: dict[Any, np.ndarray] = dict(zip(program.inputs, args, strict=True))

    def read(atom: Any) -> np.ndarray:
        return atom.array() if isinstance(atom, Literal) else known[atom]

    for equation in program.equations:
        primitive: Any = equation.primitive
        inputs = [read(a) for a in equation.inputs]
        if primitive.holds_programs:
            inner = primitive.inlined()
            if inner is None:
                raise MissingRuleError(f"{primitive.name} has no value outside of a program")
            outs = _values(inner, inputs)
        elif primitive.effects or primitive.calls_python:
            raise MissingRuleError(f"{primitive.name} has effects")
        else:
            result = primitive.reference(*inputs)
            outs = result if primitive.multiple else [result]
        known.update(zip(equation.outputs, map(np.asarray, outs), strict=True))
    return [read(a) for a in program.outputs]


class ReduceWindow(Combination):
    """The elements of each window combined by a program."""

    windows: Windows

    @property
    def along(self) -> Sequence[int]:
        """The axes with windows of more than an element."""
        return [axis for axis, window in enumerate(self.windows) if window != PLAIN]

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """Pass over padding, like that of the windows."""
        check_front(self.name, [w.low for w in self.windows])
        return super().padded(at, *args)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """Return the number of windows along each axis."""
        shape = window_shape(self.name, self.check(types), self.windows)
        return tuple(t.with_shape(shape) for t in self.computation.out_types)

    def in_pairs(self, *args: Any) -> list[Any]:
        """Return windows along an extra axis, reduced axis by axis, the last axis first."""
        arrays, starts = split(args, len(args) // 2)
        over = Reduce(self.computation, (0,))
        for axis, window in reversed([*enumerate(self.windows)]):
            if window != PLAIN:
                lines = [patches(x, axis, window, s) for x, s in zip(arrays, starts, strict=True)]
                arrays = over.in_pairs(*lines, *starts)
        return arrays

    def lines(self, arrays: Sequence[Any], starts: Sequence[Any]) -> tuple[list[Any], Any]:
        """Return the elements of each window along a first axis, in row-major order.

        Padding is masked.
        """
        mask = full(arrays[0].shape, True, np.dtype(bool))
        absent = full((), False, np.dtype(bool))
        filled = [*zip(arrays, starts, strict=True), (mask, absent)]
        *lines, mask = [self._in_lines(x, fill) for x, fill in filled]
        return lines, mask

    def _in_lines(self, x: Any, fill: Any) -> Any:
        rank = len(self.windows)
        for k, (axis, window) in enumerate(reversed([*enumerate(self.windows)])):
            x = patches(x, k + axis, window, fill)
        return reshape(x, (math.prod(x.shape[:rank]), *x.shape[rank:]))

    def steps(self, type: ArrayType) -> int:
        """Return the elements of a window."""
        return math.prod(w.size for w in self.windows)

    def lower(self, b: Any, *operands: Any) -> list[Any]:
        """Write ``reduce_window``; for scalars, which XLA returns unchanged, the program."""
        if not operands[0].type.size or not b.outs[0].size or not self.windows:
            return b.inline_many(self.interpret, *operands)
        attributes = window_attributes(b, self.windows)
        return self.lowered(b, "reduce_window", operands, attributes)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Use windows of one element along the mapped axis; other operations for a scalar."""
        placed = self.mapped(size, args, axes)
        if placed is None:
            return vmap_flat(self.composed, size, args, axes)
        values, axis = placed
        windows = (*self.windows[:axis], PLAIN, *self.windows[axis:])
        outs = ReduceWindow(self.computation, windows)(*values)
        return outs, (axis,) * len(outs)


def _windows(
    caller: str,
    x: ArrayType,
    sizes: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> Windows:
    """Return the windows along each axis of ``x``; raises ``ValueError`` if an entry is missing."""
    plain = (1,) * x.ndim
    options = {
        "window_dimensions": sizes,
        "window_strides": plain if strides is None else strides,
        "base_dilation": plain if base_dilation is None else base_dilation,
        "window_dilation": plain if window_dilation is None else window_dilation,
    }
    ints = {name: integers(values, "reduce_window", name) for name, values in options.items()}
    for name, values in ints.items():
        if len(values) != x.ndim or min(values, default=1) < 1:
            raise ValueError(
                f"{caller}: {name} must be a positive integer for each axis of {x}, got {values}"
            )
    sizes, strides, bases, dilations = ints.values()
    extents = [dilated(n, d) for n, d in zip(sizes, dilations, strict=True)]
    ends = pads(padding, x.shape, extents, strides, caller)
    if len(ends) != x.ndim:
        raise ValueError(
            f"{caller}: padding must be a pair (low, high) for each axis of {x}, got {padding}"
        )
    lows, highs = [low for low, _ in ends], [high for _, high in ends]
    columns = zip(sizes, strides, lows, highs, bases, dilations, strict=True)
    return tuple(AxisWindow(*column) for column in columns)


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Combine the elements in each window over an array, by any associative function.

    A ``computation`` that is ``lax.add``, ``mul``, ``max``, ``min`` or bitwise becomes that
    reduction, and the initial value is combined with its result once. For others the initial value
    must leave every element as it is. On a CPU, one that is not associative takes the elements of a
    window in row-major order, starting from the initial value and without the padding, compiled or
    not, and so does its derivative. That of ``max`` and ``min`` goes to the first of equal
    elements.

    Args:
        operand: an array, or a tree of arrays of one shape.
        init_value: the initial scalar, or a tree of them of the same structure.
        computation: an associative and commutative function of two elements that returns one.
        window_dimensions: the size of the window along each axis.
        window_strides: the steps between windows along each axis; by default 1.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or a pair (low, high) for each axis.
        base_dilation: the spacing of the elements along each axis; by default 1.
        window_dilation: the spacing of the elements of a window along each axis; by default 1.

    Returns:
        The combinations, one for each window; of the dtypes of ``operand``.

    Raises:
        TypeError: ``computation`` returns something unlike what it takes, or uses traced values
            from outside.
        ValueError: shapes or structures differ, an initial value is not a scalar, there is no
            operand, or the numbers of entries for the axes do not fit.

    Source: StableHLO, ``reduce_window``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, 3.0, 2.0, 5.0])
    >>> st.lax.reduce_window(x, -st.numpy.inf, st.lax.max, (2,), (2,), "VALID")
    Array([3., 5.], dtype=float32)
    """
    caller = "reduce_window"
    arrays, starts, program, structure = combination(caller, operand, init_value, computation)
    windows = _windows(
        caller,
        arrays[0].type,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    monoid = monoid_of(program)
    if monoid is not None:
        out = monoid.window(windows)(*arrays)
        outs = [monoid.started(caller, out, starts[0])]
    else:
        starts = [start_of(caller, x, s) for x, s in zip(arrays, starts, strict=True)]
        outs = ReduceWindow(program, windows)(*arrays, *starts)
    return tree.unflatten(structure, outs)
