"""Vectorization: operations on one example become operations on all of them.

A ``Batched`` stands for one example, and holds the array of all with the axis along which they lie;
the vmap rule of each primitive works on the whole arrays. A value that is the same for all examples
is not wrapped, so the operations on it are handed on and done once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate, record_closed
from stretto._engine.core.config import over_axis, settings
from stretto._engine.core.errors import NonFiniteError
from stretto._engine.core.interpreter import Interpreter, Tracer, Value, state
from stretto._engine.core.primitive import names_axis
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import standing
from stretto._engine.core.sizes import unnamed
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.identities import Example
from stretto._engine.ops.layout import move_axis


class AxisSize(int):
    """The number of examples, and the name by which collectives refer to their axis.

    The vmap rules of operations that hold programs pass it on to ``vmap_program``, so that
    collectives inside find their axis; those of other operations get a plain ``int``.
    """

    name: Any

    def __new__(cls, size: int, name: Any) -> AxisSize:
        """Make the integer, and give it the name."""
        new = super().__new__(cls, size)
        new.name = name
        return new


# The type of one example, by the type of all and the axis along which they lie. It needs no bound,
# since types are never freed anyway.
_OF_ONE: dict[tuple[ArrayType, int], ArrayType] = {}


def _type_of_one(whole: ArrayType, axis: int) -> ArrayType:
    one = whole.with_shape(whole.shape[:axis] + whole.shape[axis + 1 :])
    return _OF_ONE.setdefault((whole, axis), one)


class Batched(Tracer):
    """One example of many: the array of all, and the axis along which they lie."""

    __slots__ = ("axis", "value")

    def __init__(self, interpreter: Vectorizer, value: Value, axis: int) -> None:
        self.interpreter = interpreter
        self.value = value
        self.axis = axis
        key = value.type, axis
        self.type = _OF_ONE.get(key) or _type_of_one(*key)

    position = None  # type: ignore[assignment]

    def origin(self) -> str:
        """Say that it is mapped, and where the array of all examples comes from."""
        whole = f", {self.value.origin()}" if isinstance(self.value, Tracer) else ""
        return f"one of {self.interpreter.size} examples that vmap maps over{whole}"


class Vectorizer(Interpreter):
    """Applies vmap rules, and takes the collectives that name its axis."""

    __slots__ = ("ended", "name", "named_size", "parent", "recorder", "size")
    maps = "mapped"
    instead = (
        "pass a reference with a mapped axis as an argument, so that each example writes its own, "
        "or return the value"
    )

    def __init__(self, size: int) -> None:
        self.parent = state.interpreter
        self.recorder = self.parent.recorder
        self.named_size = size
        self.size = unnamed(size)
        self.name = size.name if isinstance(size, AxisSize) else None
        self.ended = False

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:  # noqa: PLR0912 (calls cost)
        """Apply the vmap rule if any argument is mapped; otherwise hand the operation on."""
        values, axes, mapped = [], [], False
        for a in args:
            if a.__class__ is Batched and a.interpreter is self:
                mapped = True
                values.append(a.value)
                axes.append(a.axis)
            else:
                values.append(a)
                axes.append(None)
        named = self.name is not None and names_axis(primitive.effects, self.name)
        if not (mapped or named):
            return self.parent.process(primitive, values)
        outer = state.interpreter
        try:
            state.interpreter = self.parent
            rule = primitive.vmap
            if primitive.holds_programs:
                out, axis = rule(self.named_size, values, axes)
            elif named:
                out, axis = primitive.collect(self.name, self.size, values, axes)
            elif self.recorder is None:
                out, axis = rule(self.size, values, axes)
            else:
                with standing(self.recorder):
                    out, axis = rule(self.size, values, axes)
        except NonFiniteError as error:
            self._say_example(error, primitive, values, axes)
            raise
        except Exception:
            problem = _problem_of_one(primitive, args)
            if problem is not None:
                raise problem from None
            raise
        finally:
            state.interpreter = outer
        if primitive.multiple:
            return tuple([self.wrap(o, a) for o, a in zip(out, axis, strict=True)])
        if self.recorder is not None and axis is not None and settings.key.debugged:
            out = self._marked(primitive, out, axis)
        return self.wrap(out, axis)

    def _marked(self, primitive: Any, out: Any, axis: int) -> Any:
        """Return the array, and in the program where its examples lie, for finding faults."""
        if primitive.__class__ is Example or out.type.kind not in ("float", "complex"):
            return out
        return holding(state, "interpreter", self.parent, Example(axis), out)

    def _say_example(
        self, error: NonFiniteError, primitive: Any, values: Sequence[Any], axes: Sequence[Any]
    ) -> None:
        """Add to what was found at rest the example that it is in."""
        outer = [v.primal if hasattr(v, "primal") else v for v in values]
        if primitive.holds_programs or any([isinstance(v, Tracer) for v in outer]):
            return
        out, axis = holding(
            state, "interpreter", state.eager, primitive.vmap, self.size, outer, axes
        )
        if axis is not None and not primitive.multiple:
            marks = ~np.isfinite(out.to_host())
            if marks.any():
                error.fault.in_example(marks, axis)

    def run(
        self, fun: Callable[..., Any], args: Sequence[Any]
    ) -> tuple[list[Any], list[int | None]]:
        """Return the arrays that ``fun`` returns under this interpreter, and their mapped axes."""
        try:
            return holding(state, "interpreter", self, self._unwrapped, fun, args)
        finally:
            self.ended = True

    def _unwrapped(self, fun: Callable[..., Any], args: Sequence[Any]) -> Any:
        values, out_axes = [], []
        for o in fun(*args):
            value, axis = self.unwrap(o)
            values.append(value)
            out_axes.append(axis)
        return values, out_axes

    def wrap(self, value: Any, axis: int | None) -> Any:
        """Return a batched value; the value alone if it is not mapped."""
        return value if axis is None else Batched(self, value, axis)

    def unwrap(self, value: Any) -> tuple[Any, int | None]:
        """Return the array of all examples, and its mapped axis, which may be ``None``."""
        if type(value) is Batched and value.interpreter is self:
            return value.value, value.axis
        return value, None


def _problem_of_one(primitive: Any, args: Sequence[Any]) -> Exception | None:
    """Give the error for the types of one example, which reads better than that for all of them."""
    try:
        primitive.out_types(tuple([a.type for a in args]))
    except (TypeError, ValueError, IndexError) as problem:
        return problem
    return None


def to_axis(value: Any, size: int, axis: int | None, wanted: int | None) -> Any:
    """Return the array with its mapped axis at ``wanted``.

    One that is not mapped is repeated there.
    """
    if wanted is None:
        return value
    if axis is None:
        return move_axis(broadcast_to(value, (unnamed(size), *value.shape)), 0, wanted)
    return move_axis(value, axis, wanted)


def vmap_flat(
    fun: Callable[..., Sequence[Value]],
    size: int,
    args: Sequence[Value],
    axes: Sequence[int | None],
) -> tuple[list[Value], list[int | None]]:
    """Give the outputs for all examples, and the mapped axis of each (``None``: the same for all).

    If ``size`` is an ``AxisSize``, its name is bound while the function runs.
    """
    interpreter = Vectorizer(size)
    interpreter.begin(fun)
    examples = [interpreter.wrap(x, a) for x, a in zip(args, axes, strict=True)]
    if isinstance(size, AxisSize):
        return over_axis(size.name, int(size), interpreter.run, fun, examples)
    return interpreter.run(fun, examples)


def vmap_program(
    program: Program, size: int, mapped: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> tuple[Program, tuple[bool, ...]]:
    """Give the program for ``size`` examples, which lie along axis 0 of mapped inputs and outputs.

    ``force`` marks outputs that must be mapped whether or not they vary; the second result says
    which are mapped.
    """
    key = ("vmap", size, getattr(size, "name", None), mapped, force, settings.key)
    if key not in program.cache:

        def fun(*args: Any) -> Any:
            axes = [0 if m else None for m in mapped]
            outs, out_axes = vmap_flat(lambda *xs: evaluate(program, xs), size, args, axes)
            must = force or (False,) * len(outs)
            wanted = [
                0 if f or a is not None else None for f, a in zip(must, out_axes, strict=True)
            ]
            placed = [
                to_axis(o, size, a, w) for o, a, w in zip(outs, out_axes, wanted, strict=True)
            ]
            return placed, tuple(w is not None for w in wanted)

        types = [
            t.with_shape((unnamed(size), *t.shape)) if m else t
            for t, m in zip(program.in_types, mapped, strict=True)
        ]
        program.cache[key] = record_closed(fun, types, f"vmap_{program.name}")
    return program.cache[key]
