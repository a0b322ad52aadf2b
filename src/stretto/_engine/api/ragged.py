"""Arrays that differ along their first axis, as one: ``ragged``, ``Ragged``.

Layer 7 (api). Their elements lie one behind the other, beside their lengths: there is no rectangle.
``vmap`` takes them, and ``over_ragged`` says how. Next, read that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from stretto._engine.api.vectorize import RAGGED
from stretto._engine.core import tree
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.interpreter import Tracer, as_value, constant
from stretto._engine.core.types import is_float0, promote
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.comparison import full, lt, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.gather_scatter import gather
from stretto._engine.ops.index.geometry import GatherDimensionNumbers
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.rows import starts

__all__ = ["Ragged", "is_ragged", "ragged", "room_for"]

_INT32 = np.dtype(np.int32)


class Ragged:
    """Arrays of one dtype that differ along their first axis, made by ``ragged``.

    A tree of two arrays: the elements of all, one array behind the other, and the lengths. ``vmap``
    takes it as a mapped argument, for a function of one array.
    """

    __slots__ = ("_lengths", "_most", "_values")

    _values: Any
    """The elements, and room behind them, so that few shapes are compiled for."""
    _lengths: Any
    _most: int
    """What all lengths are at most: how long a rectangle of all is."""

    @classmethod
    def _of(cls, values: Any, lengths: Any, most: int) -> Ragged:
        made = object.__new__(cls)
        made._values, made._lengths, made._most = values, lengths, most
        return made

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
        return self._values[: int(self._known().sum())]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self._values.dtype

    @property
    def ndim(self) -> int:
        """The number of axes: of the arrays, and one more."""
        return self._values.ndim + 1

    @property
    def nbytes(self) -> int:
        """The bytes that elements and lengths take, with the room behind them."""
        return sum([x.size * x.dtype.itemsize for x in (self._values, self._lengths)])

    def _undifferentiated(self) -> Iterator[Any]:
        """The lengths."""
        yield self._lengths

    def like(self, other: Ragged) -> Ragged:
        """Give a derivative the lengths of the array that it is by: lengths have no derivative.

        Args:
            other: that array.

        Returns:
            The derivative of each array.

        >>> import stretto as st, stretto.numpy as snp
        >>> x = st.ragged([snp.ones(2), snp.ones(1)])
        >>> slope = st.grad(lambda x: st.vmap(snp.sum)(x).prod())(x)
        >>> slope.like(x).to_list()
        [Array([1., 1.], dtype=float32), Array([2.], dtype=float32)]
        """
        return Ragged._of(self._values, other._lengths, other._most)

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

    def __getitem__(self, index: int) -> Array:
        """One of the arrays."""
        lengths = self._known()
        place = range(len(lengths))[index]
        start = int(lengths[:place].sum())
        return self._values[start : start + int(lengths[place])]

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
        x = self._values
        place = broadcasted_iota(_INT32, (len(self), longest), 1)
        column = lambda row: broadcast_in_dim(row, place.shape, (0,))
        inside = lt(place, column(self._lengths))
        far = full(place.shape, x.shape[0], _INT32)
        index = select(inside, column(starts(self._lengths)) + place, far)
        element = convert(as_value(value, "pad", "value"), x.dtype)
        rows = GatherDimensionNumbers(tuple(range(2, x.ndim + 1)), (0,), (0,))
        places, sizes = reshape(index, (*place.shape, 1)), (1, *x.shape[1:])
        taken = gather(x, places, rows, sizes, mode="fill", fill_value=0)
        mask = broadcast_in_dim(inside, taken.shape, (0, 1))
        return select(mask, taken, broadcast_in_dim(element, taken.shape, ()))

    def __repr__(self) -> str:
        inner = ",".join(map(str, ("*", *self._values.shape[1:])))
        if isinstance(self._lengths, Tracer) or is_float0(self._lengths):
            what = "traced" if isinstance(self._lengths, Tracer) else "a derivative"
            return f"Ragged({self.dtype.name}[{len(self)},{inner}], {what})"
        lengths = self._known()
        shown = ", ".join(map(str, lengths[:6])) + (", …" if len(lengths) > 6 else "")
        return f"Ragged({self.dtype.name}[{len(self)},{inner}], lengths=[{shown}])"


tree.register_pytree_node(
    Ragged,
    lambda x: ((x._values, x._lengths), x._most),
    lambda most, children: Ragged._of(children[0], children[1], most),
)
RAGGED.append(Ragged)


def is_ragged(x: Any) -> bool:
    """Whether it is a ragged array: the leaf, for functions of trees."""
    return x.__class__ is Ragged


def room_for(total: int) -> int:
    """The size that there is room for, so that few sizes are compiled for: an eighth more at most.

    Small sizes become a multiple of 8.
    """
    step = max(8, 1 << max(0, total.bit_length() - 4))
    return -(-total // step) * step


def _check_lengths(lengths: np.ndarray, caller: str) -> None:
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise TypeError(
            f"{caller}: lengths must be integers of rank 1, got {lengths.dtype} of shape "
            f"{lengths.shape}"
        )
    if (lengths < 1).any():
        place = int(np.argmax(lengths < 1))
        raise ValueError(
            f"{caller}: array {place} has length {lengths[place]}, and each must have one element "
            f"or more: leave it out, or give it one that a weight of 0 leaves out"
        )


class _Maker:
    """Makes ragged arrays: of a list, of a rectangle, or of segments."""

    def __call__(self, arrays: Iterable[ArrayLike]) -> Ragged:
        """Join arrays that differ along their first axis.

        Args:
            arrays: the arrays, each with one element or more, of one shape but for the first axis.

        Returns:
            The arrays as one, of the dtype that they promote to.

        Raises:
            ValueError: there are none, one has no elements, or they differ in another axis.

        >>> import stretto as st, stretto.numpy as snp
        >>> words = st.ragged([snp.array([1.0, 2.0, 3.0]), snp.array([4.0])])
        >>> words
        Ragged(float32[2,*], lengths=[3, 1])
        >>> st.vmap(lambda x: x / x.sum())(words).to_list()[1]
        Array([1.], dtype=float32)
        """
        parts = [as_value(x, "ragged", f"array {i}") for i, x in enumerate(arrays)]
        if not parts:
            raise ValueError("ragged: expected one array or more, got none")
        for i, x in enumerate(parts):
            if not x.ndim or x.shape[1:] != parts[0].shape[1:]:
                raise ValueError(
                    f"ragged: arrays must have one shape but for axis 0; array 0 is "
                    f"{parts[0].type}, array {i} {x.type}"
                )
        dtype, weak = promote([(x.dtype, x.type.weak_type) for x in parts], "ragged")
        lengths = np.array([x.shape[0] for x in parts], np.int32)
        _check_lengths(lengths, "ragged")
        total = int(lengths.sum())
        host = np.zeros((room_for(total), *parts[0].shape[1:]), dtype)
        np.concatenate([np.asarray(convert(x, dtype)) for x in parts], out=host[:total])
        return _made(constant(host, weak), lengths)

    def from_padded(self, x: ArrayLike, lengths: ArrayLike) -> Ragged:
        """Take the first elements of the rows of a rectangle.

        Args:
            x: the rows along axis 0, their elements along axis 1.
            lengths: how many elements of each row are taken, ``[n]``.

        Returns:
            The rows as one.

        Raises:
            ValueError: a length is less than 1, or more than there are, or there are not as many as
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
        """Divide an array at the places where a row of numbers changes.

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


def _made(values: Any, lengths: np.ndarray) -> Ragged:
    most = room_for(int(lengths.max()))
    return Ragged._of(values, constant(lengths.astype(_INT32)), most)


ragged = _Maker()
"""Makes ragged arrays; see ``Ragged``."""
