"""``jit``: trace once for each signature, compile, run; and looking at what was traced.

Layer 7 (api). The way of a call: flatten the arguments, look up their signature, hand the buffers
to the executable, wrap what comes back.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from stretto.api.arguments import (
    as_values,
    leaf_names,
    name_of,
    signature_of,
    values_of_tree,
    without_float0,
)
from stretto.control.call import Call
from stretto.core import tree
from stretto.core.config import config, settings
from stretto.core.interpreter import Tracer, as_value, state
from stretto.core.program import Program
from stretto.core.recorder import record
from stretto.core.types import ArrayType, array_type, canonical_dtype
from stretto.lower.stablehlo import lower as lower_program
from stretto.runtime import cache, pjrt
from stretto.runtime.array import Array
from stretto.runtime.eager import EAGER
from stretto.transforms.simplify import drop_dead, used_inputs

__all__ = [
    "Compiled",
    "Jitted",
    "Lowered",
    "ShapeDtypeStruct",
    "TracedCall",
    "clear_caches",
    "eval_shape",
    "jit",
    "make_graph",
]


class _Entry:
    """What one signature was traced to, and how to run it."""

    __slots__ = (
        "captured_buffers",
        "captured",
        "executable",
        "has_tracers",
        "kept",
        "lock",
        "out_structure",
        "out_types",
        "program",
        "single",
    )

    def __init__(self, program: Program, out_structure: Any, captured: list[Any]) -> None:
        self.program = program
        self.captured = captured
        self.out_structure = out_structure
        self.out_types = program.out_types
        self.single = out_structure == _LEAF
        self.has_tracers = any(isinstance(c, Tracer) for c in captured)
        self.executable: Any = None
        self.lock = threading.Lock()

    def prepare(self) -> None:
        """Drop what is not used, and compile; once, whichever thread comes first."""
        with self.lock:
            if self.executable is None:
                live = drop_dead(self.program)
                used = used_inputs(live)
                inputs = [v for v, u in zip(live.inputs, used, strict=True) if u]
                slim = Program(inputs, live.equations, live.outputs, live.name)
                own = len(live.inputs) - len(self.captured)
                self.kept = None if all(used[:own]) else [i for i in range(own) if used[i]]
                self.captured_buffers = [
                    c.to_device() for c, u in zip(self.captured, used[own:], strict=True) if u
                ]
                self.executable = cache.executable(slim)

    def run(self, arrays: Sequence[Array]) -> Any:
        """Run on the arguments' arrays, and build the result."""
        if self.executable is None:
            self.prepare()
        if self.kept is not None:
            arrays = [arrays[i] for i in self.kept]
        buffers = [a.to_device() for a in arrays]
        if self.captured_buffers:
            buffers += self.captured_buffers
        outs = self.executable(buffers)
        if self.single:
            return Array(None, self.out_types[0], outs[0])
        arrays = [Array(None, t, b) for t, b in zip(self.out_types, outs, strict=True)]
        return tree.unflatten(self.out_structure, arrays)


_LEAF = tree.structure(0)


def _on_device(leaf: Any) -> Any:
    """A NumPy array as an array on the device, in one copy; anything else as it is."""
    if isinstance(leaf, np.ndarray) and leaf.size and leaf.dtype == canonical_dtype(leaf.dtype):
        type = array_type(leaf.shape, leaf.dtype)
        return Array(None, type, pjrt.to_device(leaf, type, own=False))
    return leaf


