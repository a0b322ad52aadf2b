"""Loops made of ``scan`` and ``while_loop``: ``fori_loop``, ``map``, ``associative_scan``.

They are functions, not primitives. ``associative_scan`` is a composition of slices, concatenations
and calls of the user's function, at logarithmic depth; where the size varies, a loop. For a
function that is not associative, see ``scan``.

``vmap`` and ``map`` limit memory by mapping in chunks. Each chunk is one step of a ``scan``, whose
body is a checkpoint of the function for that many examples. So the intermediate results of only one
chunk exist at a time, in the forward as in the backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from stretto._engine import higher_order
from stretto._engine.autodiff.vmap import to_axis, vmap_flat, vmap_program
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.config import config, settings
from stretto._engine.core.interpreter import Tracer, Value, splat
from stretto._engine.core.primitive import observable
from stretto._engine.core.program import Atom, Literal, Program
from stretto._engine.core.recorder import Recorder, Traced, record, standing
from stretto._engine.core.sizes import exceeds, greater, is_size
from stretto._engine.core.types import ArrayType, kind_of
from stretto._engine.core.typing import ArrayLike
from stretto._engine.higher_order.family import (
    captured_first,
    map_one_by_one,
    parting,
    split,
    values_of,
)
from stretto._engine.higher_order.scan import loop_scan, scan
from stretto._engine.higher_order.while_loop import loop_while
from stretto._engine.ops.comparison import full
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


class Examples(Recorder):
    """Records what depends on an example; hands the rest to the interpreter around it.

    With ``one_by_one``, observable effects are recorded as well, to happen for each example.
    """

    __slots__ = ("one_by_one", "size")
    borrows = False
    passes_writes = False
    maps = "computed"
    instead = "step over the examples with lax.scan, which writes at each, or use vmap"

    def __init__(
        self, types: Sequence[ArrayType], names: Sequence[str], size: int, one_by_one: bool
    ) -> None:
        super().__init__(types, names)
        self.size = size
        self.one_by_one = one_by_one

    def origin(self, atom: Atom) -> str:
        """Say that it is mapped over, and where it comes from for one example."""
        return f"one of {self.size} examples that are mapped over, {super().origin(atom)}"

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Record the operation if an argument depends on an example; otherwise hand it on."""
        if any([type(a) is Traced and a.interpreter is self for a in args]) or (
            self.one_by_one and observable(primitive.effects)
        ):
            return super().process(primitive, args)
        if settings.key.debugged and self.parent.recorder is not None:  # it is found at its line
            with standing(self.parent.recorder, self.locate()):
                return self.parent.process(primitive, args)
        return self.parent.process(primitive, args)


def map_chunks(
    fun: Callable[..., Sequence[Value]],
    size: int,
    chunk: int | None,
    args: Sequence[Value],
    axes: Sequence[int | None],
    names: Sequence[str],
    many: Callable[..., tuple[Program, tuple[bool, ...]]] = vmap_program,
) -> tuple[list[Any], list[int | None]]:
    """Give the outputs for ``size`` examples, and the mapped axis of each (``None``: same for all).

    ``fun`` is called once; it takes and returns flat values. ``args`` have their examples along
    ``axes`` (``None``: the same for all), and messages call them by ``names``. At most ``chunk``
    examples are computed at a time, and for derivatives only the inputs of each chunk are kept;
    with ``chunk=None`` the examples are computed one by one, in a loop that keeps what derivatives
    need. What depends on no example is computed once, before the loop. ``many`` makes the program
    of a chunk, as ``vmap_program`` does.
    """
    if chunk is not None and chunk >= size:
        return vmap_flat(fun, size, args, axes)
    name = "example" if chunk is None else "chunk"
    example = record_example(fun, args, axes, names, name, chunk is None)
    program, xs, held = example.program, example.xs, example.held
    if chunk is None:
        loop = higher_order.scan.Scan(captured_first(program, len(xs)), size, len(held), 0)
        return example.results([(o, 0) for o in loop(*held, *xs)])
    return example.results(_in_chunks(program, size, chunk, xs, held, many))


class Example(NamedTuple):
    """The program of one example, the arrays of all, and what does not depend on the example."""

    program: Program
    """The part that depends on an example; its inputs are one of ``xs``, then ``held``."""
    xs: list[Any]
    """All examples, along axis 0."""
    held: list[Any]
    """The values that the program needs and that are the same for all."""
    fixed: list[Any]
    """The function's outputs that depend on no example; ``None`` for those of the program."""

    def results(self, pairs: Iterable[tuple[Any, int | None]]) -> Any:
        """Return all outputs and their mapped axes, given those of the program."""
        of_program = iter(pairs)
        merged = [next(of_program) if o is None else (o, None) for o in self.fixed]
        return [o for o, _ in merged], [a for _, a in merged]


def record_example(
    fun: Callable[..., Sequence[Value]],
    args: Sequence[Value],
    axes: Sequence[int | None],
    names: Sequence[str],
    name: str,
    one_by_one: bool = False,
) -> Example:
    """Run ``fun`` once on an example of ``args``, and record what depends on it as ``name``.

    With ``one_by_one``, observable effects are recorded as well, to happen for each example.
    """
    over = [a is not None for a in axes]
    xs = [move_to_front(x, a) for x, a in zip(args, axes, strict=True) if a is not None]
    mapped_names = [name for name, m in zip(names, over, strict=True) if m]
    size = next(x.shape[0] for x in xs) if xs else 1
    types = [x.type.with_shape(x.shape[1:]) for x in xs]
    recorder = Examples(types, mapped_names, size, one_by_one)
    recorder.begin(fun)
    examples = iter([Traced(recorder, v) for v in recorder.inputs])
    arguments = [next(examples) if m else x for x, m in zip(args, over, strict=True)]
    outs = recorder.run(lambda: [_untraced(o, recorder) for o in fun(*arguments)])
    moving = [o.atom if type(o) is Traced and o.interpreter is recorder else None for o in outs]
    program = Program(
        [*recorder.inputs, *recorder.captured_vars.values()],
        recorder.equations,
        [atom for atom in moving if atom is not None],
        name,
    )
    held = list(recorder.captured.values())
    fixed = [o if atom is None else None for o, atom in zip(outs, moving, strict=True)]
    return Example(program, xs, held, fixed)


