"""Sizes of arguments that vary: buckets that arrays are padded to, and equal lengths.

Arrays of two ragged arguments can be added only if they have one size, and a trace sees no lengths.
So equal ones are found before it, become one traced array, and belong to its key.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.integers import count
from stretto._engine.core.interpreter import Tracer, Value
from stretto._engine.core.lazy import shown
from stretto._engine.core.sizes import Size, size_variable

_MULTIPLE = 8
"""Sizes of buckets are multiples of this: kernels go through so many elements at once."""


@shown("stretto._engine.api.cards", "card_of_buckets")
class Buckets:
    """The sizes that axes whose size varies are padded to, each greater than the one before.

    Sizes up to the first are padded to it, others to the next. With the default growth a size is
    padded by a quarter on average, and by a half at most; the sizes from 1 to 1000 have 12 buckets.

    Args:
        start: the size of the first.
        growth: by which factor the next is greater, above 1; it is rounded down to a multiple of 8.
        sizes: the sizes, in place of these; greater ones are refused.

    Raises:
        TypeError: ``start`` or a size is not an integer.
        ValueError: ``start`` or a size is less than 1, ``growth`` is not greater than 1, or
            ``sizes`` are none.

    >>> import stretto as st
    >>> [st.Buckets().size(n) for n in (1, 16, 17, 100)]
    [16, 16, 24, 104]
    >>> st.Buckets(sizes=[10, 100]).size(11)
    100
    """

    def __init__(
        self, start: int = 16, growth: float = 1.5, sizes: Sequence[int] | None = None
    ) -> None:
        self._last: int | None = None
        if sizes is not None:
            known = sorted({count(n, "Buckets", "sizes", 1) for n in sizes})
            if not known:
                raise ValueError("Buckets: sizes must be one size or more, got none")
            self._sizes, self._last = known, known[-1]
        else:
            self._sizes = [count(start, "Buckets", "start", 1)]
        if not growth > 1:
            raise ValueError(f"Buckets: growth must be greater than 1, got {growth}")
        self._growth = growth

    def size(self, n: int) -> int:
        """Return the bucket of a size.

        Args:
            n: the size.

        Returns:
            The size of its bucket, ``n`` or more.

        Raises:
            ValueError: ``sizes`` were given, and all are less.
        """
        while self._sizes[-1] < n:
            if self._last is not None:
                raise ValueError(
                    f"Buckets: a size of {n} is greater than the last bucket, {self._last}"
                )
            last = self._sizes[-1]
            grown = math.ceil(last * self._growth)
            whole = grown // _MULTIPLE * _MULTIPLE
            self._sizes.append(whole if whole > last else max(grown, last + 1))
        return self._sizes[bisect.bisect_left(self._sizes, n)]

    def __repr__(self) -> str:
        if self._last is not None:
            return f"Buckets(sizes={self._sizes})"
        return f"Buckets(start={self._sizes[0]}, growth={self._growth})"


def dynamic_size(name: str, least: int = 1, most: int | None = None) -> Size:
    """Name a size that varies, with its bounds: for ``dynamic_axes``.

    Args:
        name: the name; equal names are equal sizes.
        least: the least that it is.
        most: the greatest, if there is one.

    Returns:
        The size, which does arithmetic: ``2 * n + 1`` is one, too.

    Raises:
        TypeError: ``least`` or ``most`` is not an integer.
        ValueError: ``least`` is negative, or greater than ``most``.

    >>> import stretto as st
    >>> n = st.dynamic_size("n", least=3)
    >>> 2 * n - 1
    2*n-1
    """
    low = count(least, "dynamic_size", "least", 0)
    high = math.inf if most is None else count(most, "dynamic_size", "most", low)
    return size_variable(str(name), low, high)


RAGGED: list[type] = []
"""The class of ragged arrays, once there are any."""


def holds_ragged(x: Any) -> bool:
    """Say if a tree has a ragged array."""
    if not RAGGED:
        return False
    ragged = tuple(RAGGED)
    is_ragged = lambda node: isinstance(node, ragged)
    return any(map(is_ragged, tree.leaves(x, is_ragged)))


def same_lengths(one: Any, other: Any) -> bool:
    """Say if lengths are known to be equal."""
    if one is other:
        return True
    known = all([isinstance(x, Value) and not isinstance(x, Tracer) for x in (one, other)])
    return known and np.array_equal(np.asarray(one), np.asarray(other))


def equal_lengths(structure: Any, leaves: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Return pairs of positions: of lengths, and of earlier ones that are equal."""
    if not RAGGED:
        return ()
    pairs: list[tuple[int, int]] = []
    firsts: list[int] = []
    for position in _positions(structure):
        same = [first for first in firsts if same_lengths(leaves[first], leaves[position])]
        if same:
            pairs.append((position, same[0]))
        else:
            firsts.append(position)
    return tuple(pairs)


def share_lengths(leaves: Sequence[Any], pairs: Sequence[tuple[int, int]]) -> Sequence[Any]:
    """Return the leaves with one array for equal lengths."""
    if not pairs:
        return leaves
    one = list(leaves)
    for position, first in pairs:
        one[position] = one[first]
    return one


def refuse_split(structure: Any, specs: Sequence[Any], caller: str) -> None:
    """Raise ``NotImplementedError`` where a ragged array is to be taken apart like an array."""
    if not RAGGED:
        return
    for position in _positions(structure, rectangles=False):
        if any([part is not None for part in (*specs[position - 1], *specs[position])]):
            raise NotImplementedError(
                f"{caller}: a ragged array is one row of elements, whose parts are not its arrays: "
                f"pass a rectangle, ragged.pad(), and the lengths, and use a mask; or leave it to "
                f"jit, which splits what it computes of a ragged array that is sharded"
            )


@functools.lru_cache(512)
def _positions(structure: Any, rectangles: bool = True) -> tuple[int, ...]:
    """Find the leaves of such a tree that are lengths; if so wanted, not those of rectangles."""
    (kind,) = RAGGED
    found: list[int] = []

    def visit(part: Any, start: int) -> None:
        if part.type is not None and issubclass(part.type, kind):
            # Only such nodes are built: others may refuse leaves that are no arrays.
            node = tree.unflatten(part, range(start, start + part.num_leaves))
            if rectangles or not node._wide:
                found.append(node._lengths)
            return
        for child in part.children():
            visit(child, start)
            start += child.num_leaves

    visit(structure, 0)
    return tuple(found)
