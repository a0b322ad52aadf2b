"""NumPy's indexing: ``x[index]`` reads, ``x.at[index]`` gives an updated copy.

Layer 7 (numpy). Reads clamp places out of bounds and updates drop them, unless ``mode`` says
otherwise. Integers and slices become slices and reshapes; arrays of integers become one gather or
scatter. On concrete arrays at rest NumPy does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto.core.errors import BooleanIndexError
from stretto.core.interpreter import Value, as_value, state
from stretto.core.types import array_type, inexact_dtype, is_complex, kind_of
from stretto.numpy.indices import Index, Integer, Integers, Span, concrete_of, parse, show, stack
from stretto.ops import index as ops
from stretto.ops.arithmetic import add, divide, maximum, minimum, multiply, subtract
from stretto.ops.broadcast import broadcast_to, reshape
from stretto.ops.comparison import full, full_like, where
from stretto.ops.convert import convert
from stretto.ops.exponential import power
from stretto.ops.index_primitives import fill_element
from stretto.ops.shape import rev, slice_
from stretto.runtime.array import Array
from stretto.runtime.eager import EAGER, quiet

__all__ = ["At", "IndexUpdate", "getitem", "setitem"]

_MODES = {
    None: None,
    "clip": "clip",
    "fill": "fill",
    "drop": "fill",
    "promise_in_bounds": "promise_in_bounds",
    "raise": "raise",
}


def _canonical_mode(mode: str | None, default: str) -> str:
    if mode not in _MODES:
        names = ", ".join(repr(name) for name in _MODES if name)
        raise ValueError(f"indexing: mode must be one of {names}; got {mode!r}")
    return _MODES[mode] or default


# Reading

_PLAIN = frozenset({int, slice, type(None), type(Ellipsis)})


def getitem(
    x: Any,
    index: Any,
    mode: str | None = None,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    """``x[index]`` by NumPy's rules, with places out of bounds clamped.

    ``mode="fill"`` reads ``fill_value`` there instead: by default NaN, the least signed or greatest
    unsigned integer, or True; ``"raise"`` raises ``IndexError``, for an index that is not traced.
    Raises ``IndexError`` for an index that does not fit the array, and ``BooleanIndexError`` for a
    traced boolean mask.

    >>> import stretto.numpy as snp
    >>> snp.array([0, 2, 4, 6])[10000]
    Array(6, dtype=int32)
    """
    at_rest = x.__class__ is Array and state.interpreter is EAGER
    if at_rest and mode is None:
        view = _view(x.to_host(), index)
        if view is not None:
            return _wrap(view, x)
    x = as_value(x, "indexing")
    mode = _canonical_mode(mode, "clip")
    parsed = parse(index, x.type)
    if mode == "raise":
        parsed.check(x.type)
        mode = "promise_in_bounds"
    shape = parsed.result_shape()
    if 0 in shape:
        return full(shape, 0, x.dtype, x.type.weak_type)
    if mode == "fill" and (0 in parsed.shape or _integer_outside(parsed)):
        return full(shape, fill_element(x.dtype, fill_value), x.dtype, x.type.weak_type)
    if 0 in parsed.shape:
        raise IndexError(
            f"x[{show(index)}] reads from {x.type}, which has no elements; mode='fill' gives the "
            f"fill value"
        )
    parsed, mode = _settle(parsed, mode)
    if at_rest and mode == "promise_in_bounds" and parsed.concrete:
        return _wrap(x.to_host().reshape(parsed.shape)[parsed.host()], x)
    return _read(x, parsed, mode, fill_value, indices_are_sorted, unique_indices)


def _settle(parsed: Index, mode: str) -> tuple[Index, str]:
    """Clamp what is known; where all is known and in bounds nothing is left to the mode."""
    if parsed.concrete and parsed.outside():
        return (parsed, mode) if mode == "fill" else (parsed.clamped(), "promise_in_bounds")
    return parsed, "promise_in_bounds" if parsed.concrete else mode


def _view(host: np.ndarray, index: Any) -> np.ndarray | None:
    """What NumPy gives for integers and slices in bounds; ``None`` where more is to be done."""
    try:
        if index.__class__ is int:
            return host[index, ...]
        if index.__class__ is tuple and not _PLAIN.issuperset(map(type, index)):
            return None
        if index.__class__ not in (tuple, *_PLAIN):
            return None
        parts = index if index.__class__ is tuple else (index,)
        return host[parts if Ellipsis in parts else (*parts, ...)]
    except (IndexError, TypeError, ValueError):
        return None


def _wrap(host: np.ndarray, x: Array) -> Array:
    return Array(host, array_type(host.shape, x.type.dtype, x.type.weak_type))


def _integer_outside(parsed: Index) -> bool:
    return any(
        not 0 <= e.at < parsed.shape[e.axis] for e in parsed.entries if isinstance(e, Integer)
    )


def _read(
    x: Any, parsed: Index, mode: str, fill_value: Any, indices_are_sorted: bool, unique: bool
) -> Any:
    """A slice for what is static, then a gather for what is not."""
    x = reshape(x, parsed.shape)
    bounds = [(0, n, 1) for n in x.shape]
    flipped, single = [], []
    for e in parsed.entries:
        if isinstance(e, Integer):
            at = min(max(e.at, 0), x.shape[e.axis] - 1)  # beside traced places
            bounds[e.axis] = (at, at + 1, 1)
            single.append(e.axis)
        elif isinstance(e, Span):
            last = e.start + (e.count - 1) * e.step
            bounds[e.axis] = (min(e.start, last), max(e.start, last) + 1, abs(e.step))
            if e.step < 0:
                flipped.append(e.axis)
    x = rev(slice_(x, *zip(*bounds, strict=True)), flipped) if bounds else x
    arrays = parsed.arrays
    if not arrays:
        return reshape(x, parsed.result_shape())
    kept = [d for d in range(x.ndim) if d not in single]
    x = reshape(x, tuple(x.shape[d] for d in kept))
    axes = tuple(kept.index(e.axis) for e in arrays)
    layout = [axis for axis in parsed.layout() if isinstance(axis, (Span, int))]
    numbers = ops.GatherDimensionNumbers(
        tuple(i for i, axis in enumerate(layout) if isinstance(axis, Span)),
        tuple(sorted(axes)),
        axes,
    )
    places = [(e.at, x.shape[d]) for e, d in zip(arrays, axes, strict=True)]
    out = ops.gather(
        x,
        stack(places, parsed.batch),
        numbers,
        tuple(1 if d in axes else n for d, n in enumerate(x.shape)),
        unique_indices=unique or parsed.distinct,
        indices_are_sorted=indices_are_sorted,
        mode=mode,
        fill_value=fill_value,
    )
    return reshape(out, parsed.result_shape())


def setitem(x: Any, index: Any, value: Any) -> None:
    """Raise ``TypeError``: arrays are immutable.

    >>> import stretto.numpy as snp
    >>> x = snp.zeros(2)
    >>> x[0] = 1
    Traceback (most recent call last):
    TypeError: arrays are immutable: instead of x[0] = y write x = x.at[0].set(y)
    """
    at = show(index)
    raise TypeError(
        f"arrays are immutable: instead of x[{at}] = y write x = x.at[{at}].set(y)"
    )


# Updating


class At:
    """``x.at``: indexed, it gives an ``IndexUpdate``.

    >>> import stretto.numpy as snp
    >>> snp.zeros(3).at[1].set(5)
    Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("_x",)

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> IndexUpdate:
        return IndexUpdate(self._x, index)

    def __repr__(self) -> str:
        return f"<at of {self._x.type}>"


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "set": lambda _, y: y,
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "divide": divide,
    "power": power,
    "min": minimum,
    "max": maximum,
}
_SCATTERS: dict[str, Callable[..., Any]] = {
    "set": ops.scatter,
    "add": ops.scatter_add,
    "subtract": ops.scatter_sub,
    "multiply": ops.scatter_mul,
    "min": ops.scatter_min,
    "max": ops.scatter_max,
}


