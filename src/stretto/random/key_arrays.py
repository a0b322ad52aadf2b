"""``KeyArray``: typed keys, arrays of which are tree nodes around their words; and implementations.

A typed key knows its implementation. An array of keys of shape ``s`` has one child, the words:
``uint32[*s, n]``; so it goes wherever trees go (docs/decisions/0023).

The three implementations, under JAX's names, make a key of a seed, split it, fold data in, and draw
bits. Each works on words: uint32 arrays whose last axis holds a key, and whose leading axes hold
many. ``threefry2x32`` is the default: every bit is that of a published cipher, in one of two
layouts of counters (``config.threefry_partitionable``). ``rbg`` splits keys in the same way, and
draws bits with Philox, which takes fewer operations a bit; ``unsafe_rbg`` also splits and folds
with Philox, by a rule that has not been shown to be sound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from stretto._engine import core
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import entries_of, integers
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.lazy import shown
from stretto._engine.core.typing import Array, ArrayLike, Axes, DTypeLike
from stretto._engine.ops.bits import bitwise_xor
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import zeros_like
from stretto._engine.ops.layout import canonical_axis, move_axis, reshape
from stretto._engine.ops.random_bits import (
    RandomAlgorithm,
    RandomBits,
    RngBitGenerator,
    threefry2x32,
)
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto.dtypes import prng_key

if TYPE_CHECKING:
    from stretto._engine.core.cards import Card
    from stretto._engine.core.typing import Index

_PHILOX = RandomAlgorithm.RNG_PHILOX
_UINT32 = np.dtype(np.uint32)
_ROWS_PER_KEY = 10
"""The rows of bits that ``unsafe_rbg`` draws for each that it keeps as a key."""


class Implementation(NamedTuple):
    """Functions of words; ``size`` of them are a key.

    ``seed(pair)`` makes a key of the two words of a seed; ``split(words, shape)`` new keys of each,
    along axes before the last; ``fold_in(words, low)`` a key of each and a word of its own;
    ``bits(words, width, shape)`` unsigned integers of each, in the words' leading axes, then shape.
    """

    name: str
    tag: str
    size: int
    seed: Callable[[Array], Array]
    split: Callable[[Array, tuple[int, ...]], Array]
    fold_in: Callable[[Array, Array], Array]
    bits: Callable[[Array, int, tuple[int, ...]], Array]

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __reduce__(self) -> tuple[Any, ...]:
        return implementation, (self.name,)


def _columns(words: Array) -> list[Array]:
    """Return the words of keys, each without the last axis."""
    axis = words.ndim - 1
    parts = [slice_in_dim(words, i, i + 1, axis=axis) for i in range(words.shape[axis])]
    return [reshape(x, words.shape[:-1]) for x in parts]


def _join_columns(columns: Sequence[Array]) -> Array:
    return concatenate([reshape(x, (*x.shape, 1)) for x in columns], columns[0].ndim)


def _threefry_split(words: Array, shape: tuple[int, ...]) -> Array:
    if config.threefry_partitionable:
        return RandomBits(32, shape, "pairs")(words)
    return RandomBits(32, (*shape, 2), "original")(words)


def _threefry_fold_in(words: Array, low: Array) -> Array:
    # The two words of the key that has the data as its seed, as counters.
    k0, k1 = _columns(words)
    low = broadcast_to(low, k0.shape)
    return _join_columns(threefry2x32(k0, k1, zeros_like(low), low))


def _threefry_bits(words: Array, width: int, shape: tuple[int, ...]) -> Array:
    layout = "partitionable" if config.threefry_partitionable else "original"
    return RandomBits(width, shape, layout)(words)


def _twice(pair: Array) -> Array:
    return concatenate([pair, pair], pair.ndim - 1)


def _halves(words: Array) -> Array:
    """Return the two pairs of words that an rbg key consists of, along an axis before the last."""
    return reshape(words, (*words.shape[:-1], 2, 2))


def _rbg_split(words: Array, shape: tuple[int, ...]) -> Array:
    batch = words.shape[:-1]
    halves = _threefry_split(_halves(words), shape)
    return reshape(move_axis(halves, len(batch), halves.ndim - 2), (*batch, *shape, 4))


def _rbg_fold_in(words: Array, low: Array) -> Array:
    low = low if not low.ndim else reshape(low, (*low.shape, 1))
    return reshape(_threefry_fold_in(_halves(words), low), words.shape)


def _rbg_bits(words: Array, width: int, shape: tuple[int, ...]) -> Array:
    return RngBitGenerator(shape, np.dtype(f"u{width // 8}"), _PHILOX)(words)[1]


def _unsafe_split(words: Array, shape: tuple[int, ...]) -> Array:
    batch, count = words.shape[:-1], math.prod(shape)
    rows = reshape(
        _rbg_bits(words, 32, (_ROWS_PER_KEY * count, 4)), (*batch, count, _ROWS_PER_KEY, 4)
    )
    kept = slice_in_dim(rows, 0, 1, axis=len(batch) + 1)
    return reshape(kept, (*batch, *shape, 4))


def _unsafe_fold_in(words: Array, low: Array) -> Array:
    seeded = _twice(_join_columns([zeros_like(low), low]))
    rows = _rbg_bits(seeded, 32, (_ROWS_PER_KEY, 4))
    last = slice_in_dim(rows, _ROWS_PER_KEY - 1, _ROWS_PER_KEY, axis=low.ndim)
    return bitwise_xor(words, broadcast_to(reshape(last, (*low.shape, 4)), words.shape))


IMPLEMENTATIONS = {
    scheme.name: scheme
    for scheme in (
        Implementation(
            "threefry2x32",
            "fry",
            2,
            lambda pair: pair,
            _threefry_split,
            _threefry_fold_in,
            _threefry_bits,
        ),
        Implementation("rbg", "rbg", 4, _twice, _rbg_split, _rbg_fold_in, _rbg_bits),
        Implementation("unsafe_rbg", "urbg", 4, _twice, _unsafe_split, _unsafe_fold_in, _rbg_bits),
    )
}


def implementation(name: str | None = None) -> Implementation:
    """Return the implementation of this name, or ``config.default_prng_impl``."""
    return IMPLEMENTATIONS[config.default_prng_impl if name is None else name]


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
        """The name, as it is printed."""
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


@shown("stretto.random.key_arrays", "card_of", "text_of")
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
    """The number of last axes of its child that are not its own."""

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
        """Return the keys at an index, of the kinds that arrays take."""
        return self._like(self._words[self._index(index)])

    def _index(self, index: Index) -> tuple[Any, ...]:
        """Return the index of the words: whole keys, whatever the index of keys."""
        entries = index if isinstance(index, tuple) else (index,)
        dots = any(entry is Ellipsis for entry in entries)
        count = sum(_axes(entry) for entry in entries)
        if count > self.ndim:
            raise IndexError(
                f"too many indices: {count} for a key array of {self.ndim} axes, shape {self.shape}"
            )
        return (*entries, slice(None)) if dots else (*entries, ..., slice(None))

    def __eq__(self, other: object) -> Array:
        """Say where keys are equal; raises ``TypeError`` for those of another implementation."""
        if not isinstance(other, KeyArray):
            return NotImplemented
        if other._implementation is not self._implementation:
            raise TypeError(f"== of keys of different types: {self.dtype} and {other.dtype}")
        same: Any = self._words == other._words
        # Words are no array where a tree of other leaves, such as axes, has this structure.
        equal: Any = same if isinstance(same, bool) else same.all(-1)
        return equal

    def __ne__(self, other: object) -> Array:
        """Say where keys differ."""
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
    """Count the axes that an entry of an index takes."""
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
        """Return the keys there."""
        return self._keys._like(self._place.get(**options))

    def set(self, values: KeyArray, **options: Any) -> KeyArray:
        """Return all keys, with those there replaced; raises ``TypeError`` for other types."""
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


_MOST = 20
"""The most keys whose words are printed, of those in an array."""


def text_of(keys: KeyArray) -> str:
    """Return the ``repr`` of typed keys."""
    words: Any = keys._words
    shape = words.shape[:-1] if isinstance(words, Value) else np.shape(words)[:-1]
    return f"Array({shape}, dtype={keys.dtype}) overlaying:\n{_words(words)}"


def card_of(keys: KeyArray) -> Card:
    """Show typed keys, with their words."""
    words: Any = keys._words
    shape = words.shape[:-1] if isinstance(words, Value) else np.shape(words)[:-1]
    count = int(np.prod(shape, dtype=int))
    body = tuple([core.cards.line(text) for text in _words(words).split("\n")])
    implementation = keys._implementation.name
    return core.cards.Card(
        f"{keys.dtype}{list(shape)}", (core.cards.counted(count, "key"), implementation), body
    )


def _words(words: Value) -> str:
    """Write the words of keys, of some where there are many; or what stands for them."""
    array: Any = words
    if not isinstance(words, Value) or isinstance(words, Tracer) or array.is_deleted():
        return repr(words)
    if words.size <= _MOST * words.shape[-1]:
        return str(words)
    rows = np.asarray(words).reshape(-1, words.shape[-1])
    first, left_out, last = core.cards.ends(range(len(rows)), _MOST)
    return f"{rows[list(first)]}\n... {left_out:,} more keys ...\n{rows[list(last)]}"
