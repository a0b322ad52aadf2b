"""Functions that compute in float32 for narrower floats, and round once, last.

Layer 2 (ops). A square of 300 is infinite in float16, though the length of a vector of such numbers
is not; and each step of a formula loses digits of which there are few. Sums are added up in float32
by the operations themselves; a formula of several operations asks for it by ``rounded_once``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import is_inexact, kind_of
from stretto._engine.ops.convert import convert

__all__ = ["rounded_once"]

F = TypeVar("F", bound=Callable[..., Any])

_FLOAT32 = np.dtype(np.float32)
_ARRAYS = (Value, np.ndarray, np.generic)
_SEVERAL = (list, tuple)


def rounded_once(fun: F) -> F:
    """Make a function of narrow floats compute in float32, and round its results.

    It does so where all its arrays of floats have one dtype narrower than float32: results of
    float32 then get that dtype. A ``dtype`` that the call names is the function's own business. So
    are calls that it refuses: its error speaks of what it was given.

    Args:
        fun: a function of arrays, given as arguments of their own, or in a list or tuple.

    >>> import stretto.numpy as snp
    >>> @rounded_once
    ... def length(x):
    ...     return snp.sqrt(snp.sum(x * x))
    >>> length(snp.full(64, 300, dtype="float16"))
    Array(2400., dtype=float16)
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            if x.__class__ in _SEVERAL or (isinstance(x, _ARRAYS) and x.dtype.itemsize < 4):
                break
        else:
            if not kwargs:
                return fun(*args, **kwargs)
        dtype = _narrow_dtype([*args, *kwargs.values()])
        if dtype is None or kwargs.get("dtype") is not None:
            return fun(*args, **kwargs)
        try:
            out = fun(
                *[_widened(x) for x in args], **{name: _widened(x) for name, x in kwargs.items()}
            )
        except (TypeError, ValueError):
            return fun(*args, **kwargs)
        return tree.map(lambda x: _rounded(x, dtype), out)

    return call  # type: ignore[return-value]


def _narrow_dtype(args: list[Any]) -> np.dtype | None:
    """The one dtype of all arrays of floats, if there is one and it is narrow."""
    found = None
    for x in [x for arg in args for x in (arg if arg.__class__ in _SEVERAL else (arg,))]:
        if isinstance(x, _ARRAYS) and is_inexact(x.dtype) and not getattr(x, "weak_type", False):
            if x.dtype.itemsize >= 4 or (found is not None and x.dtype != found):
                return None
            found = x.dtype
    return found


def _widened(x: Any) -> Any:
    if x.__class__ in _SEVERAL:
        return x.__class__(map(_widened, x))
    narrow = isinstance(x, _ARRAYS) and x.dtype.itemsize < 4 and kind_of(x.dtype) == "float"
    return convert(as_value(x), _FLOAT32) if narrow else x


def _rounded(x: Any, dtype: np.dtype) -> Any:
    return convert(x, dtype) if isinstance(x, Value) and x.dtype == _FLOAT32 else x
