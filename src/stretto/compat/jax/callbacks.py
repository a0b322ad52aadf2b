"""Python called from programs, with JAX's conventions for arguments and errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import stretto
from stretto import debug, lax
from stretto._engine.core.interpreter import Tracer, Value, state
from stretto.compat.jax import trees

__all__ = [
    "as_called",
    "breakpoint",
    "debug_callback",
    "debug_print",
    "io_callback",
    "pure_callback",
]


def _strong(leaf: Any) -> Any:
    weak = isinstance(leaf, Value) and leaf.type.weak_type
    return lax.convert_element_type(leaf, leaf.dtype) if weak else leaf


def as_called(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as programs of JAX's call it.

    No array that it gets is weak, and what it raises becomes a ``RuntimeError`` with that in its
    text, where clients look for the names of their own errors.
    """
    if not callable(callback):
        return callback

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            args, kwargs = trees.map_(_strong, (args, kwargs))
            return callback(*args, **kwargs)
        except Exception as error:
            lines = "".join(traceback.format_exception(error))
            raise RuntimeError(f"INTERNAL: error calling a Python callback: {lines}") from error

    call.__name__ = getattr(callback, "__name__", type(callback).__name__)
    return call


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    vectorized: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Call ``stretto.pure_callback`` with JAX's parameters."""
    if vectorized is not None and vmap_method is None:
        vmap_method = "legacy_vectorized" if vectorized else "sequential"
    return stretto.pure_callback(
        as_called(callback),
        result_shape_dtypes,
        *args,
        sharding=sharding,
        vmap_method="expand_dims" if vmap_method == "legacy_vectorized" else vmap_method,
        **kwargs,
    )


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call ``stretto.io_callback`` with JAX's errors."""
    return stretto.io_callback(
        as_called(callback),
        result_shape_dtypes,
        *args,
        sharding=sharding,
        ordered=ordered,
        **kwargs,
    )


def debug_callback(
    callback: Callable[..., Any],
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> None:
    """Call ``stretto.debug.callback`` with JAX's errors."""
    debug.callback(as_called(callback), *args, ordered=ordered, partitioned=partitioned, **kwargs)


def debug_print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Call ``stretto.debug.print``; while tracing, its text will not say which values were weak."""
    traced = not state.interpreter.at_rest

    strong = lambda leaf: _strong(leaf) if traced or isinstance(leaf, Tracer) else leaf
    args, kwargs = trees.map_(strong, (args, kwargs))
    debug.print(fmt, *args, ordered=ordered, **kwargs)


def breakpoint(**options: Any) -> None:
    """Stop in Python's debugger: while a function is traced, where it is traced."""
    del options
    sys.breakpointhook()