def _untraced(value: Any, recorder: Examples) -> Any:
    """Return the value; if it is a tracer of a constant, the constant."""
    if type(value) is Traced and value.interpreter is recorder and type(value.atom) is Literal:
        return splat(value.atom.value, value.type)
    return value


def _in_chunks(
    program: Program,
    size: int,
    chunk: int,
    xs: Sequence[Any],
    held: Sequence[Any],
    of: Callable[..., tuple[Program, tuple[bool, ...]]],
) -> list[tuple[Any, int | None]]:
    """Run the program on examples along axis 0 of ``xs``: chunks in a loop, then the rest."""
    mapped = (*[True] * len(xs), *[False] * len(held))
    many, varies = of(program, chunk, mapped)
    turns, rest = divmod(size, chunk)
    still = [t for t, v in zip(many.out_types, varies, strict=True) if not v]

    def step(*values: Any) -> Any:
        # Outputs that depend on no example are carried, so that they are not stacked.
        held, _, here = split(values, len(held_types), len(still))
        outs = higher_order.checkpoint.Checkpoint(many, prevent_cse=False)(*here, *held)
        return [*_only(outs, varies, False), *_only(outs, varies, True)], None

    held_types = [x.type for x in held]
    own_types = many.in_types[: len(xs)]
    body = record(step, [*held_types, *still, *own_types], name=program.name)[0]
    starts = [full(t.shape, 0, t.dtype, t.weak_type) for t in still]
    whole = [reshape(slice_in_dim(x, 0, turns * chunk), (turns, chunk, *x.shape[1:])) for x in xs]
    outs = higher_order.scan.Scan(body, turns, len(held), len(still))(*held, *starts, *whole)
    fixed = iter(outs[: len(still)])
    parts = [[reshape(o, (turns * chunk, *o.shape[2:]))] for o in outs[len(still) :]]
    if rest:
        last = higher_order.checkpoint.Checkpoint(of(program, rest, mapped, varies)[0])
        ends = last(*[slice_in_dim(x, turns * chunk, size) for x in xs], *held)
        for part, end in zip(parts, _only(ends, varies, True), strict=True):
            part.append(end)
    stacks = iter([concatenate(part, 0) if rest else part[0] for part in parts])
    return [(next(stacks), 0) if v else (next(fixed), None) for v in varies]


def _only(values: Sequence[Any], mask: Sequence[bool], wanted: bool) -> list[Any]:
    return [x for x, m in zip(values, mask, strict=True) if m is wanted]


def positive(size: Any, caller: str) -> int:
    """Return the number of examples at a time; ``ValueError`` if it is not a positive integer."""
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise ValueError(f"{caller} must be a positive integer, got {size!r}")
    return int(size)


def inner_axes(structure: Any, leaves: Sequence[Any]) -> list[int]:
    """Count the last axes of each leaf that belong to one element of the node around it.

    A typed key is one element, whose array of words has such an axis (``KeyArray.inner_axes``);
    other leaves have none.
    """
    # Fast way out: words are unsigned integers. Leaves that are not values yet have no type.
    if not any([not isinstance(x, Value) or x.type.kind == "uint" for x in leaves]):
        return [0] * len(leaves)
    out: list[int] = []

    def walk(spec: Any) -> None:
        inner = getattr(spec.type, "inner_axes", None)
        if inner is not None or spec.type is None:
            out.extend([inner or 0] * spec.num_leaves)
            return
        for child in spec.children():
            walk(child)

    walk(structure)
    return out


def in_axis(axis: Any, value: Any, caller: str, path: str, inner: int = 0) -> int | None:
    """Return an entry of ``in_axes``, made non-negative, for the value that messages call ``path``.

    Its last ``inner`` axes do not count: see ``inner_axes``.

    Raises ``TypeError`` if it is neither an int nor None, ``ValueError`` if it is out of bounds.
    """
    if axis is None:
        return None
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(
            f"{caller}: an entry of in_axes must be an int or None, got {axis!r} for {path}"
        )
    ndim = value.ndim - inner
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"{caller}: in_axes maps axis {axis} of {path}, which has type {value.type}: it has "
            f"{ndim} axes{_beside(inner)}"
        )
    return axis % ndim


def _beside(inner: int) -> str:
    return ", not counting that of a key's words" if inner else ""


def out_axis(axis: Any, out: Any, mapped: int | None, caller: str, inner: int = 0) -> int | None:
    """Return an entry of ``out_axes``, made non-negative, for a result mapped along ``mapped``.

    Its last ``inner`` axes do not count: see ``inner_axes``.

    Raises ``TypeError`` if it is neither an int nor None, ``ValueError`` if it is out of bounds, or
    is None for a result that differs between examples.
    """
    if axis is None:
        if mapped is not None:
            raise ValueError(
                f"{caller}: out_axes is None for a result that differs between examples "
                f"({out.type} for all of them); give it an axis"
            )
        return None
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(f"{caller}: an entry of out_axes must be an int or None, got {axis!r}")
    ndim = out.ndim + (mapped is None) - inner
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"{caller}: out_axes places axis {axis} in a result of {ndim} axes{_beside(inner)}"
        )
    return axis % ndim
