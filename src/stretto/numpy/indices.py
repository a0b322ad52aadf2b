"""Parse an index ``x[...]``: one entry for each axis, and the axes of the result.

NumPy's rules: integers take one place, slices a range, arrays of integers many places at once,
boolean arrays the places where they hold; ``None`` is a new axis and ``...`` the axes not named.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from stretto._engine.core.errors import BooleanIndexError, TracedValueError
from stretto._engine.core.integers import shown
from stretto._engine.core.interpreter import Tracer, Value, as_value, refuse_masked
from stretto._engine.core.sizes import Size, exceeds, is_size, slice_bounds
from stretto._engine.core.types import ArrayType, kind_of
from stretto._engine.core.typing import ArrayLike, DType, Tree
from stretto._engine.ops.arithmetic import add
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, lt, where
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.extrema import minimum
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import reshape
from stretto._engine.xla.array import Array
from stretto.numpy.creation import listed

if TYPE_CHECKING:
    from types import EllipsisType

    from stretto._engine.core.array_updates import Index as IndexLike

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
        """The size of an axis of the result."""
        if isinstance(axis, int):
            return self.batch[axis]
        return axis.count if isinstance(axis, Span) else 1

    def result_shape(self) -> tuple[int, ...]:
        """The shape of what is read or updated."""
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
        """The same with each place in bounds; all of them are known."""

        def clamp(e: Entry) -> Entry:
            if isinstance(e, Integer):
                return e._replace(at=min(max(e.at, 0), self.shape[e.axis] - 1))
            if isinstance(e, Integers):
                return e._replace(at=np.minimum(np.maximum(e.at, 0), self.shape[e.axis] - 1))
            return e

        return self._replace(entries=tuple(map(clamp, self.entries)))

    def host(self) -> tuple[Any, ...]:
        """The index for NumPy, where all places are known and in bounds."""
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
    """The NumPy array of a value that Python may look at; ``None`` for one that is traced."""
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
    """A part of an index as None, Ellipsis, slice, int, array, or a traced value of integers."""
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
    """Traced places counted from the front, in a signed type that holds the size."""
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
