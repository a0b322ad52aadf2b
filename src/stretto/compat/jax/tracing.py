"""What JAX's settings have checked of each trace: that no tracer is left, that there is none.

Attached by ``attributes``, around what Stretto's recorder and vectorizer do.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from gc import collect, get_referrers  # themselves: tests of Flax replace gc.collect
from types import CellType, FrameType, FunctionType
from typing import Any

from stretto._engine.autodiff.jvp import Differentiator
from stretto._engine.autodiff.vmap import Vectorizer
from stretto._engine.core.interpreter import Interpreter, Tracer, state
from stretto._engine.core.recorder import Recorder
from stretto.compat.jax.settings import config

__all__ = ["attach"]


class _Ended(threading.local):
    """The traces of a thread that have ended within one that has not, the first first."""

    def __init__(self) -> None:
        self.traces: list[tuple[Interpreter, list[Any]]] = []
        """Each with the tracers that it was called with, which its caller may still hold."""


_ended = _Ended()


def _checked(run: Callable[..., Any]) -> Callable[..., Any]:
    """An interpreter's ``run``, with these checks where they are switched on."""

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
    """What refers to a tracer, beside these lists and the functions that run."""
    ours = set(map(id, aside))
    found = get_referrers(tracer)
    return [x for x in found if id(x) not in ours and not isinstance(x, FrameType)]


def _is_own(holder: Any) -> bool:
    """Whether it is a variable of Stretto's own function, of which some still run."""
    if not isinstance(holder, CellType):
        return False
    closures = [x for x in get_referrers(holder) if type(x) is tuple]
    functions = [f for c in closures for f in get_referrers(c) if isinstance(f, FunctionType)]
    return all([f.__module__.startswith("stretto._engine.") for f in functions])


def attach() -> None:
    """Attach the checks; they look at JAX's settings at each trace."""
    for cls in (Recorder, Vectorizer, Differentiator):
        cls.run = _checked(cls.run)  # type: ignore[method-assign]
