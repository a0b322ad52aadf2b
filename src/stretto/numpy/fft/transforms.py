"""Transforms of complex numbers, along one axis, two, or any number.

With N points, X[k] = sum over n of x[n] exp(-2 pi i k n / N); the inverse is the mean over k of
X[k] exp(2 pi i k n / N). ``norm`` moves the factor 1/N: ``"backward"`` leaves it on the inverse,
``"forward"`` puts it on the transform, ``"ortho"`` puts its square root on both.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.fft import FftType
from stretto.numpy.arguments import refuse_out
from stretto.numpy.fft.applying import along_axes, along_axis

__all__ = ["fft", "fft2", "fftn", "ifft", "ifft2", "ifftn"]


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
