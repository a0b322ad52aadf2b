"""``stretto.numpy.fft``: discrete Fourier transforms.

With N points, X[k] = sum over n of x[n] exp(-2 pi i k n / N); the inverse is the mean over k of
X[k] exp(2 pi i k n / N). ``norm`` moves the factor 1/N: ``"backward"`` leaves it on the inverse,
``"forward"`` puts it on the transform, ``"ortho"`` puts its square root on both. Of real numbers
the frequencies k and N - k are conjugates, so that along the last axis only those from 0 to N // 2
are kept. The primitive is ``ops/fft``, under its JAX name ``stretto.lax.fft``.

>>> import stretto.numpy as snp
>>> snp.fft.rfft(snp.array([1.0, 2.0, 3.0, 4.0]))
Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer, integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import default_dtype, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike, Axes, DTypeLike, ShardingLike
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.convert import convert
from stretto._engine.ops.fft import Fft, FftType, complex_dtype
from stretto._engine.ops.layout import canonical_axes, canonical_axis, transpose
from stretto._engine.ops.shape import pad
from stretto.numpy.arguments import put_result, refuse_out
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.manipulation import roll

if TYPE_CHECKING:
    from stretto._engine.xla.device import Device

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2",
           "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2",
           "rfftfreq", "rfftn"]  # fmt: skip

_NORMS = ("backward", "ortho", "forward")
_AT_ONCE = 3


def along_axis(
    caller: str, kind: FftType, a: ArrayLike, n: int | None, axis: int, norm: str | None
) -> Array:
    """Transform along one axis, with ``n`` points there."""
    x = as_value(a, caller, "a")
    if isinstance(axis, (tuple, list)):
        raise TypeError(
            f"{caller}: axis must be an integer, got {axis}; use {caller}n for several axes"
        )
    axes = (canonical_axis(axis, x.ndim, caller),)
    return _applied(
        caller, kind, x, None if n is None else (integer(n, caller, "n", 1),), axes, norm
    )


def along_axes(
    caller: str, kind: FftType, a: ArrayLike, s: Sequence[int] | None, axes: Axes, norm: str | None
) -> Array:
    """Transform along several axes, with ``s`` points; by default along all axes, or the last."""
    x = as_value(a, caller, "a")
    lengths = None if s is None else integers(s, caller, "s", -1)
    if axes is None and lengths is not None:
        if len(lengths) > x.ndim:
            raise ValueError(f"{caller}: s {lengths} has more sizes than {x.type} has axes")
        places = tuple(range(x.ndim - len(lengths), x.ndim))
    else:
        places = canonical_axes(axes, x.ndim, caller)
    if lengths is not None and len(lengths) != len(places):
        raise ValueError(f"{caller}: s {lengths} and axes {axes} must have equal lengths")
    return _applied(caller, kind, x, lengths, places, norm)


def swapped_norm(caller: str, norm: str | None) -> str:
    """Return the norm that gives a transform the factor that this one gives its inverse."""
    return _NORMS[2 - _NORMS.index(_checked(caller, norm))]


def _checked(caller: str, norm: str | None) -> str:
    name = "backward" if norm is None else norm
    if name not in _NORMS:
        raise ValueError(
            f"{caller}: norm must be None, 'backward', 'ortho' or 'forward'; got {norm!r}"
        )
    return name


def _applied(
    caller: str,
    kind: FftType,
    x: Array,
    s: Sequence[int] | None,
    axes: tuple[int, ...],
    norm: str | None,
) -> Array:
    norm = _checked(caller, norm)
    dtype = complex_dtype(x.dtype)
    if kind is not FftType.RFFT:
        x = convert(x, dtype)
    elif is_complex(x.dtype):
        raise TypeError(
            f"{caller}: expected real numbers, got {x.type}; take x.real, or use a transform of "
            f"complex numbers, fft or fftn"
        )
    else:
        x = convert(x, real_dtype(dtype))
    if not axes:
        if kind in (FftType.RFFT, FftType.IRFFT):
            raise ValueError(f"{caller}: expected at least one axis of {x.type}, got none")
        return x
    lengths = _lengths(caller, kind, x, s, axes)
    x = _resized(kind, x, lengths, axes)
    out = _transformed(kind, x, lengths, axes)
    return out if norm == "backward" else out * _factor(kind, math.prod(lengths), norm)


def _lengths(
    caller: str, kind: FftType, x: Array, s: Sequence[int] | None, axes: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the points along each axis: from ``s``, or for -1 and without ``s`` its size."""
    own = [x.shape[d] for d in axes]
    if kind is FftType.IRFFT:
        own[-1] = 2 * (own[-1] - 1)
    lengths = own if s is None else [m if n == -1 else n for n, m in zip(s, own, strict=True)]
    if min(lengths) < 1:
        raise ValueError(
            f"{caller}: a transform needs at least one point, got {tuple(lengths)} along axes "
            f"{axes} of {x.type}"
        )
    return tuple(lengths)


