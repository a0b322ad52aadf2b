"""``jax.core`` and ``jax.extend.core``: types of values, jaxprs, primitives and traces.

Traces of a library's own are classes that are handed every operation, by JAX's name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any

import numpy as np

from stretto import ensure_compile_time_eval
from stretto._engine.autodiff.vmap import Vectorizer
from stretto._engine.core.config import settings
from stretto._engine.core.errors import ProgramError as JaxprTypeError
from stretto._engine.core.interpreter import Interpreter, Value, state
from stretto._engine.core.primitive import Effect
from stretto._engine.core.types import float0, is_inexact, kind_of
from stretto._engine.higher_order.custom_derivatives import CustomJvp, CustomVjp
from stretto.compat.jax.avals import (
    AbstractToken,
    AbstractValue,
    ShapedArray,
    Tracer,
    get_aval,
    is_key,
    pytype_aval_mappings,
)
from stretto.compat.jax.jaxprs.jaxpr import (
    Atom,
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    new_jaxpr_eqn,
    spell_operation,
)
from stretto.compat.jax.jaxprs.making import (
    check_jaxpr,
    eval_jaxpr,
    jaxpr_as_fun,
    jaxprs_in_params,
    subjaxprs,
)
from stretto.compat.jax.jaxprs.primitive import CallPrimitive, Primitive, as_stretto_has

__all__ = ["AbstractToken", "AbstractValue", "Atom", "CallPrimitive", "ClosedJaxpr",
           "DebugInfo", "DropVar", "Effect", "Effects", "Jaxpr", "JaxprEqn",
           "JaxprTypeError", "Literal", "Primitive", "ShapedArray", "Token", "Trace",
           "TraceTag", "Tracer", "Var", "call_impl", "check_jaxpr", "concrete_or_error",
           "ensure_compile_time_eval", "eval_jaxpr", "find_top_trace", "gensym",
           "get_aval", "get_opaque_trace_state", "is_concrete", "is_constant_shape",
           "jaxpr_as_fun", "jaxprs_in_params", "mapped_aval", "new_jaxpr_eqn",
           "no_effects", "nonempty_axis_env_DO_NOT_USE", "physical_aval",
           "primal_dtype_to_tangent_dtype", "pytype_aval_mappings", "raise_to_shaped",
           "set_current_trace", "subjaxprs", "take_current_trace", "trace_state_clean",
           "typeof", "unmapped_aval", "unsafe_am_i_under_a_jit_DO_NOT_USE",
           "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE",
           "valid_jaxtype"]  # fmt: skip


class Trace(Interpreter):
    """Decides what operations do to the values of a library's own.

    A subclass gives ``process_primitive``, which gets each operation, its operands, and its
    parameters; and, for functions with rules of their own, may give ``process_custom_jvp_call`` and
    ``process_custom_vjp_call``.
    """

    ended = False

    def __init__(self) -> None:
        self.parent = state.interpreter
        self.recorder = self.parent.recorder

    def process_primitive(self, primitive: Any, tracers: Sequence[Any], params: Any, /) -> Any:
        """Return what the operation does to these values: one result, or a list of them."""
        raise NotImplementedError(f"{type(self).__name__} has to give process_primitive")

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Hand on the operation under JAX's name."""
        called, params, places = spell_operation(primitive, [a.type for a in args])
        rule = getattr(self, f"process_{called.name}", None)
        if rule is not None and isinstance(primitive, (CustomJvp, CustomVjp)):
            (fun,) = called.get_bind_params(params)["subfuns"]
            rules = [None] if isinstance(primitive, CustomJvp) else [None, None]
            more = {} if isinstance(primitive, CustomJvp) else {"out_trees": None}
            outs = rule(called, fun, *rules, args, symbolic_zeros=True, **more)
        else:
            outs = self.process_primitive(called, [args[i] for i in places], params)
        return tuple(as_stretto_has(called, outs)) if primitive.multiple else outs

    def full_raise(self, x: Any) -> Any:
        """Return the value, which needs no raising: values of other traces are operands too."""
        return x


