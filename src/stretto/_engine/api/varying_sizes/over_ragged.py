"""Functions over arrays of different lengths: all examples at once, or one after another.

The function is traced for one example with a size that varies. The examples are put into a
rectangle of the bucket of their lengths, and the program for the bucket is mapped over it, or is
the step of a loop, with a length for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

import numpy as np

from stretto._engine.api.argument_leaves import as_values
from stretto._engine.api.varying_sizes.ragged import Ragged, is_ragged, room_for
from stretto._engine.api.varying_sizes.sizes import same_lengths
from stretto._engine.core import tree
from stretto._engine.core.functions import name_of
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record
from stretto._engine.core.size_guards import known_sizes, varying_sizes
from stretto._engine.core.sizes import Size, SizeVariable, exceeds, size_of
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.family import split
from stretto._engine.higher_order.fixed_sizes import variable_of_rows, variables_of
from stretto._engine.higher_order.loops import map_
from stretto._engine.higher_order.scan import loop_scan
from stretto._engine.higher_order.sized_call import SizedCall
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.layout import canonical_axis, move_axis, move_to_front
from stretto._engine.ops.shape import pad, slice_
from stretto._engine.ops.varying_sizes import Bucket, clear_rest, varying

_INT32 = np.dtype(np.int32)


class Batch:
    """The leaves of arguments that some are ragged of, for a function of one example.

    ``axes`` says where the examples lie in each: for ragged ones 0, for shared ones None.
    """

    def __init__(
        self, leaves: Sequence[Any], axes: Sequence[Any], caller: str, of: str, counts: Set[int]
    ) -> None:
        self.types: list[ArrayType] = []
        """The values of one example."""
        self.values: list[Any] = []
        """The values of all examples: ragged arrays, and others with the examples along axis 0."""
        self.mapped = [axis is not None for axis in axes]
        self.sizes: dict[SizeVariable, Ragged] = {}
        counts = set(counts)
        with varying_sizes() as mark:
            for leaf, axis in zip(leaves, axes, strict=True):
                if is_ragged(leaf):
                    if axis != 0:
                        raise ValueError(
                            f"{caller}: a ragged array is mapped along axis 0, got {axis}"
                        )
                    counts.add(len(leaf))
                    shape = (size_of(_variable(leaf, self.sizes, mark)), *leaf._inner)
                    self.values.append(leaf)
                    self.types.append(leaf._values.type.with_shape(shape))
                    continue
                x = as_value(leaf, of)
                if axis is not None:
                    a = canonical_axis(axis, x.ndim, caller)
                    counts.add(x.shape[a])
                    x = move_to_front(x, a)
                self.values.append(x)
                self.types.append(x.type if axis is None else x.type.with_shape(x.shape[1:]))
        if len(counts) != 1:
            raise ValueError(f"{caller}: the numbers of examples differ: {sorted(counts)}")
        (self.count,) = counts
        self.lengths = [x.lengths for x in self.sizes.values()]
        self.most = {v: x._most for v, x in self.sizes.items()}
        """The most that each size is, or less, where the program is only for less."""
        self.as_rows = not any([is_ragged(x) and x._wide for x in self.values])
        """True if elements may lie one behind the other: not where other sizes vary, too."""

    def record(
        self, fun: Callable[..., Any], before: Sequence[ArrayType], name: str, known: bool = True
    ) -> tuple[Program, Sequence[Any]]:
        """Return the program of one example, behind other arguments, and what it captured.

        Only if the sizes are to be ``known`` may it be for less than all of them.
        """
        several = self._known() if known else None
        with varying_sizes(), known_sizes(several, of_examples=True) as guards:
            program, _, captured = record(fun, [*before, *self.types], (), name)
        for variable, x in self.sizes.items():
            limits = [guard.most(variable) for guard in guards]
            self.most[variable] = max(1, int(min([x._most, *limits])))
        if any([v not in self.sizes for v in variables_of(program)]):
            self.as_rows = False
        return program, captured

    def call(self, program: Program) -> SizedCall:
        """Return the operation on the lengths and arrays of one example."""
        return SizedCall(program, tuple(self.sizes), tuple(self.most.values()))

    def call_of_all(self, program: Program, captured: int) -> SizedCall:
        """Return the operation on those of all examples."""
        over = (*[True] * len(self.sizes), *self.mapped, *[False] * captured)
        rooms = tuple([x._room for x in self.sizes.values()]) if self.as_rows else ()
        most = tuple(self.most.values())
        return SizedCall(program, tuple(self.sizes), most, (self.count,), (over,), rooms)

    def rectangles(self) -> list[Any]:
        """Give the arrays of all examples, ragged ones as rectangles, as long as sizes may be."""
        return [
            x._rectangle(self.most[self._variable_of(type)]) if is_ragged(x) else x
            for x, type in zip(self.values, self.types, strict=True)
        ]

    def rows(self) -> list[Any]:
        """Give the arrays of all examples, ragged ones with their elements one behind the other."""
        return [
            _rows(x, self.sizes[self._variable_of(type)]._room) if is_ragged(x) else x
            for x, type in zip(self.values, self.types, strict=True)
        ]

    def _variable_of(self, type: ArrayType) -> SizeVariable:
        size: Any = type.shape[0]
        return next(size.variables())

    def _known(self) -> list[dict[SizeVariable, int]] | None:
        """Return the sizes of the examples that differ, if they are known."""
        if any([isinstance(x, Tracer) for x in self.lengths]):
            return None
        rows = sorted(set(zip(*[np.asarray(x).tolist() for x in self.lengths], strict=True)))
        return [dict(zip(self.sizes, row, strict=True)) for row in rows]


def _over_examples(
    fun: Callable[..., Any],
    caller: str,
    name: str,
    in_axes: Any,
    out_axes: Any,
    args: Any,
    kwargs: Any,
    run: Callable[[Batch, Program, Sequence[Any]], Sequence[Any]],
) -> Any:
    """Apply a function of one example to all: ``run`` gives the results of its program.

    ``run`` takes the batch, the program, and what the function captured.
    """
    leaves, structure = tree.flatten((args, kwargs), is_ragged)
    shaped_args = tree.map(lambda _: 0, args, is_leaf=is_ragged)
    axes = tree.prefix_leaves(in_axes, shaped_args, caller, "in_axes")
    axes += [0] * (len(leaves) - len(axes))
    # A ragged array that all examples share is captured, like what the function closes over.
    moving = [i for i, x in enumerate(leaves) if not (is_ragged(x) and axes[i] is None)]
    own = [leaves[i] for i in moving]
    batch = Batch(own, [axes[i] for i in moving], caller, f"{caller} of {name}", set())
    structure_out: Any = None

    def flat(*example: Any) -> Any:
        nonlocal structure_out
        filled = list(leaves)
        for i, x in zip(moving, example, strict=True):
            filled[i] = x
        positional, named = tree.unflatten(structure, filled)
        outs, structure_out = tree.flatten(fun(*positional, **named))
        return as_values(outs, name, lambda: ["the result"] * len(outs)), None

    program, captured = batch.record(flat, (), name)
    outs = run(batch, program, captured)
    shaped_outs = tree.unflatten(structure_out, [0] * len(outs))
    wanted = tree.prefix_leaves(out_axes, shaped_outs, caller, "out_axes")
    results = [
        _result(out, type, batch, axis, caller)
        for out, type, axis in zip(outs, program.out_types, wanted, strict=True)
    ]
    return tree.unflatten(structure_out, results)


def vmap_ragged(
    fun: Callable[..., Any], name: str, in_axes: Any, out_axes: Any, args: Any, kwargs: Any
) -> Any:
    """Do what ``vmap`` does, where an argument is ragged; results of the size of one are, too.

    Raises ``NotImplementedError`` for results whose size varies along another axis than the first,
    and ``ValueError`` for numbers of examples that differ.
    """

    def at_once(batch: Batch, program: Program, captured: Sequence[Any]) -> Sequence[Any]:
        call = batch.call_of_all(program, len(captured))
        arrays = batch.rows() if batch.as_rows else batch.rectangles()
        return call(*batch.lengths, *arrays, *captured)

    return _over_examples(fun, "vmap", name, in_axes, out_axes, args, kwargs, at_once)


def map_ragged(
    f: Callable[[Any], Any], xs: Any, batch_size: int | None, in_axes: Any, out_axes: Any
) -> Any:
    """Do what ``lax.map`` does, where a leaf is ragged; the errors are those of ``vmap_ragged``."""

    def in_turn(batch: Batch, program: Program, captured: Sequence[Any]) -> Sequence[Any]:
        call, mapped, every = batch.call(program), batch.mapped, batch.rectangles()
        batch.as_rows = False
        own = [x for x, m in zip(every, mapped, strict=True) if m]

        def step(example: Any) -> Any:
            lengths, here = example[0], iter(example[1])
            arrays = [next(here) if m else x for x, m in zip(every, mapped, strict=True)]
            return call(*lengths, *arrays, *captured)

        return map_(step, (batch.lengths, own), batch_size=batch_size)

    return _over_examples(f, "map", name_of(f), (in_axes,), out_axes, (xs,), {}, in_turn)


def scan_ragged(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any,
    length: int | None,
    reverse: bool,
    unroll: int | bool,
) -> Any:
    """Do what ``lax.scan`` does, where a leaf of ``xs`` is ragged; ``y`` that vary are, too.

    Raises ``TypeError`` for a carry whose size varies, and else as ``vmap_ragged``.
    """
    leaves, structure = tree.flatten(xs, is_ragged)
    counts = set() if length is None else {integer(length, "scan", "length")}
    batch = Batch(leaves, [0] * len(leaves), "scan", "scan", counts)
    types: Any = None
    """The tree of types of what a step returns."""

    def step(carry: Any, example: Any) -> Any:
        nonlocal types
        before, carried = tree.flatten(carry)
        structure_out: Any = None

        def flat(*values: Any) -> Any:
            nonlocal structure_out
            own, here = split(values, len(before))
            result = f(tree.unflatten(carried, own), tree.unflatten(structure, here))
            outs, structure_out = tree.flatten(result)
            return as_values(outs, "scan", lambda: tree.paths(result, "the result")), None

        program, captured = batch.record(flat, [x.type for x in before], name_of(f), False)
        types = tree.unflatten(structure_out, program.out_types)
        if isinstance(types, tuple) and len(types) == 2:  # else loop_scan says so
            _check_carry(types[0])
        lengths, arrays = example
        outs = batch.call(program)(*lengths, *before, *arrays, *captured)
        return tree.unflatten(structure_out, outs)

    batch.as_rows = False
    rows = (batch.lengths, batch.rectangles())
    names = tree.paths(init, "init")
    carry, ys = loop_scan("scan", step, init, rows, None, reverse, names, unroll)
    stacked, structure_out = tree.flatten(ys)
    results = [
        _result(y, type, batch, 0, "scan")
        for y, type in zip(stacked, tree.leaves(types[1]), strict=True)
    ]
    return carry, tree.unflatten(structure_out, results)


def _check_carry(types: Any) -> None:
    for type, path in zip(tree.leaves(types), tree.paths(types, "carry"), strict=True):
        if varying(type):
            raise TypeError(
                f"scan: the carry keeps its type from example to example, and {path} is {type}, "
                f"whose size is that of one example: return it as y, or reduce it"
            )


def _variable(x: Ragged, sizes: dict[SizeVariable, Ragged], mark: str) -> SizeVariable:
    """Return the size of one of its arrays: the same one for arrays of the same lengths."""
    for variable, other in sizes.items():
        if same_lengths(x._lengths, other._lengths):
            return variable
    name = "nmklpq"[len(sizes)] if len(sizes) < 6 else f"n{len(sizes)}"
    variable = SizeVariable(name + mark, x._at_least(), x._most)
    sizes[variable] = x
    return variable


def _result(out: Any, type: ArrayType, batch: Batch, axis: Any, caller: str) -> Any:
    """Return a result for all examples: ragged where its first axis varies."""
    shape: Any = type.shape
    axes = [a for a in varying(type) if any([v in batch.sizes for v in shape[a].variables()])]
    if not axes:
        return out if axis == 0 else out[0] if axis is None else move_axis(out, 0, axis % out.ndim)
    if axes != [0] or axis != 0:
        raise NotImplementedError(
            f"{caller}: a result of type {type} varies along axes {axes}, and a ragged array does "
            f"along its first alone: reduce it inside, or put the arguments into a rectangle, "
            f"ragged.pad(), and use a mask"
        )
    size = shape[0]
    same = [x for v, x in batch.sizes.items() if size == size_of(v)]
    bound = Bucket(batch.most, {}).bound(size)
    if same:
        lengths, room, least = same[0]._lengths, same[0]._room, same[0]._at_least()
        if batch.as_rows and variable_of_rows(type) is not None:
            return Ragged._of(clear_rest(out, lengths), lengths, bound, False, least)
    else:
        lengths = _lengths(size, batch.sizes)
        if not bound:  # a place to read from, for arrays that are all empty
            bound, shape = 1, (out.shape[0], 1, *out.shape[2:])
            out = full(shape, 0, out.dtype, out.type.weak_type)
        if isinstance(lengths, Tracer):
            room, least = _room(size, bound, batch), int(exceeds(size, 0))
        else:
            known = np.asarray(lengths)
            room, least = room_for(int(known.sum())), int(known.all())
    return Ragged._of(out, lengths, bound, True, least)._packed(room)


def _rows(x: Ragged, room: int) -> Any:
    """Return the elements of all arrays, with so much room.

    What is behind them counts for nothing.
    """
    values, have = x._values, x._values.shape[0]
    if have > room:
        values = slice_(values, (0,) * values.ndim, (room, *values.shape[1:]))
    elif have < room:
        config = [(0, room - have, 0), *[(0, 0, 0)] * (values.ndim - 1)]
        values = pad(values, full((), 0, values.dtype), config)
    return clear_rest(values, x._lengths)


def _room(size: Size, bound: int, batch: Batch) -> int:
    """Make room for results of this size, whose lengths are not known.

    That of an argument, or so many times as much, if no result is so many times as long; or else a
    rectangle.
    """
    rooms = [
        times * x._room
        for v, x in batch.sizes.items()
        for times in (1, 2, 4)
        if exceeds(times * size_of(v) - size, -1)
    ]
    return min([batch.count * bound, *rooms])


def _lengths(size: Size, sizes: dict[SizeVariable, Ragged]) -> Any:
    """Return the lengths of results of this size."""
    values = {v: x.lengths for v, x in sizes.items()}
    total = size.at(values.__getitem__, lambda n, by: n // by, lambda n: maximum(n, 0))
    return convert(as_value(total), _INT32)
