"""``jit``: trace once for each signature, compile, run.

Layer 7 (api). The way of a call: flatten the arguments, look up their signature, hand the buffers
to the executable, wrap what comes back.
"""

from __future__ import annotations

import functools
import operator
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from stretto.api.arguments import (
    as_values,
    leaf_names,
    name_of,
    signature_of,
    values_of_tree,
    without_float0,
)
from stretto.api.graph import types_of
from stretto.api.stages import Entry, Lowered, TracedCall, on_device
from stretto.control.call import Call
from stretto.core import tree
from stretto.core.config import config, settings
from stretto.core.interpreter import Tracer, state
from stretto.core.recorder import record
from stretto.runtime import cache
from stretto.runtime.array import Array
from stretto.runtime.eager import EAGER

__all__ = ["Jitted", "clear_caches", "jit"]


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
        self._entries: dict[Any, Entry] = {}
        self._quick: dict[Any, Any] = {}
        self._lock = threading.RLock()
        _ALL.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's results, from the compiled form for these arguments."""
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
                    [on_device(x) for x in leaves],
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

    def _remember(self, types: Any, entry: Entry) -> None:
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
    ) -> Entry:
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
            entry = Entry(program, out_structure, captured)
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
        types = types_of(leaves, self._name, lambda: self._leaf_names(args, kwargs, static))
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
