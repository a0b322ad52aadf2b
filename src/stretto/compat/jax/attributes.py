"""The attributes of arrays, traced values and keys that clients of JAX read, and checks of traces.

They are attached by ``modules.install``, so that Stretto by itself has none of them. JAX's settings
have each trace checked around what Stretto's recorder and vectorizer do: that no tracer is left,
that there is no trace.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Sequence
from gc import collect, get_referrers  # themselves: tests of Flax replace gc.collect
from types import CellType, FrameType, FunctionType
from typing import Any

from stretto._engine.api.jit.stages import Lowered
from stretto._engine.autodiff.jvp import Differentiator
from stretto._engine.autodiff.vmap import Vectorizer
from stretto._engine.core.interpreter import Interpreter, Tracer, Value, state
from stretto._engine.core.recorder import Recorder
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.higher_order.refs import Ref
from stretto._engine.ops.layout import move_to_front, reshape
from stretto._engine.ops.random_bits import RngBitGenerator
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.xla.array import Array
from stretto.compat.jax.avals import ShapedArray, get_aval
from stretto.compat.jax.keys import take
from stretto.compat.jax.settings import config
from stretto.numpy.dtypes import ScalarType
from stretto.random.key_arrays import KeyArray
from stretto.typing import SymbolicZero


def _aval(self: Any) -> ShapedArray:
    """Return the abstract value."""
    return get_aval(self)


def _set_trace(self: Any, trace: Any) -> None:
    """Take a trace as libraries' tracers set it, in place of ``Tracer.__init__``."""
    self.interpreter = trace


def _trace(self: Any) -> Any:
    """Return the transformation that it belongs to."""
    return self.interpreter


def _pointer(self: Array) -> int:
    """Return the address of the elements on the device."""
    return self.to_buffer().unsafe_buffer_pointer()


def _of_words(name: str) -> property:
    def get(self: Any) -> Any:
        return getattr(self._words, name)

    return property(get)


def _call_on_words(name: str) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._words, name)(*args, **kwargs)

    call.__name__ = name
    return call


class _Module:
    """A lowered function, as ``compiler_ir`` gives it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def as_hlo_text(self) -> str:
        """Return the text, without the places in the source."""
        return re.sub(r", metadata=\{[^}]*\}", "", self._text)

    def __str__(self) -> str:
        return self._text


def _compiler_ir(self: Any, dialect: str | None = None) -> _Module:
    """Return the module of a lowered function, which prints itself."""
    return _Module(self.as_text(dialect))


def _replace(self: NamedSharding, mesh: Any = None, spec: Any = None) -> NamedSharding:
    """Return a copy over another mesh, or with another spec."""
    return NamedSharding(mesh or self.mesh, self.spec if spec is None else spec)


def _hash_of_class(self: ScalarType) -> int:
    """Hash as NumPy's class of the dtype: ``jax.numpy.int32`` is looked up among these."""
    return hash(self.dtype.type)


def _bits_of_the_first(
    self: RngBitGenerator, size: int, args: Sequence[Any], axes: Sequence[int | None]
) -> tuple[tuple[Any, Any], tuple[int, int]]:
    """Draw bits of "rbg" keys as JAX maps them: the first state gives those of all examples.

    The other states stay what they are.
    """
    states = move_to_front(args[0], axes[0])
    first = reshape(slice_in_dim(states, 0, 1), states.shape[1:])
    after, bits = RngBitGenerator((size, *self.shape), self.dtype, self.algorithm)(first)
    rest = slice_in_dim(states, 1, states.shape[0])
    states = concatenate([reshape(after, (1, *after.shape)), rest], 0)
    return (states, bits), (0, after.ndim - 1)


