"""Transforms of real numbers, or to a real spectrum.

Of real numbers the frequencies k and N - k are conjugates, so that along the last axis only those
from 0 to N // 2 are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.fft import FftType
from stretto.numpy.arguments import refuse_out
from stretto.numpy.fft.applying import along_axes, along_axis, swapped_norm

__all__ = ["hfft", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn"]


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
