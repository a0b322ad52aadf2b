"""What ``eager`` measures: functions that NumPy has, on arrays of a size and a dtype.

A row's function gets ``numpy`` or ``stretto.numpy`` first, then the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

__all__ = ["DTYPES", "ROWS", "Row"]

Maker = Callable[[np.random.Generator, int, np.dtype[Any]], NDArray[Any]]

DTYPES = {
    "float32": np.dtype(np.float32),
    "int32": np.dtype(np.int32),
    "bool": np.dtype(bool),
    "complex64": np.dtype(np.complex64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}

_REAL = ("float32", "int32")
_FLOAT = ("float32",)
_INT = ("int32",)
_ARITHMETIC = ("float32", "int32", "complex64", "float16", "bfloat16")
_INEXACT = ("float32", "complex64", "float16", "bfloat16")


@dataclass(frozen=True)
class Row:
    """A function, how its arrays are made, and the dtypes that it is measured in."""

    name: str
    function: Callable[..., Any]
    makers: tuple[Maker, ...]
    dtypes: tuple[str, ...] = _FLOAT
    most: int = 10**7
    """The greatest size: less where the time grows faster than the size."""


# Arrays


def line(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers about 0; integers from -1000 to 1000."""
    if dtype.kind == "b":
        return random.random(n) < 0.5
    if dtype.kind in "iu":
        return random.integers(-1000, 1000, n).astype(dtype)
    numbers: NDArray[Any] = random.standard_normal(n)
    if dtype.kind == "c":
        numbers = numbers + 1j * random.standard_normal(n)
    return numbers.astype(dtype)


