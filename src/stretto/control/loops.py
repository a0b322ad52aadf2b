"""Loops made of ``scan`` and ``while_loop``: ``fori_loop``, ``map``.

Layer 4 (control).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto.control.family import values_of
from stretto.control.scan import loop_scan
from stretto.control.while_loop import loop_while
from stretto.core import tree
from stretto.core.interpreter import Tracer
from stretto.core.types import kind_of
from stretto.ops.broadcast import reshape
from stretto.ops.elementwise import promote_values
from stretto.ops.shape import concatenate, slice_in_dim
from stretto.transforms.vmap import to_axis, vmap_flat

__all__ = ["fori_loop", "map_"]


def _static_int(x: Any) -> int | None:
    """The Python integer, where it is known."""
    if isinstance(x, Tracer):
        x = x.concrete()
    return None if x is None else int(x)


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool = 1,
) -> Any:
    """``body_fun(i, carry)`` for ``i`` from ``lower`` to ``upper`` less one; the last carry.

    With static bounds the body is traced once and the loop is differentiable in reverse, and
    ``unroll`` is that of ``scan``; with traced ones it is a ``while_loop``.

    Raises ``TypeError`` where the carry changes type, naming the leaf, or a bound is no integer.

    >>> import stretto as st
    >>> st.lax.fori_loop(0, 10, lambda i, x: x + i, 0)
    Array(45, dtype=int32, weak_type=True)
    """
    start, stop = promote_values("fori_loop", lower, upper)
    if start.ndim or kind_of(start.dtype) not in ("int", "uint"):
        raise TypeError(f"fori_loop: bounds must be integer scalars, got {start.type}")
    names = tree.paths(init_val, "init_val")
    low, high = _static_int(lower), _static_int(upper)
    if low is not None and high is not None:

        def body(state: Any, _: Any) -> Any:
            i, x = state
            return (i + 1, body_fun(i, x)), None

        length = max(0, high - low)
        names = ["i", *names]
        state = (start, init_val)
        return loop_scan("fori_loop", body, state, None, length, False, names, unroll)[0][1]

    def step(state: Any) -> Any:
        i, stop, x = state
        return i + 1, stop, body_fun(i, x)

    state = (start, stop, init_val)
    names = ["i", "upper", *names]
    return loop_while("fori_loop", lambda s: s[0] < s[1], step, state, names)[2]


def map_(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """``f`` of each element along the leading axis of the tree ``xs``, one by one; stacked.

    With ``batch_size``, so many at a time; for all at once, use ``vmap``.

    Raises ``ValueError`` where leading sizes differ.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.lax.map(lambda x: x * 2, snp.array([1, 2]))
    Array([2, 4], dtype=int32)
    """
    if batch_size is None:
        return loop_scan("map", lambda _, x: ((), f(x)), (), xs, None, False, ())[1]
    if batch_size < 1:
        raise ValueError(f"map: batch_size must be positive, got {batch_size}")
    leaves, structure = tree.flatten(xs)
    values = values_of(leaves, "map")
    sizes = {v.shape[0] if v.ndim else None for v in values}
    if len(sizes) != 1 or None in sizes:
        return map_(f, xs)  # which says what is wrong
    size = values[0].shape[0]
    out_structure: Any = None

    def batch(count: int, parts: Sequence[Any]) -> list[Any]:
        """``f`` of ``count`` elements at once."""

        def one(*elements: Any) -> list[Any]:
            nonlocal out_structure
            outs, out_structure = tree.flatten(f(tree.unflatten(structure, elements)))
            return values_of(outs, "map")

        outs, axes = vmap_flat(one, count, parts, [0] * len(parts))
        return [to_axis(o, count, a, 0) for o, a in zip(outs, axes, strict=True)]

    turns, rest = divmod(size, batch_size)
    many = [
        reshape(slice_in_dim(v, 0, size - rest), (turns, batch_size, *v.shape[1:])) for v in values
    ]
    turn = lambda _, parts: ((), batch(batch_size, parts))
    outs = loop_scan("map", turn, (), many, None, False, ())[1]
    outs = [reshape(o, (turns * batch_size, *o.shape[2:])) for o in outs]
    if rest:
        last = batch(rest, [slice_in_dim(v, size - rest, size) for v in values])
        outs = [concatenate([o, end], 0) for o, end in zip(outs, last, strict=True)]
    return tree.unflatten(out_structure, outs)
