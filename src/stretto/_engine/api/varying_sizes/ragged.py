"""Arrays that differ along their first axis, as one: ``ragged``, ``Ragged``.

Their elements lie one behind the other, beside their lengths: there is no rectangle. ``vmap`` and
loops take them, and ``over_ragged`` says how. They are made of lists, series and columns of tables,
which are known by their protocols, ``__array__`` and ``table[name]``: no library of tables is
imported.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from stretto._engine.api.varying_sizes.sizes import RAGGED, same_lengths
from stretto._engine.core import tree
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, Value, as_value, constant
from stretto._engine.core.lazy import shown
from stretto._engine.core.nodes import APART
from stretto._engine.core.types import is_float0, promote
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.comparison import full, lt, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.shape import pad
from stretto._engine.ops.varying_sizes import clear_rest, examples_of_rows, rows_at, starts, to_rows

_INT32 = np.dtype(np.int32)


@shown("stretto._engine.api.cards", "card_of_ragged")
class Ragged:
    """Arrays of one dtype that differ along their first axis, made by ``ragged``.

    A tree of two arrays: the elements of all, one array behind the other, and the lengths. ``vmap``
    takes it as a mapped argument, for a function of one array.
    """

    __slots__ = ("_least", "_lengths", "_most", "_values", "_wide")

    _values: Any
    """The elements, and room behind them, so that few shapes are compiled for. Where it is *wide*,
    which lasts no longer than a program, a rectangle with an array along each row."""
    _lengths: Any
    _most: int
    """The most that any length is: a rectangle of all is so long."""
    _wide: bool
    _least: int
    """The least that any length is: 1, or 0 where one may be."""

    @classmethod
    def _of(cls, values: Any, lengths: Any, most: int, wide: bool, least: int) -> Ragged:
        made = object.__new__(cls)
        made._values, made._lengths, made._most, made._wide = values, lengths, most, wide
        made._least = least
        return made

    def _at_least(self) -> int:
        """Return the least that any length is, looked up where they are known by now."""
        if not self._least and isinstance(self._lengths, Value) and not _unknown(self._lengths):
            self._least = int(bool(np.asarray(self._lengths).all()))
        return self._least

    @property
    def _inner(self) -> tuple[int, ...]:
        """The shape of an element."""
        return self._values.shape[1 + self._wide :]

    @property
    def _room(self) -> int:
        """The number of elements that there is room for."""
        x = self._values
        return x.shape[0] * x.shape[1] if self._wide else x.shape[0]

    @property
    def lengths(self) -> Array:
        """The length of each array, int32."""
        return self._lengths

    @property
    def values(self) -> Array:
        """The elements of all arrays, one array behind the other.

        Raises:
            TracedValueError: the lengths are traced, so that their number is not known.
        """
        lengths = self._known()
        return self._packed(room_for(int(lengths.sum())))._values[: int(lengths.sum())]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self._values.dtype

    @property
    def ndim(self) -> int:
        """The number of axes: of the arrays, and one more."""
        return len(self._inner) + 2

    @property
    def nbytes(self) -> int:
        """The bytes that elements and lengths take, with the room behind them."""
        return sum([x.size * x.dtype.itemsize for x in (self._values, self._lengths)])

    def _undifferentiated(self) -> Iterator[Any]:
        """Return the lengths."""
        yield self._lengths

    def like(self, other: Ragged) -> Ragged:
        """Give it the lengths of another, which are equal.

        A derivative has none, and needs those of the array that it is by. Of lengths that are
        computed in a transformed function it cannot be known whether they are equal: this says so.

        Args:
            other: the array that has the lengths.

        Returns:
            The same elements, with these lengths.

        Raises:
            ValueError: the lengths are known, and differ.

        >>> import stretto as st, stretto.numpy as snp
        >>> x = st.ragged([snp.ones(2), snp.ones(1)])
        >>> slope = st.grad(lambda x: st.vmap(snp.sum)(x).prod())(x)
        >>> slope.like(x).to_list()
        [Array([1., 1.], dtype=float32), Array([2.], dtype=float32)]
        >>> st.jit(lambda x, y: st.vmap(snp.dot)(x, y.like(x)))(x, st.ragged([[1.0, 3.0], [5.0]]))
        Array([4., 5.], dtype=float32)
        """
        known = not (_unknown(self._lengths) or _unknown(other._lengths))
        if known and not same_lengths(self._lengths, other._lengths):
            raise ValueError(f"like: the lengths of {self} are not those of {other}")
        return Ragged._of(self._values, other._lengths, other._most, self._wide, other._least)

    def at_most(self, longest: int) -> Ragged:
        """Say how long an array can be: of this batch, and of others for the same program.

        By default it is known of the longest array, rounded up, so that batches whose longest
        arrays differ are compiled for apart. What is made for an array of another size, such as a
        table of positions or a mask, needs no more than this.

        Args:
            longest: the greatest length, 1 or more; rectangles of all arrays are as long.

        Returns:
            The same arrays.

        Raises:
            TypeError: ``longest`` is not an integer.
            ValueError: an array is longer; or the lengths are traced, and may be.

        >>> import stretto as st, stretto.numpy as snp
        >>> f = st.jit(st.vmap(snp.sum))
        >>> [f(st.ragged([snp.ones(n)]).at_most(50)).tolist() for n in (3, 50)]
        [[3.0], [50.0]]
        """
        n = integer(longest, "at_most", "longest")
        most = self._most if _unknown(self._lengths) else int(np.asarray(self._lengths).max())
        if n < max(most, 1):
            raise ValueError(
                f"at_most: longest must be {max(most, 1)} or more, the greatest length that "
                f"{self} can have; got {n}"
            )
        values = self._rectangle(n) if self._wide else self._values
        return Ragged._of(values, self._lengths, n, self._wide, self._least)

    def _known(self) -> np.ndarray:
        if is_float0(self._lengths):
            raise ValueError(
                "a derivative has no lengths: give it those of the array that it is by, "
                "slope.like(x)"
            )
        if isinstance(self._lengths, Tracer):
            raise TracedValueError(
                "the lengths of a ragged array are traced: take its arrays by vmap, or outside of "
                "the transformed function"
            )
        return np.asarray(self._lengths)

    def __len__(self) -> int:
        return self._lengths.shape[0]

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | np.ndarray | Array) -> Ragged: ...
    def __getitem__(self, index: Any) -> Any:
        """Return one of the arrays, or several of them as one."""
        lengths = self._known()
        chosen = _chosen(index, len(lengths))
        taken = lengths[chosen]
        if self._wide:
            if not chosen.ndim:
                return self._values[int(chosen), : int(taken)]
            return self._at(chosen.astype(_INT32))._packed(room_for(int(taken.sum())))
        starts = np.cumsum(lengths) - lengths
        if not chosen.ndim:
            start = int(starts[chosen])
            return self._values[start : start + int(taken)]
        total = int(taken.sum())
        rows = np.full(room_for(total), self._values.shape[0], _INT32)
        first = starts[chosen] - (np.cumsum(taken) - taken)
        rows[:total] = np.repeat(first, taken) + np.arange(total)
        return _made(rows_at(self._values, as_value(rows), "fill"), taken)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.to_list())

    def to_list(self) -> list[Array]:
        """List the arrays.

        Returns:
            The arrays.

        Raises:
            TracedValueError: the lengths are traced.
        """
        return [self[i] for i in range(len(self))]

    def pad(self, value: ArrayLike = 0, length: int | None = None) -> Array:
        """Put the arrays into a rectangle.

        Args:
            value: what is behind the end of each array, converted to their dtype.
            length: the length of all, and what is longer is cut off; by default the greatest of
                them, which is not known inside a transformation.

        Returns:
            An array with the arrays along axis 0.

        Raises:
            TracedValueError: the lengths are traced, and no length is given.
        """
        longest = int(self._known().max()) if length is None else length
        taken = self._rectangle(longest)
        element = convert(as_value(value, "pad", "value"), taken.dtype)
        mask = broadcast_in_dim(self._inside(longest), taken.shape, (0, 1))
        return select(mask, taken, broadcast_in_dim(element, taken.shape, ()))

    def _inside(self, length: int) -> Any:
        """Mark the elements of a rectangle that are not behind the end of an array."""
        number = broadcasted_iota(_INT32, (len(self), length), 1)
        return lt(number, broadcast_in_dim(self._lengths, number.shape, (0,)))

    def _rectangle(self, length: int) -> Any:
        """Return the arrays in a rectangle, with anything behind the end of each."""
        x = self._values
        if self._wide:
            rest = [(0, 0, 0)] * (x.ndim - 2)
            config = [(0, 0, 0), (0, length - x.shape[1], 0), *rest]
            return x if length == x.shape[1] else pad(x, full((), 0, x.dtype), config)
        return self._from(starts(self._lengths), self._lengths, length)

    def _from(self, starts: Any, lengths: Any, most: int) -> Any:
        """Return the elements from these positions on, so many of each, along a last axis.

        Behind them is no element, so that a derivative by padding, which may be anything, is none
        by an element.
        """
        shape = (*starts.shape, most)
        column = lambda x: broadcast_in_dim(x, shape, tuple(range(starts.ndim)))
        number = broadcasted_iota(_INT32, shape, len(shape) - 1)
        nowhere = full(shape, self._values.shape[0], _INT32)
        index = select(lt(number, column(lengths)), column(starts) + number, nowhere)
        return rows_at(self._values, index, "fill")

    def _spread(self) -> Ragged:
        """Return the same, wide."""
        return Ragged._of(self._rectangle(self._most), self._lengths, self._most, True, self._least)

    def _at(self, chosen: Any) -> Ragged:
        """Return the chosen arrays, wide; numbers of any shape give as many leading axes."""
        index = as_value(chosen)
        lengths = rows_at(self._lengths, index, "clip")
        if self._wide:
            rows = rows_at(self._values, index, "clip")
        else:
            rows = self._from(rows_at(starts(self._lengths), index, "clip"), lengths, self._most)
        return Ragged._of(rows, lengths, self._most, True, self._least)

    def _packed(self, room: int) -> Ragged:
        """Return the same with one array behind the other, and room for so many elements."""
        if not self._wide:
            return self
        rows = to_rows(self._values, self._lengths, examples_of_rows(self._lengths, room))
        values = clear_rest(rows, self._lengths)
        return Ragged._of(values, self._lengths, self._most, False, self._least)

    def __repr__(self) -> str:
        inner = ",".join(map(str, ("*", *self._inner)))
        if isinstance(self._lengths, Tracer) or is_float0(self._lengths):
            what = "traced" if isinstance(self._lengths, Tracer) else "a derivative"
            return f"Ragged({self.dtype.name}[{len(self)},{inner}], {what})"
        lengths = self._known()
        shown = ", ".join(map(str, lengths[:6])) + (", …" if len(lengths) > 6 else "")
        return f"Ragged({self.dtype.name}[{len(self)},{inner}], lengths=[{shown}])"


tree.register_attributes(
    Ragged,
    lambda x: ((x._values, x._lengths), (x._most, x._wide, x._at_least()), ("values", "lengths")),
    lambda how, children: Ragged._of(*children, *how),
)
RAGGED.append(Ragged)
APART[Ragged] = None  # equal lengths are found the general way


def _unknown(lengths: Any) -> bool:
    """Say if the lengths are traced, or those of a derivative, which has none."""
    return is_float0(lengths) or isinstance(lengths, Tracer)


def _chosen(index: Any, count: int) -> np.ndarray:
    """Return the numbers of the arrays that an index means among so many: one, or a row."""
    if isinstance(index, tuple):
        raise IndexError("a ragged array takes one index, and then there is an array: r[i][j]")
    if not isinstance(index, slice):
        index = np.array(index)
        index = index if index.size else index.astype(int)
    try:
        chosen = np.arange(count)[index]
    except IndexError as error:
        raise IndexError(f"a ragged array of {count} arrays has none there: {error}") from None
    if chosen.ndim > 1 or not chosen.size:
        raise ValueError(
            f"the index of a ragged array must give one array or more along one axis, got shape "
            f"{chosen.shape}"
        )
    return chosen


def is_ragged(x: Any) -> bool:
    """Say if it is a ragged array: the leaf, for functions of trees."""
    return x.__class__ is Ragged


def as_read(x: Ragged) -> Ragged:
    """Return one whose leaves were read from a file, with the bucket that its lengths need.

    Raises ``ValueError`` where its lengths are not those of its elements.
    """
    lengths = np.asarray(x._lengths)
    _check_lengths(lengths, "ragged")
    if lengths.sum() > x._values.shape[0]:
        raise ValueError(
            f"ragged: lengths add up to {lengths.sum()}, and there are {x._values.shape[0]} "
            f"elements"
        )
    return _of_known(x._values, x._lengths, lengths)


def room_for(total: int) -> int:
    """Return the size that there is room for, an eighth more at most, so that few are compiled.

    Small sizes become a multiple of 8, and 0 does, too, so that there is a place to read from.
    """
    step = max(8, 1 << max(0, total.bit_length() - 4))
    return -(-max(total, 1) // step) * step


def _check_lengths(lengths: np.ndarray, caller: str) -> None:
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise TypeError(
            f"{caller}: lengths must be integers of rank 1, got {lengths.dtype} of shape "
            f"{lengths.shape}"
        )
    if not lengths.size:
        raise ValueError(f"{caller}: expected one length or more, got none")
    if (lengths < 0).any():
        k = int(np.argmax(lengths < 0))
        raise ValueError(f"{caller}: array {k} has length {lengths[k]}, which is negative")


class _Maker:
    """Makes ragged arrays: of a list, of a rectangle, of segments, or of a table."""

    def __call__(self, arrays: Iterable[ArrayLike | Sequence[Any]]) -> Ragged:
        """Join arrays that differ along their first axis.

        Args:
            arrays: the arrays, of one shape but for the first axis, along which they may have no
                elements; also nested lists of numbers, and series of tables.

        Returns:
            The arrays as one, of the dtype that they promote to.

        Raises:
            OverflowError: integers do not fit in the dtype.
            TypeError: an array is ragged itself, or does not hold numbers.
            ValueError: there are none, or they differ in another axis.

        >>> import stretto as st, stretto.numpy as snp
        >>> words = st.ragged([[1.0, 2.0, 3.0], [4.0]])
        >>> words
        Ragged(float32[2,*], lengths=[3, 1])
        >>> st.vmap(lambda x: x / x.sum())(words).to_list()[1]
        Array([1.], dtype=float32)
        """
        if not isinstance(arrays, Iterable):
            raise TypeError(f"ragged: expected a list of arrays, got {type(arrays).__name__}")
        parts = [_part(x, i) for i, x in enumerate(arrays)]
        if not parts:
            raise ValueError("ragged: expected one array or more, got none")
        lengths = np.array([x.shape[0] if x.ndim else 1 for x in parts], np.int32)
        _check_lengths(lengths, "ragged")
        for i, x in enumerate(parts):
            if not x.ndim:
                raise ValueError(f"ragged: array {i} is {x.type}, which has no axis: [x] has one")
            if x.shape[1:] != parts[0].shape[1:]:
                raise ValueError(
                    f"ragged: arrays must have one shape but for axis 0; array 0 is "
                    f"{parts[0].type}, array {i} {x.type}"
                )
        dtype, weak = promote([(x.dtype, x.type.weak_type) for x in parts], "ragged")
        return _joined([np.asarray(convert(x, dtype)) for x in parts], lengths, weak)

    def from_padded(self, x: ArrayLike, lengths: ArrayLike) -> Ragged:
        """Take the first elements of the rows of a rectangle.

        Args:
            x: the rows along axis 0, their elements along axis 1.
            lengths: how many elements of each row are taken, ``[n]``.

        Returns:
            The rows as one.

        Raises:
            ValueError: a length is negative, or more than there are, or there are not as many as
                rows.

        >>> import stretto as st, stretto.numpy as snp
        >>> st.ragged.from_padded(snp.arange(6).reshape(2, 3), [1, 3]).values
        Array([0, 3, 4, 5], dtype=int32)
        """
        rows, sizes = np.asarray(x), np.asarray(lengths)
        _check_lengths(sizes, "ragged.from_padded")
        if rows.ndim < 2 or len(sizes) != len(rows) or sizes.max(initial=0) > rows.shape[1]:
            raise ValueError(
                f"ragged.from_padded: lengths must be one for each row of x, {rows.shape}, and at "
                f"most the size of axis 1; got {len(sizes)}, the greatest "
                f"{sizes.max(initial=0)}"
            )
        return self([row[:n] for row, n in zip(rows, sizes, strict=True)])

    def from_segments(self, x: ArrayLike, ids: ArrayLike) -> Ragged:
        """Divide an array where a row of numbers changes.

        Args:
            x: the elements along axis 0.
            ids: which array each belongs to, in order: 0, 0, 1, 2, 2, and so on.

        Returns:
            The arrays as one.

        Raises:
            ValueError: the numbers do not count up from 0, or are not as many as elements.

        >>> import stretto as st, stretto.numpy as snp
        >>> st.ragged.from_segments(snp.arange(5), [0, 0, 1, 2, 2]).lengths
        Array([2, 1, 2], dtype=int32)
        """
        elements, numbers = np.asarray(x), np.asarray(ids)
        steps = np.diff(numbers, prepend=0)
        if numbers.shape != elements.shape[:1] or not numbers.size or not set(steps) <= {0, 1}:
            raise ValueError(
                "ragged.from_segments: ids must be a number for each element of x, in order, and "
                "count up from 0 without a gap"
            )
        if numbers[0] != 0:
            raise ValueError(f"ragged.from_segments: ids must begin with 0, got {numbers[0]}")
        return self(np.split(elements, np.flatnonzero(steps)))

    def from_table(self, table: Any, by: str, columns: str | Sequence[str]) -> Ragged:
        """Group the rows of a table by a column of ids.

        Args:
            table: a DataFrame of pandas or polars, or a dictionary of columns.
            by: the name of the column of ids, in any order: numbers, strings, or what else sorts.
            columns: the name of the column to take; or a list of names, for a row of their values.

        Returns:
            An array for each id, in sorted order, ``np.unique(table[by])``; its rows are in the
            order of the table. A list of columns is the last axis.

        Raises:
            OverflowError: integers do not fit in the dtype.
            TypeError: ``table`` has no columns, a column does not hold numbers, or the ids cannot
                be sorted.
            ValueError: there is no such column, the columns differ in shape, there are no rows, or
                an id is missing.

        >>> import stretto as st
        >>> visits = {"who": ["bo", "al", "bo"], "age": [3, 7, 4], "size": [0.5, 1.5, 0.25]}
        >>> st.ragged.from_table(visits, by="who", columns="age").to_list()
        [Array([7], dtype=int32), Array([3, 4], dtype=int32)]
        >>> st.ragged.from_table(visits, by="who", columns=["age", "size"])
        Ragged(float32[2,*,2], lengths=[1, 2])
        """
        rows, lengths, weak = group_rows(table, by, columns, "ragged.from_table")
        return _joined([rows], lengths, weak)


def _part(x: Any, i: int) -> Any:
    """Return one of the arrays that a list is of."""
    if is_ragged(x):
        raise TypeError(
            f"ragged: array {i} is ragged itself, and arrays may differ along their first axis "
            f"alone: join lists of arrays, [*a, *b]"
        )
    return as_column(x, "ragged", f"array {i}")


def _joined(parts: Sequence[np.ndarray], lengths: np.ndarray, weak: bool) -> Ragged:
    """Return the elements of all parts, one behind the other, with these lengths."""
    total = int(lengths.sum())
    host = np.zeros((room_for(total), *parts[0].shape[1:]), parts[0].dtype)
    np.concatenate(parts, out=host[:total])
    return _made(constant(host, weak), lengths)


def _made(values: Any, lengths: np.ndarray) -> Ragged:
    return _of_known(values, constant(lengths.astype(_INT32)), lengths)


def _of_known(values: Any, lengths: Any, known: np.ndarray) -> Ragged:
    """Return the elements with lengths that are known as integers."""
    return Ragged._of(values, lengths, room_for(int(known.max())), False, int(known.all()))


ragged = _Maker()
"""Makes ragged arrays; see ``Ragged``."""


# Lists, series and columns of tables


_NOT_NUMBERS = "OSUMm"
"""The kinds of dtypes that NumPy has beside numbers."""


def as_column(x: Any, caller: str, argument: str) -> Any:
    """Return the value of an array, a series, or nested lists of numbers.

    Raises ``TypeError`` if they are not numbers, ``ValueError`` if nested lists differ in length,
    and ``OverflowError`` for integers that do not fit in the dtype.
    """
    if isinstance(x, Value) or not (isinstance(x, (list, tuple)) or hasattr(x, "__array__")):
        return as_value(x, caller, argument)
    host = x if isinstance(x, np.ndarray) else _host(x, caller, argument)
    if host.dtype.kind == "O":
        host = _numbers(host)
    if host.dtype.kind in _NOT_NUMBERS:
        raise TypeError(_refusal(host, caller, argument))
    return as_value(host, caller, argument)


def _host(x: Any, caller: str, argument: str) -> np.ndarray:
    try:
        return np.asarray(x)
    except ValueError as error:
        if not isinstance(x, (list, tuple)):
            raise
        raise ValueError(
            f"{caller}: {argument} is a list of lists that differ in shape, and arrays may differ "
            f"along their first axis alone: flatten the inner lists, or pad them to one length"
        ) from error


def _numbers(host: np.ndarray) -> np.ndarray:
    """Return the numbers of an array of objects, if that is what they are."""
    try:
        found = np.array(host.tolist())
    except ValueError:  # lists of different lengths
        return host
    return host if found.dtype.kind in _NOT_NUMBERS or found.shape != host.shape else found


def _refusal(host: np.ndarray, caller: str, argument: str) -> str:
    """Say that an array holds something else than numbers, what that is, and what to do."""
    elements = host.ravel().tolist()
    odd = next((x for x in elements if not isinstance(x, numbers.Number)), elements[0])
    if host.dtype.kind in "Mm":
        way = "convert times to numbers, as by subtracting the first and dividing by a unit"
    elif isinstance(odd, str):
        way = "number the strings first: np.unique(x, return_inverse=True)[1]"
    elif isinstance(odd, (list, tuple, np.ndarray)):
        way = "arrays may differ along their first axis alone: flatten or pad what is in it"
    elif odd is None or _is_missing(odd):
        way = "leave missing values out, or put nan in their place"
    else:
        way = "convert it to a dtype of numbers"
    return f"{caller}: {argument} must hold numbers, got {odd!r} in dtype {host.dtype}: {way}"


def _is_missing(x: Any) -> bool:
    """Say if this stands for a missing value: None, nan, or what does not say if it is itself."""
    try:
        return x is None or bool(x != x)  # noqa: PLR0124 (nan does not equal itself)
    except TypeError:  # pandas' NA
        return True


def group_rows(
    table: Any, by: Any, columns: Any, caller: str
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the rows of a table, those of equal ids together, and how many each id has.

    Ids are sorted; rows of one id stay in their order. The third result is whether the dtype is
    weak.
    """
    names = _names(table, caller)
    several = isinstance(columns, (list, tuple))
    wanted = list(columns) if several else [columns]
    if not wanted:
        raise ValueError(f"{caller}: columns must be a name or a list of names, got none")
    for argument, name in [("by", by), *[("columns", name) for name in wanted]]:
        if name not in names:
            has = ", ".join(map(repr, names))
            raise ValueError(f"{caller}: {argument} is {name!r}, and the table has {has}")
    number, counts = _ranks_of_ids(table[by], by, caller)
    values = [as_column(table[name], caller, f"column {name!r}") for name in wanted]
    for name, x in zip(wanted, values, strict=True):
        if x.shape[:1] != number.shape or x.shape != values[0].shape:
            raise ValueError(
                f"{caller}: columns must have a row for each id, and one shape; there are "
                f"{len(number)} ids in {by!r}, and column {name!r} is {x.type}"
            )
    dtype, weak = promote([(x.dtype, x.type.weak_type) for x in values], caller)
    hosts = [np.asarray(x).astype(dtype) for x in values]
    rows = np.stack(hosts, -1) if several else hosts[0]
    return rows[np.argsort(number, kind="stable")], counts, weak


