"""Covariance and correlation of variables."""

from __future__ import annotations

import math
from typing import Any

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import exceeds, is_size
from stretto._engine.core.types import is_complex, kind_of, real_dtype
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.ops.comparison import gt
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.complex_parts import complex_, conj, imag, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.exponential import sqrt
from stretto._engine.ops.layout import reshape
from stretto.numpy.arguments import inexact_values
from stretto.numpy.clipping import clip
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.joining import concatenate
from stretto.numpy.manipulation import diagonal, transpose
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.statistics import average


def _variables(
    caller: str, m: ArrayLike, y: ArrayLike | None, rowvar: bool, dtype: DTypeLike | None
) -> Array:
    """A row for each variable, of a float or complex dtype."""
    parts = []
    for name, argument in (("m" if caller == "cov" else "x", m), ("y", y)):
        if argument is None and name == "y":
            continue
        x = as_value(argument, caller, name)
        if x.ndim > 2:
            raise ValueError(f"{caller}: expected {name} of rank 2 or less, got {x.type}")
        if x.ndim < 2:
            x = reshape(x, (1, x.size))
        elif not rowvar and not (name == "y" and x.shape[0] == 1):
            x = transpose(x)
        parts.append(x)
    if len(parts) == 2:
        x, y = inexact_values(caller, m=parts[0], y=parts[1])
        if x.shape[1] != y.shape[1]:
            raise ValueError(
                f"{caller}: both must have the same number of observations; got "
                f"{parts[0].type} and {parts[1].type}, a row for each variable"
            )
        out = concatenate([x, y], 0)
    else:
        (out,) = inexact_values(caller, m=parts[0])
    return out if dtype is None else convert(out, as_dtype(dtype))


def _weights(x: Array, weights: ArrayLike, name: str) -> Array:
    w = as_value(weights, "cov", name)
    if w.shape != (x.shape[1],):
        raise ValueError(
            f"cov: {name} must be one for each of {x.shape[1]} observations, got {w.type}"
        )
    if name == "fweights" and kind_of(w.dtype) not in ("int", "uint", "bool"):
        raise TypeError(f"cov: fweights, which count observations, must be integers; got {w.type}")
    return convert(w, real_dtype(x.dtype))


@rounded_once
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Estimate the covariance of each pair of variables.

    Args:
        m: the observations of the variables, of rank 2 or less.
        y: more variables with as many observations.
        rowvar: whether each row is a variable and each column an observation, or the other way
            round.
        bias: whether to divide by the n observations; by default by n - 1.
        ddof: divide by n - ``ddof`` instead.
        fweights: how often each observation occurs, integers of shape (n,).
        aweights: how much each observation weighs, of shape (n,).
        dtype: the dtype to compute in, by default the promoted float or complex dtype.

    Returns:
        The matrix of covariances; a number for one variable.

    Raises:
        ValueError: an array is of a higher rank, ``y`` has another number of observations, the
            weights are of another shape, or ``ddof`` is not an integer.
        TypeError: ``fweights`` are not integers.

    As NumPy's ``cov``.

    >>> import stretto.numpy as snp
    >>> snp.cov(snp.array([[1.0, 2.0, 3.0], [4.0, 0.0, 2.0]]))
    Array([[ 1., -1.],
           [-1.,  4.]], dtype=float32)
    """
    if ddof is not None and int(ddof) != ddof:
        raise ValueError(f"cov: ddof must be an integer, got {ddof!r}")
    x = _variables("cov", m, y, rowvar, dtype)
    freedom = (0 if bias else 1) if ddof is None else ddof
    f = None if fweights is None else _weights(x, fweights, "fweights")
    a = None if aweights is None else _weights(x, aweights, "aweights")
    w = f if a is None else a if f is None else f * a
    if w is None:
        total: Any = x.shape[1]
        over: Any = total - freedom if exceeds(total, freedom) else math.nan
        if is_size(total) and not exceeds(total, freedom):
            over = choose(gt(as_value(total), freedom), as_value(total) - freedom, math.nan)
        center = sum_(x, 1, keepdims=True) / total if total else math.nan
        away = x - center
        weighted = away
    else:
        center, totals = average(x, 1, w, returned=True, keepdims=True)
        total = reshape(totals, (totals.size,))[0]
        total = real(total) if is_complex(total.dtype) else total
        lost = freedom if a is None else freedom * sum_(w * a) / total
        over = total - lost
        away = x - center
        weighted = away * w
    out = matmul(weighted, conj(transpose(away)) if is_complex(x.dtype) else transpose(away)) / over
    return reshape(out, ()) if out.shape == (1, 1) else out


@rounded_once
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Estimate the correlation of each pair of variables: covariance over both deviations.

    Args:
        x: the observations of the variables, of rank 2 or less.
        y: more variables with as many observations.
        rowvar: whether each row is a variable and each column an observation, or the other way
            round.
        dtype: the dtype to compute in, by default the promoted float or complex dtype.

    Returns:
        The matrix of correlations, from -1 to 1; a number for one variable.

    Raises:
        ValueError: an array is of a higher rank, or ``y`` has another number of observations.

    As NumPy's ``corrcoef``.

    >>> import stretto.numpy as snp
    >>> snp.corrcoef(snp.array([[1.0, 2.0, 3.0], [4.0, 0.0, 2.0]]))
    Array([[ 1. , -0.5],
           [-0.5,  1. ]], dtype=float32)
    """
    c = cov(_variables("corrcoef", x, y, rowvar, dtype))
    if not c.ndim:
        return c / c
    spread = diagonal(c)
    deviation = sqrt(real(spread) if is_complex(c.dtype) else spread)
    deviation = convert(deviation, c.dtype)
    out = c / reshape(deviation, (-1, 1)) / reshape(deviation, (1, -1))
    if is_complex(c.dtype):
        return complex_(clip(real(out), -1, 1), clip(imag(out), -1, 1))
    return clip(out, -1, 1)
