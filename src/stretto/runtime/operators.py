"""The short way for operators between concrete arrays.

Layer 6 (runtime). Two arrays of one type, or an array and a Python number, at rest: NumPy's ufunc
at once, with the type already known. All else takes the general way. Both give the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto.core.interpreter import state
from stretto.core.types import array_type
from stretto.runtime.array import Array
from stretto.runtime.eager import EAGER, quiet

__all__ = ["attach"]

_NUMBERS = {
    "float": (float, int),
    "int": (int,),
    "uint": (int,),
    "complex": (complex, float, int),
}
_BOOL = np.dtype(bool)
_ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_COMPARISON = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def _arithmetic(ufunc: Any, slow: Callable[..., Any], kinds: frozenset[str]) -> Callable[..., Any]:
    def operator(self: Array, other: Any) -> Any:
        type = self.type
        if state.interpreter is EAGER and type.kind in kinds:
            if other.__class__ is Array:
                if other.type is type:
                    x, y = self._host, other._host
                    if x is None:
                        x = self.to_host()
                    if y is None:
                        y = other.to_host()
                    out = quiet.run(ufunc, x, y)
                    return Array(out if out.__class__ is np.ndarray else np.asarray(out), type)
            elif other.__class__ in _NUMBERS[type.kind]:
                x = self.to_host()
                try:
                    out = quiet.run(ufunc, x, other)
                except OverflowError:
                    return slow(self, other)
                if out.dtype == x.dtype:
                    return Array(out if out.__class__ is np.ndarray else np.asarray(out), type)
        return slow(self, other)

    return operator


def _comparison(ufunc: Any, slow: Callable[..., Any]) -> Callable[..., Any]:
    def operator(self: Array, other: Any) -> Any:
        type = self.type
        if state.interpreter is EAGER and other.__class__ is Array and other.type is type:
            if type.kind != "complex":
                out = quiet.run(ufunc, self.to_host(), other.to_host())
                return Array(np.asarray(out), array_type(type.shape, _BOOL))
        return slow(self, other)

    return operator


def attach() -> None:
    """Give ``Array`` these operators, in front of those that all values have."""
    numeric = frozenset(("float", "int", "uint", "complex"))
    for name, ufunc in _ARITHMETIC.items():
        method = f"__{name}__"
        setattr(Array, method, _arithmetic(ufunc, getattr(Array, method), numeric))
    inexact = frozenset(("float", "complex"))
    slow = Array.__truediv__
    Array.__truediv__ = _arithmetic(np.true_divide, slow, inexact)  # type: ignore[method-assign]
    for name, ufunc in _COMPARISON.items():
        method = f"__{name}__"
        setattr(Array, method, _comparison(ufunc, getattr(Array, method)))
