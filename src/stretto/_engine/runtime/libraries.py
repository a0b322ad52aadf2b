"""Which work of a program XLA's CPU backend hands to the library YNNPACK, told from its text.

Layer 6 (runtime). Decision 22 has the measurements. Next, read ``pjrt``.
"""

from __future__ import annotations

import math
import re

__all__ = ["library_work"]

_EXTREMA = re.compile(r'"stablehlo\.(?:maximum|minimum|clamp)"\([^)]*\) : \(tensor<(?:\d+x)*b?f')
"""Extrema of floats: YNNPACK fuses them into sums that follow, and then loses NaN."""

_TURNED = re.compile(
    r'(%[\w#]+) = "stablehlo\.transpose"\([^)]*\) \{permutation = array<i64: 1, 0>\}'
)
_PRODUCT = re.compile(
    r'"stablehlo\.dot_general"\(%[\w#]+, (%[\w#]+)\) \{dot_dimension_numbers = '
    r"#stablehlo\.dot<lhs_batching_dimensions = \[([^\]]*)\].*?"
    r" : \(tensor<([\dx]*)f32>, tensor<([\dx]*)f32>\) -> tensor<([\dx]*)f32>"
)


def _products_turned(text: str) -> bool:
    """Whether much of the work in products is with a transposed matrix on the right.

    Eigen takes two to four times as long for these as YNNPACK does.
    """
    turned = set(_TURNED.findall(text))
    if not turned:
        return False
    theirs = total = 0.0
    for right, batching, *shapes in _PRODUCT.findall(text):
        sizes = [math.prod(int(n) for n in shape.split("x") if n) for shape in shapes]
        # (M K) (K N) (M N) is the square of the number of multiply-adds.
        work = math.sqrt(math.prod(sizes))
        total += work
        if not batching and right in turned:
            theirs += work
    return 4 * theirs >= total > 0


def library_work(text: str) -> str:
    """What of this text goes to YNNPACK."""
    if _EXTREMA.search(text):
        return ""
    sums = "LIBRARY_FUSION_TYPE_REDUCE"
    return f"LIBRARY_FUSION_TYPE_DOT,{sums}" if _products_turned(text) else sums
