"""Integers: arguments (counts, sizes, axes, positions), and NumPy's that do not fit in a dtype.

Every function that takes an integer converts it here: Python's own message for a float, a string or
``None`` names neither the function that was called nor the argument.

Python's integers out of range are refused by NumPy itself, but its conversion from one integer
dtype to another keeps the low bits: time stamps, identifiers and large products would become other
numbers, silently. All of NumPy's integers that become those of an array of fewer bits are checked
here, in ``interpreter.as_value`` first of all.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from stretto._engine.core.config import config
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


_BLOCK = 1 << 15
"""So many elements are looked at, and then converted, while they are in the processor's cache.

Of 10⁷ the copy takes 10.4 ms, with this check 14.5, and with one of the whole before it 18.7.
"""

_least, _greatest = np.minimum.reduce, np.maximum.reduce  # half the time of ``min`` and ``max``


@functools.lru_cache(64)
def _bounds(dtype: np.dtype) -> tuple[int, int]:
    """Return the least and the greatest number of a dtype of NumPy's or of ``ml_dtypes``."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    width = int(dtype.name.lstrip("uint"))  # int4 and its like
    half = 1 << width - 1
    return (0, 2 * half - 1) if dtype.name[0] == "u" else (-half, half - 1)


def fits(x: Any, dtype: np.dtype) -> bool:
    """Say whether NumPy's integers are all in the range of an integer dtype."""
    least, greatest = _bounds(dtype)
    if not x.ndim:
        return least <= x.item() <= greatest
    return not x.size or bool(least <= _least(x, None) and _greatest(x, None) <= greatest)


def check_fits(x: Any, dtype: np.dtype, caller: str, argument: str, asked: bool = False) -> None:
    """Refuse NumPy's integers that are out of the range of a dtype.

    ``asked``: the user named the dtype. With ``integer_overflow="wrap"`` nothing is refused.

    Raises ``OverflowError``, which says where they lie and what to do.
    """
    if not fits(x, dtype):
        _refuse(x, dtype, caller, argument, asked)


def _refuse(x: Any, dtype: np.dtype, caller: str, argument: str, asked: bool) -> None:
    if config.integer_overflow == "wrap":
        return
    low, high = int(x.min()), int(x.max())
    least, greatest = _bounds(dtype)
    type = f"{x.dtype.name}[{','.join(map(str, x.shape))}]"
    held = (
        f"is the integer {shown(low)}, {x.dtype.name}, which does"
        if x.size == 1
        else f"holds integers from {shown(low)} to {shown(high)}, {type}, which do"
    )
    them = "it" if x.size == 1 else "them"
    if asked:
        ways = (
            f"ask for a wider dtype, or convert {them} first by NumPy's .astype({dtype.name!r}), "
            f"which keeps the low bits"
        )
    else:
        ways = (
            f"64-bit types are off; set stretto.config.enable_x64 = True, convert {them} to a "
            f"float first (.astype('float32')), or subtract an offset"
        )
    raise OverflowError(
        f"{caller}: {argument} {held} not fit in {dtype.name} ({least} to {greatest}): {ways}"
    )


def narrow(x: Any, dtype: np.dtype, caller: str, argument: str) -> np.ndarray:
    """Copy NumPy's integers as those of a dtype of fewer bits, in the order of C.

    Raises ``OverflowError`` for one that does not fit.
    """
    x = np.asarray(x)
    if x.size <= _BLOCK or not x.flags.c_contiguous:
        if not fits(x, dtype):
            _refuse(x, dtype, caller, argument, False)
        return np.array(x, dtype, order="C", copy=True)
    out = np.empty(x.shape, dtype)
    given, made = x.reshape(-1), out.reshape(-1)
    for i in range(0, given.size, _BLOCK):
        part = given[i : i + _BLOCK]
        if not fits(part, dtype):
            _refuse(x, dtype, caller, argument, False)
        made[i : i + _BLOCK] = part
    return out
