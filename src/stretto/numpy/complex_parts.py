"""Parts of complex numbers: real and imaginary, conjugates and angles."""

from __future__ import annotations

import math

from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import ArrayLike
from stretto._engine.ops import complex_parts
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.convert import as_inexact
from stretto._engine.ops.inverse_trigonometric import atan2 as atan2_of
from stretto._engine.xla.array import Array

__all__ = ["angle", "conj", "conjugate", "imag", "real"]


def real(val: ArrayLike) -> Array:
    """Take the real part of each element.

    Args:
        val: an array, or a number.

    Returns:
        The real parts, of the shape of ``val``; real arrays as they are.

    Raises:
        TypeError: ``val`` is not an array or a number.

    As NumPy's ``real``.

    >>> import stretto.numpy as snp
    >>> snp.real(snp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    return complex_parts.real(val)


@described_like(real)
def imag(val: ArrayLike) -> Array:
    """Take the imaginary part of each element.

    Returns:
        The imaginary parts, of the shape of ``val``; zeros for real arrays.

    As NumPy's ``imag``.

    >>> import stretto.numpy as snp
    >>> snp.imag(snp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return complex_parts.imag(val)


conjugate = conj


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Compute the angle of each complex number in the plane.

    Args:
        z: an array, or a number, real or complex.
        deg: whether the angles are in degrees rather than radians.

    Returns:
        The angles, from -pi to pi or from -180 to 180; a float array of the shape of ``z``.

    Raises:
        TypeError: ``z`` is not an array or a number.

    As NumPy's ``angle``.

    >>> import stretto.numpy as snp
    >>> snp.angle(snp.array([1j, -1]), deg=True)
    Array([ 90., 180.], dtype=float32)
    """
    value = as_inexact(z, "angle", "z")
    radians = atan2_of(complex_parts.imag(value), complex_parts.real(value))
    return radians * (180 / math.pi) if deg else radians