def positive(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """From 0.1 to 1.1; integers from 1 to 99."""
    if dtype.kind in "iu":
        return random.integers(1, 100, n).astype(dtype)
    return (random.random(n) + 0.1).astype(dtype)


def few(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """From 0 to 4."""
    return random.integers(0, 5, n).astype(dtype)


def square(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A matrix of about ``n`` elements."""
    side = max(1, math.isqrt(n))
    return line(random, side * side, dtype).reshape(side, side)


def thin(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Rows of ten."""
    rows = max(1, n // 10)
    return line(random, rows * 10, dtype).reshape(rows, 10)


def stack(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Matrices of 8 by 8, far from singular."""
    count = max(1, n // 64)
    return line(random, count * 64, dtype).reshape(count, 8, 8) + 8 * np.eye(8, dtype=dtype)


def definite(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Matrices of 8 by 8 that are symmetric and positive definite."""
    matrices = stack(random, n, dtype)
    return matrices @ matrices.swapaxes(1, 2)


def mask(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Truth values."""
    return random.random(n) < 0.5


def places(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Indices into as many elements."""
    return random.integers(0, n, n).astype(np.int32)


def rows_of_ten(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Indices into the rows of ``thin``."""
    rows = max(1, n // 10)
    return random.integers(0, rows, rows).astype(np.int32)


def rising(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """In order."""
    return np.sort(line(random, n, dtype))


def short(random: np.random.Generator, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Eleven."""
    return line(random, 11, dtype)


# Functions


def _named(name: str) -> Callable[..., Any]:
    """The function of this name in the module given first."""

    def call(module: Any, *arrays: Any) -> Any:
        function = module
        for part in name.split("."):
            function = getattr(function, part)
        return function(*arrays)

    return call


def _along(name: str, axis: int) -> Callable[..., Any]:
    return lambda module, x: getattr(module, name)(x, axis=axis)


def _rows(names: str, *makers: Maker, dtypes: tuple[str, ...] = _FLOAT, most: int = 10**7) -> Any:
    return [Row(name, _named(name), makers, dtypes, most) for name in names.split()]


def _updated(kind: str) -> Callable[..., Any]:
    def call(module: Any, x: Any, at: Any, values: Any) -> Any:
        if module is not np:
            return getattr(x.at[at], kind)(values)
        out = x.copy()
        if kind == "set":
            out[at] = values
        else:
            np.add.at(out, at, values)
        return out

    return call


ROWS: list[Row] = [
    *_rows("exp log sqrt sin tanh", positive, dtypes=_INEXACT),
    *_rows("exp2 expm1 log1p log2 log10 cbrt cos tan sinh cosh arcsinh arctan sinc", positive),
    *_rows("negative absolute sign square", line, dtypes=_ARITHMETIC),
    *_rows("floor ceil trunc rint reciprocal isnan isinf isfinite signbit nan_to_num", line),
    *_rows("add subtract multiply divide", line, positive, dtypes=_ARITHMETIC),
    *_rows("maximum minimum less equal", line, line, dtypes=(*_REAL, "float16", "bfloat16")),
    *_rows("floor_divide remainder fmod", line, positive, dtypes=_REAL),
    *_rows("fmax fmin hypot arctan2 copysign logaddexp nextafter isclose", line, line),
    *_rows("bitwise_and bitwise_xor gcd", line, positive, dtypes=_INT),
    *_rows("left_shift", positive, few, dtypes=_INT),
    *_rows("power", positive, few, dtypes=_REAL),
    Row("x * 2", lambda module, x: x * 2, (line,), _ARITHMETIC),
    Row("x ** 2", lambda module, x: x**2, (line,), _REAL),
    Row("x + row", lambda module, x: x + x[0], (square,), _REAL),
    Row("clip", lambda module, x: module.clip(x, -1, 1), (line,), _REAL),
    Row("round", lambda module, x: module.round(x, 2), (line,)),
    Row("where", lambda module, c, x, y: module.where(c, x, y), (mask, line, line), _REAL),
    Row("astype", lambda module, x: x.astype(np.int32), (line,), ("float32", "bool")),
    *_rows("sum max argmax", line, dtypes=(*_REAL, "float16", "bfloat16")),
    *_rows("mean any cumsum median count_nonzero", line, dtypes=_REAL),
    *_rows("prod var std min argmin all ptp nansum nanmean nanmax", line),
    *[Row(f"{n} 0", _along(n, 0), (square,)) for n in ("sum", "max", "mean", "cumsum", "sort")],
    *[Row(f"{n} 1", _along(n, 1), (square,)) for n in ("sum", "max", "mean", "cumsum", "sort")],
    *[Row(f"{n} thin", _along(n, 1), (thin,)) for n in ("sum", "max", "argmax", "sort")],
    *_rows("sort argsort unique", line, dtypes=_REAL),
    *_rows("searchsorted", rising, line, dtypes=_REAL),
    Row("quantile", lambda module, x: module.quantile(x, 0.3), (line,)),
    Row("partition", lambda module, x: module.partition(x, len(x) // 2), (line,)),
    *_rows("nonzero", mask),
    *_rows("bincount", positive, dtypes=_INT),
    Row("histogram", lambda module, x: module.histogram(x, 50), (line,)),
    Row("isin", lambda module, x, y: module.isin(x, y), (line, short), _INT),
    Row("x[at]", lambda module, x, at: x[at], (line, places), _REAL),
    Row("x[mask]", lambda module, x, at: x[at], (line, mask), _REAL),
    Row("x[::2]", lambda module, x: x[::2] + 0, (line,)),
    *_rows("take", line, places),
    Row("at.set", _updated("set"), (line, places, line), _REAL),
    Row("at.add", _updated("add"), (line, places, line), _REAL),
    Row("at.add rows", _updated("add"), (thin, rows_of_ten, thin)),
    Row("concatenate", lambda module, x, y: module.concatenate([x, y]), (line, line)),
    Row("stack", lambda module, x, y: module.stack([x, y], -1), (line, line)),
    Row("tile", lambda module, x: module.tile(x, 3), (line,)),
    Row("repeat", lambda module, x: module.repeat(x, 3), (line,)),
    Row("pad", lambda module, x: module.pad(x, 2), (square,)),
    Row("roll", lambda module, x: module.roll(x, 3), (line,)),
    Row("x.T + x", lambda module, x: x.T + x, (square,)),
    *_rows("diff", line, dtypes=_REAL),
    *_rows("gradient trapezoid", line),
    *_rows("convolve", line, short),
    *_rows("dot", line, line, most=10**6),
    *_rows("matmul", square, square, dtypes=(*_REAL, "bfloat16"), most=10**6),
    Row("matmul of stacks", _named("matmul"), (stack, stack), _REAL),
    Row("einsum", lambda module, x, y: module.einsum("bij,bj->bi", x, y[:, 0]), (stack, stack)),
    *_rows("outer", lambda random, n, dtype: line(random, max(1, math.isqrt(n)), dtype), short),
    *_rows("linalg.norm", line),
    *_rows("linalg.inv linalg.det linalg.cholesky", definite),
    *_rows("linalg.eigh linalg.svd", stack, most=10**5),
    *_rows("fft.fft fft.rfft", line),
    *_rows("fft.fft2", square, dtypes=("complex64",)),
]
