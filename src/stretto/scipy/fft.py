"""``stretto.scipy.fft``: the discrete cosine transforms of types 1 to 4.

Each takes one Fourier transform. Source: Makhoul, A fast cosine transform in one and two dimensions
(1980), for types 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import entries_of, integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike, Axes, ShapeLike
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.fft import complex_dtype
from stretto._engine.ops.layout import canonical_axes, canonical_axis, move_axis
from stretto._engine.ops.shape import concatenate, pad, rev, slice_in_dim
from stretto.numpy.fft import fft, irfft, rfft

__all__ = ["dct", "dctn", "idct", "idctn"]

_INVERSES = {1: 1, 2: 3, 3: 2, 4: 4}
_NORMS = (None, "backward", "ortho", "forward")


def _turn(x: Array, angles: np.ndarray) -> Array:
    """Return the complex numbers ``x exp(i angle)`` along the last axis."""
    dtype = complex_dtype(x.dtype)
    return convert(x, dtype) * of_rank(np.exp(1j * angles).astype(dtype), x.ndim)


# Along the last axis, for real numbers, without normalization


def _type_1(x: Array) -> Array:
    """y[k] = x[0] + (-1)^k x[N-1] + 2 sum of x[n] cos(pi k n / (N - 1)) over the n between."""
    inner = rev(slice_in_dim(x, 1, x.shape[-1] - 1, axis=-1), (-1,))
    return real(rfft(concatenate([x, inner], -1)))


def _type_2(x: Array) -> Array:
    """y[k] = 2 sum of x[n] cos(pi k (2n + 1) / 2N)."""
    # z[k] = exp(-i pi k / 2N) times the transform of x[0], x[2], ..., x[3], x[1]; then
    # y[k] - i y[N-k] = 2 z[k].
    n = x.shape[-1]
    odd = rev(slice_in_dim(x, 1, n, 2, -1), (-1,))
    halves = rfft(concatenate([slice_in_dim(x, 0, n, 2, -1), odd], -1))
    z = _turn(halves, -math.pi / (2 * n) * np.arange(n // 2 + 1))
    high = rev(slice_in_dim(imag(z), 1, (n + 1) // 2, axis=-1), (-1,))
    return 2 * concatenate([real(z), -high], -1)


def _type_3(x: Array) -> Array:
    """y[k] = x[0] + 2 sum of x[n] cos(pi (2k + 1) n / 2N) over the n > 0."""
    # The inverse of the steps of type 2, times 2N.
    n = x.shape[-1]
    half = n // 2 + 1
    unpadded = [(0, 0, 0)] * (x.ndim - 1)
    beyond = rev(pad(slice_in_dim(x, n - half + 1, n, axis=-1), 0, [*unpadded, (0, 1, 0)]), (-1,))
    halves = complex_(slice_in_dim(x, 0, half, axis=-1), -beyond)
    v = n * irfft(_turn(halves, math.pi / (2 * n) * np.arange(half)), n)
    odd = rev(slice_in_dim(v, (n + 1) // 2, n, axis=-1), (-1,))
    even = slice_in_dim(v, 0, (n + 1) // 2, axis=-1)
    # Interleaved: each with zeros at the positions of the other, and added.
    return pad(even, 0, [*unpadded, (0, 1 - n % 2, 1)]) + pad(
        odd, 0, [*unpadded, (min(n - 1, 1), n % 2, 1)]
    )


def _type_4(x: Array) -> Array:
    """y[k] = 2 sum of x[n] cos(pi (2k + 1) (2n + 1) / 4N)."""
    # (2k + 1)(2n + 1) / 4N = 2 k n / 2N + n / 2N + (2k + 1) / 4N
    n = x.shape[-1]
    k = np.arange(n)
    transform = fft(_turn(x, -math.pi / (2 * n) * k), 2 * n)
    first = slice_in_dim(transform, 0, n, axis=-1)
    return 2 * real(_turn(first, -math.pi / (4 * n) * (2 * k + 1)))


_TYPES = {1: _type_1, 2: _type_2, 3: _type_3, 4: _type_4}


def _transform_axis(caller: str, x: Array, type: int, axis: int, factor: str) -> Array:
    """Transform one axis; ``factor``: ``"ortho"``, or ``"mean"`` to divide by twice the points."""
    x = move_axis(x, axis, x.ndim - 1)
    points = x.shape[-1] - (type == 1)
    if points < 1:
        needed = "2 points" if type == 1 else "1 point"
        raise ValueError(f"{caller}: type {type} needs at least {needed}, got {x.type}")
    if factor == "ortho":
        x = x * _ends(x, type in (1, 3), type == 1, math.sqrt(2))
    if is_complex(x.dtype):
        out = complex_(_TYPES[type](real(x)), _TYPES[type](imag(x)))
    else:
        out = _TYPES[type](x)
    if factor == "ortho":
        out = out * _ends(x, type in (1, 2), type == 1, math.sqrt(0.5)) * math.sqrt(0.5 / points)
    elif factor == "mean":
        out = out * (0.5 / points)
    return move_axis(out, x.ndim - 1, axis)


def _ends(x: Array, first: bool, last: bool, factor: float) -> np.ndarray:
    """Return ones along the last axis, but ``factor`` for the ``first`` or ``last`` element."""
    out = np.ones(x.shape[-1], x.dtype)
    out[0] = factor if first else 1
    out[-1] = factor if last else out[-1]
    return of_rank(out, x.ndim)


def _resize(
    caller: str, x: Array, type: int, sizes: Sequence[int | None], axes: Sequence[int]
) -> Array:
    """Truncate floats, or pad them with zeros, to these sizes along the axes."""
    if type not in _TYPES:
        raise ValueError(f"{caller}: type must be 1, 2, 3 or 4; got {type!r}")
    dtype = complex_dtype(x.dtype)
    x = convert(x, dtype if is_complex(x.dtype) else real_dtype(dtype))
    config = [(0, 0, 0)] * x.ndim
    for d, n in zip(axes, sizes, strict=True):
        if n is not None:
            config[d] = (0, integer(n, caller, "the number of points", 1) - x.shape[d], 0)
    return pad(x, 0, config) if any(high for _, high, _ in config) else x


def _sizes(s: ShapeLike | None) -> list[int | None] | None:
    """Return sizes along the axes, None for those that keep theirs, which -1 says as well."""
    if s is None:
        return None
    return [None if n == -1 else n for n in entries_of(s)]


def _transform(
    caller: str,
    x: ArrayLike,
    type: int,
    s: Sequence[int | None] | None,
    axes: Axes,
    norm: str | None,
    inverse: bool,
) -> Array:
    value = as_value(x, caller)
    if norm not in _NORMS:
        raise ValueError(
            f"{caller}: norm must be None, 'backward', 'ortho' or 'forward'; got {norm!r}"
        )
    if axes is None and s is not None:
        axes = tuple(range(value.ndim - len(s), value.ndim))
    positions = canonical_axes(axes, value.ndim, caller)
    sizes = [None] * len(positions) if s is None else s
    if len(sizes) != len(positions):
        raise ValueError(
            f"{caller}: s and axes must have the same length, got s {tuple(sizes)} and axes {axes}"
        )
    value = _resize(caller, value, type, sizes, positions)
    factor = "ortho" if norm == "ortho" else "mean" if inverse != (norm == "forward") else ""
    for axis in positions:
        value = _transform_axis(caller, value, _INVERSES[type] if inverse else type, axis, factor)
    return value


def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Compute the discrete cosine transform along an axis.

    Args:
        x: an array.
        type: the type, 1 to 4.
        n: the number of points, to which the array is truncated or padded with zeros.
        axis: the axis, negative from the end.
        norm: ``"ortho"`` for an orthogonal transform; ``"backward"``, the default, leaves the
            factor ``1 / 2n`` to the inverse, ``"forward"`` puts it here (for type 1, ``1 / 2(n -
            1)``).

    Returns:
        The transform, of the dtype of ``x``, at least float32.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: there is no such type or norm, there are too few points, or the axis is out of
            bounds.

    As SciPy's ``dct``.

    >>> import stretto as st
    >>> st.scipy.fft.dct(st.numpy.array([1.0, 1.0, 4.0])).round(3)
    Array([12.   , -5.196,  3.   ], dtype=float32)
    """
    return _along("dct", x, type, n, axis, norm, False)


