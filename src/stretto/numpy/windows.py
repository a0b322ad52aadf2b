"""Windows that taper a signal, and the Bessel function that one of them needs.

Each is symmetric, of ``M`` elements; a single element is 1.
"""

from __future__ import annotations

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.types import array_type, default_dtype
from stretto._engine.core.typing import ArrayLike
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.exponential import exp
from stretto._engine.ops.special.bessel import I0, bessel_i0, bessel_i0e
from stretto._engine.xla.array import Array
from stretto.numpy.arguments import inexact_values
from stretto.numpy.arithmetic import absolute


def _window(host: np.ndarray) -> Array:
    dtype = default_dtype("float")
    return Array(host.astype(dtype), array_type(host.shape, dtype))


def bartlett(M: int) -> Array:
    """Make the triangular window, from 0 to 1 and back.

    Args:
        M: the number of points.

    Returns:
        ``[M]``, of the default float.

    Raises:
        TypeError: ``M`` is not an integer.

    As NumPy's ``bartlett``.

    >>> import stretto.numpy as snp
    >>> snp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(np.bartlett(integer(M, "bartlett", "M")))


@described_like(bartlett)
def blackman(M: int) -> Array:
    """Make Blackman's window: 0.42 - 0.5 cos(2πn / (M - 1)) + 0.08 cos(4πn / (M - 1)).

    As NumPy's ``blackman``.

    >>> import stretto.numpy as snp
    >>> snp.blackman(3).round(3)
    Array([-0.,  1., -0.], dtype=float32)
    """
    return _window(np.blackman(integer(M, "blackman", "M")))


@described_like(bartlett)
def hamming(M: int) -> Array:
    """Make Hamming's window: 0.54 - 0.46 cos(2πn / (M - 1)).

    As NumPy's ``hamming``.

    >>> import stretto.numpy as snp
    >>> snp.hamming(3)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _window(np.hamming(integer(M, "hamming", "M")))


@described_like(bartlett)
def hanning(M: int) -> Array:
    """Make Hann's window: 0.5 - 0.5 cos(2πn / (M - 1)).

    As NumPy's ``hanning``.

    >>> import stretto.numpy as snp
    >>> snp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(np.hanning(integer(M, "hanning", "M")))


@rounded_once
def kaiser(M: int, beta: ArrayLike) -> Array:
    """Make Kaiser's window: I₀(β √(1 - (2n / (M - 1) - 1)²)) / I₀(β).

    Args:
        M: the number of points.
        beta: β, one number; may be traced and differentiated.

    Returns:
        ``[M]``, of the default float.

    Raises:
        TypeError: ``M`` is not an integer.
        ValueError: ``beta`` is not one number.

    As NumPy's ``kaiser``.

    >>> import stretto.numpy as snp
    >>> snp.kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    M, shape_parameter = integer(M, "kaiser", "M"), as_value(beta, "kaiser", "beta")
    if shape_parameter.ndim:
        raise ValueError(f"kaiser: expected one number in beta, got {shape_parameter.type}")
    if M <= 1:
        return _window(np.ones(max(M, 0)))
    # Beyond 700 NumPy divides infinities, and the rest is another form of the same.
    if not isinstance(shape_parameter, Tracer) and abs(float(shape_parameter)) < 700:
        return _window(np.kaiser(M, float(shape_parameter)))
    (shape_parameter,) = inexact_values("kaiser", beta=shape_parameter)
    shape_parameter = convert(absolute(shape_parameter), shape_parameter.dtype)
    rise = np.sqrt(1 - np.linspace(-1, 1, M) ** 2)
    z = shape_parameter * _window(rise)
    return bessel_i0e(z) * exp(z - shape_parameter) / bessel_i0e(shape_parameter)


def _i0(x: np.ndarray) -> np.ndarray | None:
    """NumPy's ``i0``, in its own precision, unless a compiled program is faster."""
    if I0.compiled((array_type(x.shape, x.dtype),)):
        return None
    # NumPy gives NaN for infinities; from 714 on the value is one in float64.
    return np.i0(np.minimum(np.abs(x.astype(np.float64)), 1000.0))


@eager(_i0, FLOAT)
def i0(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind, of order zero.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the float dtype and shape of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    As NumPy's ``i0``.

    >>> import stretto.numpy as snp
    >>> snp.i0(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return bessel_i0(x)
