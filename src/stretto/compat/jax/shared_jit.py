"""``jit`` of a function that was jitted before: the same compiled function again.

In JAX ``jit(f)`` in a loop shares what was traced of ``f``, and libraries rely on that.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

import stretto

__all__ = ["shared_jit"]

_NAME = "__jitted_as_jax__"


class _Kept(dict[Any, Any]):
    """What a function was compiled as, by the options; it stays behind where that is pickled."""

    def __init__(self, fun: Any = None) -> None:
        super().__init__()
        self.fun = None if fun is None else weakref.ref(fun)

    def is_of(self, fun: Any) -> bool:
        """Whether it is the function's own, and not copied by a decorator from another."""
        return self.fun is not None and self.fun() is fun

    def __reduce__(self) -> Any:
        return _Kept, ()


def shared_jit(fun: Callable[..., Any], options: dict[str, Any]) -> Any:
    """``stretto.jit(fun, **options)``; that of an earlier call if there was one.

    The first is kept as long as somebody else does, and what it has traced as long as the function.
    If it is gone when the same function is jitted again, the next has that, and is kept as long.
    """
    if type(fun) is not FunctionType:
        return stretto.jit(fun, **options)
    key = tuple(sorted(options.items()))
    try:
        hash(key)
    except TypeError:  # options that are lists
        return stretto.jit(fun, **options)
    kept = vars(fun).get(_NAME)
    if kept is None or not kept.is_of(fun):
        kept = vars(fun)[_NAME] = _Kept(fun)
    known = kept.get(key)
    if type(known) is tuple:
        first, entries = known
        made = first()
        if made is None:
            made = kept[key] = stretto.jit(fun, **options)
            made._entries = entries
        return made
    if known is None:
        known = stretto.jit(fun, **options)
        kept[key] = weakref.ref(known), known._entries
    return known