def attach() -> None:
    """Attach them."""
    _attach_checks()
    Value.take = take  # type: ignore[method-assign]
    RngBitGenerator.vmap = _bits_of_the_first  # type: ignore[method-assign]
    ScalarType.__hash__ = _hash_of_class  # type: ignore[method-assign]
    Value.aval = property(_aval)  # type: ignore[attr-defined]
    Ref.aval = property(_aval)  # type: ignore[attr-defined]
    Tracer._trace = property(_trace, _set_trace)  # type: ignore[attr-defined]
    Array.unsafe_buffer_pointer = _pointer  # type: ignore[attr-defined]
    NamedSharding.update = _replace  # type: ignore[attr-defined]
    SymbolicZero.aval = property(_aval)  # type: ignore[attr-defined]
    Interpreter.main = property(lambda self: self)  # type: ignore[attr-defined]
    KeyArray.aval = property(_aval)  # type: ignore[attr-defined]
    Lowered.compiler_ir = _compiler_ir  # type: ignore[attr-defined]
    KeyArray.weak_type = False  # type: ignore[attr-defined]
    for name in ("sharding", "device", "committed", "is_fully_addressable", "is_fully_replicated"):
        setattr(KeyArray, name, _of_words(name))
    for name in ("devices", "delete", "is_deleted", "is_ready", "copy_to_host_async"):
        setattr(KeyArray, name, _call_on_words(name))


class _Ended(threading.local):
    """The traces of a thread that have ended within one that has not, the first first."""

    def __init__(self) -> None:
        self.traces: list[tuple[Interpreter, list[Any]]] = []
        """Each with the tracers that it was called with, which its caller may still hold."""


_ended = _Ended()


def _add_checks(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return an interpreter's ``run``, with these checks where they are switched on."""

    @functools.wraps(run)
    def checked(self: Interpreter, fun: Callable[..., Any], *args: Any) -> Any:
        if config.jax_no_tracing and isinstance(self, Recorder):
            raise RuntimeError(
                f"re-tracing function{self.began()}, but 'no_tracing' is set: call it with the "
                f"same shapes and dtypes before"
            )
        if not config.jax_check_tracer_leaks:
            return run(self, fun, *args)
        outermost = state.interpreter is state.eager
        try:
            result = run(self, fun, *args)
        except BaseException:
            if outermost:
                _ended.traces.clear()
            raise
        given = [x for arg in args if isinstance(arg, (list, tuple)) for x in arg]
        _ended.traces.append((self, given))
        if outermost:  # till then transformations around a trace may hold what they take from it
            traces, _ended.traces = _ended.traces, []
            _refuse_leaks(traces)
        return result

    return checked


def _refuse_leaks(traces: list[tuple[Interpreter, list[Any]]]) -> None:
    """Raise if tracers of traces that have ended are alive, beside those they were called with."""
    traces.reverse()
    while traces:
        trace, given = traces.pop()  # an outer one after those within, which hold tracers of it
        collect()  # what is in cycles alone is gone as well
        if isinstance(trace, Differentiator):  # JAX does not look at these either
            continue
        known = set(map(id, given))
        alive = [x for x in get_referrers(trace) if isinstance(x, Tracer)]
        leaked = [x for x in alive if x.interpreter is trace and id(x) not in known]
        leaked = [x for x in leaked if not all(map(_is_own, _holders(x, (alive, leaked))))]
        if leaked:
            texts = []
            for x in leaked:
                kinds = sorted({type(h).__name__ for h in _holders(x, (alive, leaked))})
                texts.append(f"{x!r}, which is in: {', '.join(kinds)}")
            raise Exception(
                f"Leaked trace {type(trace).__name__}{trace.began()}. Leaked tracer(s):\n\n"
                + "\n".join(texts)
            )


def _holders(tracer: Tracer, aside: Sequence[Any]) -> list[Any]:
    """Return what refers to a tracer, beside these lists and the functions that run."""
    ours = set(map(id, aside))
    found = get_referrers(tracer)
    return [x for x in found if id(x) not in ours and not isinstance(x, FrameType)]


def _is_own(holder: Any) -> bool:
    """Say whether it is a variable of Stretto's own function, of which some still run."""
    if not isinstance(holder, CellType):
        return False
    closures = [x for x in get_referrers(holder) if type(x) is tuple]
    functions = [f for c in closures for f in get_referrers(c) if isinstance(f, FunctionType)]
    return all([f.__module__.startswith("stretto._engine.") for f in functions])


def _attach_checks() -> None:
    """Attach the checks; they look at JAX's settings at each trace."""
    for cls in (Recorder, Vectorizer, Differentiator):
        cls.run = _add_checks(cls.run)  # type: ignore[method-assign]
