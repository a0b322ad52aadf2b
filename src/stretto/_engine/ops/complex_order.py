"""The greater and the lesser of complex numbers, by real part, then by imaginary part.

Layer 2 (ops). NumPy's order, which sorting has too. Next, read ``arithmetic``.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.ops.comparison import eq, full_like, gt, ne, select
from stretto._engine.ops.complex_parts import imag, real

__all__ = ["complex_extremum", "complex_greater"]


def complex_greater(x: Any, y: Any) -> Any:
    """Whether ``x`` is the greater."""
    a, b = real(x), real(y)
    return gt(a, b) | (eq(a, b) & gt(imag(x), imag(y)))


def complex_extremum(x: Any, y: Any, greatest: bool) -> Any:
    """One of the two; the first that is NaN; in derivatives half of each where they are equal."""
    first = complex_greater(x, y) if greatest else complex_greater(y, x)
    half = full_like(x, 0.5)
    out = select(eq(x, y), half * x + half * y, select(first, x, y))
    return select(ne(x, x), x, select(ne(y, y), y, out))
