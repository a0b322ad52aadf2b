"""A user's function: its name for programs and messages, its signature, and what has the same.

Used by everything that wraps a function; see ``higher_order/custom_function`` and
``api/arguments``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any


def name_of(fun: Callable[..., Any]) -> str:
    """Return the function's name; of a partial one, that of the function inside.

    >>> name_of(functools.partial(max, 1)), name_of(lambda x: x)
    ('max', 'function')
    """
    while isinstance(fun, functools.partial):
        fun = fun.func
    name = getattr(fun, "__name__", None) or type(fun).__name__
    return "function" if name == "<lambda>" else name


def signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    """Give the function's signature; None if Python does not know it, as for some written in C."""
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def likeness_of(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a likeness with a function's signature that does not keep it alive."""
    if fun.__class__ is not FunctionType:
        return fun
    cells = tuple([CellType() for _ in fun.__code__.co_freevars])
    like = FunctionType(fun.__code__, {}, fun.__name__, fun.__defaults__, cells)
    like.__kwdefaults__ = fun.__kwdefaults__
    for name in ("__wrapped__", "__signature__"):
        if name in vars(fun):
            setattr(like, name, vars(fun)[name])
    return like
