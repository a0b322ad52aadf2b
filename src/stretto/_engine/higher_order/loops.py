"""Loops made of ``scan`` and ``while_loop``: ``fori_loop``, ``map``, ``associative_scan``.

They are functions, not primitives. ``associative_scan`` is a composition of slices, concatenations
and calls of the user's function, at logarithmic depth; where the size varies, a loop. For a
function that is not associative, see ``scan``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stretto._engine.autodiff.vmap import to_axis
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.config import config
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.sizes import exceeds, greater, is_size
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import ArrayLike
from stretto._engine.higher_order.chunks import in_axis, inner_axes, map_chunks, out_axis, positive
from stretto._engine.higher_order.family import map_one_by_one, parting, values_of
from stretto._engine.higher_order.scan import loop_scan, scan
from stretto._engine.higher_order.while_loop import loop_while
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.layout import (
    canonical_axis,
    expand_dims,
    move_axis,
    move_to_front,
    reshape,
)
from stretto._engine.ops.shape import concatenate, pad, rev, slice_in_dim

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
    """Apply a function to each element along an axis; ``api/vectorize`` says all of it to users.

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
            outs = map_one_by_one("map", flat, size, values, axes)
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


T = TypeVar("T")


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: T, reverse: bool = False, axis: int = 0
) -> T:
    """Combine all elements up to each one along an axis, by any associative function.

    Args:
        fn: an associative function of two trees like ``elems``, of any size along ``axis``, that
            combines them element by element. It is called about twice for each halving of the size.
        elems: an array, or a tree of arrays that share their size along ``axis``.
        reverse: whether to combine from the end; the first argument of ``fn`` is then nearer the
            end.
        axis: the axis to go along, negative from the end.

    Returns:
        The running combinations, of the structure, shapes and dtypes of ``elems``.

    Raises:
        TypeError: ``fn`` is not a function, or returns something unlike what it takes.
        ValueError: sizes along ``axis`` differ, or an array has no such axis.

    Source: Blelloch, Prefix Sums and Their Applications, 1990.

    >>> import stretto as st
    >>> st.lax.associative_scan(st.lax.mul, st.numpy.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    with boundary:
        caller = "associative_scan"
        if not callable(fn):
            raise TypeError(
                f"{caller}: fn must be a function of two trees, got {type(fn).__name__}"
            )
        leaves, structure = tree.flatten(elems)
        values = values_of(leaves, caller)
        if not values:
            return elems
        along = canonical_axis(axis, values[0].ndim, caller)
        paths = tree.paths(elems, "elems")
        for x, path in zip(values, paths, strict=True):
            if x.ndim <= along:
                raise ValueError(f"{caller}: {path} must have an axis {along}, got {x.type}")
        sizes = {x.shape[along]: path for x, path in zip(values, paths, strict=True)}
        if len(sizes) > 1:
            each = ", ".join(f"{path} has {n}" for n, path in sizes.items())
            raise ValueError(f"{caller}: sizes along axis {along} must agree; {each}")

        def combine(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
            result = fn(tree.unflatten(structure, first), tree.unflatten(structure, second))
            out, out_structure = tree.flatten(result)
            combined = values_of(out, caller)
            if out_structure != structure:
                raise TypeError(
                    f"{caller}: fn must return a tree like those it takes; they part at "
                    f"{parting(structure, out_structure, 'elems')}"
                )
            for old, new, path in zip(first, combined, paths, strict=True):
                if new.shape != old.shape or (new.dtype != old.dtype and not new.weak_type):
                    raise TypeError(
                        f"{caller}: fn must return arrays like those it takes; {path} is "
                        f"{old.type}, got {new.type}"
                    )
            return [convert(v, x.dtype, x.weak_type) for v, x in zip(combined, values, strict=True)]

        if reverse:
            values = [rev(x, (along,)) for x in values]
        running = _one_by_one if is_size(values[0].shape[along]) else _running
        outs = running(combine, values, along)
        if reverse:
            outs = [rev(x, (along,)) for x in outs]
        return tree.unflatten(structure, outs)


def _running(combine: Callable[..., list[Any]], xs: Sequence[Any], axis: int) -> list[Any]:
    """Return the running combinations of all elements.

    Combine neighbours in pairs; the running combinations of these are those of every second element
    (``odd``). One more combination of each with the element after it gives the others (``even``).
    """
    n = xs[0].shape[axis]
    if n < 2:
        return [*xs]

    def every_other(xs: Sequence[Any], start: int, stop: int) -> list[Any]:
        return [slice_in_dim(x, start, stop, 2, axis) for x in xs]

    odd = _running(combine, combine(every_other(xs, 0, n - n % 2), every_other(xs, 1, n)), axis)
    even = [slice_in_dim(x, 0, 1, 1, axis) for x in xs]
    if n > 2:
        before = [slice_in_dim(x, 0, (n - 1) // 2, 1, axis) for x in odd]
        after = combine(before, every_other(xs, 2, n))
        even = [concatenate([x, rest], axis) for x, rest in zip(even, after, strict=True)]
    return [_interleaved(x, y, axis) for x, y in zip(even, odd, strict=True)]


def _one_by_one(combine: Callable[..., list[Any]], xs: Sequence[Any], axis: int) -> list[Any]:
    """Return the same in a loop, for a size that varies: how often to halve it is not known."""
    lines = [expand_dims(move_to_front(x, axis), axis + 1) for x in xs]

    def step(carry: Any, line: Any) -> Any:
        outs = combine(carry, line)
        return outs, outs

    held = [x if exceeds(x.shape[0], 0) else _one_more(x) for x in lines]  # there is a first one
    first = [slice_in_dim(x, 0, 1) for x in held]
    rest = [slice_in_dim(x, 1, x.shape[0]) for x in lines]
    _, outs = scan(step, [reshape(x, x.shape[1:]) for x in first], rest)
    whole = [
        slice_in_dim(concatenate([x, y], 0), 0, line.shape[0])
        for x, y, line in zip(first, outs, lines, strict=True)
    ]
    return [
        move_axis(reshape(y, (y.shape[0], *y.shape[1 : axis + 1], *y.shape[axis + 2 :])), 0, axis)
        for y in whole
    ]


def _one_more(x: Any) -> Any:
    """Return the array with a line of zeros at its end."""
    return pad(x, 0, [(0, 1, 0), *[(0, 0, 0)] * (x.ndim - 1)])


def _interleaved(x: Any, y: Any, axis: int) -> Any:
    """Return elements of ``x`` and of ``y`` in turn; ``x`` may have one more."""
    n, m = x.shape[axis], y.shape[axis]
    y = pad(y, 0, [(0, n - m if d == axis else 0, 0) for d in range(y.ndim)])
    pairs = concatenate([expand_dims(x, axis + 1), expand_dims(y, axis + 1)], axis + 1)
    both = reshape(pairs, (*x.shape[:axis], 2 * n, *x.shape[axis + 1 :]))
    return slice_in_dim(both, 0, n + m, 1, axis)
