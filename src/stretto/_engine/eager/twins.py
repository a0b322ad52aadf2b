"""Twins in NumPy for functions of operations, which do their work at rest: ``eager``.

A function written with operations goes through memory once for each of them; where nothing is being
traced, and NumPy has the function with the same meaning, NumPy needs only one pass. The body of
such a function says what it means while it is traced, and handles the arguments that its twin does
not take; the table of all public functions checks that both give the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from stretto._engine.core.boundary import reraise_foreign
from stretto._engine.core.interpreter import state
from stretto._engine.core.types import ArrayType, array_type, default_dtype, differ
from stretto._engine.core.typing import DType, Tree
from stretto._engine.eager.binary import element_of
from stretto._engine.eager.interpreter import EAGER, array_of, quiet
from stretto._engine.xla.array import Array

BOOL, INT, UINT, FLOAT, COMPLEX = "?", "bhilq", "BHILQ", "fd", "FD"
"""The dtypes that NumPy computes in as XLA does, by their characters: no floats below 32 bits."""

INTEGER = INT + UINT
REAL = INTEGER + FLOAT
NUMERIC = REAL + COMPLEX
ANY = None
"""Every dtype, for twins that only move elements; the result is weakly typed as the array is."""

AS_GIVEN: Any = object()
"""A result's dtype is that of the NumPy array which the twin returns."""

INDEX: Any = object()
"""A result's dtype is the default integer, which ``enable_x64`` decides."""

_SAME: Any = object()
_REFUSALS = (ValueError, TypeError, LookupError, ArithmeticError, RuntimeError)
"""The errors of NumPy; its ``LinAlgError`` is a ``ValueError``."""

F = TypeVar("F", bound=Callable[..., Any])
Host: TypeAlias = np.ndarray | np.generic
"""An operand of NumPy's."""


def eager(
    twin: Callable[..., Any],
    kinds: str | tuple[str, ...] | None,
    dtype: DType | tuple[DType | None, ...] | None = _SAME,
) -> Callable[[F], F]:
    """Decorate a function of arrays with its twin, a function of NumPy arrays.

    Where nothing is being traced, and all arguments by position are concrete, ``twin`` is called
    with their NumPy arrays, and with the same options by keyword. The function itself is called
    otherwise, and where the twin raises one of NumPy's errors or returns None, so that its own
    message is what the user sees.

    Args:
        twin: takes what the function takes, with NumPy arrays, which it must not write to, and
            returns a NumPy array, or a tuple or list of them; None where it has no result.
        kinds: the characters of the dtypes that the arrays may have, all the same; beside one of
            them there may be Python numbers, which take its dtype. A tuple has the characters
            for each array of its own. ``ANY``: all have the same dtype, of any kind.
        dtype: the dtype of the result, by default that of the first array; a tuple has one for
            each of several results, with None for the default; ``AS_GIVEN``: as the twin has it;
            ``INDEX``: the default integer.
    """
    hosts_of = _hosts_of_each(kinds) if isinstance(kinds, tuple) else _hosts_of_one(kinds)

    def decorate(function: F) -> F:
        code = function.__code__  # type: ignore[attr-defined]
        count = None if code.co_flags & inspect.CO_VARARGS else code.co_argcount
        takes_options = bool(code.co_kwonlyargcount)

        def apply(*arrays: Any, **options: Any) -> Tree:
            if state.interpreter is not EAGER or (options and not takes_options):
                return function(*arrays, **options)
            if len(arrays) != count and count is not None:
                return function(*arrays, **options)
            hosts = hosts_of(arrays)
            if hosts is None:
                return function(*arrays, **options)
            try:
                result = quiet.run(twin, *hosts, **options)
            except _REFUSALS as error:
                reraise_foreign(error)
                result = None
            if result is None:
                return function(*arrays, **options)
            first: Any = _first(arrays)
            return _result(result, dtype, first)

        def apply_to_one(*arrays: Any, **options: Any) -> Tree:
            """Do the same with fewer calls, for functions of one array, as most of them are."""
            if len(arrays) == 1 and (takes_options or not options):
                (x,) = arrays
                if x.__class__ is Array and state.interpreter is EAGER:
                    type = x.type
                    if kinds is None or (type.dtype.char in kinds and not type.weak_type):
                        try:
                            result = quiet.run(twin, x.to_host(), **options)
                        except _REFUSALS as error:
                            reraise_foreign(error)
                            result = None
                        if result is not None:
                            return _result(result, dtype, type)
            return function(*arrays, **options)

        wrapper = apply_to_one if count == 1 and not isinstance(kinds, tuple) else apply
        return functools.wraps(function)(wrapper)  # type: ignore[return-value]

    return decorate


def _hosts_of_one(kinds: str | None) -> Callable[[Sequence[Any]], list[Host] | None]:
    """Make a function from arguments of one dtype to their NumPy arrays, or None."""

    def hosts_of(arrays: Sequence[Any]) -> list[Host] | None:
        first = _first(arrays)
        if first is None:
            return None
        if kinds is not None and (first.weak_type or first.dtype.char not in kinds):
            return None
        hosts: list[Host] = []
        for x in arrays:
            if x.__class__ is Array and x.type is first:
                hosts.append(x.to_host())
                continue
            host = _host_beside(x, first)
            if host is None:
                return None
            hosts.append(host)
        return hosts

    return hosts_of


def _hosts_of_each(kinds: tuple[str, ...]) -> Callable[[Sequence[Any]], list[Host] | None]:
    """Make a function from arguments, each with its own dtypes, to their NumPy arrays, or None."""

    def hosts_of(arrays: Sequence[Any]) -> list[Host] | None:
        hosts: list[Host] = []
        for x, chars in zip(arrays, kinds, strict=True):
            if x.__class__ is not Array:
                return None
            type = x.type
            if type.weak_type or type.dtype.char not in chars:
                return None
            hosts.append(x.to_host())
        return hosts

    return hosts_of


def _host_beside(x: Tree, first: ArrayType) -> Host | None:
    """Give NumPy's operand for an argument beside an array of this type; None for no call."""
    if x.__class__ is not Array:
        return element_of(x, first)
    type = x.type
    if type is not first:
        if type.dtype is not first.dtype or type.weak_type != first.weak_type:
            return None
        if differ(first.shape, type.shape):
            return None
    return x.to_host()


def _first(arrays: Sequence[Any]) -> ArrayType | None:
    """Find the type of the first concrete array."""
    for x in arrays:
        if x.__class__ is Array:
            return x.type
    return None


def _result(result: Tree, dtype: Tree, first: ArrayType) -> Tree:
    """Make arrays of what NumPy returned for arrays of which the first has this type."""
    if result.__class__ is tuple or result.__class__ is list:
        if dtype.__class__ is not tuple:
            return result.__class__([_result(part, dtype, first) for part in result])
        dtypes = dtype
        pairs = zip(result, dtypes, strict=True)
        return result.__class__([_result(m, _SAME if d is None else d, first) for m, d in pairs])
    host = result if result.__class__ is np.ndarray else np.asarray(result)
    if dtype is AS_GIVEN:
        return Array(host, array_type(host.shape, host.dtype))
    weak = False
    if dtype is INDEX:
        dtype = default_dtype("int")
    elif dtype is _SAME:
        dtype, weak = first.dtype, first.weak_type
        if host.dtype is dtype and host.shape == first.shape:
            return Array(host, first)
    return array_of(host, dtype, weak)
