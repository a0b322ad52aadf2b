"""Eager evaluation: the interpreter at rest.

Layer 6 (runtime). An operation on concrete arrays runs its NumPy reference rule, or a cached
program of that one operation where the primitive says that XLA is clearly faster.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto.core.interpreter import Interpreter, Tracer, using
from stretto.core.types import ArrayType
from stretto.runtime.array import Array
from stretto.runtime.cache import run_primitive, run_program

__all__ = ["EAGER", "Eager", "nested", "quiet"]


class Quiet(threading.local):
    """A context for each thread in which NumPy's floating-point warnings are off.

    Arrays hold infinities and NaN without remark. ``run`` calls a function in it.
    """

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


quiet = Quiet()


def nested(f: Callable[..., Any], *args: Any) -> Any:
    """The same where this thread is inside such a call already, as in a finalizer run by NumPy."""
    with np.errstate(all="ignore"):
        return f(*args)


class Eager(Interpreter):
    """Evaluates operations on arrays."""

    __slots__ = ()

    ended = False

    def constant(self, host: np.ndarray, type: ArrayType) -> Array:
        """The array that holds this NumPy array, which nobody else may write."""
        return Array(host, type)

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Evaluate."""
        try:
            types = tuple([a.type for a in args])
            out_types = primitive.out_types(types)
            if primitive.holds_programs or primitive.calls_python:
                return self._control(primitive, types, out_types, args)
            if primitive.compiled(types):
                outs = run_primitive(primitive, types, out_types, args)
                return tuple(outs) if primitive.multiple else outs[0]
            hosts = [a.to_host() for a in args]
        except AttributeError:
            self._refuse(args)
            raise
        try:
            result = quiet.run(primitive.reference, *hosts)
        except RuntimeError:
            result = nested(primitive.reference, *hosts)
        if primitive.multiple:
            return tuple([_wrap(r, t) for r, t in zip(result, out_types, strict=True)])
        return _wrap(result, out_types[0])

    def _control(self, primitive: Any, types: Any, out_types: Any, args: Sequence[Any]) -> Any:
        """An operation that holds programs, or calls Python: compiled, or step by step."""
        if primitive.compiled(types):
            called = primitive.called()
            if called is not None:
                return tuple(run_program(called, args))
            return tuple(run_primitive(primitive, types, out_types, args))
        with using(self):
            return tuple(primitive.interpret(*args))

    @staticmethod
    def _refuse(args: Sequence[Any]) -> None:
        for a in args:
            if isinstance(a, Tracer):
                a.escaped()


def _wrap(result: Any, type: ArrayType) -> Array:
    if result.__class__ is not np.ndarray:
        result = np.asarray(result)
    if result.dtype != type.dtype:
        result = result.astype(type.dtype)
    return Array(result, type)


EAGER = Eager()
