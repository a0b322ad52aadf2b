"""Where weights enter a program, and the program run with taps there.

A weight enters by a product, a convolution, a look-up of rows or a sum: that is seen in the traced
program, through transposes, reshapes, broadcasts and conversions, inside calls and loops, whatever
layer wrote it. At each such use the other operand a is known, and zeros, a tap, are added to the
result: the derivative by the tap is the cotangent g, and the weight's gradient a sum of g aᵀ.

What a weight's axes become is followed by strides. An axis of a view is a tuple of pairs (stride,
size), major first, of the weight's elements in rows: reshapes split and join pairs, transposes
reorder axes, a stride of 0 repeats, and a negative one runs backwards.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import vjp
from stretto._engine.core.interpreter import constant
from stretto._engine.core.program import Equation, Literal, Program, Var
from stretto._engine.core.types import is_inexact
from stretto._engine.higher_order.family import Call, split
from stretto._engine.higher_order.scan import Scan, scan
from stretto._engine.ops.arithmetic import Add, Sub
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.index.primitives import Gather, GatherDimensionNumbers
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.shape import Rev
from stretto.lax import pad

Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""An axis, as pairs of stride and size, major first; none for an axis of size 1."""

Axis: TypeAlias = tuple[tuple[str, int, int], ...]
"""An axis of g or a, as role, stride and size of what it is made of; none for a position.

Roles are ``"shared"``, ``"out"`` and ``"in"``, and of repeats of the weight ``"position"``,
``"repeated"`` and ``"summed"``.
"""


@dataclass(frozen=True)
class View:
    """A value that holds elements of one weight, and nothing else."""

    weight: int
    axes: tuple[Pairs, ...]
    loops: tuple[tuple[int, Axis], ...] = ()
    """The lengths of the loops around, and what the axis of their steps is."""


@dataclass(frozen=True)
class Use:
    """One place where a weight enters, with what the axes of g and a are there."""

    path: tuple[int, ...]
    """The numbers of equations that lead to it, through calls and loops."""
    weight: int
    operand: int
    g_axes: tuple[Axis, ...]
    a_axes: tuple[Axis, ...] | None
    """None where a is 1: the weight is added."""
    loops: tuple[tuple[int, Axis], ...]
    type: Any
    """The type of the result, and so of the tap in one step of the loops."""

    @property
    def tap_shape(self) -> tuple[int, ...]:
        """The shape of the tap, with axes of loops in front."""
        return (*[n for n, _ in self.loops], *self.type.shape)

    @property
    def positions(self) -> int:
        """How many positions of an example there are, for a."""
        return self._without("position")

    @property
    def terms(self) -> int:
        """How many terms g aᵀ of an example there are."""
        return self._without("position", "repeated")

    def _without(self, *roles: str) -> int:
        parts = [p for axis in (*self.g_axes, *[axis for _, axis in self.loops]) for p in axis]
        own = math.prod([n for role, _, n in parts if role not in roles])
        return math.prod(self.tap_shape) // own

    @property
    def layout(self) -> tuple[tuple[str, int], ...] | None:
        """The roles and sizes of the weight's axes in rows; None if not all of it is there."""
        found: dict[int, tuple[str, int]] = {}
        axes = [*self.g_axes, *(self.a_axes or ()), *[axis for _, axis in self.loops]]
        for role, stride, size in [part for axis in axes for part in axis]:
            if stride:
                found[abs(stride)] = role, size
        merged: list[tuple[str, int]] = []
        covered = 1
        for stride in sorted(found):
            role, size = found[stride]
            if stride != covered:
                return None
            covered *= size
            if merged and merged[0][0] == role:
                merged[0] = role, merged[0][1] * size
            else:
                merged.insert(0, (role, size))
        return tuple(merged)


@dataclass(frozen=True)
class Uses:
    """The uses of all weights of a program, and those of no known kind."""

    found: dict[int, list[Use]]
    """By number of the weight."""
    unknown: dict[int, str]
    """The operation that a weight meets, where that is none of those that are known."""

    def of_one_term(self) -> Uses:
        """Return them with weights left out whose gradient, in an example, is a sum of terms."""
        found, unknown = {}, dict(self.unknown)
        for i, uses in self.found.items():
            if len(uses) == 1 and uses[0].terms == 1:
                found[i] = uses
            else:
                unknown[i] = "several terms"
        return Uses(found, unknown)

    def in_order(self) -> list[Use]:
        """Return all uses, as ``run`` numbers them."""
        return [use for uses in self.found.values() for use in uses]


