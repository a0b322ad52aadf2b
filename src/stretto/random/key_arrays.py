"""``KeyArray``: typed keys, an array of which is a tree node around its words.

A typed key knows its implementation. An array of keys of shape ``s`` has one child, the words:
``uint32[*s, n]``; so it goes wherever trees go (docs/decisions/0023).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.descriptions import described_like
from stretto._engine.core.integers import entries_of, integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import shown
from stretto._engine.core.typing import Array, ArrayLike, Axes, DTypeLike
from stretto._engine.ops.layout import canonical_axis
from stretto.dtypes import prng_key
from stretto.random.implementations import Implementation

if TYPE_CHECKING:
    from stretto._engine.core.array_updates import Index


_UINT32 = np.dtype(np.uint32)


class KeyDtype:
    """The dtype of typed keys of one implementation; ``key<fry>``, ``key<rbg>``, ``key<urbg>``."""

    __slots__ = ("implementation",)
    extended_kind: ClassVar[type] = prng_key
    type: ClassVar[type] = prng_key

    implementation: Implementation

    def __init__(self, implementation: Implementation) -> None:
        object.__setattr__(self, "implementation", implementation)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("dtypes are immutable")

    @property
    def name(self) -> str:
        """As it is printed."""
        return f"key<{self.implementation.tag}>"

    @property
    def itemsize(self) -> int:
        """The bytes of a key."""
        return _UINT32.itemsize * self.implementation.size

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDtype) and self.implementation is other.implementation

    def __hash__(self) -> int:
        return hash((KeyDtype, self.implementation))

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyDtype, (self.implementation,)


@shown("stretto.random.key_cards", "card_of", "text_of")
class KeyArray:
    """Keys of one implementation, in an array; immutable.

    Made by ``random.key``, ``random.split``, ``random.wrap_key_data``. It has the shape, the
    indexing and the reshaping of an array, and no arithmetic; ``random.key_data`` gives its words.
    Functions of trees (``st.stack``, ``st.tree.map``) work on it by way of its words; axes
    given to ``vmap`` count the array's own.

    >>> from stretto import random
    >>> keys = random.split(random.key(42), 3)
    >>> keys.shape, keys.dtype, keys[1:].shape
    ((3,), key<fry>, (2,))
    """

    __slots__ = ("_implementation", "_words")
    __array_priority__ = 100  # so that NumPy's operators leave it to those below
    inner_axes: ClassVar[int] = 1
    """How many of the last axes of its child are not its own."""

    _words: Array
    _implementation: Implementation

    def __init__(self, words: Array, implementation: Implementation) -> None:
        object.__setattr__(self, "_words", words)
        object.__setattr__(self, "_implementation", implementation)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("key arrays are immutable; use keys.at[...].set(...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("key arrays are immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyArray, (self._words, self._implementation)

    def _like(self, words: Array) -> KeyArray:
        return KeyArray(words, self._implementation)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes.

        Raises:
            ValueError: the words are not keys: an axis of theirs was taken for one of the keys.
        """
        shape = self._words.shape
        if shape[-1:] != (self._implementation.size,):
            raise ValueError(
                f"these words are not keys of {self._implementation.name}: their last axis must "
                f"have size {self._implementation.size}, got shape {shape}; an axis of the words "
                f"was taken for one of the keys"
            )
        return shape[:-1]

    @property
    def dtype(self) -> KeyDtype:
        """The dtype, which says the implementation."""
        return KeyDtype(self._implementation)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of keys."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of a key."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all keys."""
        return self.itemsize * self.size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a key array without axes: it is one key")
        return self.shape[0]

    def __iter__(self) -> Iterator[KeyArray]:
        if not self.shape:
            raise TypeError("a key array without axes is one key, and cannot be iterated over")
        return iter([self._like(words) for words in self._words])

    def __bool__(self) -> bool:
        raise TypeError("a key array has no truth value")

    def __getitem__(self, index: Index) -> KeyArray:
        """As an array's, of all keys."""
        return self._like(self._words[self._index(index)])

    def _index(self, index: Index) -> tuple[Any, ...]:
        """The index of the words: whole keys, whatever the index of keys."""
        entries = index if isinstance(index, tuple) else (index,)
        dots = any(entry is Ellipsis for entry in entries)
        count = sum(_axes(entry) for entry in entries)
        if count > self.ndim:
            raise IndexError(
                f"too many indices: {count} for a key array of {self.ndim} axes, shape {self.shape}"
            )
        return (*entries, slice(None)) if dots else (*entries, ..., slice(None))

    def __eq__(self, other: object) -> Array:
        """Where keys are equal; shapes broadcast. ``TypeError`` for another implementation's."""
        if not isinstance(other, KeyArray):
            return NotImplemented
        if other._implementation is not self._implementation:
            raise TypeError(f"== of keys of different types: {self.dtype} and {other.dtype}")
        same: Any = self._words == other._words
        # Words are no array where a tree of other leaves, such as axes, has this structure.
        equal: Any = same if isinstance(same, bool) else same.all(-1)
        return equal

    def __ne__(self, other: object) -> Array:
        """Where keys differ."""
        equal: Any = self.__eq__(other)
        if equal is NotImplemented:
            return equal
        different: Any = not equal if isinstance(equal, bool) else ~equal
        return different

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(
            "a typed key is not an array of numbers: random.key_data(keys) gives its words; to "
            "stack or reshape keys use st.stack([...]), st.tree.map or the methods of the key array"
        )

    @property
    def at(self) -> _At:
        """``keys.at[index].get()`` and ``keys.at[index].set(others)``, as an array's."""
        return _At(self)

    def reshape(self, *shape: int | Sequence[int], order: str = "C") -> KeyArray:
        """Return the keys in another shape.

        Args:
            *shape: the sizes; one may be -1.
            order: ``"C"``.

        Returns:
            The keys.

        Raises:
            TypeError: a size is not an integer.
            ValueError: ``order`` is another, or the sizes do not match.
        """
        entries: Any = shape[0] if len(shape) == 1 and hasattr(shape[0], "__len__") else shape
        sizes = integers(entries, "reshape", "shape")
        if order != "C":
            raise ValueError(f"reshape: order must be 'C' for keys, got {order!r}")
        return self._like(self._words.reshape((*sizes, self._implementation.size)))

    def ravel(self, order: str = "C") -> KeyArray:
        """Return the keys in a row.

        Args:
            order: ``"C"``.

        Returns:
            The keys, of shape (size,).
        """
        return self.reshape(-1, order=order)

    @described_like(ravel)
    def flatten(self, order: str = "C") -> KeyArray:
        """Return the keys in a row."""
        return self.reshape(-1, order=order)

    def squeeze(self, axis: Axes = None) -> KeyArray:
        """Drop axes of size 1.

        Args:
            axis: the axes to drop; all of them by default.

        Returns:
            The keys.
        """
        if axis is None:
            axes = tuple([i for i, n in enumerate(self.shape) if n == 1])
        else:
            axes = self._own_axes(entries_of(axis), "squeeze")
        return self._like(self._words.squeeze(axes)) if axes else self

    def transpose(self, *axes: Any) -> KeyArray:
        """Reorder the axes.

        Args:
            *axes: the new order; by default the reverse.

        Returns:
            The keys.
        """
        entries = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = self._own_axes(entries, "transpose") if entries else tuple(range(self.ndim))[::-1]
        return self._like(self._words.transpose((*order, self.ndim)))

    @property
    def T(self) -> KeyArray:
        """The axes in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> KeyArray:
        """The last two axes swapped."""
        return self.swapaxes(-1, -2)

    def swapaxes(self, axis1: int, axis2: int) -> KeyArray:
        """Swap two axes.

        Args:
            axis1: the one.
            axis2: the other.

        Returns:
            The keys.
        """
        return self._like(self._words.swapaxes(*self._own_axes((axis1, axis2), "swapaxes")))

    def take(self, indices: ArrayLike, axis: int | None = None, **options: Any) -> KeyArray:
        """Take keys at indices along an axis.

        Args:
            indices: integers.
            axis: the axis; by default all keys in a row.
            **options: as for ``stretto.numpy.take``.

        Returns:
            The keys.
        """
        keys = self.ravel() if axis is None else self
        (place,) = keys._own_axes((axis or 0,), "take")
        return self._like(keys._words.take(indices, axis=place, **options))

    def _own_axes(self, axes: Sequence[int], caller: str) -> tuple[int, ...]:
        return tuple([canonical_axis(axis, self.ndim, caller) for axis in axes])

    def copy(self) -> KeyArray:
        """Return the same keys.

        Returns:
            The keys.
        """
        return self._like(self._words.copy())

    def block_until_ready(self) -> KeyArray:
        """Wait until the keys are computed.

        Returns:
            The keys.
        """
        self._words.block_until_ready()
        return self


def _axes(entry: Index) -> int:
    """How many axes an entry of an index takes."""
    if entry is None or entry is Ellipsis or isinstance(entry, (bool, np.bool_)):
        return 0
    if isinstance(entry, (slice, int, np.integer)):
        return 1
    value = as_value(entry, "keys[...]", "an index")
    return value.ndim if value.dtype == np.dtype(bool) else 1


class _At:
    """A key array, to be given an index."""

    __slots__ = ("_keys",)

    def __init__(self, keys: KeyArray) -> None:
        self._keys = keys

    def __getitem__(self, index: Index) -> _AtIndex:
        return _AtIndex(self._keys, index)


class _AtIndex:
    """A key array and an index, to be read or given other keys."""

    __slots__ = ("_keys", "_place")

    def __init__(self, keys: KeyArray, index: Index) -> None:
        self._keys = keys
        self._place = keys._words.at[keys._index(index)]

    def get(self, **options: Any) -> KeyArray:
        """The keys there."""
        return self._keys._like(self._place.get(**options))

    def set(self, values: KeyArray, **options: Any) -> KeyArray:
        """All keys, with those there replaced; ``TypeError`` for what are no keys of the type."""
        if getattr(values, "dtype", None) != self._keys.dtype:
            raise TypeError(
                f"keys.at[...].set: expected keys of type {self._keys.dtype}, got "
                f"{getattr(values, 'dtype', type(values).__name__)}"
            )
        return self._keys._like(self._place.set(values._words, **options))


tree.register_attributes(
    KeyArray,
    lambda keys: ((keys._words,), keys._implementation, ("words",)),
    lambda implementation, words: KeyArray(words[0], implementation),
)
