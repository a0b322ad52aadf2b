"""``x.at[index]``: copies of an array with some elements changed, which itself never changes.

Updates are made by NumPy at rest, by a choice for masks, and by one scatter for the rest. What
NumPy's and PyTorch's arrays have to change in place is refused in words: each error says what to
use instead; for PyTorch's names, ``migration`` in the engine's core has the words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import ml_dtypes
import numpy as np

from stretto._engine import higher_order
from stretto._engine.core.boundary import reraise_foreign
from stretto._engine.core.errors import BooleanIndexError
from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import shown
from stretto._engine.core.interpreter import Value, as_value, state
from stretto._engine.core.lazy import exports
from stretto._engine.core.migration import ARRAYS
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import inexact_dtype, is_complex, kind_of
from stretto._engine.core.typing import ArrayLike, ShardingLike
from stretto._engine.eager.interpreter import EAGER, quiet
from stretto._engine.ops.arithmetic import add, divide, multiply, subtract
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, full_like, gt
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.exponential import power
from stretto._engine.ops.extrema import maximum, minimum
from stretto._engine.ops.index import gather_scatter as ops
from stretto._engine.ops.index.geometry import ScatterDimensionNumbers, reading_mode
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import laid_out, reshape
from stretto._engine.ops.reducing.reduce import reduce_or
from stretto._engine.ops.shape import rev
from stretto._engine.xla.array import Array
from stretto.numpy.indexing import (
    Index,
    Integer,
    Integers,
    Span,
    canonical_mode,
    concrete_of,
    for_numpy,
    getitem,
    parse,
    settle,
    show,
    stack,
)

if TYPE_CHECKING:
    from stretto._engine.core.typing import Index as IndexLike

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


def update(
    kind: str,
    x: Array,
    index: IndexLike,
    values: ArrayLike,
    *,
    mode: str | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap_negative_indices: bool = True,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Copy ``x`` with the elements at ``index`` combined with values by the operation."""
    if out_sharding is not None:
        result = update(
            kind,
            x,
            index,
            values,
            mode=mode,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            wrap_negative_indices=wrap_negative_indices,
        )
        return laid_out(result, out_sharding, f"x.at[...].{kind}")
    wrap = wrap_negative_indices
    if mode is None and wrap and x.__class__ is Array and state.interpreter is EAGER:
        updated = _write_view(kind, x, index, values)
        if updated is None:
            updated = _write_places(kind, x, index, values)
        if updated is not None:
            return updated
    caller = f"x.at[...].{kind}"
    mode = canonical_mode(mode, "fill")
    if kind == "divide":
        x = convert(x, inexact_dtype(x.dtype), x.type.weak_type)
    values = _cast(caller, values, x)
    mask = mask_of(x, index)
    if mask is not None:
        updated = _update_mask(kind, x, mask, values)
        if updated is not None:
            return updated
    parsed = parse(index, x.type, wrap)
    if mode == "raise":
        parsed.check(x.type)
        mode = "promise_in_bounds"
    values = _fit(caller, values, parsed, x)
    if not x.size or not values.size:
        return x
    parsed, mode = settle(parsed, mode)
    distinct = parsed.distinct or (unique_indices and mode != "clip") or _seen_distinct(parsed)
    if x.__class__ is Array and values.__class__ is Array and state.interpreter is EAGER:
        updated = _write_host(kind, x, parsed, values, mode)
        if updated is not None:
            return updated
    in_order = indices_are_sorted and not any(
        isinstance(e, Span) and _is_strided(e) for e in parsed.entries
    )
    return _scatter(kind, x, parsed, values, mode=mode, in_order=in_order, distinct=distinct)


def _cast(caller: str, values: ArrayLike, x: Array) -> Array:
    if values.__class__ is int and kind_of(x.dtype) in ("int", "uint"):
        bounds = ml_dtypes.iinfo(x.dtype)
        number: Any = values
        if not bounds.min <= number <= bounds.max:
            raise OverflowError(
                f"{caller}: the Python integer {shown(values)} does not fit in {x.type}"
            )
    value = as_value(values, caller, "values")
    if is_complex(value.dtype) and not is_complex(x.dtype):
        raise TypeError(
            f"{caller}: complex values cannot go into {x.type}; take their .real, or convert x "
            "first"
        )
    return convert(value, x.dtype, x.type.weak_type)


