"""The inverse of the error function in float32, as compiled programs compute it.

Source: Giles, "Approximating the erfinv function", GPU Computing Gems, 2010: two polynomials in ``w
= -log(1 - x^2)``. Random numbers are computed with it, and must be the same eagerly and compiled:
an exact inverse differs from the approximation in the last digits.
"""

from __future__ import annotations

import numpy as np

# From the highest power down: in w - 5/2 for w < 5, in sqrt(w) - 3 beyond.
_CENTRAL = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_TAIL = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)

_BLOCK = 1 << 12  # numbers that stay in the cache


def _horner(coefficients: tuple[float, ...], w: np.ndarray) -> np.ndarray:
    """The polynomial with fused steps: each product and sum rounded once, to float32."""
    first, *rest = np.array(coefficients, np.float32)
    wide, p = w.astype(np.float64), np.full(w.shape, first)
    for c in rest:
        p = (p * wide + np.float64(c)).astype(np.float32)
    return p


def _inverse(x: np.ndarray) -> np.ndarray:
    w = -np.log1p(-x * x)
    p = _horner(_CENTRAL, w - np.float32(2.5))
    tail = ~(w < 5)
    if np.any(tail):
        p = np.where(tail, _horner(_TAIL, np.sqrt(w) - np.float32(3)), p)
    return np.where(np.abs(x) == 1, x * np.float32(np.inf), p * x)


def erf_inv_float32(x: np.ndarray) -> np.ndarray:
    """The inverse error function of float32 numbers; infinite at -1 and 1, NaN beyond."""
    if x.size <= _BLOCK:
        return _inverse(x)
    flat = x.reshape(-1)
    blocks = [_inverse(flat[i : i + _BLOCK]) for i in range(0, x.size, _BLOCK)]
    return np.concatenate(blocks).reshape(x.shape)
