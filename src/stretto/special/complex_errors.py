"""The error function and its relatives for complex numbers, by the Faddeeva function.

``errors`` puts them beside those for real numbers.
"""

from __future__ import annotations

import math

from stretto._engine.core.typing import Array
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.comparison import full_like, lt, select, zeros_like
from stretto._engine.ops.complex_parts import real
from stretto._engine.ops.exponential import exp
from stretto.special.faddeeva import wofz

__all__ = ["erf_complex", "erfc_complex", "erfcx_complex"]


def erfcx_complex(z: Array) -> Array:
    """``exp(z**2) * erfc(z)`` for complex numbers (DLMF 7.2.3)."""
    return wofz(z * full_like(z, 1j))


def erfc_complex(z: Array) -> Array:
    """``exp(-z**2) * erfcx(z)`` in the right half plane; ``2 - erfc(-z)`` in the left."""
    left = lt(real(z), zeros_like(real(z)))
    right = select(left, -z, z)
    out = exp(-(right * right)) * erfcx_complex(right)
    return select(left, full_like(z, 2) - out, out)


def erf_complex(z: Array) -> Array:
    """``1 - erfc(z)``; near zero by its series (DLMF 7.6.1)."""
    size = absolute(z)
    near = lt(size, full_like(size, 1))
    inside = select(near, z, zeros_like(z))
    square = -(inside * inside)
    total = zeros_like(z)
    for k in range(22, -1, -1):
        total = total * square + full_like(z, 1 / (math.factorial(k) * (2 * k + 1)))
    series = full_like(z, 2 / math.sqrt(math.pi)) * inside * total
    return select(near, series, full_like(z, 1) - erfc_complex(select(near, full_like(z, 1), z)))