class TraceTag:
    """Tells the values of one trace from those of others; all are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceTag)

    def __hash__(self) -> int:
        return hash(TraceTag)


@contextmanager
def take_current_trace() -> Iterator[Any]:
    """Open a block in which nothing is traced, and give it the trace that was going on."""
    outer = state.interpreter
    state.interpreter = state.eager
    try:
        yield outer
    finally:
        state.interpreter = outer


@contextmanager
def set_current_trace(trace: Any, check_leaks: bool = False) -> Iterator[None]:
    """Open a block in which operations are handed to this trace."""
    del check_leaks
    outer = state.interpreter
    state.interpreter = trace
    try:
        yield
    finally:
        state.interpreter = outer


Effects = Set[Effect]
typeof = get_aval
token = abstract_token = AbstractToken()


class OpaqueTraceState:
    """Stands for the trace that is going on; equal where it is the same one."""

    __slots__ = ("_axes", "_interpreter")

    def __init__(self) -> None:
        self._interpreter = state.interpreter
        self._axes = tuple(settings.axes.items())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OpaqueTraceState)
            and self._interpreter is other._interpreter
            and self._axes == other._axes
        )

    def __hash__(self) -> int:
        return hash((id(self._interpreter), self._axes))


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Return which trace is going on, to be compared by ``==``."""
    del convention
    return OpaqueTraceState()


def find_top_trace(xs: Any) -> Any:
    """Return the transformation that is going on."""
    del xs
    return state.interpreter


def trace_state_clean() -> bool:
    """Say whether nothing is being traced."""
    return state.interpreter.at_rest


def is_concrete(x: Any) -> bool:
    """Say whether a value is known, and not traced."""
    return not isinstance(x, Tracer)


def concrete_or_error(force: Any, value: Any, context: str = "") -> Any:
    """Return the value, as ``force`` makes it; an error if it is traced."""
    del context
    return value if force is None else force(value)


def is_constant_shape(shape: Any) -> bool:
    """Say whether all sizes are numbers."""
    return all(isinstance(n, (int, np.integer)) for n in shape)


def raise_to_shaped(aval: Any, weak_type: bool | None = None) -> Any:
    """Return the abstract value, with this weak type if one is given."""
    return aval if weak_type is None else aval.update(weak_type=weak_type)


def physical_aval(aval: Any) -> Any:
    """Return the abstract value of what stands behind: the words of keys."""
    implementation = getattr(aval.dtype, "implementation", None)
    if implementation is None:
        return aval
    return ShapedArray((*aval.shape, implementation.size), np.uint32)


def mapped_aval(size: int, axis: int | None, aval: Any) -> Any:
    """Return that of an example, where an axis of this size is mapped over."""
    del size
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(size: int, axis: int | None, aval: Any, *more: Any) -> Any:
    """Return that of all examples together, along this axis."""
    if more:  # an older order, with the name of the axis: size, name, axis, aval
        axis, aval = aval, more[0]
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def valid_jaxtype(x: Any) -> bool:
    """Say whether it is an array, a number or a key."""
    if isinstance(x, (Value, bool, int, float, complex)) or is_key(x):
        return True
    dtype = getattr(x, "dtype", None)
    try:
        return isinstance(x, (np.ndarray, np.generic)) and kind_of(dtype) is not None  # type: ignore[arg-type]
    except TypeError:
        return False


no_effects: frozenset[Any] = frozenset()


class Token:
    """Stands for the order of effects."""


def gensym() -> Callable[[Any], Var]:
    """Return a function that makes a new variable of an abstract value."""
    return Var


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Call a function, wrapped as ``linear_util`` does."""
    del params
    return f.call_wrapped(*args)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """Return the dtype of the tangents of arrays of a dtype."""
    return primal_dtype if is_inexact(np.dtype(primal_dtype)) else float0


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Return the names of the axes that are mapped over."""
    return [*settings.axes]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Say whether any named axis is mapped over."""
    return bool(settings.axes)


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Say whether operations are being recorded."""
    return state.interpreter.recorder is not None


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Say whether examples are being mapped over, by the innermost transformations."""
    around = itertools.accumulate(
        itertools.repeat(None),
        lambda one, _: None if one is None or one.borrows else one.parent,
        initial=state.interpreter,
    )
    return any(
        isinstance(one, Vectorizer) for one in itertools.takewhile(lambda x: x is not None, around)
    )
