"""Windows that taper a signal, and the Bessel function that one of them needs.

Each is symmetric, of ``M`` elements; a single element is 1. Next, read ``files``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.types import array_type, default_dtype
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import exp
from stretto._engine.ops.special.bessel import I0, bessel_i0, bessel_i0e
from stretto._engine.runtime.array import Array
from stretto.numpy.arguments import inexact_values
from stretto.numpy.arithmetic import absolute
from stretto.numpy.directly import FLOAT, directly

__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser"]


def _window(host: np.ndarray) -> Array:
    dtype = default_dtype("float")
    return Array(host.astype(dtype), array_type(host.shape, dtype))


def bartlett(M: int) -> Any:
    """The triangle from 0 to 1 and back.

    >>> import stretto.numpy as snp
    >>> snp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(np.bartlett(integer(M, "bartlett", "M")))


def blackman(M: int) -> Any:
    """0.42 - 0.5 cos(2πn / (M - 1)) + 0.08 cos(4πn / (M - 1)).

    >>> import stretto.numpy as snp
    >>> snp.blackman(3).round(3)
    Array([-0.,  1., -0.], dtype=float32)
    """
    return _window(np.blackman(integer(M, "blackman", "M")))


def hamming(M: int) -> Any:
    """0.54 - 0.46 cos(2πn / (M - 1)).

    >>> import stretto.numpy as snp
    >>> snp.hamming(3)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _window(np.hamming(integer(M, "hamming", "M")))


def hanning(M: int) -> Any:
    """0.5 - 0.5 cos(2πn / (M - 1)).

    >>> import stretto.numpy as snp
    >>> snp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(np.hanning(integer(M, "hanning", "M")))


def kaiser(M: int, beta: Any) -> Any:
    """I₀(β √(1 - (2n / (M - 1) - 1)²)) / I₀(β); differentiable in ``beta``, which may be traced.

    >>> import stretto.numpy as snp
    >>> snp.kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    M, beta = integer(M, "kaiser", "M"), as_value(beta, "kaiser", "beta")
    if beta.ndim:
        raise ValueError(f"kaiser: expected one number in beta, got {beta.type}")
    if not isinstance(beta, Tracer):
        return _window(np.kaiser(M, float(beta)))
    (beta,) = inexact_values("kaiser", beta=beta)
    beta = convert(absolute(beta), beta.dtype)
    rise = np.sqrt(1 - np.linspace(-1, 1, M) ** 2) if M > 1 else np.ones(max(M, 0))
    z = beta * _window(rise)
    return bessel_i0e(z) * exp(z - beta) / bessel_i0e(beta)


def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order zero.

    >>> import stretto.numpy as snp
    >>> snp.i0(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if x.__class__ is Array and not I0.compiled((x.type,)):
        found = directly(lambda v: np.i0(v.astype(np.float64)), FLOAT, x)
        if found is not None:
            return found
    return bessel_i0(x)