@described_like(dct)
def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Compute the inverse of ``dct`` of the same type and norm, along an axis.

    As SciPy's ``idct``.

    >>> import stretto as st
    >>> st.scipy.fft.idct(st.scipy.fft.dct(st.numpy.array([1.0, 2.0, 3.0]))).round(3)
    Array([1., 2., 3.], dtype=float32)
    """
    return _along("idct", x, type, n, axis, norm, True)


def _along(
    caller: str, x: ArrayLike, type: int, n: int | None, axis: int, norm: str | None, inverse: bool
) -> Array:
    value = as_value(x, caller)
    place = canonical_axis(axis, value.ndim, caller)
    return _transform(caller, value, type, [n], (place,), norm, inverse)


@described_like(dct)
def dctn(
    x: ArrayLike,
    type: int = 2,
    s: int | Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Compute the discrete cosine transform along axes.

    Args:
        s: the numbers of points, to which the array is truncated or padded with zeros.
        axes: the axes; by default all, or the last ``len(s)``.
        norm: as in ``dct``.

    Raises:
        TypeError: a number in ``s`` is not an integer.
        ValueError: there is no such type or norm, there are too few points, or ``s`` and ``axes``
            do not match.

    As SciPy's ``dctn``.

    >>> import stretto as st
    >>> st.scipy.fft.dctn(st.numpy.ones((2, 2)))
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _transform("dctn", x, type, _sizes(s), axes, norm, False)


@described_like(dctn)
def idctn(
    x: ArrayLike,
    type: int = 2,
    s: int | Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Compute the inverse of ``dctn`` of the same type and norm, along axes.

    As SciPy's ``idctn``.

    >>> import stretto as st
    >>> st.scipy.fft.idctn(st.numpy.array([[16.0, 0.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _transform("idctn", x, type, _sizes(s), axes, norm, True)


exports(__name__)
