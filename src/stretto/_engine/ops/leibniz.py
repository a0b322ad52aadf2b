"""The rule of Leibniz: derivatives of any order of what is linear in each of two operands.

Layer 2 (ops). For the ``taylor`` rules of products and quotients. Next, read ``bilinear``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = ["leibniz"]

Terms = Callable[[int], Any]
"""From an order to the derivative of that order; None for zero."""


def leibniz(f: Callable[..., Any], k: int, x: Terms, y: Terms, most: int | None = None) -> Any:
    """The sum over i + j = k of (k choose i) f(x_i, y_j); None for zero.

    With ``most``, of those whose i is not larger.
    """
    total = None
    for i in range((k if most is None else most) + 1):
        a, b = x(i), y(k - i)
        if a is not None and b is not None:
            count = math.comb(k, i)
            part = f(a, b) if count == 1 else f(a, b) * count
            total = part if total is None else total + part
    return total
