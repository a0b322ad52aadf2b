"""Traces of libraries' own: classes that are handed every operation, by JAX's name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stretto._engine.core.interpreter import Interpreter, state
from stretto._engine.higher_order.custom_derivatives import CustomJvp, CustomVjp
from stretto.compat.jax.jaxprs import control, named  # noqa: F401 (they fill the table)
from stretto.compat.jax.jaxprs.primitive import as_stretto_has
from stretto.compat.jax.jaxprs.views import spell_operation

__all__ = ["Trace", "TraceTag", "set_current_trace", "take_current_trace"]


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