class IndexUpdate:
    """``x.at[index]``: each method gives a copy of ``x`` changed at ``index``; ``get`` reads.

    Values take the dtype of ``x``. Where an index names an element more than once, each update
    counts (``set``: the last one). Keywords of every method: ``mode``, ``"drop"`` (the default;
    ``"fill"`` says the same), ``"clip"``, ``"promise_in_bounds"`` or ``"raise"``, for places out of
    bounds; ``indices_are_sorted`` and ``unique_indices``, promises that may save work.
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Any, index: Any) -> None:
        self._x = x
        self._index = index

    def __repr__(self) -> str:
        return f"<at[{show(self._index)}] of {self._x.type}>"

    def get(
        self,
        *,
        mode: str | None = None,
        fill_value: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Any:
        """``x[index]``, with ``mode`` for places out of bounds; as ``getitem``.

        >>> import stretto.numpy as snp
        >>> snp.arange(3.0).at[7].get(mode="fill")
        Array(nan, dtype=float32)
        """
        return getitem(
            self._x, self._index, mode, fill_value, indices_are_sorted, unique_indices
        )

    def set(self, values: Any, **options: Any) -> Any:
        """``x[index] = values``."""
        return _update("set", self._x, self._index, values, **options)

    def add(self, values: Any, **options: Any) -> Any:
        """``x[index] += values``, with repeated places added up.

        >>> import stretto.numpy as snp
        >>> snp.zeros(2).at[snp.array([1, 1])].add(3)
        Array([0., 6.], dtype=float32)
        """
        return _update("add", self._x, self._index, values, **options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """``x[index] -= values``."""
        return _update("subtract", self._x, self._index, values, **options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """``x[index] *= values``."""
        return _update("multiply", self._x, self._index, values, **options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Any:
        """``x[index] /= values``; integers become floats."""
        return _update("divide", self._x, self._index, values, **options)

    def power(self, values: Any, **options: Any) -> Any:
        """``x[index] **= values``."""
        return _update("power", self._x, self._index, values, **options)

    def min(self, values: Any, **options: Any) -> Any:
        """``x[index] = minimum(x[index], values)``."""
        return _update("min", self._x, self._index, values, **options)

    def max(self, values: Any, **options: Any) -> Any:
        """``x[index] = maximum(x[index], values)``."""
        return _update("max", self._x, self._index, values, **options)

    def apply(self, func: Callable[[Any], Any], **options: Any) -> Any:
        """``x[index] = func(x[index])``; once, however often the index names an element.

        >>> import stretto.numpy as snp
        >>> snp.array([1.0, 4.0, 9.0]).at[1:].apply(snp.sqrt)
        Array([1., 2., 3.], dtype=float32)
        """
        x, index = self._x, self._index
        if _mask(x, index) is not None:
            return _update("set", x, index, func(x), **options)
        return _update("set", x, index, func(getitem(x, index)), **options)


def _update(
    kind: str,
    x: Any,
    index: Any,
    values: Any,
    *,
    mode: str | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    who = f"x.at[...].{kind}"
    mode = _canonical_mode(mode, "fill")
    if kind == "divide":
        x = convert(x, inexact_dtype(x.dtype), x.type.weak_type)
    values = _cast(who, values, x)
    mask = _mask(x, index)
    if mask is not None:
        chosen = _update_mask(kind, x, mask, values)
        if chosen is not None:
            return chosen
    parsed = parse(index, x.type)
    if mode == "raise":
        parsed.check(x.type)
        mode = "promise_in_bounds"
    values = _fit(who, values, parsed, x)
    if not x.size or not values.size:
        return x
    parsed, mode = _settle(parsed, mode)
    distinct = (
        parsed.distinct or (unique_indices and mode != "clip") or _seen_distinct(parsed)
    )
    if kind in ("divide", "power"):
        return _update_by_parts(kind, x, index, parsed, values, mode, distinct)
    if x.__class__ is Array and values.__class__ is Array and state.interpreter is EAGER:
        done = _write_host(kind, x, parsed, values, mode)
        if done is not None:
            return done
    return _scatter(kind, x, parsed, values, mode, indices_are_sorted, distinct)


def _cast(who: str, values: Any, x: Any) -> Any:
    values = as_value(values, who, "values")
    if is_complex(values.dtype) and not is_complex(x.dtype):
        raise TypeError(
            f"{who}: complex values do not go into {x.type}; take their .real, or convert x first"
        )
    return convert(values, x.dtype, x.type.weak_type)


def _fit(who: str, values: Any, parsed: Index, x: Any) -> Any:
    """The values in the shape of what they update."""
    shape = parsed.result_shape()
    have = values.shape
    while len(have) > len(shape) and have[0] == 1:
        have = have[1:]
    try:
        fits = np.broadcast_shapes(have, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{who}: values of shape {values.shape} do not broadcast to the shape {shape} that the "
            f"index takes of {x.type}"
        )
    return broadcast_to(reshape(values, have), shape)


# Masks


def _mask(x: Any, index: Any) -> Any:
    """The mask over the leading axes of ``x`` that the index is, if it is one."""
    if isinstance(index, tuple):
        if not index or any(part.__class__ is not type(Ellipsis) for part in index[1:]):
            return None
        index = index[0]
    if not isinstance(index, (Value, np.ndarray)) or kind_of(index.dtype) != "bool":
        return None
    fits = 0 < index.ndim <= x.ndim and index.shape == x.shape[: index.ndim]
    return index if fits else None


def _update_mask(kind: str, x: Any, mask: Any, values: Any) -> Any:
    """The update as a choice by the mask; ``None`` where the values are one for each place."""
    rest = x.shape[mask.ndim :]
    have = values.shape
    while len(have) > len(rest) and have[0] == 1:
        have = have[1:]
    fits = len(have) <= len(rest) and all(
        n in (1, m) for n, m in zip(reversed(have), reversed(rest), strict=False)
    )
    if not fits:
        if concrete_of(mask) is None:
            raise BooleanIndexError(
                f"x.at[mask].{kind}: with a traced mask the values must be a scalar, or broadcast "
                f"to {rest}, the axes of {x.type} that the mask {mask.type} leaves; got shape "
                f"{values.shape}. Use snp.where(mask, y, x) with y of the shape of x"
            )
        return None
    chosen = reshape(as_value(mask), (*mask.shape, *(1 for _ in rest)))
    new = _OPERATIONS[kind](x, reshape(values, have))
    return where(broadcast_to(chosen, x.shape), broadcast_to(new, x.shape), x)


# Places


def _seen_distinct(parsed: Index) -> bool:
    """Whether concrete index arrays of a traced update name each place once."""
    arrays = parsed.arrays
    if not parsed.concrete or state.interpreter is EAGER:
        return False
    line = np.zeros(parsed.batch, np.int64)
    for e in arrays:
        n = parsed.shape[e.axis]
        line = line * (n + 2) + np.clip(e.at, -1, n)
    return np.unique(line).size == line.size


def _write_host(kind: str, x: Array, parsed: Index, values: Array, mode: str) -> Any:
    """The update done by NumPy, where that is plain: slices, and one axis of places to set."""
    arrays = parsed.arrays
    if arrays and (kind != "set" or len(parsed.batch) > 1):
        return None
    if mode == "fill":
        return None
    out = x.to_host().copy(order="C")
    place = parsed.host()
    part = out.reshape(parsed.shape)  # a view: the copy is contiguous
    if kind == "set":
        part[place] = values.to_host()
    else:
        new = quiet.run(_HOST[kind], part[place], values.to_host())
        part[place] = new
    return Array(out, x.type)


_HOST = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def _update_by_parts(
    kind: str, x: Any, index: Any, parsed: Index, values: Any, mode: str, distinct: bool
) -> Any:
    """Division and powers, which no scatter has."""
    operation = _OPERATIONS[kind]
    if distinct:
        old = getitem(x, index, "clip", unique_indices=True)
        return _scatter("set", x, parsed, operation(old, values), mode, False, True)
    factors = _scatter("multiply", full_like(x, 1), parsed, values, mode, False, False)
    return operation(x, factors)


def _scatter(
    kind: str,
    x: Any,
    parsed: Index,
    values: Any,
    mode: str,
    indices_are_sorted: bool,
    distinct: bool,
) -> Any:
    """One scatter: a slice of step 1 is a window, one of another step a row of places."""
    layout = [axis for axis in parsed.layout() if isinstance(axis, (Span, int))]
    sizes = tuple(parsed.size_of(axis) for axis in layout)
    values = reshape(values, sizes)
    strided = [i for i, a in enumerate(layout) if isinstance(a, Span) and _is_strided(a)]
    window = [i for i, a in enumerate(layout) if isinstance(a, Span) and i not in strided]
    values = rev(values, [i for i in window if layout[i].step < 0])  # type: ignore[union-attr]
    scattered = [i for i in range(len(layout)) if i not in window]
    shape = tuple(sizes[i] for i in scattered)
    places: list[tuple[Any, int]] = []
    axes: list[int] = []
    whole: list[int] = []

    def place(axis: int, at: Any) -> None:
        axes.append(axis)
        places.append((at, parsed.shape[axis]))

    for e in parsed.entries:
        if isinstance(e, Integer):
            place(e.axis, np.asarray(e.at))
        elif isinstance(e, Integers):
            place(e.axis, _spread(e.at, [layout[i] for i in scattered], parsed.batch))
        elif isinstance(e, Span) and _is_strided(e):
            position = scattered.index(layout.index(e))
            steps = e.start + e.step * np.arange(e.count)
            place(e.axis, steps.reshape([-1 if i == position else 1 for i in range(len(shape))]))
        elif isinstance(e, Span):
            whole.append(e.axis)
            if e.count != parsed.shape[e.axis]:
                place(e.axis, np.asarray(min(e.start, e.start + (e.count - 1) * e.step)))
    numbers = ops.ScatterDimensionNumbers(
        tuple(window),
        tuple(d for d in range(len(parsed.shape)) if d not in whole),
        tuple(axes),
    )
    out = _SCATTERS[kind](
        reshape(x, parsed.shape),
        stack(places, shape),
        values,
        numbers,
        indices_are_sorted=indices_are_sorted and not strided,
        unique_indices=distinct,
        mode=mode,
    )
    return reshape(out, x.shape)


def _is_strided(span: Span) -> bool:
    return abs(span.step) != 1 and span.count > 1


def _spread(at: Any, layout: list[Any], batch: tuple[int, ...]) -> Any:
    """Places with their axes at those of ``batch`` in the layout, and size 1 elsewhere."""
    padded = iter((*(1,) * (len(batch) - at.ndim), *at.shape))
    shape = tuple(next(padded) if isinstance(axis, int) else 1 for axis in layout)
    return reshape(at, shape) if isinstance(at, Value) else at.reshape(shape)
