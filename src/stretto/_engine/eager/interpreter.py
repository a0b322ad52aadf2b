"""Eager evaluation: the interpreters that are current outside any transformation.

An operation on concrete arrays runs its NumPy reference rule or, where the primitive says that XLA
is clearly faster, a cached program of that one operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from stretto._engine import eager, xla
from stretto._engine.core.config import config, settings
from stretto._engine.core.errors import ErrorState
from stretto._engine.core.interpreter import Interpreter, Tracer, state
from stretto._engine.core.primitive import meshes
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.eager.table import eager_call, keep
from stretto._engine.native import native
from stretto._engine.xla.array import SHARDED, Absent, Array
from stretto._engine.xla.cache import run_primitive, run_program

if TYPE_CHECKING:
    from stretto._engine.core.shardings import Sharding

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_MANY = 1 << 10
"""The elements from which on computing in bfloat16 takes longer than converting to float32."""


def wide(type: ArrayType) -> bool:
    """Say whether this is bfloat16, which is slow in NumPy, and so large that float32 is faster.

    What varies in size is not for NumPy at all.
    """
    return type.dtype is _BFLOAT16 and (type.varies or type.size >= _MANY)


quiet = ErrorState(all="ignore")
"""Runs functions without NumPy's floating-point warnings: arrays may hold infinities and NaN."""


class Eager(Interpreter):
    """Evaluates operations on arrays."""

    __slots__ = ()

    ended = False
    at_rest = True

    def constant(self, host: np.ndarray, type: ArrayType) -> Array:
        """Give the array that holds this NumPy array, which must not be written to afterwards."""
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
    """Say whether any array has a sharding."""
    return any([a.__class__ is SHARDED[0] for a in args])


def _wrap(result: Any, type: ArrayType) -> Array:
    if result.__class__ is not np.ndarray:
        result = np.asarray(result)
    if result.dtype != type.dtype:
        result = result.astype(type.dtype)
    return Array(result, type)


EAGER = Eager()

if native is not None:
    native.attach_eager(
        array=Array,
        placed=SHARDED,
        absent=Absent,
        state=state,
        eager=EAGER,
        quiet=quiet,
        ndarray=np.ndarray,
        asarray=np.asarray,
    )
    Eager.process = eager_call(Eager.process)  # type: ignore[method-assign]


class OnDevice(Interpreter):
    """Evaluates operations on arrays that were not put anywhere on one device: ``default_device``.

    Short ways for arrays at rest ask whether the current interpreter is ``EAGER``, so that all of
    them leave what is done under this one to it.
    """

    __slots__ = ("sharding",)

    ended = False
    at_rest = True

    def __init__(self, sharding: Sharding) -> None:
        self.sharding = sharding

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Put the arrays on the device, unless one has a place already, and run it there."""
        run = eager.checked.CHECKED if settings.key.debugged else EAGER
        if meshes(primitive.effects):
            return run.process(primitive, args)
        if all([a.__class__ is Array for a in args]):
            args = [self.put(a) for a in args]
        outs = run.process(primitive, args)
        return tuple([self.put(out) for out in outs]) if primitive.multiple else self.put(outs)

    def put(self, x: Any) -> Any:
        """Put the array on the device, unless it was put anywhere; leave other values alone."""
        return xla.sharded.place(x, self.sharding) if x.__class__ is Array else x


def default_sharding() -> Sharding | None:
    """Say where arrays made here are put; None for the first device, or inside a trace."""
    here = state.interpreter
    return here.sharding if here.__class__ is OnDevice else None


def at_home(x: Any) -> Any:
    """Put the value on the default device if it was not put anywhere."""
    here = state.interpreter
    return here.put(x) if here.__class__ is OnDevice else x


def at_rest(*values: Any) -> bool:
    """Say whether these are concrete arrays and nothing is being traced: NumPy may do the work."""
    return state.interpreter is EAGER and all(v.__class__ is Array for v in values)


def array_of(result: np.ndarray | np.generic, dtype: np.dtype, weak: bool = False) -> Array:
    """Give the array of what NumPy computed, converted to this dtype where it is of another."""
    host: Any = result if result.__class__ is np.ndarray else np.asarray(result)
    if host.dtype != dtype:
        host = host.astype(dtype)
    return Array(host, array_type(host.shape, dtype, weak))
