"""NumPy's indexing: ``x[index]`` reads, ``x.at[index]`` gives an updated copy.

Reads clamp places out of bounds and updates drop them, unless ``mode`` says otherwise. Integers and
slices become slices and reshapes; arrays of integers become one gather or scatter. On concrete
arrays at rest NumPy does the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.boundary import reraise_foreign
from stretto._engine.core.bounded import room
from stretto._engine.core.config import config
from stretto._engine.core.interpreter import as_value, state
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import array_type
from stretto._engine.core.typing import ArrayLike, ShardingLike, Tree
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.ops.comparison import full
from stretto._engine.ops.index import gather_scatter as ops
from stretto._engine.ops.index.geometry import GatherDimensionNumbers
from stretto._engine.ops.index.primitives import fill_bytes, fill_element
from stretto._engine.ops.layout import Reshape, reshape
from stretto._engine.ops.shape import Rev, Slice
from stretto._engine.ops.sharding import laid_out
from stretto._engine.xla.array import Array
from stretto.numpy.indices import (
    Index,
    Integer,
    Integers,
    Span,
    canonical_mode,
    for_numpy,
    parse,
    settle,
    show,
    stack,
)

if TYPE_CHECKING:
    from stretto._engine.core.array_updates import Index as IndexLike

# Reading


def getitem(
    x: Array,
    index: IndexLike,
    mode: str | None = None,
    fill_value: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap_negative_indices: bool = True,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Read ``x[index]`` by NumPy's rules; places out of bounds are clamped.

    Args:
        x: an array.
        index: integers, slices, ``None``, ``...``, and arrays of integers or booleans, or a tuple
            of these.
        mode: what is read out of bounds. ``"clip"``, the default: the nearest element. ``"fill"``:
            ``fill_value``. ``"promise_in_bounds"``: nothing is. ``"raise"`` raises ``IndexError``,
            for an index that is not traced.
        fill_value: what ``"fill"`` reads; by default NaN, the least signed or greatest unsigned
            integer, or True.
        indices_are_sorted: a promise that may save work.
        unique_indices: a promise that no element is named twice.
        wrap_negative_indices: whether negative integers count from the end; otherwise they are out
            of bounds. The bounds of slices keep Python's meaning.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The elements, of the dtype of ``x`` and the shape that NumPy gives them.

    Raises:
        IndexError: the index does not fit the array, or ``mode="raise"`` and a place is out of
            bounds.
        BooleanIndexError: the index is a boolean mask that is traced.
        TracedValueError: the bounds of a slice are traced, or the index is and ``mode="raise"``.
        TypeError: the index is a list.
        ValueError: there is no such mode; or the result cannot be split as ``out_sharding`` says.

    >>> import stretto.numpy as snp
    >>> snp.array([0, 2, 4, 6])[10000]
    Array(6, dtype=int32)
    """
    if out_sharding is not None:
        result = getitem(
            x,
            index,
            mode,
            fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            wrap_negative_indices=wrap_negative_indices,
        )
        return laid_out(result, out_sharding, "indexing")
    at_rest = x.__class__ is Array and state.interpreter is EAGER
    if at_rest and mode is None and wrap_negative_indices:
        view = _view(x.to_host(), index)
        if view is not None:
            return _wrap(view, x)
    x = as_value(x, "indexing")
    # Of a size that varies what was found out once may not hold of the next.
    general = at_rest or mode is not None or not wrap_negative_indices or x.type.varies
    key = None if general else (x.type.shape, _static(index))
    steps = _known_steps.get(key)
    if steps is not None:
        return _apply(steps, x)
    mode, given_mode = canonical_mode(mode, "clip"), mode
    parsed = parse(index, x.type, wrap_negative_indices)
    if mode == "clip" and x.type.varies:
        _refuse_none(parsed, x, index)
    outside = _integer_outside(parsed)
    if outside and given_mode in (None, "promise_in_bounds") and config.check_static_indices:
        parsed.check(x.type, numbers=True)
    if mode == "raise":
        parsed.check(x.type)
        mode = "promise_in_bounds"
    shape = parsed.result_shape()
    if 0 in shape:
        return full(shape, 0, x.dtype, x.type.weak_type)
    if mode == "fill" and (0 in parsed.shape or outside):
        return full(
            shape, fill_element(x.dtype, fill_bytes(x.dtype, fill_value)), x.dtype, x.type.weak_type
        )
    if 0 in parsed.shape:
        raise _nothing_to_read(x, index)
    parsed, mode = settle(parsed, mode)
    if at_rest and mode == "promise_in_bounds" and parsed.concrete:
        return _wrap(x.to_host().reshape(parsed.shape)[parsed.host()], x)
    if not parsed.arrays and not outside and key is not None and key[1] is not None:
        room(_known_steps)[key] = _steps(parsed)
    options = {
        "mode": mode,
        "fill_value": fill_value,
        "indices_are_sorted": indices_are_sorted,
        "unique_indices": unique_indices or parsed.distinct,
    }
    return _read(x, parsed, options)


