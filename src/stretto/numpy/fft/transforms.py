"""Transforms of complex numbers, along one axis, two, or any number.

Next, read ``real_transforms``.

With N points, X[k] = sum over n of x[n] exp(-2 pi i k n / N); the inverse is the mean over k of
X[k] exp(2 pi i k n / N). ``norm`` moves the factor 1/N: ``"backward"`` leaves it on the inverse,
``"forward"`` puts it on the transform, ``"ortho"`` puts its square root on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.ops.fft import FftType
from stretto.numpy.arguments import refuse_out
from stretto.numpy.fft.applying import along_axes, along_axis

__all__ = ["fft", "fft2", "fftn", "ifft", "ifft2", "ifftn"]


def fft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Any:
    """The Fourier transform along ``axis``.

    With ``n``, that many points: the array is cut off there, or filled up with zeros. ``norm`` is
    ``"backward"`` (the default), ``"ortho"`` or ``"forward"``. Float64 and complex128 give
    complex128, all other dtypes complex64. Raises ``ValueError`` where there is no point.

    >>> import stretto.numpy as snp
    >>> snp.fft.fft(snp.array([1.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    refuse_out("fft", out)
    return along_axis("fft", FftType.FFT, a, n, axis, norm)


def ifft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Any:
    """The inverse Fourier transform along ``axis``; arguments are as in ``fft``.

    >>> import stretto.numpy as snp
    >>> snp.fft.ifft(snp.array([1.0, 1.0, 1.0]))
    Array([1.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    refuse_out("ifft", out)
    return along_axis("ifft", FftType.IFFT, a, n, axis, norm)


def fftn(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: None = None,
) -> Any:
    """The Fourier transform along several ``axes``, by default all, or the last ``len(s)``.

    ``s`` are the numbers of points, -1 for the size at hand: the array is cut off there, or filled
    up with zeros. ``norm`` is as in ``fft``. Raises ``ValueError`` for an axis named twice.

    >>> import stretto.numpy as snp
    >>> snp.fft.fftn(snp.eye(2))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 2.+0.j]], dtype=complex64)
    """
    refuse_out("fftn", out)
    return along_axes("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: None = None,
) -> Any:
    """The inverse Fourier transform along several axes; arguments are as in ``fftn``.

    >>> import stretto.numpy as snp
    >>> snp.fft.ifftn(2.0 * snp.eye(2))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 1.+0.j]], dtype=complex64)
    """
    refuse_out("ifftn", out)
    return along_axes("ifftn", FftType.IFFT, a, s, axes, norm)


def fft2(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Any:
    """The Fourier transform along two axes; arguments are as in ``fftn``.

    >>> import stretto.numpy as snp
    >>> snp.fft.fft2(snp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    refuse_out("fft2", out)
    return along_axes("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Any:
    """The inverse Fourier transform along two axes; arguments are as in ``fftn``.

    >>> import stretto.numpy as snp
    >>> snp.fft.ifft2(snp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    refuse_out("ifft2", out)
    return along_axes("ifft2", FftType.IFFT, a, s, axes, norm)