def rows(shape: Sequence[int], whole: int = 1) -> tuple[Pairs, ...]:
    """Return the axes of an array of this shape whose elements lie in rows."""
    axes: list[Pairs] = []
    for n in reversed(shape):
        axes.insert(0, ((whole, n),) if n > 1 else ())
        whole *= n
    return tuple(axes)


def reshaped(axes: Sequence[Pairs], shape: Sequence[int]) -> tuple[Pairs, ...] | None:
    """Return the axes after a reshape; None if a pair would be split where it does not divide.

    >>> reshaped(rows((4, 6)), (2, 2, 6))
    (((12, 2),), ((6, 2),), ((1, 6),))
    """
    pairs = [pair for axis in axes for pair in axis]
    result: list[Pairs] = []
    for n in shape:
        taken: list[tuple[int, int]] = []
        while n > 1:
            stride, size = pairs.pop(0)
            major = math.gcd(n, size)
            if size > n:
                if size % n:
                    return None
                major = n
                pairs.insert(0, (stride, size // n))
                stride *= size // n
            elif n % size:
                return None
            taken.append((stride, major))
            n //= major
        result.append(tuple(taken))
    return tuple(result)


# Looking for uses


def uses_of(program: Program, weights: int) -> Uses:
    """Find where the first ``weights`` inputs of a program enter it."""
    search = _Search()
    views = [View(i, rows(v.type.shape)) for i, v in enumerate(program.inputs[:weights])]
    outs = search.walk(program, [*views, *[None] * (len(program.inputs) - weights)], ())
    for view in outs:
        if view is not None:
            search.unknown.setdefault(view.weight, "the outputs themselves")
    found: dict[int, list[Use]] = {}
    for i in range(weights):
        uses = [u for u in search.uses if u.weight == i]
        layouts = {(u.layout, u.a_axes is None) for u in uses}
        if not uses:
            search.unknown.setdefault(i, "nothing: the outputs do not depend on it")
        if i not in search.unknown and (len(layouts) > 1 or uses[0].layout is None):
            search.unknown[i] = "several operations, which use its axes differently"
            if len(uses) == 1:
                search.unknown[i] = "an operation that takes a part of it"
        if i not in search.unknown:
            found[i] = uses
    return Uses(found, search.unknown)


class _Search:
    """The uses that a walk through a program has found."""

    def __init__(self) -> None:
        self.uses: list[Use] = []
        self.unknown: dict[int, str] = {}

    def walk(
        self, program: Program, views: Sequence[View | None], path: tuple[int, ...]
    ) -> list[View | None]:
        """Find uses below; return which outputs are views."""
        known: dict[Any, View | None] = dict(zip(program.inputs, views, strict=True))
        for i, e in enumerate(program.equations):
            held = [known.get(a) if isinstance(a, Var) else None for a in e.inputs]
            if not any(held):
                continue
            op, here = e.primitive, (*path, i)
            inner = op.inlined() if isinstance(op, Call) else None
            if inner is not None:
                known.update(zip(e.outputs, self.walk(inner, held, here), strict=True))
            elif isinstance(op, Scan):
                self._enter(op, e, held, here)
            elif len(e.inputs) == 1 and (view := _moved(op, held[0], e)) is not None:
                known[e.outputs[0]] = view
            else:
                self._note(op, e, held, here)
        return [known.get(a) if isinstance(a, Var) else None for a in program.outputs]

    def _enter(self, op: Scan, e: Equation, held: list[View | None], path: tuple[int, ...]) -> None:
        """Find uses in the steps of a loop: a constant in all, or a slice in each."""
        inner: list[View | None] = []
        for i, view in enumerate(held):
            if view is None or op.consts <= i < op.consts + op.carry:
                self._refuse(view, "the state of a loop")
                inner.append(None)
            elif i < op.consts:
                loops = (*view.loops, (op.length, ()))
                inner.append(View(view.weight, view.axes, loops))
            else:
                loops = (*view.loops, (op.length, _marked("shared", view.axes[0])))
                inner.append(View(view.weight, view.axes[1:], loops))
        for view in self.walk(op.body, inner, path):
            self._refuse(view, "the state of a loop")

    def _refuse(self, view: View | None, why: str) -> None:
        if view is not None:
            self.unknown.setdefault(view.weight, why)

    def _note(self, op: Any, e: Equation, held: list[View | None], path: tuple[int, ...]) -> None:
        """Keep the uses of the weights that an operation takes."""
        both = sum(v is not None for v in held) > 1
        for i, view in enumerate(held):
            if view is None:
                continue
            axes = None
            if isinstance(op, (Add, Sub)):
                axes = tuple([_marked("out", pairs) for pairs in view.axes]), None
            elif both:
                pass  # a product of weights: the other operand is no activation
            elif isinstance(op, DotGeneral):
                axes = _product_axes(op, i, view, [a.type.ndim for a in e.inputs])
            elif isinstance(op, ConvGeneralDilated) and i == 1 and op.batch_groups == 1:
                axes = _convolution_axes(op, view)
            elif isinstance(op, Gather) and i == 0:
                axes = _look_up_axes(op, view, e.inputs[0].type.shape, e.outputs[0].type.ndim)
            if axes is None:
                self._refuse(view, f"{op.name} with another weight" if both else op.name)
                continue
            g_axes, a_axes = axes
            type = e.outputs[0].type
            self.uses.append(Use(path, view.weight, i, g_axes, a_axes, view.loops, type))


def _marked(role: str, pairs: Pairs) -> Axis:
    """Return an axis of a use, whose role is that of the weight's elements along it."""
    repeat = {"shared": "position", "out": "repeated", "in": "summed"}[role]
    return tuple([(role if stride else repeat, stride, size) for stride, size in pairs])


def _moved(op: Any, view: View | None, e: Equation) -> View | None:
    """Return the view after an operation that only moves or repeats elements."""
    if view is None:
        return None
    axes: tuple[Pairs, ...] | None = None
    if isinstance(op, Transpose):
        axes = tuple([view.axes[i] for i in op.permutation])
    elif isinstance(op, Reshape):
        axes = reshaped(view.axes, op.shape)
    elif isinstance(op, BroadcastInDim):
        new: list[Pairs] = [((0, n),) if n > 1 else () for n in op.shape]
        for old, place in enumerate(op.dims):
            if view.axes[old]:
                new[place] = view.axes[old]
        axes = tuple(new)
    elif isinstance(op, ConvertElementType) and is_inexact(op.dtype):
        axes = view.axes
    elif isinstance(op, Rev):
        axes = tuple(
            [
                tuple((-s, n) for s, n in pairs) if i in op.axes else pairs
                for i, pairs in enumerate(view.axes)
            ]
        )
    return None if axes is None else View(view.weight, axes, view.loops)


_Found: TypeAlias = tuple[tuple[Axis, ...], tuple[Axis, ...]]


def _product_axes(op: DotGeneral, operand: int, view: View, ndims: Sequence[int]) -> _Found:
    """Return the axes of g and of a at a product: g is shared, free of x, free of y."""
    free = op.free_of(*ndims)
    shared = [_marked("shared", view.axes[i]) for i in op.shared[operand]]
    own = [_marked("out", view.axes[i]) for i in free[operand]]
    other = [() for _ in free[1 - operand]]
    g_axes = [*shared, *(own + other if operand == 0 else other + own)]
    a_axes: list[Axis] = [()] * ndims[1 - operand]
    for mine, theirs in zip(op.shared[operand], op.shared[1 - operand], strict=True):
        a_axes[theirs] = _marked("shared", view.axes[mine])
    for mine, theirs in zip(op.summed[operand], op.summed[1 - operand], strict=True):
        a_axes[theirs] = _marked("in", view.axes[mine])
    return tuple(g_axes), tuple(a_axes)


def _convolution_axes(op: ConvGeneralDilated, view: View) -> _Found | None:
    """Return the axes of g, and of the windows (examples, *positions, *window, groups and in)."""
    spec = op.dims.rhs_spec
    outs = view.axes[spec[0]]
    size = math.prod([n for _, n in outs])
    split = reshaped((outs,), (op.feature_groups, size // op.feature_groups))
    if split is None:
        return None
    g_axes: list[Axis] = [()] * len(spec)
    g_axes[op.dims.out_spec[1]] = (*_marked("shared", split[0]), *_marked("out", split[1]))
    window = [_marked("in", view.axes[i]) for i in spec[2:]]
    inputs = _marked("in", view.axes[spec[1]])
    positions: list[Axis] = [()] * len(window)
    features = (*_marked("shared", split[0]), *inputs)
    return tuple(g_axes), ((), *positions, *window, features)


def _look_up_axes(op: Gather, view: View, shape: Sequence[int], ndim: int) -> _Found | None:
    """Return the axes of g, and of the counts of rows, where whole rows are looked up."""
    numbers = op.dimension_numbers
    if len(numbers.collapsed_slice_dims) != 1 or numbers.operand_batching_dims:
        return None
    (row,) = numbers.collapsed_slice_dims
    if numbers.start_index_map != (row,) or len(op.slice_sizes) != len(shape):
        return None
    kept = [i for i in range(len(shape)) if i != row]
    if any(op.slice_sizes[i] != shape[i] for i in kept):
        return None
    g_axes: list[Axis] = [()] * ndim
    for place, i in zip(numbers.offset_dims, kept, strict=True):
        g_axes[place] = _marked("out", view.axes[i])
    return tuple(g_axes), (_marked("shared", view.axes[row]),)


# Running with taps


def run(
    program: Program,
    args: Sequence[Any],
    uses: Mapping[tuple[int, ...], Sequence[tuple[int, Use]]],
    taps: Mapping[int, Any],
    path: tuple[int, ...] = (),
) -> tuple[list[Any], dict[int, Any]]:
    """Run a program with taps added at uses; return its outputs, and a at each use.

    Args:
        program: the program, or one that an equation of it holds.
        args: its arguments.
        uses: by path, the uses of one equation, with their numbers.
        taps: by the number of the use, for as many as are wanted; those in loops have the axis of
            steps in front.
        path: where the program is.
    """
    known: dict[Any, Any] = dict(zip(program.inputs, args, strict=True))
    seen: dict[int, Any] = {}

    def of(a: Any) -> Any:
        if not isinstance(a, Literal):
            return known[a]
        return constant(a.array(), a.type.weak_type)

    for i, e in enumerate(program.equations):
        op, here, values = e.primitive, (*path, i), [of(a) for a in e.inputs]
        below = {n for p, listed in uses.items() if p[: len(here)] == here for n, _ in listed}
        if here in uses:
            out = op(*values)
            for n, use in uses[here]:
                out = out + taps[n] if n in taps else out
                if use.a_axes is not None:
                    seen[n] = _other_operand(op, use.operand, values)
            outs = [out]
        elif below and isinstance(op, Scan):
            outs, inner = _run_loop(op, values, uses, {n: taps[n] for n in below & {*taps}}, here)
            seen.update(inner)
        elif below:
            held: Any = op
            outs, inner = run(held.inlined(), values, uses, taps, here)
            seen.update(inner)
        else:
            result = op(*values)
            outs = result if op.multiple else [result]
        known.update(zip(e.outputs, outs, strict=True))
    return [of(a) for a in program.outputs], seen


def _run_loop(
    op: Scan, values: Sequence[Any], uses: Any, taps: dict[int, Any], path: tuple[int, ...]
) -> tuple[list[Any], dict[int, Any]]:
    """Run a loop with taps in its steps."""
    consts, state, xs = split(values, op.consts, op.carry)

    def step(state: list[Any], here: Any) -> Any:
        x, tapped = here
        outs, seen = run(op.body, [*consts, *state, *x], uses, tapped, path)
        return outs[: op.carry], (outs[op.carry :], seen)

    last, (stacked, seen) = scan(step, state, (xs, taps), op.length, op.reverse, op.unroll)
    return [*last, *stacked], seen


def _other_operand(op: Any, operand: int, values: Sequence[Any]) -> Any:
    """Return a: the other factor, windows of a convolution, or the root of how often rows came."""
    if isinstance(op, ConvGeneralDilated):
        return _windows(op, *values)
    if isinstance(op, Gather):
        weight, rows = values
        (row,) = op.dimension_numbers.collapsed_slice_dims
        numbers = GatherDimensionNumbers((), (0,), (0,))
        count = Gather(numbers, (1,), op.mode, op.fill)
        zeros = snp.zeros(weight.shape[row], weight.dtype)
        # The transpose of looking rows up adds 1 to a row for each time. A position has a 1 at its
        # row, so that the sum of aaᵀ has how often each was looked up.
        out, pull = vjp(lambda column: count(column, rows), zeros)
        return snp.sqrt(pull(snp.ones_like(out))[0])
    return values[1 - operand]


def _windows(op: ConvGeneralDilated, image: Any, kernel: Any) -> Any:
    """Return the windows that a convolution multiplies: (examples, *positions, *window, features).

    Features last, so that what is copied lies side by side.
    """
    batch, features, *spatial = op.dims.lhs_spec
    x = snp.transpose(image, (batch, *spatial, features))
    sizes = [kernel.shape[i] for i in op.dims.rhs_spec[2:]]
    edges = [(low, high, d - 1) for (low, high), d in zip(op.padding, op.lhs_dilation, strict=True)]
    if any([edge != (0, 0, 0) for edge in edges]):
        x = pad(x, 0, [(0, 0, 0), *edges, (0, 0, 0)])
    spans = [(k - 1) * d + 1 for k, d in zip(sizes, op.rhs_dilation, strict=True)]
    counts = [(n - s) // t + 1 for n, s, t in zip(x.shape[1:-1], spans, op.strides, strict=True)]
    parts = []
    for at in itertools.product(*[range(k) for k in sizes]):
        starts = [i * d for i, d in zip(at, op.rhs_dilation, strict=True)]
        cuts = [
            slice(start, start + (n - 1) * t + 1, t)
            for start, n, t in zip(starts, counts, op.strides, strict=True)
        ]
        parts.append(x[(slice(None), *cuts)])
    whole = snp.stack(parts, -2)
    return whole.reshape((*whole.shape[:-2], *sizes, whole.shape[-1]))


class Arrangement(NamedTuple):
    """How an array becomes (groups, positions, elements): equal ones give the same numbers."""

    parts: tuple[int, ...]
    """The sizes of what its axes are made of."""
    backwards: tuple[int, ...]
    """Which of them run backwards."""
    roles: tuple[tuple[int, ...], ...]
    """Which are groups, positions, elements, and what is summed: each in the order of rows."""

    @property
    def sizes(self) -> list[int]:
        """How many there are of each of the four."""
        return [math.prod([self.parts[i] for i in role]) for role in self.roles]

    def apply(self, x: Any) -> Any:
        """Return the array so."""
        x = snp.reshape(x, self.parts)
        x = snp.flip(x, self.backwards) if self.backwards else x
        x = snp.transpose(x, [i for role in self.roles for i in role])
        *sizes, summed = self.sizes
        return x.reshape(sizes) if summed == 1 else x.reshape(self.sizes).sum(axis=-1)

    def square(self, x: Any) -> Any:
        """Return the sums of x xᵀ over positions, (groups, n, n), of the array as it lies.

        Elements are brought to the order of rows in the square, which is less to move.
        """
        elements = self.roles[2]
        stored = tuple(sorted(elements))
        roles = (self.roles[0], self.roles[1], stored, self.roles[3])
        backwards = tuple([i for i in self.backwards if i not in elements])
        rows = self._replace(backwards=backwards, roles=roles).apply(x)
        rows = rows.astype(snp.promote_types(rows.dtype, np.float32))
        if len(rows) == 1:
            out = (rows[0].T @ rows[0])[None]  # which is computed above the diagonal alone
        else:
            out = snp.swapaxes(rows, 1, 2) @ rows
        flips = [stored.index(i) for i in self.backwards if i in elements]
        if stored == elements and not flips:
            return out
        count, sizes = len(stored), [self.parts[i] for i in stored]
        out = out.reshape((-1, *sizes, *sizes))
        if flips:
            out = snp.flip(out, [1 + i + add for i in flips for add in (0, count)])
        order = [1 + stored.index(i) for i in elements]
        out = snp.transpose(out, [0, *order, *[i + count for i in order]])
        return out.reshape(rows.shape[0], rows.shape[-1], rows.shape[-1])


def arrangement(shape: Sequence[int], axes: Sequence[Axis], role: str) -> Arrangement:
    """Return how an array of this shape is arranged; its axes in front of ``axes`` are positions.

    Args:
        shape: (..., *axes).
        axes: what the axes are.
        role: ``"out"`` or ``"in"``: which elements are the last axis, in the order of rows.
    """
    front = len(shape) - len(axes)
    parts: list[tuple[str, int, int]] = [("position", 0, n) for n in shape[:front]]
    for n, axis in zip(shape[front:], axes, strict=True):
        parts.extend(axis or [("position", 0, n)])

    def places(*wanted: str) -> tuple[int, ...]:
        found = [i for i, (r, _, _) in enumerate(parts) if r in wanted]
        return tuple(sorted(found, key=lambda i: -abs(parts[i][1])))

    return Arrangement(
        tuple([n for _, _, n in parts]),
        tuple([i for i, (_, stride, _) in enumerate(parts) if stride < 0]),
        (places("shared"), places("position", "repeated"), places(role), places("summed")),
    )


def arranged(x: Any, axes: Sequence[Axis], role: str) -> Any:
    """Return an array as (groups, positions, elements); see ``arrangement``."""
    return arrangement(x.shape, axes, role).apply(x)


def squared(x: Any, axes: Sequence[Axis], role: str) -> Any:
    """Return the sums over positions of x xᵀ, (groups, n, n), for the array as arranged."""
    return arrangement(x.shape, axes, role).square(x)