def _names(table: Any, caller: str) -> list[Any]:
    """Return the names of a table's columns."""
    if isinstance(table, Mapping):
        return list(table)
    names = getattr(table, "column_names", None)  # Arrow's tables
    names = getattr(table, "columns", None) if names is None else names
    if names is None or not hasattr(table, "__getitem__"):
        raise TypeError(
            f"{caller}: table must be a DataFrame or a dictionary of columns; got "
            f"{type(table).__name__}"
        )
    return list(names)


def _ranks_of_ids(column: Any, by: Any, caller: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rank of each row's id among the sorted ones, and the number of rows of each."""
    ids = np.asarray(column)
    if ids.ndim != 1 or not ids.size:
        raise ValueError(
            f"{caller}: column {by!r} must have an id for each of one row or more; got shape "
            f"{ids.shape}"
        )
    objects = ids.dtype.kind == "O"
    missing = np.array([_is_missing(x) for x in ids]) if objects else ids != ids  # noqa: PLR0124
    if missing.any():
        raise ValueError(
            f"{caller}: column {by!r} has no id in row {np.argmax(missing)} ({missing.sum()} in "
            f"all): leave such rows out, or give them an id of their own"
        )
    try:
        _, number, counts = np.unique(ids, return_inverse=True, return_counts=True)
    except TypeError as error:
        raise TypeError(
            f"{caller}: the ids in column {by!r} cannot be sorted, {error}: give all one type, as "
            f"by str"
        ) from None
    return number, counts
