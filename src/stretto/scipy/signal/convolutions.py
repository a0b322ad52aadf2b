"""Convolution and correlation of arrays of any rank, directly or by Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.descriptions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.sizes import fixed
from stretto._engine.core.types import inexact_dtype, is_complex, is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Axes
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import canonical_axes
from stretto._engine.ops.rounding import round_
from stretto._engine.ops.shape import rev, slice
from stretto.numpy import fft
from stretto.numpy.convolutions import checked_mode, part_of_convolution

if TYPE_CHECKING:
    from stretto.lax.products import PrecisionLike

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

_lengths = LazyModule("scipy.fft")


def _pair(caller: str, in1: ArrayLike, in2: ArrayLike) -> tuple[Array, Array]:
    x, y = as_value(in1, caller, "in1"), as_value(in2, caller, "in2")
    if x.ndim != y.ndim:
        raise ValueError(
            f"{caller}: in1 and in2 must have the same rank, got {x.type} and {y.type}"
        )
    return promote_dtypes(caller, x, y)


def _part(
    caller: str, mode: str, n: Sequence[int], m: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Say where the part of the full convolution begins along each axis, and its sizes."""
    if mode == "full":
        return (0,) * len(n), tuple([a + b - 1 for a, b in zip(n, m, strict=True)])
    if mode == "same":
        return tuple([(b - 1) // 2 for b in m]), tuple(n)
    pairs = list(zip(n, m, strict=True))
    if not (all(a >= b for a, b in pairs) or all(a <= b for a, b in pairs)):
        raise ValueError(
            f"{caller}: mode 'valid' needs one input that is at least as large as the other along "
            f"every axis, got shapes {tuple(n)} and {tuple(m)}"
        )
    starts = tuple([min(a, b) - 1 for a, b in pairs])
    return starts, tuple([abs(a - b) + 1 for a, b in pairs])


def _reversed(x: Array) -> Array:
    """With the elements in reverse order along all axes."""
    return rev(x, tuple(range(x.ndim)))


# What one step of a Fourier transform costs for each number, in products of two numbers.
_FOURIER_COST = 8


def _is_fourier_faster(n: Sequence[int], m: Sequence[int]) -> bool:
    """Say whether three transforms of the full size should cost less than all products."""
    full = [a + b - 1 for a, b in zip(n, m, strict=True)]
    size = math.prod(full)
    return math.prod(n) * math.prod(m) > _FOURIER_COST * 3 * size * math.log2(size + 1) + 1e5


def _convolved(
    caller: str, x: Array, y: Array, mode: str, method: str, precision: PrecisionLike
) -> Array:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"{caller}: method must be 'auto', 'direct' or 'fft'; got {method!r}")
    mode = checked_mode(caller, mode)
    starts, sizes = _part(caller, mode, x.shape, y.shape)
    if not (x.size and y.size):
        raise ValueError(f"{caller}: expected arrays that are not empty, got {x.type} and {y.type}")
    inexact = is_inexact(x.dtype)
    if method == "fft" or (method == "auto" and inexact and _is_fourier_faster(x.shape, y.shape)):
        out = _fourier(x, y, tuple(range(x.ndim)), starts, sizes)
        return out if inexact else convert(round_(out), x.dtype)
    return part_of_convolution(x, y, starts, sizes, precision, None)


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Array:
    """Convolve two arrays of one rank.

    Args:
        in1: an array.
        in2: another, of the same rank.
        mode: ``"full"`` for all ``n + m - 1`` elements along an axis, ``"same"`` for the middle
            ones, as many as ``in1`` has, ``"valid"`` for those where one input lies within the
            other.
        method: ``"direct"`` to add up products, ``"fft"`` to multiply Fourier transforms (rounded
            for integers), ``"auto"`` for whichever should be faster for floats.
        precision: that of ``lax.conv_general_dilated``.

    Returns:
        The sums of ``in1[i] in2[k - i]``.

    Raises:
        ValueError: an input is empty, the ranks differ, there is no such mode or method, or in mode
            ``"valid"`` neither input is the larger.

    As SciPy's ``convolve``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, 2.0, 3.0])
    >>> st.scipy.signal.convolve(x, st.numpy.array([1.0, 1.0]), mode="same")
    Array([1., 3., 5.], dtype=float32)
    """
    x, y = _pair("convolve", in1, in2)
    return _convolved("convolve", x, y, mode, method, precision)


@described_like(convolve)
def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Array:
    """Correlate two arrays of one rank.

    Returns:
        The sums of ``in1[i + k] conj(in2[i])``.

    As SciPy's ``correlate``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, 2.0, 3.0])
    >>> st.scipy.signal.correlate(x, st.numpy.array([0.0, 1.0]))
    Array([1., 2., 3., 0.], dtype=float32)
    """
    x, y = _pair("correlate", in1, in2)
    return _convolved("correlate", x, _reversed(conj(y)), mode, method, precision)


# Of matrices, continued beyond their edges


_BOUNDARIES = {"wrap": "wrap", "symm": "symmetric"}


def _plane(
    caller: str,
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str,
    edges: tuple[str, ArrayLike],
    precision: PrecisionLike,
    flip: bool,
) -> Array:
    x, y = _pair(caller, in1, in2)
    if x.ndim != 2:
        raise ValueError(f"{caller}: expected arrays of rank 2, got {x.type} and {y.type}")
    mode = checked_mode(caller, mode)
    boundary, value = edges
    if boundary not in ("fill", "wrap", "symm"):
        raise ValueError(f"{caller}: boundary must be 'fill', 'wrap' or 'symm'; got {boundary!r}")
    if flip and mode == "valid" and x.shape[0] < y.shape[0]:
        x, y = conj(x), _reversed(y)  # like SciPy, conjugate the smaller one
    elif flip:
        y = _reversed(conj(y))
    zeros = boundary == "fill" and isinstance(value, (int, float)) and value == 0
    starts, sizes = _part(caller, mode, x.shape, y.shape)
    if mode == "same" and flip:
        # Counted from the end, the middle of an even number of elements is the other of the two.
        starts = tuple([m // 2 for m in y.shape])
    if not (x.size and y.size):
        raise ValueError(f"{caller}: expected arrays that are not empty, got {x.type} and {y.type}")
    if mode == "valid" or zeros:
        return part_of_convolution(x, y, starts, sizes, precision, None)
    way_out = "continue the first array by hand, or give kernels of a fixed size"
    widths = [(fixed(m, caller, "the size of the kernel", way_out) - 1,) * 2 for m in y.shape]
    if boundary == "fill":
        x = snp.pad(x, widths, constant_values=value)
    else:
        x = snp.pad(x, widths, _BOUNDARIES[boundary])
    # The padding is wide enough for each element to be a sum of products with all of y.
    starts = tuple([start + m - 1 for start, m in zip(starts, y.shape, strict=True)])
    return part_of_convolution(x, y, starts, sizes, precision, None)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Convolve two matrices, with ``in1`` continued beyond its edges.

    Args:
        in1: a matrix.
        in2: another.
        mode: as in ``convolve``.
        boundary: how ``in1`` is continued: ``"fill"`` with ``fillvalue``, ``"wrap"`` from the
            other side, ``"symm"`` mirrored.
        fillvalue: a scalar.
        precision: that of ``lax.conv_general_dilated``.

    Returns:
        The matrix.

    Raises:
        ValueError: an input is not a matrix or is empty, or there is no such mode or boundary.

    As SciPy's ``convolve2d``.

    >>> import stretto as st
    >>> x = st.numpy.array([[1.0, 2.0], [3.0, 4.0]])
    >>> st.scipy.signal.convolve2d(x, st.numpy.ones((1, 2)), mode="same", boundary="wrap")
    Array([[3., 3.],
           [7., 7.]], dtype=float32)
    """
    return _plane("convolve2d", in1, in2, mode, (boundary, fillvalue), precision, False)


@described_like(convolve2d)
def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Correlate two matrices, with ``in1`` continued beyond its edges.

    As SciPy's ``correlate2d``.

    >>> import stretto as st
    >>> x = st.numpy.array([[1.0, 2.0], [3.0, 4.0]])
    >>> st.scipy.signal.correlate2d(x, st.numpy.array([[1.0, 0.0]]), mode="valid")
    Array([[1.],
           [3.]], dtype=float32)
    """
    return _plane("correlate2d", in1, in2, mode, (boundary, fillvalue), precision, True)


# By Fourier transforms


def _fourier(
    x: Array, y: Array, axes: tuple[int, ...], starts: Sequence[int], sizes: Sequence[int]
) -> Array:
    dtype = inexact_dtype(x.dtype)
    x, y = convert(x, dtype), convert(y, dtype)
    full = [x.shape[d] + y.shape[d] - 1 for d in axes]
    s = [_lengths.next_fast_len(n, not is_complex(dtype)) for n in full]
    if not axes:
        out = x * y
    elif is_complex(dtype):
        out = fft.ifftn(fft.fftn(x, s, axes) * fft.fftn(y, s, axes), s, axes)
    else:
        out = fft.irfftn(fft.rfftn(x, s, axes) * fft.rfftn(y, s, axes), s, axes)
    lows, highs = [0] * out.ndim, list(out.shape)
    for d in axes:
        lows[d], highs[d] = starts[d], starts[d] + sizes[d]
    return convert(slice(out, lows, highs), dtype)


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Axes = None) -> Array:
    """Convolve two arrays of one rank along axes, by Fourier transforms.

    Args:
        in1: an array.
        in2: another, of the same rank; along the other axes they broadcast.
        mode: as in ``convolve``.
        axes: the axes to convolve along; all by default.

    Returns:
        The convolution; errors are relative to the largest elements.

    Raises:
        ValueError: an input is empty, the sizes or axes do not match, or there is no such mode.

    As SciPy's ``fftconvolve``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, 2.0, 3.0])
    >>> st.scipy.signal.fftconvolve(x, st.numpy.array([1.0, 1.0])).round(3)
    Array([1., 3., 5., 3.], dtype=float32)
    """
    caller = "fftconvolve"
    x, y = _pair(caller, in1, in2)
    mode = checked_mode(caller, mode)
    convolved = canonical_axes(axes, x.ndim, caller)
    for d in range(x.ndim):
        n, m = x.shape[d], y.shape[d]
        if d not in convolved and n != m and 1 not in (n, m):
            raise ValueError(
                f"{caller}: sizes along axis {d}, which is not convolved, must be equal or 1, got "
                f"{x.type} and {y.type}"
            )
    if not (x.size and y.size):
        raise ValueError(f"{caller}: expected arrays that are not empty, got {x.type} and {y.type}")
    order = sorted(convolved)
    part = _part(caller, mode, [x.shape[d] for d in order], [y.shape[d] for d in order])
    starts, sizes = np.zeros((2, x.ndim), int)
    starts[order], sizes[order] = part
    return _fourier(x, y, tuple(order), starts.tolist(), sizes.tolist())
