"""Loops over examples: ``scan`` and ``map``, over arrays and over ragged ones.

``higher_order/scan`` and ``higher_order/loops`` go over arrays, ``over_ragged`` over arrays of
different lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from stretto._engine.api import varying_sizes
from stretto._engine.api.varying_sizes.lengths import holds_ragged
from stretto._engine.core.boundary import boundary
from stretto._engine.higher_order import loops
from stretto._engine.higher_order import scan as loop

C = TypeVar("C")
R = TypeVar("R")
Y = TypeVar("Y")


def scan(
    f: Callable[[Any, Any], tuple[C, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[C, Y]:
    """Step a function over the leading axis of ``xs``, carrying a state.

    Args:
        f: a function from ``(carry, x)`` to ``(carry, y)``; the carry keeps its structure and
            types.
        init: the first carry, a tree of arrays.
        xs: a tree of arrays that share their leading size; None, the default, needs ``length``. Of
            a ragged array each step gets one array, of its own size.
        length: the number of steps; by default the leading size of ``xs``.
        reverse: whether to step from the last element to the first.
        unroll: how many steps to write out for each turn of the compiled loop; True for all.
        _split_transpose: has no effect; in JAX, another way to the same derivative.

    Returns:
        The last carry, and the tree of ``y``, stacked along a new leading axis; ragged where its
        size is that of one array of a ragged one.

    Raises:
        NotImplementedError: over ragged arrays: the size of a ``y`` varies along another axis than
            the first.
        TypeError: the carry changes its structure or a type, or ``f`` does not return a pair.
        ValueError: leading sizes differ, an array has no leading axis, or a number is negative.

    >>> import stretto as st, stretto.numpy as snp
    >>> total, running = st.lax.scan(lambda c, x: (c + x, c + x), 0, snp.array([1, 2, 3]))
    >>> running
    Array([1, 3, 6], dtype=int32)
    """
    with boundary:
        if holds_ragged(xs):
            return varying_sizes.over_ragged.scan_ragged(f, init, xs, length, reverse, unroll)
        return loop.scan(f, init, xs, length, reverse, unroll)


def map_(
    f: Callable[[Any], R],
    xs: Any,
    *,
    batch_size: int | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
) -> R:
    """Apply a function to each element along an axis, one after another, and stack the results.

    For all elements at once, use ``vmap``.

    Args:
        f: a function of one element of ``xs``.
        xs: a tree of arrays, ragged ones among them.
        batch_size: how many elements to compute at a time; by default one. Derivatives keep what
            one batch needs and compute the rest again.
        in_axes: the axis of the elements: an integer, None for what all of them share, or a tree of
            these that is a prefix of ``xs``.
        out_axes: where that axis goes in the results, likewise; None for what is the same for all.

    Returns:
        The results, a tree of arrays; as with ``vmap``, ragged where sizes are those of examples.

    Raises:
        NotImplementedError: over ragged arrays: the size of a result varies along another axis than
            the first.
        TypeError: an entry of ``in_axes`` or ``out_axes`` is neither an integer nor None.
        ValueError: mapped sizes differ, an axis is out of bounds, or ``batch_size`` is not
            positive.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.lax.map(lambda x: x * 2, snp.array([1, 2]))
    Array([2, 4], dtype=int32)
    """
    with boundary:
        if holds_ragged(xs):
            return varying_sizes.over_ragged.map_ragged(f, xs, batch_size, in_axes, out_axes)
        return loops.map_(f, xs, batch_size=batch_size, in_axes=in_axes, out_axes=out_axes)
