"""Integers among arguments: counts, sizes, axes, places; or an error that names the argument.

Layer 1 (core). Whoever takes an integer takes it through here: Python's own message for a float,
a string or ``None`` says neither which function nor which argument it was given to.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from stretto._engine.core.errors import TracedValueError

__all__ = ["axis_of", "count", "integer", "integers", "pairs_of", "shown", "sizes_of"]

_MOST = (1 << 63) - 1
"""As many elements, or bytes, as can be addressed."""


def shown(n: Any) -> str:
    """The number as messages show it: an integer of hundreds of digits by its length alone."""
    if isinstance(n, int) and n.bit_length() > 128:
        return f"{'a negative' if n < 0 else 'an'} integer of {n.bit_length()} bits"
    if isinstance(n, (tuple, list)):
        inner = ", ".join(map(shown, n))
        return f"({inner},)" if len(n) == 1 else f"({inner})"
    return str(n)


def _described(x: Any) -> str:
    """What was given where an integer is expected, and how it becomes one."""
    if hasattr(x, "type") and hasattr(x, "shape"):
        return f"an array of type {x.type}"
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return f"an array or scalar of dtype {x.dtype} and shape {x.shape}"
    if isinstance(x, float):
        return f"the float {x!r}; use int(...), or // where it comes from a division"
    text = repr(x)
    return text if len(text) <= 60 else f"a value of type {type(x).__name__}"


def integer(x: Any, caller: str, argument: str, least: int | None = None) -> int:
    """The argument as a Python integer, of at least ``least`` where that is given.

    Raises ``TypeError`` for what is no integer, ``ValueError`` for one that is too small.
    """
    if x.__class__ is int:
        n = x
    else:
        try:
            n = operator.index(x)
        except TracedValueError:
            raise
        except TypeError:
            raise TypeError(
                f"{caller}: {argument} must be an integer, got {_described(x)}"
            ) from None
    if least is not None and n < least:
        raise ValueError(f"{caller}: {argument} must be at least {least}, got {shown(n)}")
    return n


def count(x: Any, caller: str, argument: str, least: int) -> int:
    """The argument as ``integer`` gives it; a boolean is none, as where ``True`` means a default.

    Raises ``TypeError`` and ``ValueError``.
    """
    _refuse_boolean(x, caller, argument)
    return integer(x, caller, argument, least)


def _refuse_boolean(x: Any, caller: str, argument: str) -> None:
    if isinstance(x, (bool, np.bool_)):
        raise TypeError(f"{caller}: {argument} must be an integer, got the boolean {x}")


def axis_of(x: Any, caller: str, argument: str = "axis") -> int:
    """The argument as ``integer`` gives it; a boolean is none: ``keepdims`` in the wrong place."""
    if x.__class__ is int:
        return x
    _refuse_boolean(x, caller, argument)
    return integer(x, caller, argument)


def integers(values: Any, caller: str, argument: str, least: int | None = None) -> tuple[int, ...]:
    """The parts of the argument as Python integers; raises as ``integer`` does.

    Raises ``TypeError`` too for what has no parts.
    """
    try:
        parts = values if values.__class__ is tuple else tuple(values)
    except TracedValueError:
        raise
    except TypeError:
        raise TypeError(
            f"{caller}: {argument} must be a sequence of integers, got {_described(values)}"
        ) from None
    for n in parts:
        if n.__class__ is not int or (least is not None and n < least):
            return tuple([integer(n, caller, argument, least) for n in parts])
    return parts


def sizes_of(values: Any, caller: str, argument: str = "shape") -> tuple[int, ...]:
    """The argument as a shape: integers that are not negative, of as many elements as can be.

    Raises ``TypeError`` for booleans too, which in a shape are a mistake.
    """
    sizes = integers(values, caller, argument)
    if sizes is not values:
        for n in values:
            _refuse_boolean(n, caller, argument)
    total = 1
    for n in sizes:
        if n < 0:
            raise ValueError(f"{caller}: sizes must not be negative, got {shown(sizes)}")
        total *= n or 1
    if total > _MOST:
        raise ValueError(
            f"{caller}: {argument} {shown(sizes)} has more elements than memory can hold"
        )
    return sizes


def pairs_of(values: Any, caller: str, argument: str) -> tuple[tuple[int, int], ...]:
    """The argument as (low, high) pairs of integers; raises ``TypeError`` and ``ValueError``."""
    try:
        parts = tuple(values)
    except TracedValueError:
        raise
    except TypeError:
        raise TypeError(
            f"{caller}: {argument} must be (low, high) pairs, got {_described(values)}"
        ) from None
    pairs = []
    for part in parts:
        pair = integers(part, caller, argument)
        if len(pair) != 2:
            raise ValueError(f"{caller}: {argument} must be (low, high) pairs, got {part!r}")
        pairs.append(pair)
    return tuple(pairs)
