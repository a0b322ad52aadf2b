"""Mapping a function over examples in chunks: how ``vmap`` and ``map`` can limit memory.

Each chunk is one step of a ``scan``, whose body is a checkpoint of the function for that many
examples. So the intermediate results of only one chunk exist at a time, in the forward as in the
backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine import higher_order
from stretto._engine.autodiff.vmap import vmap_flat, vmap_program
from stretto._engine.core.config import settings
from stretto._engine.core.interpreter import Value, splat
from stretto._engine.core.primitive import observable
from stretto._engine.core.program import Atom, Literal, Program
from stretto._engine.core.recorder import Recorder, Traced, record, standing
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.family import captured_first, split
from stretto._engine.ops.comparison import full
from stretto._engine.ops.layout import move_to_front, reshape
from stretto._engine.ops.shape import concatenate, slice_in_dim


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
