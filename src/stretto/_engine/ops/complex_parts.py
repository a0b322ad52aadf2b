"""The parts of complex numbers: taking them apart, putting them together, the conjugate.

Cotangents pair with tangents as Re(ct v), without conjugation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.types import ArrayType, array_type, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.comparison import zeros_like
from stretto._engine.ops.elementwise import COMPLEX, FLOAT, Elementwise, binary, describe_unary


class Real(Elementwise):
    """The real part."""

    accepts = COMPLEX
    keeps_zeros = True
    op = "real"
    reference = staticmethod(np.real)
    partials = (lambda dx, out, x: real(dx),)

    def out_dtype(self, dtype: np.dtype) -> np.dtype:
        return real_dtype(dtype)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        """Re(ct Re v) = Re(ct v)."""
        return (complex_(ct, zeros_like(ct)),)


class Imag(Elementwise):
    """The imaginary part."""

    accepts = COMPLEX
    keeps_zeros = True
    op = "imag"
    reference = staticmethod(np.imag)
    partials = (lambda dx, out, x: imag(dx),)

    def out_dtype(self, dtype: np.dtype) -> np.dtype:
        return real_dtype(dtype)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        """ct Im v = Re(-i ct v)."""
        return (complex_(zeros_like(ct), -ct),)


class Complex(Elementwise):
    """The complex number of two parts."""

    accepts = FLOAT
    keeps_zeros = True
    op = "complex"
    partials = (
        lambda dx, out, x, y: complex_(dx, zeros_like(dx)),
        lambda dy, out, x, y: complex_(zeros_like(dy), dy),
    )

    def infer(self, *types: ArrayType) -> ArrayType:
        """Return complex numbers of twice the width; parts are float32 or float64."""
        out = super().infer(*types)
        if types[0].dtype.name not in ("float32", "float64"):
            raise TypeError(f"complex: expected float32 or float64 parts, got {types[0]}")
        return out

    def out_dtype(self, dtype: np.dtype) -> np.dtype:
        return np.dtype(f"c{dtype.itemsize * 2}") if dtype.itemsize in (4, 8) else dtype

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Fill the array part by part, so that infinities and NaN stay where they are."""
        out = np.empty(np.shape(x), self.out_dtype(x.dtype))
        out.real, out.imag = x, y
        return out

    def transpose(self, ct: Any, x: Any, y: Any) -> tuple[Any, Any]:
        """Re(ct (x + iy)) = Re(ct) x - Im(ct) y."""
        return (
            real(ct) if isinstance(x, Linear) else None,
            -imag(ct) if isinstance(y, Linear) else None,
        )


class Conj(Elementwise):
    """The complex conjugate."""

    accepts = COMPLEX
    keeps_zeros = True
    op = "conj"
    reference = staticmethod(np.conj)
    partials = (lambda dx, out, x: conj(dx),)

    def lower(self, b: Any, x: Any) -> Any:
        part = array_type(x.type.shape, real_dtype(x.type.dtype))
        re, im = b.emit("real", x, out=part), b.emit("imag", x, out=part)
        return b.emit("complex", re, b.emit("negate", im, out=part))

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        """Re(ct conj(v)) = Re(conj(ct) v)."""
        return (conj(ct),)


REAL, IMAG, COMPLEX_, CONJ = Real(), Imag(), Complex(), Conj()


def real(x: ArrayLike) -> Array:
    """Take the real part of each element.

    Args:
        x: an array or a number.

    Returns:
        The real parts; real arrays as they are.

    Source: StableHLO, ``real``.

    >>> import stretto as st
    >>> st.lax.real(st.numpy.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    value = as_value(x, "real")
    return REAL(value) if is_complex(value.dtype) else value


def imag(x: ArrayLike) -> Array:
    """Take the imaginary part of each element.

    Args:
        x: an array or a number.

    Returns:
        The imaginary parts; zeros for real arrays.

    Source: StableHLO, ``imag``.

    >>> import stretto as st
    >>> st.lax.imag(st.numpy.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    value = as_value(x, "imag")
    return IMAG(value) if is_complex(value.dtype) else zeros_like(value)


def complex_(x: ArrayLike, y: ArrayLike) -> Array:
    """Make complex numbers of real and imaginary parts.

    Args:
        x: the real parts, floats.
        y: the imaginary parts, promoted and broadcast with ``x``.

    Returns:
        The complex numbers, complex64 for float32 and complex128 for float64.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``complex``.

    >>> import stretto as st
    >>> st.lax.complex(st.numpy.array([1.0]), 2.0)
    Array([1.+2.j], dtype=complex64)
    """
    return binary(COMPLEX_, x, y)


@describe_unary
def conj(x: ArrayLike) -> Array:
    """Take the complex conjugate of each element.

    Returns:
        The conjugates, of the shape and dtype of ``x``; real arrays as they are.

    As NumPy's ``conj``.

    >>> import stretto.numpy as snp
    >>> snp.conj(snp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    value = as_value(x, "conj")
    return CONJ(value) if is_complex(value.dtype) else value
