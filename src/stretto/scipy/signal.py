"""``stretto.scipy.signal``: convolution, spectra of segments, and the removal of trends.

Arrays of any rank are convolved, directly or by Fourier transforms. Source of the spectra: Welch,
The use of fast Fourier transform for the estimation of power spectra (1967); names and factors are
those of ``scipy.signal``.

>>> import stretto as st
>>> st.scipy.signal.convolve(st.numpy.array([1.0, 2.0]), st.numpy.array([1.0, 1.0]))
Array([1., 3., 2.], dtype=float32)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer, integers
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.lazy import LazyModule, exports
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.sizes import fixed
from stretto._engine.core.types import inexact_dtype, is_complex, is_inexact, real_dtype
from stretto._engine.core.typing import Array, ArrayLike, Axes
from stretto._engine.ops.arithmetic import square
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to, of_rank, reduce_sum
from stretto._engine.ops.comparison import gt, select
from stretto._engine.ops.complex_parts import complex_, conj, imag, real
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.fft import complex_dtype
from stretto._engine.ops.layout import canonical_axes, canonical_axis, move_axis, reshape
from stretto._engine.ops.rounding import round_
from stretto._engine.ops.shape import concatenate, pad, rev, slice, slice_in_dim, split
from stretto.numpy import fft
from stretto.numpy.signals import checked_mode, part_of_convolution
from stretto.numpy.statistics import mean_about_first

if TYPE_CHECKING:
    from stretto.lax.products import PrecisionLike

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve",
           "istft", "stft", "welch"]  # fmt: skip

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


def _reverse(x: Array) -> Array:
    """Reverse the order of the elements along all axes."""
    return rev(x, tuple(range(x.ndim)))


# What one step of a Fourier transform costs for each number, in products of two numbers.
_FOURIER_COST = 8


def _is_fourier_faster(n: Sequence[int], m: Sequence[int]) -> bool:
    """Say whether three transforms of the full size should cost less than all products."""
    full = [a + b - 1 for a, b in zip(n, m, strict=True)]
    size = math.prod(full)
    return math.prod(n) * math.prod(m) > _FOURIER_COST * 3 * size * math.log2(size + 1) + 1e5


def _convolve(
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
    return _convolve("convolve", x, y, mode, method, precision)


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
    return _convolve("correlate", x, _reverse(conj(y)), mode, method, precision)


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
        x, y = conj(x), _reverse(y)  # like SciPy, conjugate the smaller one
    elif flip:
        y = _reverse(conj(y))
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


# Cutting signals into overlapping segments, and putting them together again; windows.


_windows = LazyModule("scipy.signal.windows")

Window: TypeAlias = str | tuple[Any, ...] | Value | np.ndarray
"""A name or a tuple for SciPy's ``get_window``, or the weights."""


def window_of(
    caller: str,
    window: Window,
    nperseg: int | None,
    length: int | None,
    default: int,
    dtype: np.dtype,
) -> tuple[Array, int]:
    """Return the weights of a window, and the number of points in a segment.

    ``length`` is the signal's, which no segment exceeds.
    """
    size = None if nperseg is None else integer(nperseg, caller, "nperseg")
    if size is not None and size < 1:
        raise ValueError(f"{caller}: nperseg must be positive, got {nperseg}")
    if isinstance(window, (str, tuple)):
        size = default if size is None else size
        if length is not None and size > length:
            if nperseg is not None:
                warnings.warn(
                    f"{caller}: nperseg is {size}, but the signal has {length} points; using "
                    f"{length}",
                    stacklevel=user_stack_level(),
                )
            size = length
        return as_value(_windows.get_window(window, size).astype(dtype)), size
    if not isinstance(window, (Value, np.ndarray)) or window.ndim != 1 or not window.size:
        raise ValueError(
            f"{caller}: window must be a name, a tuple, or an array of rank 1; got {window!r}"
        )
    weights = convert(as_value(window, caller, "window"), dtype)
    if length is not None and weights.size > length:
        raise ValueError(
            f"{caller}: the window has {weights.size} elements, more than the signal's {length}"
        )
    if size not in (None, weights.size):
        raise ValueError(f"{caller}: nperseg {size} is not the window's size {weights.size}")
    return weights, weights.size


