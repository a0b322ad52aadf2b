"""Choices among arrays, by number or by condition.

Next, read ``applying``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import promote
from stretto._engine.ops import shape as ops
from stretto._engine.ops.broadcast import (
    broadcast_to,
    canonical_axes,
    canonical_axis,
    expand_dims,
    reshape,
)
from stretto._engine.ops.comparison import lt
from stretto._engine.ops.comparison import where as choose_by
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.index.along_axis import take_along_axis
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import clip
from stretto.numpy.directly import BOOL, NUMERIC, directly
from stretto.numpy.indices import concrete_of
from stretto.numpy.joining import take
from stretto.numpy.logic import truth
from stretto.numpy.manipulation import ravel
from stretto.numpy.remainders import remainder
from stretto.numpy.searching import flatnonzero

__all__ = [
    "choose",
    "compress",
    "select",
    "trim_zeros",
]

_INT32 = np.dtype(np.int32)


def _all_of(who: str, arrays: Any, what: str) -> list[Any]:
    """The arrays of a sequence, or along the first axis of one."""
    if isinstance(arrays, (Value, np.ndarray)) and arrays.ndim == 0:
        raise TypeError(f"{who}: {what} must be a sequence of arrays, got one of rank 0")
    given: Any = arrays
    return [as_value(x, who, f"{what}[{i}]") for i, x in enumerate(given)]


def _of_one_dtype(who: str, values: Sequence[Any]) -> list[Any]:
    dtype, weak = promote([(v.type.dtype, v.type.weak_type) for v in values], who)
    return [convert(v, dtype, weak) for v in values]


# By number or by condition


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """For each element of ``a`` the element, at its place, of the array that it is the number of.

    ``a`` and the choices broadcast. Numbers out of bounds: ``"raise"`` raises ``ValueError``, and
    is not for a traced ``a``; ``"wrap"`` counts round and round; ``"clip"`` takes the nearest.

    >>> import stretto.numpy as snp
    >>> snp.choose(snp.array([1, 0]), [snp.array([1, 2]), snp.array([10, 20])])
    Array([10,  2], dtype=int32)
    """
    refuse_out("choose", out)
    x = as_value(a, "choose", "a")
    if x.type.kind not in ("int", "uint", "bool"):
        raise TypeError(f"choose: a must hold integers, got {x.type}")
    values = _of_one_dtype("choose", _all_of("choose", choices, "choices"))
    n = len(values)
    if mode == "wrap":
        x = remainder(x, n)
    elif mode == "clip":
        x = clip(convert(x, _INT32), 0, n - 1)
    elif mode == "raise":
        known = concrete_of(x)
        if known is None:
            raise ValueError(
                f"choose: whether a traced number, {x.type}, is out of bounds cannot be known; "
                f"pass mode='clip' or mode='wrap'"
            )
        if known.size and not 0 <= known.min() <= known.max() < n:
            raise ValueError(f"choose: a number is not from 0 to {n - 1}: {known}")
    else:
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    shape = broadcast_shapes("choose", x.shape, *[v.shape for v in values])
    every = ops.concatenate([expand_dims(broadcast_to(v, shape), 0) for v in values], 0)
    number = expand_dims(broadcast_to(convert(x, _INT32), shape), 0)
    return reshape(take_along_axis(every, number, 0), shape)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each element the choice of the first condition that holds there, else ``default``.

    >>> import stretto.numpy as snp
    >>> x = snp.arange(5)
    >>> snp.select([x < 2, x > 2], [-x, x * x], 42)
    Array([ 0, -1, 42,  9, 16], dtype=int32)
    """
    conditions = _all_of("select", condlist, "condlist")
    choices = _all_of("select", choicelist, "choicelist")
    if len(conditions) != len(choices) or not choices:
        raise ValueError(
            f"select: expected as many conditions as choices, and one at least; got "
            f"{len(conditions)} and {len(choices)}"
        )
    for i, condition in enumerate(conditions):
        if condition.type.kind != "bool":
            raise TypeError(f"select: condlist[{i}] must be boolean, got {condition.type}")
    *values, chosen = _of_one_dtype("select", [*choices, as_value(default, "select", "default")])
    for condition, value in zip(conditions[::-1], values[::-1], strict=True):
        chosen = choose_by(condition, value, chosen)
    return chosen


def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    out: None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """The parts of ``a`` along ``axis`` for which ``condition`` holds; without it, elements.

    A condition that is too short does not hold for the rest. While tracing ``size`` must be given:
    so many parts are taken, and what is missing is ``fill_value``.

    >>> import stretto.numpy as snp
    >>> snp.compress(snp.array([False, True]), snp.array([[1, 2], [3, 4]]), axis=0)
    Array([[3, 4]], dtype=int32)
    """
    refuse_out("compress", out)
    x, mask = as_value(a, "compress", "a"), truth(condition, "compress", "condition")
    if mask.ndim != 1:
        raise ValueError(f"compress: condition must be of rank 1, got {mask.type}")
    if axis is None:
        x, axis = ravel(x), 0
    along = canonical_axis(axis, x.ndim, "compress")
    n = x.shape[along]
    known = concrete_of(mask)
    if mask.size > n and known is not None and known[n:].any():
        raise IndexError(f"compress: the condition holds beyond the {n} parts of {x.type}")
    if size is None and known is not None:
        chosen: Any = known
        found = directly(lambda v: np.compress(chosen, v, along), BOOL + NUMERIC, x)
        if found is not None:
            return found
    mask = ops.slice_in_dim(mask, 0, min(mask.size, n))
    at = flatnonzero(mask, size=size, fill_value=n)
    found = take(x, at, along, mode="clip")
    if size is None:
        return found
    inside = reshape(lt(at, n), tuple([at.size if d == along else 1 for d in range(x.ndim)]))
    return choose_by(inside, found, convert(as_value(fill_value), x.dtype))


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """The array without the zeros at its front and back, along ``axis``, all axes by default.

    ``trim`` names the ends, ``"f"``, ``"b"`` or both. The size of the result depends on values, so
    it is not for traced arrays.

    >>> import stretto.numpy as snp
    >>> snp.trim_zeros(snp.array([0, 0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    ends = trim.lower()
    if not ends or set(ends) - {"f", "b"}:
        raise ValueError(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}")
    x = as_value(filt, "trim_zeros", "filt")
    known = concrete_of(x)
    if known is None:
        raise TracedValueError(
            f"trim_zeros: the shape of the result depends on values, but this {x.type} is traced: "
            f"{x.origin()}. Trim outside, or slice with bounds that are known"
        )
    places = np.argwhere(known)
    for d in canonical_axes(axis, x.ndim, "trim_zeros"):
        if not len(places):
            x = ops.slice_in_dim(x, 0, 0, axis=d)
            continue
        first = int(places[:, d].min()) if "f" in ends else 0
        last = int(places[:, d].max()) + 1 if "b" in ends else None
        x = ops.slice_in_dim(x, first, last, axis=d)
    return x