class Jitted:
    """A compiled function: made by ``jit``, called like the function it was made from."""

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: int | Iterable[int] | None,
        static_argnames: str | Iterable[str] | None,
    ) -> None:
        if not callable(fun):
            raise TypeError(f"jit: expected a function, got {type(fun).__name__}")
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._name = name_of(fun)
        self._numbers, self._names = _static(fun, static_argnums, static_argnames)
        self._plain = not self._numbers and not self._names
        self._entries: dict[Any, _Entry] = {}
        self._quick: dict[Any, Any] = {}
        self._lock = threading.RLock()
        _ALL.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # The short way, for arrays as positional arguments and one array as the result.
        if state.interpreter is EAGER and not kwargs:
            try:
                found = self._quick.get((settings.key, *[x.type for x in args]))
                if found is not None:
                    run, handlers, out_type = found
                    buffers = [x.to_device() if x._buffer is None else x._buffer for x in args]
                    return Array(None, out_type, run(buffers).consume_with_handlers(handlers)[0])
            except (AttributeError, TypeError):
                pass  # an argument that is no array: the general way takes it, or says what it is
        return self._general(args, kwargs)

    def _general(self, args: Any, kwargs: Any) -> Any:
        """Any arguments, under any interpreter."""
        if config.disable_jit:
            return self._fun(*args, **kwargs)
        static: Any = ()
        if self._plain:
            dynamic = (args, kwargs) if kwargs else args
        else:
            static, dynamic = self._separate(args, kwargs)
        leaves, structure = tree.flatten(dynamic)
        traced = False
        for x in leaves:
            if x.__class__ is not Array:
                leaves = as_values(
                    [_on_device(x) for x in leaves],
                    self._name,
                    lambda: self._leaf_names(args, kwargs, static),
                )
                traced = any(isinstance(x, Tracer) for x in leaves)
                break
        types = tuple([x.type for x in leaves])
        key = (structure, types, static, settings.key)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._trace(key, args, kwargs, structure, types, static)
        if traced or entry.has_tracers or state.interpreter is not EAGER:
            outs = Call(entry.program)(*leaves, *entry.captured)
            return tree.unflatten(entry.out_structure, outs)
        result = entry.run(leaves)
        if self._plain and len(leaves) == len(args) and all(map(operator.is_, leaves, args)):
            self._remember(types, entry)
        return result

    def _remember(self, types: Any, entry: _Entry) -> None:
        """Let the next call with these types go the short way, where it can."""
        if entry.single and entry.kept is None and not entry.captured_buffers:
            executable = entry.executable
            self._quick[settings.key, *types] = (
                executable.run,
                executable.handlers,
                entry.out_types[0],
            )

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return functools.partial(self, instance)

    def _separate(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Static values, hashable, by place; and the other arguments."""
        static = []
        for i in self._numbers:
            place = i if i >= 0 else len(args) + i
            if 0 <= place < len(args):
                static.append((place, _Static(args[place], self._name, place)))
        for name in self._names:
            if name in kwargs:
                static.append((name, _Static(kwargs[name], self._name, name)))
        places = {place for place, _ in static}
        positional = tuple(a for i, a in enumerate(args) if i not in places)
        named = {k: v for k, v in kwargs.items() if k not in places}
        return tuple(static), (positional, named)

    def _trace(
        self, key: Any, args: Any, kwargs: Any, structure: Any, types: Any, static: Any
    ) -> _Entry:
        """Trace this signature, once, whichever thread comes first."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                return entry
            fixed = dict(static)
            positions = [i for i in range(len(args)) if i not in fixed]
            names = self._leaf_names(args, kwargs, static)

            def flat(*leaves: Any) -> Any:
                dynamic = tree.unflatten(structure, leaves)
                if self._plain and not kwargs:
                    out = self._fun(*dynamic)
                else:
                    positional, named = dynamic
                    moving = dict(zip(positions, positional, strict=True))
                    all_args = [
                        fixed[i].value if i in fixed else moving[i] for i in range(len(args))
                    ]
                    more = {k: s.value for k, s in fixed.items() if isinstance(k, str)}
                    out = self._fun(*all_args, **named, **more)
                return values_of_tree(without_float0(out), self._name, "the result")

            program, out_structure, captured = record(flat, types, names, self._name)
            entry = _Entry(program, out_structure, captured)
            if not entry.has_tracers:
                self._entries[key] = entry
            return entry

    def _leaf_names(self, args: Any, kwargs: Any, static: Any) -> list[str]:
        fixed = dict(static)
        moving = [() if i in fixed else a for i, a in enumerate(args)]
        return leaf_names(self._fun, moving, {k: v for k, v in kwargs.items() if k not in fixed})

    # Ahead of time

    def trace(self, *args: Any, **kwargs: Any) -> TracedCall:
        """The program for arguments of these types (arrays, or ``ShapeDtypeStruct``)."""
        static, dynamic = self._separate(args, kwargs)
        if self._plain and not kwargs:
            dynamic = args
        leaves, structure = tree.flatten(dynamic)
        types = _types_of(leaves, self._name, lambda: self._leaf_names(args, kwargs, static))
        key = (structure, types, static, settings.key)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._trace(key, args, kwargs, structure, types, static)
        return TracedCall(entry, structure, types, self._plain)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The StableHLO for arguments of these types."""
        return self.trace(*args, **kwargs).lower()

    def clear_cache(self) -> None:
        """Forget what was traced and compiled."""
        self._entries.clear()
        self._quick.clear()

    def __repr__(self) -> str:
        return f"<jitted {self._name}>"


_ALL: weakref.WeakSet[Jitted] = weakref.WeakSet()


class _Static:
    """A static argument: compared by type and value, so that 1 and 1.0 and True differ."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Any, who: str, place: Any) -> None:
        try:
            self._hash = hash((type(value), value))
        except TypeError:
            raise ValueError(
                f"{who}: the static argument {place!r} must be hashable, since compiled forms are "
                f"kept by its value; got {type(value).__name__}"
            ) from None
        self.value = value

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Static)
            and type(self.value) is type(other.value)
            and bool(self.value == other.value)
        )


