"""Large draws at rest are compiled as a whole; small ones run operation by operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stretto._engine.api.jit.jit import jit
from stretto._engine.core.interpreter import state
from stretto._engine.core.typing import Array

__all__ = ["when_large"]


_LARGE = 1 << 18
"""From this many elements on, some ten draws repay the time to compile."""


def when_large(fun: Callable[..., Array], static_argnums: tuple[int, ...]) -> Callable[..., Array]:
    """``fun``, to be called with the number of elements before its arguments.

    It is compiled for many elements, unless a transformation is at work, which decides for itself.
    """
    compiled = jit(fun, static_argnums=static_argnums)

    def choose(size: int, *args: Any) -> Array:
        at_rest = state.interpreter.at_rest
        return (compiled if at_rest and size >= _LARGE else fun)(*args)

    return choose
