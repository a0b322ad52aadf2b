"""NumPy's integers in the dtype that arrays hold them in: those that do not fit are refused.

Python's integers out of range are refused by NumPy itself, but its conversion from one integer
dtype to another keeps the low bits: time stamps, identifiers and large products would become other
numbers, silently. All of NumPy's integers that become those of an array of fewer bits are checked
here, in ``interpreter.as_value`` first of all.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from stretto._engine.core.config import config
from stretto._engine.core.integers import shown

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


def narrowed(x: Any, dtype: np.dtype, caller: str, argument: str) -> np.ndarray:
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
