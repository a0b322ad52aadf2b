"""``jax.Array`` and ``jax.core.Tracer``: classes for ``isinstance``, which nothing is made of."""

from __future__ import annotations

import abc
from types import FunctionType
from typing import Any

import numpy as np

from stretto._engine.core import interpreter
from stretto._engine.core.interpreter import Value
from stretto._engine.core.recorder import Traced
from stretto._engine.core.types import array_type
from stretto._engine.xla.array import Array as Concrete
from stretto.random.key_arrays import KeyArray

__all__ = ["Array", "Tracer", "is_key"]


_ARRAYS = {Concrete, Traced, KeyArray}
_OTHERS = {np.ndarray, bool, int, float, complex, str, type(None), FunctionType}
"""Classes that clients ask about for each leaf of a tree."""


class _WithMethods(abc.ABCMeta):
    """Methods can be read off the class, as libraries do that wrap each of them."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Array:
            kind = type(instance)
            if kind in _ARRAYS:
                return True
            if kind in _OTHERS:
                return False
        return super().__instancecheck__(instance)

    def __getattr__(cls, name: str) -> Any:
        return getattr(Concrete, name)


class Array(metaclass=_WithMethods):
    """Arrays, traced values, and typed keys."""

    __module__ = "jax"


Array.register(Value)
Array.register(KeyArray)


def is_key(x: object) -> bool:
    """Whether it is an array of typed keys."""
    return isinstance(x, KeyArray)


class _Traced(type):
    def __instancecheck__(cls, x: Any) -> bool:
        if cls is not Tracer:  # a class that a library derives from it
            return type.__instancecheck__(cls, x)
        if type(x) is Concrete or type(x) in _OTHERS:
            return False
        if isinstance(x, KeyArray):
            x = x._words
        return isinstance(x, interpreter.Tracer)

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls is not Tracer:
            return type.__subclasscheck__(cls, subclass)
        return issubclass(subclass, interpreter.Tracer) or subclass is cls


class Tracer(interpreter.Tracer, metaclass=_Traced):
    """Traced values, and typed keys whose words are traced.

    Libraries derive the values of their own ``Trace`` from it.

    Args:
        trace: the trace that it belongs to.
        aval: its abstract value.
    """

    __module__ = "jax.core"
    position = None

    def __init__(self, trace: Any, aval: Any) -> None:
        self.interpreter = trace
        self.type = _type_of(aval)

    def __getattr__(self, name: str) -> Any:
        if name != "type":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.type = made = _type_of(self.aval)  # of a class that has an ``aval`` of its own
        return made


def _type_of(aval: Any) -> Any:
    return array_type(aval.shape, np.dtype(aval.dtype), bool(aval.weak_type))
