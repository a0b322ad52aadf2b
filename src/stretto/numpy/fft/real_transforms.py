"""Transforms that know of numbers that they are real, or their spectrum that it is.

Of real numbers the frequencies k and N - k are conjugates, so that along the last axis only those
from 0 to N // 2 are kept. Next, read ``frequencies``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.fft import FftType
from stretto.numpy.arguments import refuse_out
from stretto.numpy.fft.applying import along_axes, along_axis, swapped_norm

__all__ = ["hfft", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn"]


def rfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Any:
    """The frequencies 0 to ``n // 2`` of the Fourier transform of real numbers along ``axis``.

    ``n`` and ``norm`` are as in ``fft``. Raises ``TypeError`` for complex numbers.

    >>> import stretto.numpy as snp
    >>> snp.fft.rfft(snp.array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    refuse_out("rfft", out)
    return along_axis("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Any:
    """The inverse of ``rfft``: ``n`` real numbers along ``axis``, by default ``2 * (m - 1)``.

    An odd ``n`` must be given. The imaginary parts at frequency 0, and at ``n / 2``, have no part
    in the result. ``norm`` is as in ``fft``.

    >>> import stretto.numpy as snp
    >>> snp.fft.irfft(snp.array([10, -2 + 2j, -2]))
    Array([1., 2., 3., 4.], dtype=float32)
    """
    refuse_out("irfft", out)
    return along_axis("irfft", FftType.IRFFT, a, n, axis, norm)


def rfftn(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: None = None,
) -> Any:
    """The Fourier transform of real numbers along several axes, half of it along the last one.

    Arguments are as in ``fftn``. Raises ``TypeError`` for complex numbers.

    >>> import stretto.numpy as snp
    >>> snp.fft.rfftn(snp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    refuse_out("rfftn", out)
    return along_axes("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    out: None = None,
) -> Any:
    """The inverse of ``rfftn``; along the last axis ``s[-1]`` numbers, or ``2 * (m - 1)``.

    Arguments are as in ``fftn``.

    >>> import stretto.numpy as snp
    >>> snp.fft.irfftn(snp.fft.rfftn(snp.ones((2, 3))), (2, 3))
    Array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    refuse_out("irfftn", out)
    return along_axes("irfftn", FftType.IRFFT, a, s, axes, norm)


def rfft2(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Any:
    """The Fourier transform of real numbers along two axes; arguments are as in ``fftn``.

    >>> import stretto.numpy as snp
    >>> snp.fft.rfft2(snp.ones((5, 2, 4))).shape
    (5, 2, 3)
    """
    refuse_out("rfft2", out)
    return along_axes("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Any:
    """The inverse of ``rfft2``; arguments are as in ``irfftn``.

    >>> import stretto.numpy as snp
    >>> snp.fft.irfft2(snp.array([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    refuse_out("irfft2", out)
    return along_axes("irfft2", FftType.IRFFT, a, s, axes, norm)


def hfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Any:
    """The Fourier transform, which is real, of numbers of which half is given: x[-i] = conj(x[i]).

    There are ``n`` of them along ``axis``, by default ``2 * (m - 1)``. ``norm`` is as in ``fft``.

    >>> import stretto.numpy as snp
    >>> snp.fft.hfft(snp.array([1.0, 2.0, 3.0]))
    Array([ 8., -2.,  0., -2.], dtype=float32)
    """
    refuse_out("hfft", out)
    x = conj(as_value(a, "hfft", "a"))
    return along_axis("hfft", FftType.IRFFT, x, n, axis, swapped_norm("hfft", norm))


def ihfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Any:
    """The inverse of ``hfft``: the first half of the numbers whose transform is real.

    ``n`` and ``norm`` are as in ``fft``. Raises ``TypeError`` for complex numbers.

    >>> import stretto.numpy as snp
    >>> snp.fft.ihfft(snp.array([8.0, -2.0, 0.0, -2.0])).real
    Array([1., 2., 3.], dtype=float32)
    """
    refuse_out("ihfft", out)
    return conj(along_axis("ihfft", FftType.RFFT, a, n, axis, swapped_norm("ihfft", norm)))
