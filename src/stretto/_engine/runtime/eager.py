"""Eager evaluation: the interpreter at rest.

Layer 6 (runtime). An operation on concrete arrays runs its NumPy reference rule, or a cached
program of that one operation where the primitive says that XLA is clearly faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.bounded import room
from stretto._engine.core.config import config
from stretto._engine.core.error_state import ErrorState
from stretto._engine.core.holding import holding
from stretto._engine.core.interpreter import Interpreter, Tracer, state
from stretto._engine.core.native import native
from stretto._engine.core.types import ArrayType
from stretto._engine.runtime.array import Array
from stretto._engine.runtime.cache import run_primitive, run_program

__all__ = ["EAGER", "Eager", "quiet", "wide"]

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_MANY = 1 << 10
"""So many elements take longer than converting them, by a call each."""


def wide(type: ArrayType) -> bool:
    """Whether elements are many, and of a dtype in which NumPy is slower than in float32."""
    return type.dtype is _BFLOAT16 and type.size >= _MANY


quiet = ErrorState(all="ignore")
"""Arrays hold infinities and NaN without NumPy's warnings."""


class Eager(Interpreter):
    """Evaluates operations on arrays."""

    __slots__ = ()

    ended = False

    def constant(self, host: np.ndarray, type: ArrayType) -> Array:
        """The array that holds this NumPy array, which nobody else may write."""
        return Array(host, type)

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Run the reference rule on NumPy arrays, or a program of this one operation."""
        try:
            types = tuple([a.type for a in args])
            out_types = primitive.out_types(types)
            if primitive.holds_programs or primitive.calls_python:
                return self._control(primitive, types, out_types, args)
            if primitive.compiled(types) and (config.eager_compiled or primitive.only_compiled):
                outs = run_primitive(primitive, types, out_types, args)
                return tuple(outs) if primitive.multiple else outs[0]
            hosts = [a.to_host() for a in args]
            many = primitive.widens and wide(types[0])
            rule = primitive.widely if many else primitive.reference
        except AttributeError:
            self._refuse(args)
            raise
        result = quiet.run(rule, *hosts)
        if primitive.multiple:
            return tuple([_wrap(r, t) for r, t in zip(result, out_types, strict=True)])
        if native is not None and not primitive.compiled(types):
            _keep(primitive, types, out_types[0])
        return _wrap(result, out_types[0])

    def _control(self, primitive: Any, types: Any, out_types: Any, args: Sequence[Any]) -> Any:
        """An operation that holds programs, or calls Python: compiled, or step by step."""
        if primitive.compiled(types) and (config.eager_compiled or primitive.only_compiled):
            called = primitive.called()
            if called is not None:
                return tuple(run_program(called, args))
            return tuple(run_primitive(primitive, types, out_types, args))
        return tuple(holding(state, "interpreter", self, primitive.interpret, *args))

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


_table: dict[Any, Any] = {}
"""What operations with one result were met: by primitive, then by the type of each argument, the
reference rule, and the type and dtype of the result. For ``process`` in C."""


def _keep(primitive: Any, types: tuple[ArrayType, ...], out: ArrayType) -> None:
    """Let operations with these types go the short way from now on."""
    if not primitive.interned or (primitive.widens and wide(types[0])):
        return
    record = (primitive.reference, out, out.dtype)
    if not types:
        room(_table)[primitive] = record
        return
    row = room(_table).setdefault(primitive, {})
    for type in types[:-1]:
        row = row.setdefault(type, {})
        if row.__class__ is not dict:
            return  # known with fewer operands: one number of them goes the short way
    room(row).setdefault(types[-1], record)


if native is not None:
    Eager.process = native.Process(  # type: ignore[method-assign]
        array=Array,
        quiet=quiet,
        ndarray=np.ndarray,
        asarray=np.asarray,
        table=_table,
        general=Eager.process,
    )

EAGER = Eager()
