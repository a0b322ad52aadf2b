"""Loops made of ``scan`` and ``while_loop``: ``fori_loop``, ``map``.

They are functions, not primitives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stretto._engine import higher_order
from stretto._engine.autodiff.vmap import to_axis
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.config import config
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.sizes import greater, is_size
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import ArrayLike
from stretto._engine.higher_order.chunks import in_axis, inner_axes, map_chunks, out_axis, positive
from stretto._engine.higher_order.family import values_of
from stretto._engine.higher_order.scan import loop_scan
from stretto._engine.higher_order.while_loop import loop_while
from stretto._engine.ops.elementwise import promote_values

C = TypeVar("C")
R = TypeVar("R")


def _static(x: Any, number: type) -> Any:
    """Give the number of Python, or the size, if it is known while tracing, and finite; or None."""
    if isinstance(x, Tracer):
        x = x.concrete()
    if x is None or is_size(x):
        return x
    known = number(x)
    return known if math.isfinite(known) else None


def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Any], C],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> C:
    """Step ``body_fun(i, carry)`` for ``i`` from ``lower`` up to, not including, ``upper``.

    With static bounds the body is traced once and the loop can be differentiated in reverse; with a
    traced bound it is a ``while_loop``.

    Args:
        lower: the first index, a scalar.
        upper: the index to stop before, a scalar; both are integers, or both are floats.
        body_fun: a function from the index and the carry to the next carry, of the same types.
        init_val: the first carry, a tree of arrays.
        unroll: how many steps to write out for each turn, as in ``scan``; by default 1.

    Returns:
        The last carry.

    Raises:
        TypeError: the bounds are not integer scalars, nor both floats, or the carry changes its
            structure or a type.
        ValueError: ``unroll`` is given where a bound is traced.

    >>> import stretto as st
    >>> st.lax.fori_loop(0, 10, lambda i, x: x + i, 0)
    Array(45, dtype=int32, weak_type=True)
    """
    with boundary:
        start, stop = promote_values("fori_loop", lower, upper)
        given = values_of([lower, upper], "fori_loop")
        kinds = {kind_of(x.dtype).removeprefix("u") for x in given}
        if start.ndim or kinds not in ({"int"}, {"float"}):
            raise TypeError(
                f"fori_loop: bounds must be integer scalars, or both floats; got {given[0].type} "
                f"and {given[1].type}"
            )
        names = tree.paths(init_val, "init_val")
        number = float if kinds == {"float"} else int
        low, high = _static(lower, number), _static(upper, number)
        if low is not None and high is not None:

            def body(state: Any, _: Any) -> Any:
                i, x = state
                return (i + 1, body_fun(i, x)), None

            steps = high - low
            length = greater(math.ceil(steps) if number is float else steps, 0)
            names = ["i", *names]
            state = (start, init_val)
            turns = 1 if unroll is None else unroll
            return loop_scan("fori_loop", body, state, None, length, False, names, turns)[0][1]
        if unroll is not None:
            raise ValueError(
                f"fori_loop: unroll must be None where a bound is traced, since the number of "
                f"steps is not known; got {unroll}"
            )

        def step(state: Any) -> Any:
            i, stop, x = state
            return i + 1, stop, body_fun(i, x)

        state = (start, stop, init_val)
        names = ["i", "upper", *names]
        return loop_while("fori_loop", lambda s: s[0] < s[1], step, state, names)[2]


def map_(
    f: Callable[[Any], R],
    xs: Any,
    *,
    batch_size: int | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
) -> R:
    """Apply a function to each element along an axis; ``api/loops`` says all of it to users.

    Args:
        f: a function of one element of ``xs``.
        xs: a tree of arrays, none of them ragged.
        batch_size: how many elements to compute at a time; by default one.
        in_axes: the axis of the elements.
        out_axes: where that axis goes in the results.

    Returns:
        The results.
    """
    with boundary:
        if batch_size is not None:
            batch_size = positive(batch_size, "map: batch_size")
        leaves, structure = tree.flatten(xs)
        values = values_of(leaves, "map")
        names = tree.paths(xs, "xs")
        axes = [
            in_axis(a, v, "map", name, inner)
            for a, v, name, inner in zip(
                tree.prefix_leaves(in_axes, xs, "map", "in_axes"),
                values,
                names,
                inner_axes(structure, values),
                strict=True,
            )
        ]
        sizes = {
            v.shape[a]: f"{name} has {v.shape[a]} along axis {a}"
            for v, a, name in zip(values, axes, names, strict=True)
            if a is not None
        }
        if len(sizes) != 1:
            each = ", ".join(sizes.values()) or "nothing is mapped"
            raise ValueError(f"map: mapped sizes must agree; {each}")
        result: Any = None

        def flat(*elements: Any) -> list[Any]:
            nonlocal result
            result = f(tree.unflatten(structure, elements))
            return values_of(tree.leaves(result), "map")

        (size,) = sizes
        mapped_axes: Sequence[int | None]
        if config.disable_jit and batch_size is None and out_axes.__class__ is int and size:
            outs = higher_order.in_python.map_one_by_one("map", flat, size, values, axes)
            mapped_axes = [0] * len(outs)
        else:
            outs, mapped_axes = map_chunks(flat, size, batch_size, values, axes, names)
        wanted = tree.prefix_leaves(out_axes, result, "map", "out_axes")
        out_structure = tree.structure(result)
        placed = [
            to_axis(o, size, a, out_axis(w, o, a, "map", inner))
            for o, a, w, inner in zip(
                outs, mapped_axes, wanted, inner_axes(out_structure, outs), strict=True
            )
        ]
        return tree.unflatten(out_structure, placed)
