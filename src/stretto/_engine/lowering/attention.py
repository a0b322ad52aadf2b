"""Attention by a kernel of our own: how its operands lie in memory, as the kernel's numbers.

Every array has a stride for each axis of the batch, for its rows and its columns
(``kernels/attention.h``), so that heads are read and written where they lie.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from stretto._engine.ops.fused_attention import Examples, Geometry, Place
from stretto._engine.ops.product_strides import View, row_major

_AXES, _STEPS = 4, 4
_ARRAYS = 8
"""From queries to the gradient of values."""
_KINDS = {"multiply": 0, "add": 1, "select": 2, "causal": 3}


def reshaped(view: View, shape: Sequence[int]) -> View | None:
    """Return the view with its elements, in order, in another shape; None if it needs a copy.

    >>> reshaped(View((2, 6, 3), (18, 1, 6)), (2, 2, 3, 3))
    View(shape=(2, 2, 3, 3), strides=(18, 3, 1, 6), offset=0)
    """
    if 0 in shape:
        return row_major(shape)
    old = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n != 1]
    strides: list[int] = []
    at = 0
    left, stride = 1, 0  # what is left of the axis at hand
    for size in shape:
        if size == 1:
            strides.append(0)
            continue
        own, step = 1, None
        while own < size:
            if left == 1:
                if at == len(old):
                    return None
                left, stride = old[at]
                at += 1
            if step is not None and step != left * stride:
                return None  # two axes that do not lie side by side
            need = size // own
            if need % left == 0:
                own, left, step = own * left, 1, stride
            elif left % need == 0:
                left //= need
                own, step = size, stride * left
            else:
                return None
        strides.append(step or 0)
    return View(tuple(shape), tuple(strides), view.offset)


def sliced(view: View, parts: Sequence[tuple[int, int, int]]) -> View:
    """Return the view of the elements from a start to before an end, with a step, by axis."""
    starts = sum([start * s for (start, _, _), s in zip(parts, view.strides, strict=True)])
    shape = tuple([-((start - end) // step) for start, end, step in parts])
    strides = tuple([s * step for (_, _, step), s in zip(parts, view.strides, strict=True)])
    return View(shape, strides, view.offset + starts)


def numbers(
    geometry: Geometry, views: Sequence[View], arrays: Sequence[View], outs: Sequence[Sequence[int]]
) -> tuple[int, ...] | None:
    """Return what the kernel is told; None if there are too many axes.

    Args:
        geometry: what the operation is.
        views: how queries, keys, values lie, and for gradients that of the result, and the result.
        arrays: the same for those of steps.
        outs: the shapes of results that are not one value a row.
    """
    g = geometry
    q, k, v, out, *more = g.places
    results = [row_major(shape) for shape in outs]
    if g.gradient:
        results = [*views, *results]
        order = [q, k, v, more[0], *([] if g.kept else [out]), *more[1:]]
    else:
        results = [*views, results[0]]
        order = [q, k, v, out]
    places = [*order, *[step.place for step in g.steps if step.place]]
    found = [_strides(p, view) for p, view in zip(places, [*results, *arrays], strict=True)]
    # Last of the batch is what shares keys and values, over which their gradients are sums.
    sharing = [g.gradient and more[2].batch[axis] < 0 for axis in range(len(g.batch))]
    lead = [s * g.rows for s in row_major(g.batch).strides]
    first = 0
    if g.examples is not None:  # an axis of its own, before all others
        first, lead[0] = 1, 1 if g.examples.kept else lead[0]
    strides = [[*[array[1][axis] for array in found], lead[axis]] for axis in range(len(g.batch))]
    of = [(g.batch[a], strides[a], shares) for a, shares in enumerate(sharing)]
    own, shared = [
        _joined([(size, steps) for size, steps, shares in of[first:] if shares == last])
        for last in (False, True)
    ]
    missing = _AXES - len(own) - len(shared) - first
    if missing < 0:
        return None
    none = (1, [0] * (len(found) + 1))
    axes = [*[each[:2] for each in of[:first]], *[none] * missing, *own, *shared]
    nothing = [0] * (3 + _AXES)
    packed = [
        [offset, *[steps[n] for _, steps in axes], row, column]
        for n, (offset, _, row, column) in enumerate(found)
    ]
    beside = packed[len(order) :]
    told = [*[size for size, _ in axes], *[steps[-1] for _, steps in axes]]
    told += [g.rows, g.keys, g.features, g.columns, int(g.guarded), len(g.steps), int(g.kept)]
    told += [math.prod([size for size, _ in shared]), _bits(g.scale), len(beside)]
    told += _examples(g.examples)
    result = packed[3] if not g.gradient else nothing if g.kept else packed[4]
    for array in (*packed[:3], result):
        told += array
    for step in g.steps:
        told += [_KINDS[step.kind], step.offset, _bits(step.constant)]
        told += beside.pop(0) if step.place else nothing
    told += [0, 0, 0, *nothing] * (_STEPS - len(g.steps))
    for array in (packed[3], *packed[len(order) - 3 : len(order)]) if g.gradient else ():
        told += array
    return tuple(told)


def _examples(examples: Examples | None) -> tuple[int, int]:
    """Return the kernel's ``ragged`` and ``room``."""
    if examples is None:
        return 0, 0
    ways = [examples.rows, examples.keys, *examples.packed]
    ways += [False] * (_ARRAYS + 2 - len(ways)) + [examples.kept, True]
    return sum([way << n for n, way in enumerate(ways)]), examples.room


def _joined(axes: Sequence[tuple[int, list[int]]]) -> list[tuple[int, list[int]]]:
    """Return axes, each a size and its strides, with those as one that lie so in all arrays."""
    found: list[tuple[int, list[int]]] = []
    for size, strides in axes:
        if found and found[-1][1] == [s * size for s in strides]:
            found[-1] = found[-1][0] * size, strides
        else:
            found.append((size, strides))
    return found


def _strides(place: Place, view: View) -> tuple[int, list[int], int, int]:
    """Return where an array begins, and its strides along the batch, rows and columns."""
    flat: list[int] = []
    for sizes, stride in zip(place.split, view.strides, strict=True):
        flat += [s * stride for s in row_major(sizes).strides]
    at = lambda axis: flat[axis] if axis >= 0 else 0
    return view.offset, [at(axis) for axis in place.batch], at(place.row), at(place.column)


def _bits(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little", signed=True)