def _fit(caller: str, values: Array, parsed: Index, x: Array) -> Array:
    """Return the values in the shape of what they update."""
    shape = parsed.result_shape()
    have = values.shape
    while len(have) > len(shape) and have[0] == 1:
        have = have[1:]
    try:
        fits = broadcast_shapes("update", have, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{caller}: values of shape {values.shape} do not broadcast to the shape {shape} "
            f"that the index takes of {x.type}"
        )
    return broadcast_to(reshape(values, have), shape)


# Masks


class Mask(NamedTuple):
    """An index that is a mask over the axes from ``start`` on, and takes the others whole."""

    mask: Any
    start: int


def mask_of(x: Array, index: IndexLike) -> Mask | None:
    """Return the mask in the index, if all else in it are slices of whole axes."""
    parts = index if isinstance(index, tuple) else (index,)
    masks = [
        part for part in parts if isinstance(part, (Value, np.ndarray)) and part.dtype.kind == "b"
    ]
    if len(masks) != 1 or not masks[0].ndim:
        return None
    (mask,) = masks
    before = 0
    start = None
    for part in parts:
        if part is mask:
            start = before
        elif part is Ellipsis:
            before = x.ndim - sum(map(_axes_named, parts)) + before
        elif part.__class__ is slice and part == slice(None):
            before += 1
        else:
            return None
    if start is None or mask.shape != x.shape[start : start + mask.ndim]:
        return None
    return Mask(mask, start)


def _axes_named(part: object) -> int:
    return 0 if part is Ellipsis else getattr(part, "ndim", 1)


def _update_mask(kind: str, x: Array, where: Mask, values: Array) -> Array | None:
    """Update by choosing with the mask; ``None`` where each place has a value of its own.

    Values may be the same for all places of the mask, as in NumPy, or have the shape of ``x``: then
    those at the mask's places are taken.
    """
    (mask, start), have, shape = where, values.shape, x.shape
    end = start + mask.ndim
    placed = len(have) == x.ndim and have[start:end] == mask.shape
    if have == shape or (placed and (not start or mask.ndim == 1) and _broadcasts(have, shape)):
        return _choose(where, _OPERATIONS[kind](x, values), x)
    rank = x.ndim - mask.ndim + 1
    while len(have) > rank and have[0] == 1:
        have = have[1:]
    have = (1,) * (rank - len(have)) + have
    if not _broadcasts(have, (*shape[:start], 1, *shape[end:])):
        if concrete_of(mask) is None:
            rest = (*shape[:start], *shape[end:])
            raise BooleanIndexError(
                f"x.at[mask].{kind}: with a traced mask the values must be a scalar, have the "
                f"shape of {x.type}, or broadcast to {rest}, the axes that the mask {mask.type} "
                f"leaves; got shape {values.shape}. Use snp.where(mask, y, x) with y that "
                f"broadcasts to x"
            )
        return None
    spread = (*have[:start], *(1,) * mask.ndim, *have[start + 1 :])
    return _choose(where, _OPERATIONS[kind](x, reshape(values, spread)), x)


