"""NumPy's indexing: ``x[index]`` parsed, and read.

By NumPy's rules integers take one place, slices a range, arrays of integers many places at once,
boolean arrays the places where they hold; ``None`` is a new axis and ``...`` the axes not named.

Reads clamp places out of bounds and updates drop them, unless ``mode`` says otherwise. Integers and
slices become slices and reshapes; arrays of integers become one gather or scatter. On concrete
arrays at rest NumPy does the work.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from stretto._engine.core.boundary import reraise_foreign
from stretto._engine.core.caches import room
from stretto._engine.core.config import config
from stretto._engine.core.errors import BooleanIndexError, TracedValueError
from stretto._engine.core.integers import shown
from stretto._engine.core.interpreter import Tracer, Value, as_value, refuse_masked, state
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.sizes import Size, exceeds, is_size, slice_bounds
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.core.typing import ArrayLike, DType, ShardingLike, Tree
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.ops.arithmetic import add
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, lt, where
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.extrema import minimum
from stretto._engine.ops.index import gather_scatter as ops
from stretto._engine.ops.index.geometry import GatherDimensionNumbers
from stretto._engine.ops.index.primitives import fill_bytes, fill_element
from stretto._engine.ops.layout import Reshape, laid_out, reshape
from stretto._engine.ops.shape import Rev, Slice, concatenate
from stretto._engine.xla.array import Array
from stretto.numpy.creation import listed

if TYPE_CHECKING:
    from types import EllipsisType

    from stretto._engine.core.typing import Index as IndexLike

_MODES = {
    None: None,
    "clip": "clip",
    "fill": "fill",
    "drop": "fill",
    "promise_in_bounds": "promise_in_bounds",
    "raise": "raise",
}


def canonical_mode(mode: str | None, default: str) -> str:
    """Give the canonical name of a mode: ``"drop"`` is ``"fill"``."""
    if mode not in _MODES:
        names = ", ".join(repr(name) for name in _MODES if name)
        raise ValueError(f"indexing: mode must be one of {names}; got {mode!r}")
    return _MODES[mode] or default


def settle(parsed: Index, mode: str) -> tuple[Index, str]:
    """Clamp known places; where all are known and in bounds, the mode has nothing left to do."""
    if mode == "fill" and parsed.undecided():
        return parsed, mode
    if parsed.concrete and parsed.outside():
        return (parsed, mode) if mode == "fill" else (parsed.clamped(), "promise_in_bounds")
    return parsed, "promise_in_bounds" if parsed.concrete else mode


class NewAxis(NamedTuple):
    """An axis of size 1 in the result."""


class Integer(NamedTuple):
    """One place known while tracing, counted from the front; perhaps out of bounds."""

    axis: int
    at: int


class Span(NamedTuple):
    """``count`` places from ``start``, ``step`` apart; always in bounds."""

    axis: int
    start: int
    count: int
    step: int


class Integers(NamedTuple):
    """Places in an array, counted from the front; perhaps out of bounds."""

    axis: int
    at: Any


Entry = NewAxis | Integer | Span | Integers
Token: TypeAlias = "Value | np.ndarray | slice | int | EllipsisType | None"
"""A part of an index, with Python's and NumPy's ways of writing it reduced to one."""


class Index(NamedTuple):
    """A parsed index: an entry for each axis of the array and each new one.

    ``shape`` is that of the array indexed, with an axis of size 1 for each boolean scalar;
    ``batch`` the shape that the arrays of integers broadcast to; ``front`` says that its axes lead
    the result; ``distinct`` that no place can come twice; ``hollow`` is the position of an ellipsis
    that stood for no axes; ``wrapped`` says that negative integers were counted from the end.
    """

    entries: tuple[Entry, ...]
    shape: tuple[int, ...]
    batch: tuple[int, ...]
    front: bool
    distinct: bool
    hollow: int | None
    wrapped: bool

    @property
    def arrays(self) -> list[Integers]:
        """The entries that are arrays of integers."""
        return [e for e in self.entries if isinstance(e, Integers)]

    @property
    def concrete(self) -> bool:
        """Say whether every place is known."""
        return not any(isinstance(e.at, Value) for e in self.arrays)

    def layout(self) -> list[Span | NewAxis | int]:
        """List the axes of the result: a slice, a new axis, or the n-th axis of ``batch``."""
        batch = list(range(len(self.batch)))
        out: list[Span | NewAxis | int] = []
        if self.front:
            out.extend(batch)
            batch = []
        advanced = bool(self.arrays)
        for e in self.entries:
            if isinstance(e, (Span, NewAxis)):
                out.append(e)
            elif advanced:
                out.extend(batch)
                batch = []
        return out

    def size_of(self, axis: Span | NewAxis | int) -> int:
        """Return the size of an axis of the result."""
        if isinstance(axis, int):
            return self.batch[axis]
        return axis.count if isinstance(axis, Span) else 1

    def result_shape(self) -> tuple[int, ...]:
        """Return the shape of what is read or updated."""
        return tuple(self.size_of(axis) for axis in self.layout())

    def outside(self) -> bool:
        """Say whether a place that is known is out of bounds."""
        return any(_outside(e.at, self.shape[e.axis]).any() for e in self._known())

    def undecided(self) -> bool:
        """Say whether the size of an axis leaves open if a known place is in bounds."""
        places = [(e.at, self.shape[e.axis]) for e in self._known()]
        return any([is_size(n) and not _inside(at, n) for at, n in places])

    def check(self, type: ArrayType, numbers: bool = False) -> None:
        """Raise ``IndexError`` for a place out of bounds, naming it, its axis and the size.

        With ``numbers`` only single integers are checked.
        """
        if not numbers and not self.concrete:
            raise TracedValueError(
                'mode="raise" needs to know the index, but it is traced: use mode="fill" and look '
                "for the fill value, or check the index before tracing"
            )
        for e in self._known():
            if numbers and not isinstance(e, Integer):
                continue
            n, at = self.shape[e.axis], np.asarray(e.at)
            bad = at[_outside(at, n)]
            if bad.size:
                first = int(bad.flat[0])
                if self.wrapped and first < 0:
                    first -= n
                raise IndexError(
                    f"index {first} is out of bounds for axis {e.axis} with size {n} of {type}"
                )

    def _known(self) -> list[Integer | Integers]:
        known = (Integer, Integers)
        return [e for e in self.entries if isinstance(e, known) and not isinstance(e.at, Value)]

    def clamped(self) -> Index:
        """Return the same with each place in bounds; all of them are known."""

        def clamp(e: Entry) -> Entry:
            if isinstance(e, Integer):
                return e._replace(at=min(max(e.at, 0), self.shape[e.axis] - 1))
            if isinstance(e, Integers):
                return e._replace(at=np.minimum(np.maximum(e.at, 0), self.shape[e.axis] - 1))
            return e

        return self._replace(entries=tuple(map(clamp, self.entries)))

    def host(self) -> tuple[Any, ...]:
        """Return the index for NumPy, where all places are known and in bounds."""
        out: list[Any] = []
        for e in self.entries:
            if isinstance(e, NewAxis):
                out.append(None)
            elif isinstance(e, Span):
                stop = e.start + e.count * e.step
                out.append(slice(e.start, stop if stop >= 0 else None, e.step))
            else:
                out.append(e.at)
        out.insert(len(out) if self.hollow is None else self.hollow, Ellipsis)
        return tuple(out)


def _inside(at: int | np.ndarray | Size, n: int | Size) -> bool:
    """Say whether places are known to be in bounds by the bounds of a size."""
    if isinstance(at, Size):
        return exceeds(at, -1) and exceeds(n - at, 0)
    places = np.asarray(at)
    return not places.size or (places.min() >= 0 and exceeds(n, int(places.max())))


def _outside(at: int | np.ndarray, n: int) -> np.ndarray:
    at = np.asarray(at)
    return (at < 0) | (at >= n)


def concrete_of(value: ArrayLike) -> np.ndarray | None:
    """Return the NumPy array of a value that Python may look at; ``None`` for a traced one."""
    array: Any = value
    if array.__class__ is Array:
        return array.to_host()
    if isinstance(value, Tracer):
        known = value.concrete()
        return known if known is None or isinstance(known, np.ndarray) else concrete_of(known)
    return np.asarray(value)


_LIMIT = 1 << 63
_PLAIN = frozenset({int, slice, type(None), type(Ellipsis)})


def for_numpy(index: IndexLike, arrays: bool) -> tuple[Any, ...] | None:
    """Give an index in the form that NumPy takes, which may refuse it.

    Args:
        index: as the user wrote it.
        arrays: whether concrete arrays of integers and booleans may be in it.

    Returns:
        The parts of the index, with an ellipsis, so that NumPy gives an array and not a scalar;
        ``None`` where more is to be done.
    """
    parts: Any = index if index.__class__ is tuple else (index,)
    if _PLAIN.issuperset(map(type, parts)):
        return parts if Ellipsis in parts else (*parts, ...)
    if not arrays:
        return None
    out = []
    for part in parts:
        kind = part.__class__
        if kind is Array:
            part, kind = part.to_host(), np.ndarray
        if kind is np.ndarray:
            if part.dtype.kind not in "iub":
                return None
        elif kind not in _PLAIN:
            return None
        out.append(part)
    return tuple(out) if any(part is Ellipsis for part in out) else (*out, ...)


def parse(index: IndexLike, type: ArrayType, wrap: bool = True) -> Index:
    """Parse an index into entries for an array of a type.

    Args:
        index: as the user wrote it; lists may stand for arrays in a tuple.
        type: the type of the array.
        wrap: whether negative integers count from the end; otherwise they are out of bounds.

    Returns:
        The entries.

    Raises:
        IndexError: the index does not fit the type.
        TypeError: the index is a list by itself, or the bounds of a slice are not integers.
        BooleanIndexError: a boolean mask is traced.
        TracedValueError: the bounds of a slice are traced.
    """
    if isinstance(index, (list, range)):
        raise TypeError(
            f"an index cannot be a {index.__class__.__name__}, which some read as an array and "
            f"others as a tuple: wrap it as snp.array({show(index)})"
        )
    tokens: list[Any] = [_token(part) for part in (index if isinstance(index, tuple) else (index,))]
    used = sum(_axes_of(token) for token in tokens)
    if used > type.ndim:
        raise IndexError(
            f"too many indices for {type}: x[{show(index)}] names {used} axes of {type.ndim}"
        )
    ellipses = [i for i, token in enumerate(tokens) if token is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError(f"an index can have one ellipsis (...); x[{show(index)}] has more")
    if not ellipses:
        tokens.append(Ellipsis)
    entries: list[Entry] = []
    shape: list[int] = []
    sizes = iter(type.shape)
    runs: list[bool] = []  # whether each entry, or ellipsis, is advanced
    hollow = None
    masks = 0
    for token in tokens:
        if token is Ellipsis:
            hollow = len(entries) if used == type.ndim and ellipses else None
            for _ in range(type.ndim - used):
                shape.append(next(sizes))
                entries.append(Span(len(shape) - 1, 0, shape[-1], 1))
            if ellipses:
                runs.append(False)
        elif token is None:
            entries.append(NewAxis())
            runs.append(False)
        elif isinstance(token, np.ndarray) and token.dtype == bool:
            masks += 1
            mask_sizes = [next(sizes) for _ in range(token.ndim)] or [1]
            _check_mask(token, mask_sizes, len(shape), type)
            for at in np.nonzero(token if token.ndim else token.reshape(1)):
                entries.append(Integers(len(shape), at))
                shape.append(mask_sizes.pop(0))
                runs.append(True)
        else:
            shape.append(next(sizes))
            entries.append(_entry(token, len(shape) - 1, shape[-1], wrap))
            runs.append(not isinstance(token, slice))
    arrays = [e for e in entries if isinstance(e, Integers)]
    batch = _batch_shape(arrays, index, type)
    places = [i for i, advanced in enumerate(runs) if advanced]
    front = bool(arrays) and places[-1] - places[0] >= len(places)
    distinct = not arrays or (masks == 1 and _all_of_one_mask(tokens))
    return Index(tuple(entries), tuple(shape), batch, front, distinct, hollow, wrap)


def _token(part: Tree) -> Token:
    """Turn a part of an index into None, Ellipsis, slice, int, array, or traced integers."""
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, slice):
        return slice(_bound(part.start), _bound(part.stop), _bound(part.step))
    if isinstance(part, (bool, np.bool_)):
        return np.asarray(part)
    if isinstance(part, (int, np.integer)):
        place = int(part)
        if not -_LIMIT <= place < _LIMIT:
            raise IndexError(f"an index must fit in 64 bits; got {shown(place)}")
        return place
    if is_size(part):
        return as_value(part)
    if isinstance(part, (list, tuple, range)):
        part = listed(list(part), "an index", "a part")
        if not part.size:  # an empty list has no kind of its own
            part = np.zeros(part.shape, np.intp)
    if isinstance(part, (Value, np.ndarray)):
        refuse_masked(part, "indexing", "the index")
        return _array_token(part)
    if hasattr(part, "__index__"):
        return operator.index(part)
    if hasattr(part, "__array__"):
        return _array_token(np.asarray(part))
    _refuse(part.__class__.__name__)


def _array_token(part: Tree) -> Value | np.ndarray | int:
    kind = "other" if part.dtype.kind in "OSUMm" else kind_of(part.dtype)
    if kind not in ("int", "uint", "bool"):
        _refuse(f"an array of {part.dtype}")
    known = concrete_of(part)
    if known is None:
        if kind == "bool":
            raise BooleanIndexError(
                f"a boolean mask of type {part.type} is used as an index while it is traced "
                f"({part.origin()}): the shape of the result would depend on its values. Use "
                f"snp.where(mask, x, other), x.at[mask].set(value) with a scalar value, or "
                f"snp.nonzero(mask, size=...) for a static size"
            )
        return part
    return int(known) if not known.ndim and kind != "bool" else known


def _refuse(what: str) -> NoReturn:
    raise IndexError(
        f"an index is made of integers, slices, None, ... and arrays of integers or booleans; "
        f"got {what}"
    )


def _bound(bound: object) -> int | None:
    if bound is None:
        return None
    if isinstance(bound, Tracer) and bound.concrete() is None:
        raise TracedValueError(
            f"a slice whose bounds are traced ({bound.origin()}) would have a size that depends on "
            f"values: use stretto.lax.dynamic_slice for a static size at a traced start, mask with "
            f"snp.where, or name the argument in static_argnums"
        )
    known: Any = concrete_of(bound) if isinstance(bound, Tracer) else bound
    if is_size(known):
        return known
    try:
        return operator.index(known)
    except TypeError:
        raise TypeError(
            f"the bounds of a slice must be integers or None, got {show(bound)}"
        ) from None


def _axes_of(token: Token) -> int:
    if token is None or token is Ellipsis:
        return 0
    return token.ndim if isinstance(token, np.ndarray) and token.dtype == bool else 1


def _check_mask(mask: np.ndarray, sizes: Sequence[int], axis: int, type: ArrayType) -> None:
    if not mask.size:  # NumPy takes these of any shape
        return
    for i, (have, want) in enumerate(zip(mask.shape, sizes, strict=False)):
        if have != want:
            raise IndexError(
                f"boolean index of shape {mask.shape} does not fit {type}: axis {axis + i} has "
                f"size {want}, the mask {have}"
            )


def _entry(token: Token, axis: int, n: int, wrap: bool) -> Entry:
    if isinstance(token, slice):
        if token.step == 0:
            raise ValueError("the step of a slice cannot be zero")
        return Span(axis, *slice_bounds(token, n))
    if isinstance(token, int):
        return Integer(axis, token + n if wrap and token < 0 else token)
    if isinstance(token, np.ndarray) and is_size(n):
        return Integers(axis, _from_front(as_value(token), n, wrap))
    if isinstance(token, np.ndarray):
        if token.dtype == np.uint64:
            token = np.minimum(token, np.uint64(n))
        at = token.astype(np.int64)
        return Integers(axis, np.where(at < 0, at + n, at) if wrap else at)
    traced: Any = token
    return Integers(axis, _from_front(traced, n, wrap))


def _from_front(at: Array, n: int, wrap: bool) -> Array:
    """Count traced places from the front, in a signed type that holds the size."""
    if kind_of(at.dtype) == "uint":
        if at.dtype.itemsize >= 4:
            at = minimum(at, n)
        return convert(at, np.dtype(np.int32))
    if at.dtype.itemsize < 4:
        at = convert(at, np.dtype(np.int32))
    return where(lt(at, 0), add(at, n), at) if wrap else at


def _all_of_one_mask(tokens: Sequence[Token]) -> bool:
    return not any(
        isinstance(t, Value) or (isinstance(t, np.ndarray) and t.dtype != bool) for t in tokens
    )


def _batch_shape(arrays: Sequence[Integers], index: IndexLike, type: ArrayType) -> tuple[int, ...]:
    shapes = [e.at.shape for e in arrays]
    try:
        return broadcast_shapes("index", *shapes) if shapes else ()
    except ValueError:
        raise IndexError(
            f"the index arrays of x[{show(index)}], x of type {type}, do not broadcast: their "
            f"shapes are {' and '.join(map(str, shapes))}"
        ) from None


def stack(places: Sequence[tuple[Any, int]], shape: tuple[int, ...]) -> Array | np.ndarray:
    """Stack places, with the sizes of their axes, into index vectors along a new last axis.

    Args:
        places: the places along each axis, and its size.
        shape: the shape that the places broadcast to.

    Returns:
        The vectors, of int32 or int64.
    """
    whole = (*shape, 1)

    def column(at: Value | np.ndarray, n: int, dtype: DType) -> Array | np.ndarray:
        if isinstance(at, Value) or any(map(is_size, shape)):
            at = convert(as_value(at), dtype)
            return reshape(broadcast_to(at, shape), whole)
        near = at if is_size(n) else np.clip(at, -1, n)  # what is out of bounds stays so
        near = np.asarray(near).astype(dtype)
        return np.broadcast_to(near, shape).reshape(whole)

    places = [(as_value(at) if is_size(at) else at, n) for at, n in places]
    traced = [at for at, _ in places if isinstance(at, Value)]
    wide = any(at.dtype.itemsize > 4 for at in traced) or any(
        exceeds(n, 2**31 - 2) for _, n in places
    )
    dtype = np.dtype(np.int64 if wide else np.int32)
    columns = [column(at, n, dtype) for at, n in places]
    if not columns and any(map(is_size, shape)):
        return full((*shape, 0), 0, dtype)
    if not traced and not any(map(is_size, shape)):
        return np.concatenate(columns, -1) if columns else np.zeros((*shape, 0), dtype)
    return columns[0] if len(columns) == 1 else concatenate(columns, len(shape))


def show(index: object) -> str:
    """Write an index as the user wrote it, with types in place of arrays."""
    if isinstance(index, tuple):
        parts = [f"({show(part)})" if isinstance(part, tuple) else show(part) for part in index]
        return ", ".join(parts)
    if index is Ellipsis:
        return "..."
    if isinstance(index, slice):
        bounds = ["" if b is None else show(b) for b in (index.start, index.stop)]
        return ":".join(bounds if index.step is None else [*bounds, show(index.step)])
    if isinstance(index, Value):
        return str(index.type)
    if isinstance(index, np.ndarray):
        return f"{index.dtype.name}[{','.join(map(str, index.shape))}]"
    text = repr(index)
    return text if len(text) <= 40 else text[:37] + "..."


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
    """Make a key of an index of Python integers, slices, new axes, ellipsis; None for others."""
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
    """Take a slice for what is static, then a gather for what is not."""
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