def _resized(kind: FftType, x: Array, lengths: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Cut off or pad with zeros at the end of each axis."""
    config = [(0, 0, 0)] * x.ndim
    for d, n in zip(axes, lengths, strict=True):
        wanted = n // 2 + 1 if kind is FftType.IRFFT and d == axes[-1] else n
        config[d] = (0, wanted - x.shape[d], 0)
    return pad(x, 0, config) if any(high for _, high, _ in config) else x


def _transformed(kind: FftType, x: Array, lengths: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Transform three axes at a time; the last axes first from real numbers, last to real ones."""
    groups = [(kind, axes[-_AT_ONCE:], lengths[-_AT_ONCE:])]
    rest = len(axes) - _AT_ONCE
    other = FftType.FFT if kind in (FftType.FFT, FftType.RFFT) else FftType.IFFT
    while rest > 0:
        first = max(rest - _AT_ONCE, 0)
        groups.append((other, axes[first:rest], lengths[first:rest]))
        rest = first
    for each, places, sizes in groups[::-1] if kind is FftType.IRFFT else groups:
        order = [d for d in range(x.ndim) if d not in places] + list(places)
        inverse = [order.index(d) for d in range(x.ndim)]
        x = transpose(Fft(each, sizes)(transpose(x, order)), inverse)
    return x


def _factor(kind: FftType, count: int, norm: str) -> float:
    """Return the factor that ``norm`` asks for; the inverse kinds already divide by ``count``."""
    inverse = kind not in (FftType.FFT, FftType.RFFT)
    if norm == "ortho":
        return count**0.5 if inverse else count**-0.5
    return count * 1.0 if inverse else 1 / count


def fft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Array:
    """Transform an array along an axis by Fourier's transform.

    Args:
        a: an array of rank 1 or more.
        n: the number of points: the array is cut off there, or filled up with zeros; by default its
            size.
        axis: the axis to transform.
        norm: which way has the factor 1/N: ``"backward"`` (the default), ``"forward"``, or
            ``"ortho"`` for its root on both.
        out: must be None: arrays are immutable.

    Returns:
        An array of complex128 for float64 and complex128, of complex64 for other dtypes.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``axis`` is not one integer.
        ValueError: ``axis`` is out of bounds, there is no point, or ``norm`` is another.

    As NumPy's ``fft.fft``.

    >>> import stretto.numpy as snp
    >>> snp.fft.fft(snp.array([1.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    refuse_out("fft", out)
    return along_axis("fft", FftType.FFT, a, n, axis, norm)


@described_like(fft)
def ifft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Array:
    """Invert Fourier's transform along an axis.

    As NumPy's ``fft.ifft``.

    >>> import stretto.numpy as snp
    >>> snp.fft.ifft(snp.array([1.0, 1.0, 1.0]))
    Array([1.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    refuse_out("ifft", out)
    return along_axis("ifft", FftType.IFFT, a, n, axis, norm)


@described_like(fft)
def fftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: None = None,
) -> Array:
    """Transform an array along several axes by Fourier's transform.

    Args:
        a: an array.
        s: the numbers of points, -1 for the size of ``a``: the array is cut off there, or filled
            up.
        axes: the axes to transform; by default all, or the last ``len(s)``.

    Raises:
        NotImplementedError: ``out`` is given.
        ValueError: an axis is out of bounds, or is named twice; or ``s`` and ``axes`` differ in
            length, there is no point, or ``norm`` is another.

    As NumPy's ``fft.fftn``.

    >>> import stretto.numpy as snp
    >>> snp.fft.fftn(snp.eye(2))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 2.+0.j]], dtype=complex64)
    """
    refuse_out("fftn", out)
    return along_axes("fftn", FftType.FFT, a, s, axes, norm)


@described_like(fftn)
def ifftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: None = None,
) -> Array:
    """Invert Fourier's transform along several axes.

    As NumPy's ``fft.ifftn``.

    >>> import stretto.numpy as snp
    >>> snp.fft.ifftn(2.0 * snp.eye(2))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 1.+0.j]], dtype=complex64)
    """
    refuse_out("ifftn", out)
    return along_axes("ifftn", FftType.IFFT, a, s, axes, norm)


@described_like(fftn)
def fft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Array:
    """Transform an array along two axes by Fourier's transform.

    Args:
        axes: the two axes to transform.

    As NumPy's ``fft.fft2``.

    >>> import stretto.numpy as snp
    >>> snp.fft.fft2(snp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    refuse_out("fft2", out)
    return along_axes("fft2", FftType.FFT, a, s, axes, norm)


@described_like(fft2)
def ifft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Array:
    """Invert Fourier's transform along two axes.

    As NumPy's ``fft.ifft2``.

    >>> import stretto.numpy as snp
    >>> snp.fft.ifft2(snp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    refuse_out("ifft2", out)
    return along_axes("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Array:
    """Transform real numbers along an axis; only the frequencies 0 to ``n // 2`` are kept.

    Args:
        a: an array of real numbers.
        n: the number of points: the array is cut off there, or filled up with zeros; by default its
            size.
        axis: the axis to transform.
        norm: which way has the factor 1/N: ``"backward"`` (the default), ``"forward"``, or
            ``"ortho"`` for its root on both.
        out: must be None: arrays are immutable.

    Returns:
        An array of complex128 for float64, of complex64 for other dtypes, with ``n // 2 + 1``
        frequencies along the axis.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``a`` is complex, or ``axis`` is not one integer.
        ValueError: ``axis`` is out of bounds, there is no point, or ``norm`` is another.

    As NumPy's ``fft.rfft``.

    >>> import stretto.numpy as snp
    >>> snp.fft.rfft(snp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    refuse_out("rfft", out)
    return along_axis("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Array:
    """Invert ``rfft``: from half of a spectrum to real numbers.

    The imaginary parts at frequency 0, and at ``n / 2``, do not count.

    Args:
        a: the frequencies 0 to ``n // 2``, m of them.
        n: the number of points of the result, ``2 * (m - 1)`` by default; an odd one must be given.
        axis: the axis to transform.
        norm: which way has the factor 1/N: ``"backward"`` (the default), ``"forward"``, or
            ``"ortho"`` for its root on both.
        out: must be None: arrays are immutable.

    Returns:
        An array of float64 for float64 and complex128, of float32 for other dtypes.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``axis`` is not one integer.
        ValueError: ``axis`` is out of bounds, there is no point, or ``norm`` is another.

    As NumPy's ``fft.irfft``.

    >>> import stretto.numpy as snp
    >>> snp.fft.irfft(snp.array([10, -2 + 2j, -2]))
    Array([1., 2., 3., 4.], dtype=float32)
    """
    refuse_out("irfft", out)
    return along_axis("irfft", FftType.IRFFT, a, n, axis, norm)


def rfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: None = None,
) -> Array:
    """Transform real numbers along several axes; half of the last axis is kept.

    Args:
        a: an array of real numbers.
        s: the numbers of points, -1 for the size of ``a``: the array is cut off there, or filled
            up.
        axes: the axes to transform; by default all, or the last ``len(s)``.
        norm: which way has the factor 1/N: ``"backward"`` (the default), ``"forward"``, or
            ``"ortho"`` for its root on both.
        out: must be None: arrays are immutable.

    Returns:
        An array of complex128 for float64, of complex64 for other dtypes, with ``n // 2 + 1``
        frequencies along the last axis.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``a`` is complex.
        ValueError: an axis is out of bounds, or is named twice; or ``s`` and ``axes`` differ in
            length, there is no axis or no point, or ``norm`` is another.

    As NumPy's ``fft.rfftn``.

    >>> import stretto.numpy as snp
    >>> snp.fft.rfftn(snp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    refuse_out("rfftn", out)
    return along_axes("rfftn", FftType.RFFT, a, s, axes, norm)


@described_like(irfft)
def irfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: None = None,
) -> Array:
    """Invert ``rfftn``: from half of a spectrum to real numbers.

    Args:
        a: an array with m frequencies, 0 to ``n // 2``, along the last axis.
        s: the numbers of points of the result, -1 for the default: the sizes of ``a``, and ``2 * (m
            - 1)`` for the last one.
        axes: the axes to transform; by default all, or the last ``len(s)``.

    Raises:
        NotImplementedError: ``out`` is given.
        ValueError: an axis is out of bounds, or is named twice; or ``s`` and ``axes`` differ in
            length, there is no axis or no point, or ``norm`` is another.

    As NumPy's ``fft.irfftn``.

    >>> import stretto.numpy as snp
    >>> snp.fft.irfftn(snp.fft.rfftn(snp.ones((2, 3))), (2, 3))
    Array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    refuse_out("irfftn", out)
    return along_axes("irfftn", FftType.IRFFT, a, s, axes, norm)


@described_like(rfftn)
def rfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Array:
    """Transform real numbers along two axes; half of the last axis is kept.

    Args:
        axes: the two axes to transform.

    As NumPy's ``fft.rfft2``.

    >>> import stretto.numpy as snp
    >>> snp.fft.rfft2(snp.ones((5, 2, 4))).shape
    (5, 2, 3)
    """
    refuse_out("rfft2", out)
    return along_axes("rfft2", FftType.RFFT, a, s, axes, norm)


@described_like(irfftn)
def irfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Array:
    """Invert ``rfft2``: from half of a spectrum to real numbers.

    Args:
        axes: the two axes to transform.

    As NumPy's ``fft.irfft2``.

    >>> import stretto.numpy as snp
    >>> snp.fft.irfft2(snp.array([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    refuse_out("irfft2", out)
    return along_axes("irfft2", FftType.IRFFT, a, s, axes, norm)


@described_like(irfft)
def hfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Array:
    """Transform one half of Hermitian numbers, ``x[-i] = conj(x[i])``, to a real spectrum.

    Args:
        a: the first half of the numbers, m of them.
        n: the number of points, ``2 * (m - 1)`` by default; an odd one must be given.

    As NumPy's ``fft.hfft``.

    >>> import stretto.numpy as snp
    >>> snp.fft.hfft(snp.array([1.0, 2.0, 3.0]))
    Array([ 8., -2.,  0., -2.], dtype=float32)
    """
    refuse_out("hfft", out)
    x = conj(as_value(a, "hfft", "a"))
    return along_axis("hfft", FftType.IRFFT, x, n, axis, swapped_norm("hfft", norm))


@described_like(rfft)
def ihfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Array:
    """Invert ``hfft``: from a real spectrum to the first half of the numbers.

    Returns:
        An array of complex128 for float64, of complex64 for other dtypes, with ``n // 2 + 1``
        elements along the axis.

    As NumPy's ``fft.ihfft``.

    >>> import stretto.numpy as snp
    >>> snp.fft.ihfft(snp.array([8.0, -2.0, 0.0, -2.0])).real
    Array([1., 2., 3.], dtype=float32)
    """
    refuse_out("ihfft", out)
    return conj(along_axis("ihfft", FftType.RFFT, a, n, axis, swapped_norm("ihfft", norm)))


def _spaced(
    caller: str, places: np.ndarray, n: int, d: ArrayLike, dtype: DTypeLike | None
) -> Array:
    wanted = default_dtype("float") if dtype is None else as_dtype(dtype)
    if isinstance(d, (int, float)):
        return as_value((places / (n * d)).astype(wanted))
    step = as_value(d, caller, "d")
    return convert(as_value(places.astype(np.float64)) / (step * n), wanted)


def _count(caller: str, n: int) -> int:
    count = integer(n, caller, "n")
    if count < 1:
        raise ValueError(f"{caller}: n must be positive, got {count}")
    return count


def fftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | ShardingLike | str | None = None,
) -> Array:
    """List the frequency of each element of a transform.

    Args:
        n: the number of points.
        d: the distance of points; may be traced.
        dtype: the dtype of the result; by default the default float.
        device: the device, its name, or a sharding; by default the first device.

    Returns:
        ``[n]``: 0, 1, ... and then the negative frequencies, times ``1 / (n d)``, in cycles a unit
        of ``d``; ``n / 2`` is negative.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``device`` is not there; or ``n`` is not positive.

    As NumPy's ``fft.fftfreq``.

    >>> import stretto.numpy as snp
    >>> snp.fft.fftfreq(5, 0.5)
    Array([ 0. ,  0.4,  0.8, -0.8, -0.4], dtype=float32)
    """
    if device is not None:
        return put_result(fftfreq(n, d, dtype=dtype), device, None, "fftfreq")
    n = _count("fftfreq", n)
    places = np.arange(n)
    return _spaced("fftfreq", places - n * (places >= (n + 1) // 2), n, d, dtype)


@described_like(fftfreq)
def rfftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device | ShardingLike | str | None = None,
) -> Array:
    """List the frequency of each element of a transform of real numbers.

    Returns:
        ``[n // 2 + 1]``: 0 to ``n // 2``, times ``1 / (n d)``, in cycles a unit of ``d``.

    As NumPy's ``fft.rfftfreq``.

    >>> import stretto.numpy as snp
    >>> snp.fft.rfftfreq(5, 0.5)
    Array([0. , 0.4, 0.8], dtype=float32)
    """
    if device is not None:
        return put_result(rfftfreq(n, d, dtype=dtype), device, None, "rfftfreq")
    n = _count("rfftfreq", n)
    return _spaced("rfftfreq", np.arange(n // 2 + 1), n, d, dtype)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 from the start to the middle, ``n // 2``, of axes.

    Args:
        x: an array.
        axes: the axes to move along; all by default.

    Returns:
        An array of the shape of ``x``.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's ``fft.fftshift``.

    >>> import stretto.numpy as snp
    >>> snp.fft.fftshift(snp.array([0, 1, 2, -2, -1]))
    Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    value = as_value(x, "fftshift")
    places = canonical_axes(axes, value.ndim, "fftshift")
    return roll(value, [value.shape[d] // 2 for d in places], places)


@described_like(fftshift)
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 from the middle back to the start of axes: the inverse of ``fftshift``.

    As NumPy's ``fft.ifftshift``.

    >>> import stretto.numpy as snp
    >>> snp.fft.ifftshift(snp.array([-2, -1, 0, 1, 2]))
    Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    value = as_value(x, "ifftshift")
    places = canonical_axes(axes, value.ndim, "ifftshift")
    return roll(value, [-(value.shape[d] // 2) for d in places], places)


exports(__name__)
