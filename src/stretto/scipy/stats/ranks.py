"""Ranks, modes and standard errors of samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stretto._engine.api.vectorize import vmap
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Axis, Shape, Tree
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.layout import canonical_axis, reshape
from stretto._engine.ops.powers import root_of_squares
from stretto.numpy.arguments import inexact_values, weakly_inexact
from stretto.numpy.cumulative import cumsum
from stretto.numpy.extrema import argmax
from stretto.numpy.joining import concatenate
from stretto.numpy.logic import isnan
from stretto.numpy.manipulation import expand_dims, moveaxis
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.searching import searchsorted, where
from stretto.numpy.sorting import argsort
from stretto.numpy.sorting import sort as sort_
from stretto.numpy.statistics import var
from stretto.numpy.without_nan import nanvar


class ModeResult(NamedTuple):
    """The most frequent value, and how often it occurs."""

    mode: Array
    count: Array


def _along(
    x: Array, axis: Axis, caller: str, fun: Callable[[Array], Tree]
) -> tuple[Tree, int, Shape]:
    """``fun`` of each vector along an axis, the axis, and the sizes of the other axes."""
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = canonical_axis(axis, x.ndim, caller)
    last = moveaxis(x, axis, -1)
    rows = reshape(last, (math.prod(last.shape[:-1]), last.shape[-1]))
    return vmap(fun)(rows), axis, last.shape[:-1]


def _check_nan_policy(caller: str, nan_policy: str, *others: str) -> None:
    allowed = ("propagate", *others)
    if nan_policy not in allowed:
        raise NotImplementedError(
            f"{caller}: nan_policy must be {' or '.join(map(repr, allowed))}, got "
            f"{nan_policy!r}; select the values with where="
        )


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: Axis = None, nan_policy: str = "propagate"
) -> Array:
    """Rank the elements by size, from 1.

    Args:
        a: an array.
        method: what equal elements get: ``"average"`` (floats), ``"min"`` or ``"max"`` of their
            ranks; ``"dense"``, ``"min"`` without gaps; or ``"ordinal"``, ranks in the order in
            which they stand.
        axis: the axis to rank along; by default all elements are ranked together.
        nan_policy: must be ``"propagate"``.

    Returns:
        The ranks; all NaN where there is a NaN along the axis.

    Raises:
        ValueError: there is no such method, or the axis is out of bounds.
        NotImplementedError: there is no such ``nan_policy``.

    As SciPy's ``rankdata``.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import rankdata
    >>> rankdata(snp.array([3.0, 1.0, 3.0]))
    Array([2.5, 1. , 2.5], dtype=float32)
    """
    _check_nan_policy("rankdata", nan_policy)
    x = as_value(a, "rankdata", "a")
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(
            f"rankdata: method must be 'average', 'min', 'max', 'dense' or 'ordinal', got "
            f"{method!r}"
        )
    if not x.size:
        return inexact_values("rankdata", a=x)[0]

    def rank(row: Array) -> Array:
        if method == "ordinal":
            return argsort(argsort(row)) + 1
        ordered = sort_(row)
        if method == "dense":
            is_new = concatenate(
                [full_like(ordered[:1], True, np.dtype(bool)), ordered[1:] != ordered[:-1]]
            )
            return cumsum(is_new.astype(int))[searchsorted(ordered, row)]
        first = searchsorted(ordered, row) + 1
        last = searchsorted(ordered, row, side="right")
        return {"min": first, "max": last, "average": (first + last) / 2}[method]

    out, position, others = _along(x, axis, "rankdata", rank)
    out = moveaxis(reshape(out, (*others, out.shape[-1])), -1, position)
    if is_inexact(x.dtype):
        missing = any_(isnan(x), axis=axis, keepdims=axis is not None)
        out = where(missing, math.nan, weakly_inexact(out))
    return reshape(out, (-1,)) if axis is None else out


def mode(
    a: ArrayLike, axis: Axis = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Find the most frequent value along an axis, and its count.

    Args:
        a: an array.
        axis: the axis to go along; None for all elements.
        nan_policy: must be ``"propagate"``; NaN equal one another, and come after all numbers.
        keepdims: whether to keep the axis, with size 1.

    Returns:
        The values, the smallest of equally frequent ones, and their counts.

    Raises:
        ValueError: ``a`` is empty, or the axis is out of bounds.
        NotImplementedError: there is no such ``nan_policy``.

    As SciPy's ``mode``.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import mode
    >>> mode(snp.array([3, 1, 3, 1])).mode
    Array(1, dtype=int32)
    """
    _check_nan_policy("mode", nan_policy)
    x = as_value(a, "mode", "a")

    def most_frequent(row: Array) -> tuple[Array, Array]:
        ordered = sort_(row)
        counts = searchsorted(ordered, ordered, side="right") - searchsorted(ordered, ordered)
        position = argmax(counts)
        return ordered[position], counts[position]

    if without_elements(x.size, "mode"):
        raise ValueError(f"mode: {x.type} has no elements")
    (value, count), position, others = _along(x, axis, "mode", most_frequent)
    parts = [reshape(v, others) for v in (value, count)]
    if keepdims:
        new_axes = tuple(range(x.ndim)) if axis is None else position
        parts = [expand_dims(v, new_axes) for v in parts]
    return ModeResult(*parts)


@rounded_once
def sem(
    a: ArrayLike, axis: Axis = 0, ddof: int = 1, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Compute the standard error of the mean along an axis.

    Args:
        a: an array.
        axis: the axis to go along; None for all elements.
        ddof: what is subtracted from the count in the variance.
        nan_policy: ``"propagate"``, or ``"omit"`` to leave out NaN.
        keepdims: whether to keep the axis, with size 1.

    Returns:
        The standard deviation over the root of the count.

    Raises:
        ValueError: the axis is out of bounds.
        NotImplementedError: there is no such ``nan_policy``.

    As SciPy's ``sem``.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import sem
    >>> sem(snp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    _check_nan_policy("sem", nan_policy, "omit")
    (x,) = inexact_values("sem", a=a)
    axis = None if axis is None else canonical_axis(axis, x.ndim, "sem")
    if nan_policy == "omit":
        count = sum_(~isnan(x), axis=axis, keepdims=keepdims)
        spread = nanvar(x, axis=axis, ddof=ddof, keepdims=keepdims)
        return root_of_squares(spread / convert(count, x.dtype))
    count = x.size if axis is None else x.shape[axis]
    spread = var(x, axis=axis, ddof=ddof, keepdims=keepdims)
    return root_of_squares(spread / convert(as_value(count), x.dtype))