def _broadcasts(have: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(have) <= len(shape) and all(
        n in (1, m) for n, m in zip(reversed(have), reversed(shape), strict=False)
    )


def _choose(where: Mask, new: Array, x: Array) -> Array:
    mask, start = where
    spread = (1,) * start + mask.shape + (1,) * (x.ndim - start - mask.ndim)
    spread_mask = broadcast_to(reshape(as_value(mask), spread), x.shape)
    return choose(spread_mask, broadcast_to(new, x.shape), x)


def apply_to_mask(func: Callable[[Array], ArrayLike], x: Array, mask: Mask) -> Array:
    """Return ``func(x)`` where the mask holds, else ``x``."""
    return _choose(mask, _cast("x.at[mask].apply", func(x), x), x)


def apply_again(
    func: Callable[[Array], ArrayLike], x: Array, once: ArrayLike, times: ArrayLike
) -> Array:
    """Apply ``func`` to each value ``times`` times, the first of which gave ``once``."""

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        count, y = state
        return count + 1, choose(gt(times, count), _cast("x.at[...].apply", func(y), x), y)

    first = _cast("x.at[...].apply", once, x)
    return higher_order.while_loop.while_loop(
        lambda state: reduce_or(gt(times, state[0])), step, (as_value(1), first)
    )[1]


def names_once(x: Array, index: IndexLike, *, wrap_negative_indices: bool = True) -> bool:
    """Say whether the index is known to name no element more than once."""
    parsed = parse(index, x.type, wrap_negative_indices)
    return parsed.distinct or math.prod(parsed.batch) <= 1 or _each_once(parsed)


# Places


def _seen_distinct(parsed: Index) -> bool:
    """Say whether concrete index arrays of a traced update name each place once."""
    return state.interpreter is not EAGER and _each_once(parsed)


def _each_once(parsed: Index) -> bool:
    """Say whether the places of index arrays are known and all different."""
    arrays = parsed.arrays
    if not parsed.concrete:
        return False
    line = np.zeros(parsed.batch, np.int64)
    for e in arrays:
        n = parsed.shape[e.axis]
        line = line * (n + 2) + np.clip(e.at, -1, n)
    return np.unique(line).size == line.size


def _write_view(kind: str, x: Array, index: IndexLike, values: ArrayLike) -> Array | None:
    """Update by NumPy at integers and slices in bounds; ``None`` where more work is needed."""
    parts = for_numpy(index, False)
    if parts is None or (kind != "set" and kind not in _HOST) or not _takes(x, values):
        return None
    new: Any = values
    new = new.to_host() if new.__class__ is Array else new
    out = x.to_host().copy()
    try:
        part = out[parts]
        new = quiet.run(np.asarray, new, out.dtype)
        part[...] = new if kind == "set" else quiet.run(_HOST[kind], part, new)
    except (IndexError, TypeError, ValueError, OverflowError) as error:
        reraise_foreign(error)
        return None  # out of bounds, or an error that is worded elsewhere
    return Array(out, x.type)


def _takes(x: Array, values: ArrayLike) -> bool:
    """Say whether the values are of the array's dtype, or a number that takes it."""
    new: Any = values
    if new.__class__ is Array:
        return new.type.dtype is x.type.dtype
    return (new.__class__, x.type.dtype.kind) in ((int, "i"), (int, "f"), (float, "f"))


def _write_places(kind: str, x: Array, index: IndexLike, values: ArrayLike) -> Array | None:
    """Update by NumPy at one line of places in bounds; ``None`` where more work is needed."""
    at: Any = index
    at = at.to_host() if at.__class__ is Array else at
    if at.__class__ is not np.ndarray or at.ndim != 1 or at.dtype.kind not in "iu":
        return None
    if at.dtype == np.uint64 or not x.type.ndim or not _takes(x, values):
        return None
    narrow = x.type.dtype.kind not in "iuf" or (x.type.kind == "float" and x.dtype.itemsize < 4)
    if kind != "set" and (x.type.ndim > 1 or kind not in _HOST or narrow):
        return None
    out = np.array(x.to_host(), order="C")
    try:
        new: Any = values
        new = new.to_host() if new.__class__ is Array else np.asarray(new, out.dtype)
        at = at.astype(np.intp, copy=False)
        if kind == "set":
            out[at] = new
        else:
            quiet.run(_HOST[kind].at, out, at, new)
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        reraise_foreign(error)
        return None  # out of bounds, or an error that is worded elsewhere
    return Array(out, x.type)


def _write_host(kind: str, x: Array, parsed: Index, values: Array, mode: str) -> Array | None:
    """Update by NumPy in the simple cases: slices, and one axis of places to set."""
    if parsed.arrays and (kind != "set" or len(parsed.batch) > 1):
        return None
    if mode == "fill" or (kind != "set" and kind not in _HOST):
        return None
    out = x.to_host().copy(order="C")
    place = parsed.host()
    part = out.reshape(parsed.shape)  # a view: the copy is contiguous
    old, new = part[place], values.to_host()
    part[place] = new if kind == "set" else quiet.run(_HOST[kind], old, new)
    return Array(out, x.type)


_HOST = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


class Places(NamedTuple):
    """Say where values of shape ``sizes`` go, once reversed along ``flipped``, as one scatter."""

    numbers: ScatterDimensionNumbers
    indices: Any
    window: tuple[int, ...]
    sizes: tuple[int, ...]
    flipped: tuple[int, ...]


def _places(parsed: Index) -> Places:
    """Describe the scatter: a slice of step 1 is a window, one of another step a row of places."""
    layout = [axis for axis in parsed.layout() if isinstance(axis, (Span, int))]
    sizes = tuple(parsed.size_of(axis) for axis in layout)
    windows = {i: a for i, a in enumerate(layout) if isinstance(a, Span) and not _is_strided(a)}
    scattered = [i for i in range(len(layout)) if i not in windows]
    shape = tuple(sizes[i] for i in scattered)
    components: list[tuple[int, Any]] = []
    window = [1] * len(parsed.shape)
    for e in parsed.entries:
        if isinstance(e, Integer):
            components.append((e.axis, e.at if is_size(e.at) else np.asarray(e.at)))
        elif isinstance(e, Integers):
            axes = [layout[i] for i in scattered]
            components.append((e.axis, _spread(e.at, axes, parsed.batch)))
        elif isinstance(e, Span) and _is_strided(e):
            position = scattered.index(layout.index(e))
            counted: Any = iota(np.int32, e.count) if is_size(e.count) else np.arange(e.count)
            steps = e.start + e.step * counted
            steps = steps.reshape([-1 if i == position else 1 for i in range(len(shape))])
            components.append((e.axis, steps))
        elif isinstance(e, Span):
            window[e.axis] = e.count
            if e.count != parsed.shape[e.axis]:
                first = e.start if e.step > 0 else e.start + (e.count - 1) * e.step
                components.append((e.axis, first if is_size(first) else np.asarray(first)))
    whole = {span.axis for span in windows.values()}
    numbers = ScatterDimensionNumbers(
        tuple(windows),
        tuple(d for d in range(len(parsed.shape)) if d not in whole),
        tuple(axis for axis, _ in components),
    )
    indices = stack([(at, parsed.shape[axis]) for axis, at in components], shape)
    flipped = tuple(i for i, span in windows.items() if span.step < 0)
    return Places(numbers, as_value(indices), tuple(window), sizes, flipped)


def _scatter(
    kind: str, x: Array, parsed: Index, values: Array, *, mode: str, in_order: bool, distinct: bool
) -> Array:
    """Update by one scatter; division and powers need an element-wise operation as well."""
    places = _places(parsed)
    values = rev(reshape(values, places.sizes), places.flipped)
    target = reshape(x, parsed.shape)
    numbers, indices = places.numbers, places.indices
    promises = {"unique_indices": distinct, "indices_are_sorted": in_order, "mode": mode}
    if kind in _SCATTERS:
        out = _SCATTERS[kind](target, indices, values, numbers, **promises)
    elif distinct or math.prod(indices.shape[:-1]) <= 1:
        old = ops.gather(target, indices, numbers.gather(), places.window)
        out = ops.scatter(target, indices, _OPERATIONS[kind](old, values), numbers, **promises)
    else:
        ones = full_like(target, 1)
        factors = ops.scatter_mul(ones, indices, values, numbers, **promises)
        out = _OPERATIONS[kind](target, factors)
    return reshape(out, x.shape)


def _is_strided(span: Span) -> bool:
    return abs(span.step) != 1 and span.count > 1


def _spread(
    at: Value | np.ndarray, layout: Sequence[Span | int], batch: tuple[int, ...]
) -> Array | np.ndarray:
    """Put places with their axes at those of ``batch`` in the layout, and size 1 elsewhere."""
    padded = iter((*(1,) * (len(batch) - at.ndim), *at.shape))
    shape = tuple(next(padded) if isinstance(axis, int) else 1 for axis in layout)
    return reshape(at, shape) if isinstance(at, Value) else at.reshape(shape)


class At:
    """The updates of an array: ``x.at[index]`` is an ``IndexUpdate``.

    Args:
        x: the array.

    >>> import stretto.numpy as snp
    >>> snp.zeros(3).at[1].set(5)
    Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("_x",)

    def __init__(self, x: Array) -> None:
        self._x = x

    def __getitem__(self, index: IndexLike) -> IndexUpdate:
        return IndexUpdate(self._x, index)

    def __repr__(self) -> str:
        return f"<at of {self._x.type}>"


class IndexUpdate:
    """Updates of one index: each method gives a copy of ``x`` changed at ``index``; ``get`` reads.

    Values take the dtype of ``x``, and broadcast to the shape of ``x[index]``. Where an index names
    an element more than once, each update counts (``set``: the last one). The updating methods
    share these keywords: ``mode``, for places out of bounds, ``"drop"`` (the default; ``"fill"``
    means the same), ``"clip"``, ``"promise_in_bounds"`` or ``"raise"``; ``indices_are_sorted`` and
    ``unique_indices``, promises that may save work; ``wrap_negative_indices=False``, so that
    negative integers are out of bounds; ``out_sharding``, where the result is to be.

    Args:
        x: the array.
        index: as for ``getitem``.

    Raises:
        IndexError: the index does not fit the array, or ``mode="raise"`` and a place is out of
            bounds.
        ValueError: the values do not broadcast, or there is no such mode.

    >>> import stretto.numpy as snp
    >>> snp.zeros(3).at[1:].set(snp.array([5, 6]))
    Array([0., 5., 6.], dtype=float32)
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Array, index: IndexLike) -> None:
        self._x = x
        self._index = index

    def __repr__(self) -> str:
        return f"<at[{show(self._index)}] of {self._x.type}>"

    def get(
        self,
        *,
        mode: str | None = None,
        fill_value: ArrayLike | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        wrap_negative_indices: bool = True,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        """Read ``x[index]``, with a mode for places out of bounds.

        Args:
            mode: as for ``getitem``; ``"fill"`` by default where there is a ``fill_value``.
            fill_value: what ``"fill"`` reads out of bounds.
            indices_are_sorted: a promise that may save work.
            unique_indices: a promise that no element is named twice.
            wrap_negative_indices: whether negative integers count from the end.
            out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec``
                over the mesh in use.

        Returns:
            The elements, of the dtype of ``x``.

        Raises:
            IndexError: the index does not fit the array, or ``mode="raise"`` and a place is out of
                bounds.
            ValueError: there is no such mode.

        >>> import stretto.numpy as snp
        >>> snp.arange(3.0).at[7].get(mode="fill")
        Array(nan, dtype=float32)
        """
        return getitem(
            self._x,
            self._index,
            reading_mode(mode, fill_value),
            fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            wrap_negative_indices=wrap_negative_indices,
            out_sharding=out_sharding,
        )

    def set(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] = values`` in a copy of the array.

        Args:
            values: an array that broadcasts to ``x[index]``, or a number.
            **options: the keywords that the class describes.

        Returns:
            The copy, of the shape and dtype of ``x``.

        >>> import stretto.numpy as snp
        >>> snp.zeros(2).at[0].set(3)
        Array([3., 0.], dtype=float32)
        """
        return update("set", self._x, self._index, values, **options)

    @described_like(set)
    def add(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] += values`` in a copy of the array; elements named twice add up.

        >>> import stretto.numpy as snp
        >>> snp.zeros(2).at[snp.array([1, 1])].add(3)
        Array([0., 6.], dtype=float32)
        """
        return update("add", self._x, self._index, values, **options)

    @described_like(set)
    def subtract(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] -= values`` in a copy of the array.

        >>> import stretto.numpy as snp
        >>> snp.zeros(2).at[0].subtract(3)
        Array([-3.,  0.], dtype=float32)
        """
        return update("subtract", self._x, self._index, values, **options)

    @described_like(set)
    def multiply(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] *= values`` in a copy of the array.

        >>> import stretto.numpy as snp
        >>> snp.ones(2).at[0].multiply(3)
        Array([3., 1.], dtype=float32)
        """
        return update("multiply", self._x, self._index, values, **options)

    mul = multiply

    def divide(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] /= values`` in a copy of the array.

        Args:
            values: an array that broadcasts to ``x[index]``, or a number.
            **options: the keywords that the class describes.

        Returns:
            The copy, of the shape of ``x``; integers become floats.

        >>> import stretto.numpy as snp
        >>> snp.ones(2).at[0].divide(2)
        Array([0.5, 1. ], dtype=float32)
        """
        return update("divide", self._x, self._index, values, **options)

    @described_like(set)
    def power(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] **= values`` in a copy of the array.

        >>> import stretto.numpy as snp
        >>> snp.array([3.0, 1.0]).at[0].power(2)
        Array([9., 1.], dtype=float32)
        """
        return update("power", self._x, self._index, values, **options)

    @described_like(set)
    def min(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] = minimum(x[index], values)`` in a copy of the array.

        >>> import stretto.numpy as snp
        >>> snp.ones(2).at[0].min(-1)
        Array([-1.,  1.], dtype=float32)
        """
        return update("min", self._x, self._index, values, **options)

    @described_like(set)
    def max(self, values: ArrayLike, **options: Any) -> Array:
        """Do ``x[index] = maximum(x[index], values)`` in a copy of the array.

        >>> import stretto.numpy as snp
        >>> snp.ones(2).at[0].max(3)
        Array([3., 1.], dtype=float32)
        """
        return update("max", self._x, self._index, values, **options)

    def apply(self, func: Callable[[Any], Any], **options: Any) -> Array:
        """Do ``x[index] = func(x[index])`` in a copy, once for each time an element is named.

        An index that may name an element twice, as a traced one may, makes a ``while_loop``, which
        has no derivative in reverse: promise ``unique_indices=True`` where it does not.

        Args:
            func: a function of an array, element by element.
            **options: the keywords that the class describes.

        Returns:
            The copy, of the shape and dtype of ``x``.

        >>> import stretto.numpy as snp
        >>> snp.array([1.0, 4.0, 9.0]).at[1:].apply(snp.sqrt)
        Array([1., 2., 3.], dtype=float32)
        >>> snp.zeros(2).at[snp.array([1, 1])].apply(lambda x: x + 1)
        Array([0., 2.], dtype=float32)
        """
        x, index = self._x, self._index
        mask = mask_of(x, index)
        if mask is not None:
            return apply_to_mask(func, x, mask)
        wrap = {"wrap_negative_indices": options.get("wrap_negative_indices", True)}
        new = func(getitem(x, index, **wrap))
        if not options.get("unique_indices", False) and not names_once(x, index, **wrap):
            counts = full(x.shape, 0, np.dtype(np.int32))
            times = getitem(update("add", counts, index, 1, **options), index, **wrap)
            new = apply_again(func, x, new, times)
        return update("set", x, index, new, **options)


# By the method that would change the array: what returns a changed copy.
_METHODS = {
    "fill": "snp.full_like(x, value)",
    "itemset": "x.at[index].set(value)",
    "partition": "snp.partition(x, kth)",
    "put": "x.ravel().at[indices].set(values).reshape(x.shape)",
    "resize": "snp.resize(x, shape)",
    "setfield": "x.at[index].set(value)",
    "setflags": "a NumPy copy, numpy.array(x), to write to",
}
# The same by the attribute that can be set in NumPy.
_SETTABLE = {
    "shape": "x.reshape(shape)",
    "dtype": "x.view(dtype), or x.astype(dtype) to convert",
    "real": "snp.asarray(value) + 1j * x.imag",
    "imag": "x.real + 1j * snp.asarray(value)",
    "flat": "snp.reshape(value, x.shape)",
}
# By the attribute that exposes or writes an array's memory: what to use instead.
_MEMORY = {
    "base": "numpy.asarray(x).base",
    "ctypes": "numpy.asarray(x).ctypes",
    "data": "memoryview(numpy.asarray(x)), or x itself in place of PyTorch's",
    "dump": "pickle.dump(x, file)",
    "dumps": "pickle.dumps(x)",
    "flags": "numpy.asarray(x).flags",
    "getfield": "x.view(dtype)",
    "strides": "numpy.asarray(x).strides",
}


def _method(name: str, instead: str) -> Callable[..., NoReturn]:
    def method(self: Array, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"arrays are immutable: instead of x.{name}(...) use {instead}")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Raise ``TypeError``: arrays are immutable; use ``{instead}``."
    return method


def _setter(name: str, instead: str) -> Callable[[Any, Any], NoReturn]:
    def set_(self: Array, value: object) -> NoReturn:
        raise AttributeError(
            f"arrays are immutable: instead of x.{name} = ... use {instead}", name=name, obj=self
        )

    return set_


def absent(name: str, advice: str) -> property:
    """Make a property that cannot be read or written, and says what to do instead."""

    def refuse(self: object, value: object = None) -> NoReturn:
        problem = f"{type(self).__name__!r} has no attribute {name!r}: {advice}"
        raise AttributeError(problem, name=name, obj=self)

    return property(refuse, refuse, doc=f"Raise ``AttributeError``: {advice}.")


def _delete_item(self: Array, index: IndexLike) -> NoReturn:
    at = show(index)
    raise TypeError(f"arrays are immutable: instead of del x[{at}] write x = snp.delete(x, {at})")


def _dir(self: object) -> list[str]:
    """Return what arrays have, and not what they only answer in words."""
    return sorted({*object.__dir__(self)} - ARRAYS.keys() - _MEMORY.keys())


def refuse_changes(cls: type) -> None:
    """Give a class of values the methods and attributes that say it cannot be changed.

    Args:
        cls: the class, once it has its properties.
    """
    for name, instead in _METHODS.items():
        setattr(cls, name, _method(name, instead))
    for name, instead in _SETTABLE.items():
        setattr(cls, name, getattr(cls, name).setter(_setter(name, instead)))
    for name, instead in _MEMORY.items():
        setattr(cls, name, absent(name, f"use {instead}"))
    for name, advice in ARRAYS.items():
        setattr(cls, name, absent(name, advice))
    cls.__dir__ = _dir  # type: ignore[method-assign]
    cls.__delitem__ = _delete_item  # type: ignore[attr-defined]


exports(__name__)
