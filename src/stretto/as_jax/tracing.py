"""What JAX's settings have checked of each trace: that no tracer is left, that there is none.

Attached by ``attributes``, around what Stretto's recorder and vectoriser do. Next, read
``settings``.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from types import FrameType
from typing import Any

from stretto._engine.core.interpreter import Interpreter, Tracer
from stretto._engine.core.recorder import Recorder
from stretto._engine.transforms.vmap import Vectorizer
from stretto.as_jax.settings import config

__all__ = ["attach"]


def _checked(run: Callable[..., Any]) -> Callable[..., Any]:
    """An interpreter's ``run``, with these checks where they are switched on."""

    @functools.wraps(run)
    def checked(self: Interpreter, fun: Callable[..., Any], *args: Any) -> Any:
        if config.jax_no_tracing and isinstance(self, Recorder):
            raise RuntimeError(
                f"re-tracing function{self.began()}, but 'no_tracing' is set: call it with the "
                f"same shapes and dtypes before"
            )
        result = run(self, fun, *args)
        if config.jax_check_tracer_leaks:
            _refuse_leaks(self, args)
        return result

    return checked


def _refuse_leaks(trace: Interpreter, args: tuple[Any, ...]) -> None:
    """Raise if tracers of a trace that has ended are alive, beside those it was called with."""
    gc.collect()  # what is in cycles alone is gone as well
    given = {id(x) for arg in args if isinstance(arg, (list, tuple)) for x in arg}
    leaked = [
        x
        for x in gc.get_referrers(trace)
        if isinstance(x, Tracer) and x.interpreter is trace and id(x) not in given
    ]
    if leaked:
        texts = [f"{x!r}{_holders(x, leaked)}" for x in leaked]
        raise Exception(
            f"Leaked trace {type(trace).__name__}{trace.began()}. Leaked tracer(s):\n\n"
            + "\n".join(texts)
        )


def _holders(tracer: Tracer, leaked: list[Any]) -> str:
    """What refers to a tracer, by its classes."""
    holders = [x for x in gc.get_referrers(tracer) if x is not leaked]
    names = sorted({type(x).__name__ for x in holders if not isinstance(x, FrameType)})
    return f", which is in: {', '.join(names)}" if names else ""


def attach() -> None:
    """Attach the checks; they look at JAX's settings at each trace."""
    for cls in (Recorder, Vectorizer):
        cls.run = _checked(cls.run)  # type: ignore[method-assign]