def _refuse_none(parsed: Index, x: Array, index: IndexLike) -> None:
    """Refuse to read places along an axis that has none; ``SizeError`` where it may have none."""
    for e in parsed.entries:
        if isinstance(e, (Integer, Integers)):
            n = parsed.shape[e.axis]
            if n not in parsed.batch and without_elements(n, "indexing"):  # else nothing is read
                raise _nothing_to_read(x, index)


def _nothing_to_read(x: Array, index: IndexLike) -> IndexError:
    return IndexError(
        f"x[{show(index)}] reads from {x.type}, which has no elements; mode='fill' gives the "
        f"fill value"
    )


def _view(host: np.ndarray, index: Tree) -> np.ndarray | None:
    """Return what NumPy gives for an index in bounds; ``None`` where more work is needed."""
    whole = index.to_host() if index.__class__ is Array else index
    if whole.__class__ is np.ndarray and whole.dtype.char == "?" and whole.shape == host.shape:
        return host.reshape(-1).take(np.flatnonzero(whole))  # five times as fast as the mask itself
    try:
        parts = for_numpy(index, True)
        return None if parts is None else host[parts]
    except (IndexError, TypeError, ValueError) as error:
        reraise_foreign(error)
        return None


def _wrap(host: np.ndarray, x: Array) -> Array:
    return Array(host, array_type(host.shape, x.type.dtype, x.type.weak_type))


def _integer_outside(parsed: Index) -> bool:
    return any(
        not 0 <= e.at < parsed.shape[e.axis] for e in parsed.entries if isinstance(e, Integer)
    )


_known_steps: dict[Any, tuple[Primitive, ...]] = {}
"""The steps, by the shape of an array and a static index: parsing costs far more."""

_BOUNDS = (int, type(None))


def _static(index: Tree) -> object:
    """A key for an index of Python integers, slices, new axes and an ellipsis; None for others."""
    kind = index.__class__
    if kind is int or index is Ellipsis:
        return index
    if index is None:
        return "None"
    if kind is slice:
        bounds = index.start, index.stop, index.step
        return ("slice", *bounds) if all([b.__class__ in _BOUNDS for b in bounds]) else None
    if kind is tuple:
        parts = tuple([_static(part) for part in index])
        return None if None in parts or tuple in map(type, index) else parts
    return None


def _apply(steps: Sequence[Primitive], x: Array) -> Array:
    for step in steps:
        x = step(x)
    return x


def _steps(parsed: Index) -> tuple[Primitive, ...]:
    """Say how to read the static part: a slice, perhaps reversed, reshaped to the result.

    Where there are arrays of integers, the shape is that of what they index.
    """
    shape = parsed.shape
    bounds = [(0, n, 1) for n in shape]
    flipped, single = [], []
    for e in parsed.entries:
        if isinstance(e, Integer):
            at = min(max(e.at, 0), shape[e.axis] - 1)  # beside traced places
            bounds[e.axis] = (at, at + 1, 1)
            single.append(e.axis)
        elif isinstance(e, Span):
            last = e.start + (e.count - 1) * e.step
            first = e.start if e.step > 0 else last
            step = abs(e.step)
            # Of a size that varies the number must be seen in the bounds.
            length = e.count * step if is_size(e.count) else abs(last - e.start) + 1
            bounds[e.axis] = (first, first + length, step)
            if e.step < 0:
                flipped.append(e.axis)
    steps: list[Primitive] = []
    if bounds != [(0, n, 1) for n in shape]:
        steps.append(Slice(*zip(*bounds, strict=True)))
    if flipped:
        steps.append(Rev(tuple(sorted(flipped))))
    sliced = tuple([-((start - stop) // step) for start, stop, step in bounds])
    if parsed.arrays:
        wanted = tuple([n for d, n in enumerate(sliced) if d not in single])
    else:
        wanted = parsed.result_shape()
    if wanted != sliced:
        steps.append(Reshape(wanted))
    return tuple(steps)


def _read(x: Array, parsed: Index, options: dict[str, Any]) -> Array:
    """A slice for what is static, then a gather for what is not."""
    x = _apply(_steps(parsed), reshape(x, parsed.shape))
    arrays = parsed.arrays
    if not arrays:
        return x
    single = [e.axis for e in parsed.entries if isinstance(e, Integer)]
    kept = [d for d in range(len(parsed.shape)) if d not in single]
    axes = tuple(kept.index(e.axis) for e in arrays)
    layout = [axis for axis in parsed.layout() if isinstance(axis, (Span, int))]
    numbers = GatherDimensionNumbers(
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
        **options,
    )
    return reshape(out, parsed.result_shape())


def setitem(x: Array, index: IndexLike, value: object) -> None:
    """Refuse ``x[index] = value``: arrays are immutable.

    Args:
        x: an array.
        index: what would be changed.
        value: what would be put there.

    Raises:
        TypeError: always; the message names ``x.at[index].set(value)``.

    >>> import stretto.numpy as snp
    >>> x = snp.zeros(2)
    >>> x[0] = 1
    Traceback (most recent call last):
    TypeError: arrays are immutable: instead of x[0] = y write x = x.at[0].set(y)
    """
    at = show(index)
    raise TypeError(f"arrays are immutable: instead of x[{at}] = y write x = x.at[{at}].set(y)")
