"""``jax.extend.core``: jaxprs, and primitives that libraries make."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core.config import settings
from stretto._engine.core.effects import Effect
from stretto._engine.core.errors import ProgramError as JaxprTypeError
from stretto._engine.core.interpreter import state
from stretto._engine.core.types import float0, is_inexact
from stretto._engine.autodiff.vmap import Vectorizer
from stretto.compat.jax.avals import AbstractToken
from stretto.compat.jax.jaxprs.form import (
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    new_jaxpr_eqn,
)
from stretto.compat.jax.jaxprs.making import check_jaxpr, jaxpr_as_fun, jaxprs_in_params, subjaxprs
from stretto.compat.jax.jaxprs.primitive import CallPrimitive, Primitive
from stretto.compat.jax.jaxprs.traces import TraceTag, set_current_trace, take_current_trace
from stretto.compat.jax.presented.core import (
    Effects,
    concrete_or_error,
    find_top_trace,
    get_opaque_trace_state,
    mapped_aval,
    unmapped_aval,
    valid_jaxtype,
)

__all__ = [
    "AbstractToken",
    "CallPrimitive",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Effects",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Literal",
    "Primitive",
    "Token",
    "TraceTag",
    "Var",
    "call_impl",
    "check_jaxpr",
    "concrete_or_error",
    "find_top_trace",
    "gensym",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

no_effects: frozenset[Any] = frozenset()


class Token:
    """Stands for the order of effects."""


def gensym() -> Callable[[Any], Var]:
    """A function that makes a new variable of an abstract value."""
    return Var


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Call a function, wrapped as ``linear_util`` does."""
    del params
    return f.call_wrapped(*args)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of the tangents of arrays of a dtype."""
    return primal_dtype if is_inexact(np.dtype(primal_dtype)) else float0


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes that are mapped over."""
    return [*settings.axes]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether any named axis is mapped over."""
    return bool(settings.axes)


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether operations are being recorded."""
    return state.interpreter.recorder is not None


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether examples are being mapped over, by the innermost transformations."""
    around = itertools.accumulate(
        itertools.repeat(None),
        lambda one, _: None if one is None or one.borrows else one.parent,
        initial=state.interpreter,
    )
    return any(
        isinstance(one, Vectorizer) for one in itertools.takewhile(lambda x: x is not None, around)
    )