def _static(
    fun: Callable[..., Any],
    numbers: int | Iterable[int] | None,
    names: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Static arguments by position and by name; each found from the other by the signature."""
    by_number = {numbers} if isinstance(numbers, int) else set(numbers or ())
    by_name = {names} if isinstance(names, str) else set(names or ())
    signature = signature_of(fun)
    if signature is not None:
        parameters = list(signature.parameters.values())
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
        known = [p.name for p in parameters]
        for name in sorted(by_name):
            if name not in known and not takes_any:
                raise ValueError(
                    f"jit: static_argnames names {name!r}, but {name_of(fun)} takes "
                    f"{', '.join(known) or 'nothing'}"
                )
        any_position = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        positional = [
            p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        for i in sorted(by_number):
            if not -len(positional) <= i < len(positional) and not any_position:
                raise ValueError(
                    f"jit: static_argnums names argument {i}, but {name_of(fun)} takes "
                    f"{len(positional)} positional arguments"
                )
        by_name |= {positional[i] for i in by_number if -len(positional) <= i < len(positional)}
        by_number |= {i for i, name in enumerate(positional) if name in by_name}
    return tuple(sorted(by_number)), tuple(sorted(by_name))


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
) -> Any:
    """Compile ``fun`` for each signature of its arguments.

    A signature is the tree structure, shapes, dtypes, weak types and static values. ``fun`` is run
    once for each, on traced values: what it prints or appends happens then, and arrays it captures
    become constants of that trace. Static arguments are passed as they are and must be hashable.

    Raises ``TypeError`` where a traced value is used as a Python number, a shape or a condition,
    naming the argument and the way out; ``ValueError`` for a static argument that is not hashable.

    >>> import stretto as st, stretto.numpy as snp
    >>> @st.jit
    ... def affine(w, b, x):
    ...     return w @ x + b
    >>> affine(snp.eye(2), snp.ones(2), snp.array([1.0, 2.0]))
    Array([2., 3.], dtype=float32)
    """
    if fun is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames
        )
    return Jitted(fun, static_argnums, static_argnames)


def clear_caches() -> None:
    """Forget everything traced and compiled."""
    for jitted in list(_ALL):
        jitted.clear_cache()
    cache.clear()


class TracedCall:
    """A function traced for one signature."""

    def __init__(
        self, entry: _Entry, structure: Any, types: Sequence[ArrayType], plain: bool
    ) -> None:
        self._entry = entry
        self._structure = structure
        self._types = types
        self._plain = plain

    @property
    def program(self) -> Program:
        """The typed program."""
        return self._entry.program

    def lower(self) -> Lowered:
        """As StableHLO."""
        return Lowered(self)

    def __str__(self) -> str:
        return str(self.program)


class Lowered:
    """A traced function as StableHLO text."""

    def __init__(self, traced: TracedCall) -> None:
        self._traced = traced
        self._text = lower_program(drop_dead(traced.program))

    def as_text(self) -> str:
        """The StableHLO module."""
        return self._text

    def compile(self) -> Compiled:
        """Compiled by XLA."""
        return Compiled(self._traced)


class Compiled:
    """A function compiled for one signature; called with the arguments that are not static."""

    def __init__(self, traced: TracedCall) -> None:
        self._traced = traced
        traced._entry.prepare()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced = self._traced
        who = traced.program.name
        leaves, structure = tree.flatten(args if traced._plain and not kwargs else (args, kwargs))
        arrays = [as_value(_on_device(x), who, "an argument") for x in leaves]
        types = [a.type for a in arrays]
        if structure != traced._structure or [(t.shape, t.dtype) for t in types] != [
            (t.shape, t.dtype) for t in traced._types
        ]:
            raise TypeError(
                f"{who}: compiled for {list(traced._types)} in {traced._structure}, called with "
                f"{types} in {structure}"
            )
        return traced._entry.run(arrays)

    def as_text(self) -> str:
        """The optimised HLO."""
        return self._traced._entry.executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates: ``flops``, ``bytes accessed`` and more."""
        return self._traced._entry.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Sizes in bytes of arguments, outputs, temporaries and code."""
        return self._traced._entry.executable.memory_analysis()


@dataclasses.dataclass(frozen=True)
class ShapeDtypeStruct:
    """The shape and dtype of an array, without its elements."""

    shape: tuple[int, ...]
    dtype: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name})"

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))


def _types_of(
    leaves: Sequence[Any], who: str, names: Callable[[], Sequence[str]]
) -> tuple[ArrayType, ...]:
    """The types of arguments, given as arrays or by ``ShapeDtypeStruct``."""
    given = [isinstance(x, ShapeDtypeStruct) for x in leaves]
    arrays = [x for x, g in zip(leaves, given, strict=True) if not g]
    values = iter(
        as_values(arrays, who, lambda: list(itertools.compress(names(), map(operator.not_, given))))
    )
    return tuple(
        array_type(x.shape, canonical_dtype(x.dtype)) if g else next(values).type
        for x, g in zip(leaves, given, strict=True)
    )


def _record_call(fun: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Program, Any, Any]:
    leaves, structure = tree.flatten((args, kwargs))

    def flat(*values: Any) -> Any:
        positional, named = tree.unflatten(structure, values)
        result = without_float0(fun(*positional, **named))
        return values_of_tree(result, who, "the result")

    who = name_of(fun)
    names = leaf_names(fun, args, kwargs)
    return record(flat, _types_of(leaves, who, lambda: names), names, who)


def make_graph(fun: Callable[..., Any]) -> Callable[..., Program]:
    """A function of the same arguments that gives the typed program ``fun`` is traced to.

    >>> import stretto as st, stretto.numpy as snp
    >>> print(st.make_graph(lambda x: snp.sin(x) * 2)(1.0))
    { function(a:f32*[])
      b:f32*[] = sin a
      c:f32*[] = mul b 2.0
      return c }
    """

    def graph(*args: Any, **kwargs: Any) -> Program:
        return _record_call(fun, args, kwargs)[0]

    return graph


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of the results, without computing them: a tree of ``ShapeDtypeStruct``.

    Arguments may be arrays or ``ShapeDtypeStruct``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.eval_shape(lambda x: x @ x.T, snp.ones((2, 3)))
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    program, structure, _ = _record_call(fun, args, kwargs)
    return tree.unflatten(
        structure, [ShapeDtypeStruct(t.shape, t.dtype) for t in program.out_types]
    )
