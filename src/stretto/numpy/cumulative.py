"""Sums and products of the elements so far."""

from __future__ import annotations

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import default_dtype, kind_of
from stretto._engine.core.typing import Array, ArrayLike, Axis, DTypeLike
from stretto._engine.ops.broadcast import reshape
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import canonical_axis
from stretto._engine.ops.reducing import cumulative
from stretto._engine.ops.shape import pad
from stretto.numpy.arguments import refuse_out
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.reductions import total_dtype, wide_dtype

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]

_BOOL, _FLOAT32 = np.dtype(bool), np.dtype(np.float32)


def _running(caller: str, a: ArrayLike, axis: Axis, dtype: DTypeLike | None, out: None) -> Array:
    x = as_value(a, caller, "a")
    refuse_out(caller, out)
    if dtype is not None:
        wanted = as_dtype(dtype)
    else:
        wanted = default_dtype("int") if kind_of(x.dtype) == "bool" else x.dtype
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    if wanted is _BOOL:  # true from the first true one on, or until the first false one
        operation = cumulative.cummax if caller == "cumsum" else cumulative.cummin
    else:
        operation = cumulative.cumsum if caller == "cumsum" else cumulative.cumprod
    return convert(operation(convert(x, wide_dtype(wanted)), axis), wanted)


def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Sum the elements up to each one along an axis.

    Args:
        a: an array, or a number.
        axis: the axis to run along; by default all elements, in row-major order.
        dtype: the dtype of the sums; by default that of ``a``, the default integer for booleans.
        out: must be None: arrays are immutable.

    Returns:
        The running sums, of the shape of ``a``, or of one axis without ``axis``.

    Raises:
        NotImplementedError: ``out`` is given.
        ValueError: ``axis`` is out of bounds.

    As NumPy's ``cumsum``.

    >>> import stretto.numpy as snp
    >>> snp.cumsum(snp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _running("cumsum", a, axis, dtype, out)


@described_like(cumsum)
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Multiply the elements up to each one along an axis.

    Args:
        dtype: the dtype of the products; by default that of ``a``, the default integer for
            booleans.

    Returns:
        The running products, of the shape of ``a``, or of one axis without ``axis``.

    As NumPy's ``cumprod``.

    >>> import stretto.numpy as snp
    >>> snp.cumprod(snp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _running("cumprod", a, axis, dtype, out)


def _cumulative(
    caller: str, x: ArrayLike, axis: Axis, dtype: DTypeLike | None, include_initial: bool
) -> Array:
    value = as_value(x, caller)
    if axis is None and value.ndim != 1:
        raise ValueError(
            f"{caller}: axis must be given for an array of rank other than 1, {value.type}"
        )
    place = canonical_axis(0 if axis is None else axis, value.ndim, caller)
    wanted = total_dtype(value.dtype) if dtype is None else as_dtype(dtype)
    short = "cumsum" if caller == "cumulative_sum" else "cumprod"
    out = _running(short, convert(value, wanted), place, wanted, None)
    if not include_initial:
        return out
    config = [(int(d == place), 0, 0) for d in range(value.ndim)]
    return pad(out, 0 if short == "cumsum" else 1, config)


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Sum the elements up to each one along an axis, if asked with a leading zero.

    Args:
        x: an array; ``axis`` may be left out only if it has rank 1.
        axis: the axis to run along.
        dtype: the dtype of the sums; by default that of ``x``, at least 32 bits for integers.
        include_initial: whether to begin with a zero, which makes the axis longer by one.

    Returns:
        The running sums, of the shape of ``x``, with one more if ``include_initial``.

    Raises:
        ValueError: ``axis`` is out of bounds, or is missing for a rank other than 1.

    As the array API standard's ``cumulative_sum``.

    >>> import stretto.numpy as snp
    >>> snp.cumulative_sum(snp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative("cumulative_sum", x, axis, dtype, include_initial)


@described_like(cumulative_sum)
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Multiply the elements up to each one along an axis, if asked with a leading one.

    Args:
        dtype: the dtype of the products; by default that of ``x``, at least 32 bits for integers.
        include_initial: whether to begin with a one, which makes the axis longer by one.

    Returns:
        The running products, of the shape of ``x``, with one more if ``include_initial``.

    As the array API standard's ``cumulative_prod``.

    >>> import stretto.numpy as snp
    >>> snp.cumulative_prod(snp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    return _cumulative("cumulative_prod", x, axis, dtype, include_initial)