def rate_of(caller: str, fs: ArrayLike) -> ArrayLike:
    """Return ``fs``, the points in a unit of time; raises unless it is one number."""
    rate = as_value(fs, caller, "fs")
    if rate.ndim:
        raise TypeError(f"{caller}: fs must be a number, got {rate.type}")
    return fs


def overlap_of(caller: str, noverlap: int | None, nperseg: int) -> int:
    """Say how many points neighbours share, by default half; raises unless it is less than all."""
    overlap = nperseg // 2 if noverlap is None else integer(noverlap, caller, "noverlap")
    if not 0 <= overlap < nperseg:
        raise ValueError(f"{caller}: noverlap must be from 0 to nperseg - 1, got {noverlap}")
    return overlap


def segments(x: Array, size: int, step: int) -> Array:
    """Cut ``[..., n]`` to ``[..., segments, size]``: each begins ``step`` after the last one."""
    count = (x.shape[-1] - size) // step + 1
    outer, wide = x.shape[:-1], -(-size // step)
    # Blocks of one step, copied to as many rows as a segment has blocks. Joined, and cut again
    # into rows that are one block longer, each row starts one block later than the one before it.
    blocks = count + wide - 1
    x = _to_length(x, blocks * step)
    rows = reshape(x, (*outer, blocks, step))
    rows = broadcast_in_dim(
        rows, (*outer, wide, blocks, step), (*range(len(outer)), len(outer) + 1, len(outer) + 2)
    )
    flat = reshape(rows, (*outer, wide * blocks * step))
    flat = _to_length(flat, wide * (blocks + 1) * step)
    skewed = reshape(flat, (*outer, wide, blocks + 1, step))
    columns = slice_in_dim(skewed, 0, count, axis=len(outer) + 1)
    columns = move_axis(columns, len(outer), len(outer) + 1)
    joined = reshape(columns, (*outer, count, wide * step))
    return slice_in_dim(joined, 0, size, axis=-1)


def overlap_add(x: Array, step: int) -> Array:
    """Add ``[..., segments, size]`` to ``[..., n]``, each segment where it was cut."""
    outer, (count, size) = x.shape[:-2], x.shape[-2:]
    wide = -(-size // step)
    # The steps of ``segments`` in reverse.
    blocks = count + wide - 1
    x = _to_length(x, wide * step)
    rows = move_axis(reshape(x, (*outer, count, wide, step)), len(outer) + 1, len(outer))
    config = [(0, 0, 0)] * rows.ndim
    config[-2] = (0, blocks + 1 - count, 0)
    flat = reshape(pad(rows, 0, config), (*outer, wide * (blocks + 1) * step))
    skewed = reshape(_to_length(flat, wide * blocks * step), (*outer, wide, blocks * step))
    return _to_length(reduce_sum(skewed, (len(outer),)), (count - 1) * step + size)


def _to_length(x: Array, n: int) -> Array:
    """Truncate, or pad with zeros, at the end of the last axis."""
    return pad(x, 0, [*[(0, 0, 0)] * (x.ndim - 1), (0, n - x.shape[-1], 0)])


# Removal of means and lines of best fit.


@rounded_once
def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """Subtract the line of best fit along an axis, or the mean.

    Args:
        data: an array.
        axis: the axis, negative from the end.
        type: ``"linear"`` or ``"constant"``.
        bp: the positions that separate pieces with lines of their own; by default none.
        overwrite_data: must be None.

    Returns:
        The array minus the lines, at least float32.

    Raises:
        NotImplementedError: ``overwrite_data`` is not None.
        TypeError: a position in ``bp`` is not an integer.
        ValueError: a position is beyond the data, there is no such type, or the axis is out of
            bounds.

    As SciPy's ``detrend``.

    >>> import stretto as st
    >>> st.scipy.signal.detrend(st.numpy.array([1.0, 4.0, 8.0, 8.0, 9.0])).round(3) + 0.0
    Array([-1.,  0.,  2.,  0., -1.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: arrays are immutable, so there is no overwrite_data")
    if type not in ("linear", "constant"):
        raise ValueError(f"detrend: type must be 'linear' or 'constant'; got {type!r}")
    x = as_value(data, "detrend", "data")
    x = convert(x, inexact_dtype(x.dtype))
    axis = canonical_axis(axis, x.ndim, "detrend")
    if type == "constant":
        return x - mean_about_first(x, (axis,))
    x = move_axis(x, axis, x.ndim - 1)
    n = x.shape[-1]
    if not n:
        return move_axis(x, x.ndim - 1, axis)
    positions = sorted({0, n, *integers(np.ravel(bp), "detrend", "bp")})
    if positions[0] < 0 or positions[-1] > n:
        raise ValueError(f"detrend: bp must be positions along the axis, 0 to {n}; got {bp}")
    pieces = split(x, np.diff(positions).tolist(), x.ndim - 1)
    return move_axis(concatenate([_without_line(p) for p in pieces], -1), x.ndim - 1, axis)


def _without_line(x: Array) -> Array:
    """x - mean(x) - t (t . x) / (t . t) along the last axis, with positions t from the middle."""
    t = np.arange(x.shape[-1]) - (x.shape[-1] - 1) / 2
    t = (t / max(float(np.sqrt(t @ t)), 1e-30)).astype(x.dtype)
    t = of_rank(t, x.ndim)
    x = x - mean_about_first(x, (x.ndim - 1,))
    return x - t * snp.sum(t * x, -1, keepdims=True)


# Spectra of segments of signals: over time, and averaged.


_SEGMENT = 256

Trend: TypeAlias = str | bool | Callable[[Array], Array] | None
"""The part removed from segments: ``"constant"``, ``"linear"``, by a function, or nothing."""


class _Settings(NamedTuple):
    """Say how a signal is cut, weighted and transformed."""

    caller: str
    window: Array
    nperseg: int
    noverlap: int
    nfft: int
    detrend: Trend
    onesided: bool

    @property
    def step(self) -> int:
        return self.nperseg - self.noverlap

    def transforms(self, x: Array) -> Array:
        """Transform ``[..., n]`` to ``[..., frequencies, segments]``."""
        if x.shape[-1] < self.nperseg:
            raise ValueError(
                f"{self.caller}: expected at least {self.nperseg} points, got {x.shape[-1]}"
            )
        cut = _without_trend(self.caller, self.detrend, segments(x, self.nperseg, self.step))
        transform = snp.fft.rfft if self.onesided else snp.fft.fft
        weighted = cut * convert(of_rank(self.window, cut.ndim), cut.dtype)
        return move_axis(transform(weighted, self.nfft), x.ndim, x.ndim - 1)

    def frequencies(self, fs: ArrayLike) -> Array:
        """Return frequencies in the unit of ``fs``."""
        rate: Any = fs
        dtype = real_dtype(self.window.dtype)
        return (snp.fft.rfftfreq if self.onesided else snp.fft.fftfreq)(
            self.nfft, 1 / rate, dtype=dtype
        )


def _without_trend(caller: str, kind: Trend, x: Array) -> Array:
    if kind is None or kind is False:
        return x
    if callable(kind):
        return kind(x)
    if kind not in ("constant", "linear"):
        raise ValueError(
            f"{caller}: detrend must be False, 'constant', 'linear' or a function; got {kind!r}"
        )
    return detrend(x, type=kind)


def _settings(
    caller: str,
    x: Array,
    length: int,
    window: Window,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    detrend: Trend,
    onesided: bool,
) -> _Settings:
    weights, size = window_of(caller, window, nperseg, length, _SEGMENT, real_dtype(x.dtype))
    overlap = overlap_of(caller, noverlap, size)
    points = size if nfft is None else integer(nfft, caller, "nfft")
    if points < size:
        raise ValueError(f"{caller}: nfft must be at least nperseg, {size}; got {nfft}")
    is_onesided = bool(onesided) and not is_complex(x.dtype)
    return _Settings(caller, weights, size, overlap, points, detrend, is_onesided)


# Beyond the ends


def _end(x: Array, first: bool) -> Array:
    """Return the first or the last element along the last axis, which is kept."""
    n = x.shape[-1]
    return slice_in_dim(x, 0, 1, axis=-1) if first else slice_in_dim(x, n - 1, n, axis=-1)


def _mirror(x: Array, n: int) -> tuple[Array, Array]:
    """Return the ``n`` elements after the first one and before the last one, in reverse order."""
    size = x.shape[-1]
    return (
        rev(slice_in_dim(x, 1, n + 1, axis=-1), (-1,)),
        rev(slice_in_dim(x, size - n - 1, size - 1, axis=-1), (-1,)),
    )


def _extend(caller: str, x: Array, n: int, boundary: str | None) -> Array:
    """Add ``n`` more elements at each end of the last axis."""
    if boundary is None or n == 0:
        return x
    if boundary not in ("zeros", "even", "odd", "constant"):
        raise ValueError(
            f"{caller}: boundary must be None, 'zeros', 'even', 'odd' or 'constant'; got "
            f"{boundary!r}"
        )
    if boundary == "zeros":
        return pad(x, 0, [*[(0, 0, 0)] * (x.ndim - 1), (n, n, 0)])
    first, last = _end(x, True), _end(x, False)
    if boundary == "constant":
        return concatenate([*[first] * n, x, *[last] * n], -1)
    if n >= x.shape[-1]:
        raise ValueError(
            f"{caller}: boundary {boundary!r} needs more than {n} points, got {x.type}"
        )
    before, after = _mirror(x, n)
    if boundary == "odd":
        before, after = 2 * first - before, 2 * last - after
    return concatenate([before, x, after], -1)


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int = _SEGMENT,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Compute a short-time Fourier transform: spectra of segments that overlap.

    Args:
        x: the signal.
        fs: the number of samples in a unit of time.
        window: a name or a tuple for SciPy's ``get_window``, or weights.
        nperseg: how many points a segment has.
        noverlap: how many points neighbours share; by default half of them.
        nfft: how many points are transformed; by default ``nperseg``.
        detrend: ``"constant"``, ``"linear"``, False, or a function of segments.
        return_onesided: whether to leave out the negative frequencies of real signals.
        boundary: how half a segment is added at each end: ``"zeros"``, ``"even"``, ``"odd"``,
            ``"constant"``, or None.
        padded: whether to pad the last segment with zeros.
        axis: the axis of time, negative from the end.

    Returns:
        The frequencies, the times of the segments' middles, and the transforms, with the
            frequencies in place of ``axis`` and the times last.

    Raises:
        TypeError: ``nfft`` is not an integer.
        ValueError: the settings contradict each other or the signal, or there is no such boundary.

    As SciPy's ``stft``.

    >>> import stretto as st
    >>> f, t, z = st.scipy.signal.stft(st.numpy.ones(8), nperseg=4)
    >>> f, z.shape
    (Array([0.  , 0.25, 0.5 ], dtype=float32), (3, 5))
    """
    caller, rate = "stft", rate_of("stft", fs)
    value = as_value(x, caller)
    value = convert(value, inexact_dtype(value.dtype))
    place = canonical_axis(axis, value.ndim, caller)
    value = move_axis(value, place, value.ndim - 1)
    settings = _settings(
        caller, value, value.shape[-1], window, nperseg, noverlap, nfft, detrend, return_onesided
    )
    value = _extend(caller, value, settings.nperseg // 2, boundary)
    if padded:
        missing = -(value.shape[-1] - settings.nperseg) % settings.step % settings.nperseg
        value = pad(value, 0, [*[(0, 0, 0)] * (value.ndim - 1), (0, missing, 0)])
    out = settings.transforms(value)
    out = out / convert(snp.sum(settings.window), out.dtype)
    starts = np.arange(out.shape[-1]) * settings.step
    middle = 0 if boundary is not None else settings.nperseg / 2
    times = as_value((starts + middle).astype(real_dtype(value.dtype))) / rate
    return settings.frequencies(rate), times, move_axis(out, value.ndim - 1, place)


@rounded_once
@described_like(stft)
def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Compute the cross spectral density of two signals, by Welch's method.

    Args:
        x: a signal.
        y: another; the shorter one is padded with zeros. None stands for ``x``.
        nperseg: how many points a segment has; by default 256.
        scaling: ``"density"`` for a power per unit of frequency, ``"spectrum"`` for a power.
        average: ``"mean"``, or ``"median"``, corrected for its bias.

    Returns:
        The frequencies, and the averages over segments of ``conj(X) Y``, with the transforms X and
            Y.

    Raises:
        TypeError: ``nfft`` is not an integer.
        ValueError: the settings contradict each other or the signals.

    As SciPy's ``csd``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, -1.0, 1.0, -1.0])
    >>> st.scipy.signal.csd(x, x, window="boxcar", scaling="spectrum")[1].real
    Array([0., 0., 1.], dtype=float32)
    """
    options = (window, nperseg, noverlap, nfft, detrend, return_onesided)
    return _average_spectra("csd", x, y, fs, options, scaling, axis, average)


@rounded_once
@described_like(csd)
def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Trend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Compute the power spectral density of a signal, by Welch's method.

    Returns:
        The frequencies, and the powers, which are real.

    Raises:
        TypeError: ``nfft`` is not an integer.
        ValueError: the settings contradict each other or the signal.

    As SciPy's ``welch``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, -1.0, 1.0, -1.0])
    >>> st.scipy.signal.welch(x, window="boxcar", scaling="spectrum")[1]
    Array([0., 0., 1.], dtype=float32)
    """
    options = (window, nperseg, noverlap, nfft, detrend, return_onesided)
    return _average_spectra("welch", x, None, fs, options, scaling, axis, average)


def _average_spectra(
    caller: str,
    in1: ArrayLike,
    in2: ArrayLike | None,
    fs: ArrayLike,
    options: tuple[Window, int | None, int | None, int | None, Trend, bool],
    scaling: str,
    axis: int,
    average: str,
) -> tuple[Array, Array]:
    """Return the frequencies, and the average over segments of the products of two transforms."""
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{caller}: scaling must be 'density' or 'spectrum'; got {scaling!r}")
    if average not in ("mean", "median"):
        raise ValueError(f"{caller}: average must be 'mean' or 'median'; got {average!r}")
    rate = rate_of(caller, fs)
    x = as_value(in1, caller)
    y = x if in2 is None else as_value(in2, caller, "y")
    if x.ndim != y.ndim:
        raise ValueError(f"{caller}: x and y must have the same rank, got {x.type} and {y.type}")
    x, y = promote_dtypes(caller, x, y)
    x, y = (convert(v, inexact_dtype(v.dtype)) for v in (x, y))
    place = canonical_axis(axis, x.ndim, caller)
    x, y = (move_axis(v, place, v.ndim - 1) for v in (x, y))
    broadcast_shapes(caller, x.shape[:-1], y.shape[:-1])
    length = max(x.shape[-1], y.shape[-1])
    settings = _settings(caller, x, length, *options)
    x, y = (pad(v, 0, [*[(0, 0, 0)] * (v.ndim - 1), (0, length - v.shape[-1], 0)]) for v in (x, y))
    spectrum = settings.transforms(x)
    out = _power(spectrum) if in2 is None else conj(spectrum) * settings.transforms(y)
    if scaling == "density":
        scale = rate * snp.sum(square(settings.window))
    else:
        scale = square(snp.sum(settings.window))
    out = out / convert(as_value(scale), out.dtype)
    if settings.onesided:
        # Frequencies that stand for their negatives too count twice.
        twice = np.full((*(1,) * (out.ndim - 2), out.shape[-2], 1), 2, out.dtype)
        twice[..., 0, :] = 1
        if settings.nfft % 2 == 0:
            twice[..., -1, :] = 1
        out = out * twice
    return settings.frequencies(rate), move_axis(_average(out, average), out.ndim - 2, place)


def _power(x: Array) -> Array:
    return square(real(x)) + square(imag(x))


def _average(x: Array, kind: str) -> Array:
    """Average over the last axis."""
    if kind == "mean" or x.shape[-1] == 1:
        return snp.mean(x, -1)
    # The median of n exponentially distributed numbers is this fraction of their mean.
    even = 2 * np.arange(1, (x.shape[-1] - 1) // 2 + 1)
    bias = float(1 + np.sum(1 / (even + 1) - 1 / even))
    if is_complex(x.dtype):
        return complex_(snp.median(real(x), -1), snp.median(imag(x), -1)) / bias
    return snp.median(x, -1) / bias


# Signals from their short-time Fourier transforms.
#
# Source: Griffin and Lim, Signal estimation from modified short-time Fourier transform (1984).


_SMALLEST_NORM = 1e-10


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Find the signal with a given short-time Fourier transform.

    Args:
        Zxx: the transforms; for those of no signal, the signal with the nearest ones is computed.
        fs: the number of samples in a unit of time.
        window: a name or a tuple for SciPy's ``get_window``, or weights.
        nperseg: how many points a segment has; by default as many as the number of
            frequencies implies.
        noverlap: how many points neighbours share; by default half of them.
        nfft: how many points are transformed; by default ``nperseg``.
        input_onesided: whether negative frequencies are left out.
        boundary: whether ``stft`` added half a segment at each end, which is removed.
        time_axis: the axis of the segments.
        freq_axis: the axis of the frequencies.

    Returns:
        ``(times, signal)``; where the squares of the windows add up to zero, the signal is
            undetermined.

    Raises:
        TypeError: ``nfft`` is not an integer.
        ValueError: the settings contradict each other or the transforms.

    As SciPy's ``istft``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, 2.0, 3.0, 2.0, 1.0, 0.0, 1.0, 2.0])
    >>> _, _, z = st.scipy.signal.stft(x, nperseg=4)
    >>> st.scipy.signal.istft(z)[1].round(3)
    Array([1., 2., 3., 2., 1., 0., 1., 2.], dtype=float32)
    """
    caller = "istft"
    z = as_value(Zxx, caller, "Zxx")
    z = convert(z, complex_dtype(z.dtype))
    if z.ndim < 2:
        raise ValueError(f"{caller}: expected an array of rank 2 or more, got {z.type}")
    time, frequency = (canonical_axis(a, z.ndim, caller) for a in (time_axis, freq_axis))
    if time == frequency:
        raise ValueError(f"{caller}: time_axis and freq_axis must differ, got {time_axis} twice")
    outer = [d for d in range(z.ndim) if d not in (time, frequency)]
    z = z.transpose(*outer, time, frequency)
    count = z.shape[-1]
    default = 2 * (count - 1) if input_onesided else count
    dtype = real_dtype(z.dtype)
    weights, size = window_of(caller, window, nperseg, None, default, dtype)
    if nfft is None:
        # An odd number of points has as many frequencies as the even one below it.
        points = size if input_onesided and size == default + 1 else default
    else:
        points = integer(nfft, "istft", "nfft")
    if points < size:
        raise ValueError(f"{caller}: nfft must be at least nperseg, {size}; got {nfft or points}")
    step = size - overlap_of(caller, noverlap, size)
    parts = (snp.fft.irfft if input_onesided else snp.fft.ifft)(z, points)
    parts = slice_in_dim(parts, 0, size, axis=-1) * convert(snp.sum(weights), parts.dtype)
    x = overlap_add(parts * convert(of_rank(weights, parts.ndim), parts.dtype), step)
    norm = overlap_add(broadcast_to(square(weights), parts.shape[-2:]), step)
    if boundary:
        x, norm = (slice_in_dim(v, size // 2, v.shape[-1] - size // 2, axis=-1) for v in (x, norm))
    x = x / convert(select(gt(norm, _SMALLEST_NORM), norm, norm * 0 + 1), x.dtype)
    times = as_value(np.arange(x.shape[-1], dtype=dtype)) / rate_of(caller, fs)
    return times, move_axis(x, x.ndim - 1, time - (frequency < time))


exports(__name__)
