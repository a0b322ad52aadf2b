"""The greatest common divisors and least common multiples of integers."""

from __future__ import annotations

import math
import sys

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import INTEGER, eager
from stretto._engine.ops.arithmetic import DIV, REM, absolute
from stretto._engine.ops.comparison import eq, full_like, select, zeros_like
from stretto._engine.ops.elementwise import INTEGRAL, promote_values
from stretto.numpy.ufunc import attach

__all__ = ["gcd", "lcm"]


def _integers(caller: str, x: ArrayLike, y: ArrayLike) -> list[Array]:
    """Return both as integers of one dtype and shape."""
    values = promote_values(caller, x, y)
    if kind_of(values[0].dtype) not in INTEGRAL:
        raise TypeError(f"{caller}: expected integers, got {values[0].type}")
    return values


@eager(np.gcd, INTEGER)
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the greatest common divisor of integers, element by element.

    Args:
        x1: integers.
        x2: integers; the two broadcast.

    Returns:
        The divisors, not negative; of the promoted dtype and the broadcast shape.

    Raises:
        TypeError: an argument does not hold integers.
        ValueError: the shapes do not broadcast.

    As NumPy's ``gcd``.

    >>> import stretto.numpy as snp
    >>> snp.gcd(snp.array([12, 18]), 8)
    Array([4, 2], dtype=int32)
    """
    x, y = (absolute(v) for v in _integers("gcd", x1, x2))
    # Euclid's algorithm takes longest for neighbouring Fibonacci numbers: 1.44 steps a bit.
    for _ in range(math.ceil(1.4405 * 8 * x.dtype.itemsize)):
        done = eq(y, zeros_like(y))
        x, y = select(done, x, y), select(done, y, REM(x, select(done, full_like(y, 1), y)))
    return absolute(x)


@eager(np.lcm, INTEGER)
@described_like(gcd)
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the least common multiple of integers, element by element.

    Returns:
        The multiples, not negative, 0 where either is 0; of the promoted dtype and the broadcast
        shape.

    As NumPy's ``lcm``.

    >>> import stretto.numpy as snp
    >>> snp.lcm(snp.array([4, 6]), 10)
    Array([20, 30], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    divisor = gcd(x, y)
    safe = select(eq(divisor, zeros_like(divisor)), full_like(divisor, 1), divisor)
    return absolute(x) * DIV(absolute(y), safe)


attach(sys.modules[__name__])
