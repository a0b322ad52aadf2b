"""NumPy's own function in the place of several operations, for plain arrays at rest.

A function written with operations goes through memory once for each of them; where nothing is being
traced, and NumPy has the function with the same meaning, NumPy does it in one. What it refuses or
cannot take goes the general way, which says what is wrong. Next, read ``methods``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core.boundary import reraise_foreign
from stretto._engine.core.interpreter import state
from stretto._engine.core.ranks import differ
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.runtime.array import Array
from stretto._engine.runtime.eager import EAGER, quiet
from stretto.numpy.quick import element_of

__all__ = ["BOOL", "COMPLEX", "FLOAT", "INT", "INTEGER", "NUMERIC", "REAL", "directly", "host_of"]

BOOL, INT, UINT, FLOAT, COMPLEX = "?", "bhilq", "BHILQ", "fd", "FD"
"""The dtypes that NumPy computes in as XLA does, by their characters: no floats below 32 bits."""

INTEGER = INT + UINT
REAL = INTEGER + FLOAT
NUMERIC = REAL + COMPLEX

_SAME = object()
_REFUSALS = (ValueError, TypeError, LookupError, ArithmeticError, RuntimeError)
"""What NumPy raises; its ``LinAlgError`` is a ``ValueError``."""


def host_of(x: Any, kinds: str) -> Any:
    """The NumPy array of a concrete one of these kinds, at rest; else None."""
    if x.__class__ is not Array or state.interpreter is not EAGER:
        return None
    type = x.type
    return None if type.weak_type or type.dtype.char not in kinds else x.to_host()


def directly(
    function: Callable[..., Any], kinds: str, *arrays: Any, out: Any = _SAME, **options: Any
) -> Any:
    """What NumPy's function gives of ``arrays``, with ``options``; None where it is not for it.

    The arrays must be concrete, of one dtype of these ``kinds``, and nothing be traced; beside one
    there may be Python numbers that take its dtype. ``out`` is the dtype of the result, by default
    theirs, or a tuple of dtypes for a tuple of results, with None for theirs.
    """
    if state.interpreter is not EAGER:
        return None
    first = None
    for x in arrays:
        if x.__class__ is Array:
            first = x.type
            break
    if first is None or first.dtype.char not in kinds:
        return None
    if not first.shape and options.get("axis") is not None:
        return None  # NumPy takes some axes of a scalar, which has none
    dtype = first.dtype
    hosts = [_host_beside(x, first) for x in arrays]
    if any([host is None for host in hosts]):
        return None
    try:
        made = quiet.run(function, *hosts, **options)
    except _REFUSALS as error:
        reraise_foreign(error)
        return None
    if out.__class__ is tuple:
        return tuple([_array(m, d or dtype) for m, d in zip(made, out, strict=True)])
    return _array(made, dtype if out is _SAME else out)


def _host_beside(x: Any, first: ArrayType) -> Any:
    """What NumPy is given of an argument beside an array of this type; None where it is not."""
    if x.__class__ is not Array:
        return element_of(x, first)
    type = x.type
    if type.weak_type or type.dtype is not first.dtype or differ(first.shape, type.shape):
        return None
    return x.to_host()


def _array(made: Any, dtype: Any) -> Array:
    host = made if made.__class__ is np.ndarray else np.asarray(made)
    if host.dtype != dtype:
        host = host.astype(dtype)
    return Array(host, array_type(host.shape, dtype))
