"""Eager evaluation: the interpreter that is current outside any transformation.

An operation on concrete arrays runs its NumPy reference rule or, where the primitive says that XLA
is clearly faster, a cached program of that one operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.bounded import CAPACITY, room
from stretto._engine.core.config import config
from stretto._engine.core.error_state import ErrorState
from stretto._engine.core.holding import holding
from stretto._engine.core.interpreter import Interpreter, Tracer, state
from stretto._engine.core.types import ArrayType
from stretto._engine.native import native
from stretto._engine.xla.array import SHARDED, Array
from stretto._engine.xla.cache import run_primitive, run_program

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_MANY = 1 << 10
"""From this many elements on, computing in bfloat16 takes longer than converting to float32."""


def wide(type: ArrayType) -> bool:
    """Whether this is bfloat16, which is slow in NumPy, and so large that float32 is faster."""
    return type.dtype is _BFLOAT16 and type.size >= _MANY


quiet = ErrorState(all="ignore")
"""Runs functions without NumPy's floating-point warnings: arrays may hold infinities and NaN."""


class Eager(Interpreter):
    """Evaluates operations on arrays."""

    __slots__ = ()

    ended = False
    at_rest = True

    def constant(self, host: np.ndarray, type: ArrayType) -> Array:
        """The array that holds this NumPy array, which must not be written to afterwards."""
        return Array(host, type)

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Run the reference rule on NumPy arrays, or a program of this one operation."""
        try:
            types = tuple([a.type for a in args])
            out_types = primitive.out_types(types)
            if primitive.holds_programs or primitive.calls_python:
                return self._control(primitive, types, out_types, args)
            if SHARDED and _on_devices(args):
                outs = run_primitive(primitive, types, out_types, args)
                return tuple(outs) if primitive.multiple else outs[0]
            if primitive.compiled(types) and (config.eager_compiled or primitive.only_compiled):
                outs = run_primitive(primitive, types, out_types, args)
                return tuple(outs) if primitive.multiple else outs[0]
            hosts = [a.to_host() for a in args]
            widen = primitive.widens and wide(types[0])
            rule = primitive.widely if widen else primitive.reference
        except AttributeError:
            self._refuse(args)
            raise
        result = quiet.run(rule, *hosts)
        if primitive.multiple:
            return tuple([_wrap(r, t) for r, t in zip(result, out_types, strict=True)])
        out = out_types[0]
        if native is not None and primitive.interned and not (widen or primitive.compiled(types)):
            keep(primitive, types, rule, out, out.dtype)
        return _wrap(result, out)

    def _control(self, primitive: Any, types: Any, out_types: Any, args: Sequence[Any]) -> Any:
        """Run an operation that holds programs or calls Python: compiled, or step by step."""
        if SHARDED and primitive.holds_programs and _on_devices(args):
            return tuple(run_primitive(primitive, types, out_types, args))
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


def _on_devices(args: Sequence[Any]) -> bool:
    """Whether any array has a sharding."""
    return any([a.__class__ is SHARDED[0] for a in args])


def _wrap(result: Any, type: ArrayType) -> Array:
    if result.__class__ is not np.ndarray:
        result = np.asarray(result)
    if result.dtype != type.dtype:
        result = result.astype(type.dtype)
    return Array(result, type)


TABLE: dict[Any, Any] = {}
"""What eager calls in C go by: by function, then by the type of each operand in turn, a record.

A function is a primitive, or what a function of two operands is known by (``numpy/quick``); there a
Python number's type is its class. A record says what computes the result, and of which type it is.
It is made when the general way has computed with such operands, so without the extension there is
none.
"""


def keep(
    function: Any,
    types: Sequence[Any],
    rule: Callable[..., Any],
    out: ArrayType,
    dtype: np.dtype | None = None,
    between: tuple[int, int] = (0, 0),
) -> None:
    """Let calls with operands of these types take the short way from now on.

    Args:
        function: what the table knows it by.
        types: those of the operands, of Python numbers the classes.
        rule: what computes the result, from NumPy arrays.
        out: the type of the result.
        dtype: that of the result; by default what ``rule`` returns has it for certain.
        between: the least and the greatest Python integer that may be an operand.
    """
    if native is None:
        return
    record = native.EagerRecord(rule, out, dtype, *between)
    row, keys = TABLE, [function, *types]
    if len(TABLE) >= CAPACITY:
        forget()
    for key in keys[:-1]:
        row = row.setdefault(key, {})
        if row.__class__ is not dict:
            return  # there is a record for fewer operands, and only one number of them is supported
        room(row)
    row.setdefault(keys[-1], record)


def forget() -> None:
    """Empty the table. The rows that calls hold are emptied, since these would not see new ones."""
    for function, row in list(TABLE.items()):
        if function in _held:
            row.clear()
        else:
            TABLE.pop(function, None)


_held: set[Any] = set()
"""The functions of which calls hold the row."""


def eager_call(
    general: Callable[..., Any], function: Any = None, reflected: bool = False
) -> Callable[..., Any]:
    """Put the short way, in C, in front of a general one; without the extension there is none.

    Args:
        general: takes any operands.
        function: what the table knows it by; None for the ``process`` of an interpreter, which is
            given primitives.
        reflected: whether the first argument is the right operand.

    Returns:
        A function, or a method, with the arguments of ``general``.
    """
    if native is None:
        return general
    if function is None:
        return native.EagerCall(general, TABLE, by_primitive=True)
    _held.add(function)
    return native.EagerCall(general, TABLE.setdefault(function, {}), reflected=reflected)


EAGER = Eager()

if native is not None:
    native.attach_eager(
        array=Array,
        state=state,
        eager=EAGER,
        quiet=quiet,
        ndarray=np.ndarray,
        asarray=np.asarray,
    )
    Eager.process = eager_call(Eager.process)  # type: ignore[method-assign]
