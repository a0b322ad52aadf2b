"""Integer arguments (counts, sizes, axes, positions), with errors that name the argument.

Every function that takes an integer converts it here: Python's own message for a float, a string or
``None`` names neither the function that was called nor the argument.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.sizes import Size

_MOST = (1 << 63) - 1
"""The most elements, or bytes, that can be addressed."""


def shown(n: Any) -> str:
    """Give the number as messages show it: of an integer of hundreds of digits, only the length."""
    if isinstance(n, int) and n.bit_length() > 128:
        return f"{'a negative' if n < 0 else 'an'} integer of {n.bit_length()} bits"
    if isinstance(n, (tuple, list)):
        inner = ", ".join(map(shown, n))
        return f"({inner},)" if len(n) == 1 else f"({inner})"
    return str(n)


def _description(x: Any) -> str:
    """Return what was given where an integer is expected, and how to make it one."""
    if hasattr(x, "type") and hasattr(x, "shape"):
        return f"an array of type {x.type}"
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return f"an array or scalar of dtype {x.dtype} and shape {x.shape}"
    if isinstance(x, float):
        return f"the float {x!r}; use int(...), or // where it comes from a division"
    text = repr(x)
    return text if len(text) <= 60 else f"a value of type {type(x).__name__}"


def integer(x: Any, caller: str, argument: str, least: int | None = None) -> int:
    """Return the argument as a Python integer, at least ``least`` where that is given.

    Raises ``TypeError`` for what is not an integer, ``ValueError`` for one that is too small.
    """
    if x.__class__ is int or x.__class__ is Size:
        n = x
    else:
        try:
            n = operator.index(x)
        except TracedValueError:
            raise
        except TypeError:
            raise TypeError(
                f"{caller}: {argument} must be an integer, got {_description(x)}"
            ) from None
    if least is not None and n < least:
        raise ValueError(f"{caller}: {argument} must be at least {least}, got {shown(n)}")
    return n


def count(x: Any, caller: str, argument: str, least: int) -> int:
    """Do as ``integer``, but refuse booleans: for arguments where ``True`` would be a mistake.

    Raises ``TypeError`` and ``ValueError`` as ``integer`` does.
    """
    _refuse_boolean(x, caller, argument)
    return integer(x, caller, argument, least)


def _refuse_boolean(x: Any, caller: str, argument: str) -> None:
    if isinstance(x, (bool, np.bool_)):
        raise TypeError(f"{caller}: {argument} must be an integer, got the boolean {x}")


def axis_of(x: Any, caller: str, argument: str = "axis") -> int:
    """Do as ``integer``, but refuse booleans: one here is ``keepdims`` in the wrong place."""
    if x.__class__ is int:
        return x
    _refuse_boolean(x, caller, argument)
    return integer(x, caller, argument)


def entries_of(values: Any) -> tuple[Any, ...] | list[Any]:
    """Return the entries of an argument that is one number, or any sequence or array of them."""
    if isinstance(values, (tuple, list)):
        return values
    several = values.ndim > 0 if hasattr(values, "ndim") else _is_sequence(values)
    return tuple(values) if several else (values,)


def _is_sequence(values: Any) -> bool:
    """Say whether it has a length and entries by number, as a library's class for shapes does."""
    by_number = hasattr(type(values), "__len__") and hasattr(type(values), "__getitem__")
    return by_number and not isinstance(values, (str, bytes, Mapping))


def integers(values: Any, caller: str, argument: str, least: int | None = None) -> tuple[int, ...]:
    """Return the elements of a sequence as Python integers; raises as ``integer`` does.

    Raises ``TypeError`` too for what is not a sequence.
    """
    try:
        parts = values if values.__class__ is tuple else tuple(values)
    except TracedValueError:
        raise
    except TypeError:
        raise TypeError(
            f"{caller}: {argument} must be a sequence of integers, got {_description(values)}"
        ) from None
    for n in parts:
        if n.__class__ is not int or (least is not None and n < least):
            return tuple([integer(n, caller, argument, least) for n in parts])
    return parts


def sizes_of(values: Any, caller: str, argument: str = "shape") -> tuple[int, ...]:
    """Return the argument as a shape: integers, none negative, whose product can be addressed.

    One integer is the size of one axis.

    Raises ``TypeError`` as ``integers`` does and for booleans, and ``ValueError`` for the rest.
    """
    values = entries_of(values)
    sizes = integers(values, caller, argument)
    if sizes is not values:
        for n in values:
            _refuse_boolean(n, caller, argument)
    total = 1
    for n in sizes:
        if n < 0:
            raise ValueError(f"{caller}: sizes must not be negative, got {shown(sizes)}")
        total *= 1 if n.__class__ is Size else n or 1
    if total > _MOST:
        raise ValueError(
            f"{caller}: {argument} {shown(sizes)} has more elements than memory can hold"
        )
    return sizes


def pairs_of(values: Any, caller: str, argument: str) -> tuple[tuple[int, int], ...]:
    """Return the argument as (low, high) pairs of integers.

    Raises ``TypeError`` and ``ValueError``.
    """
    try:
        parts = tuple(values)
    except TracedValueError:
        raise
    except TypeError:
        raise TypeError(
            f"{caller}: {argument} must be (low, high) pairs, got {_description(values)}"
        ) from None
    pairs = []
    for part in parts:
        pair = integers(part, caller, argument)
        if len(pair) != 2:
            raise ValueError(f"{caller}: {argument} must be (low, high) pairs, got {part!r}")
        pairs.append(pair)
    return tuple(pairs)
