"""Which work of a program XLA's CPU backend hands to the library YNNPACK, told from its text.

Layer 6 (runtime). Decision 22 has the measurements. Next, read ``pjrt``.
"""

from __future__ import annotations

import math
import re

__all__ = ["library_work"]

_TURNED = re.compile(
    r'(%[\w#]+) = "stablehlo\.transpose"\([^)]*\) \{permutation = array<i64: 1, 0>\}'
)
_REPEATED = re.compile(r'(%[\w#]+) = "stablehlo\.broadcast_in_dim"')
_PRODUCT = re.compile(
    r'"stablehlo\.dot_general"\((%[\w#]+), (%[\w#]+)\) \{dot_dimension_numbers = '
    r"#stablehlo\.dot<lhs_batching_dimensions = \[([^\]]*)\].*?"
    r"rhs_contracting_dimensions = \[([^\]]*)\].*?"
    r" : \(tensor<([\dx]*)f32>, tensor<([\dx]*)f32>\) -> tensor<([\dx]*)f32>"
)


def _products_suit(text: str) -> bool:
    """Whether much of the work in products is of the kinds that YNNPACK is faster at.

    These are products with a transposed matrix on the right, for which Eigen takes two to four
    times as long, and those of one matrix with many, which Eigen must have copies of.
    """
    turned, repeated = {*_TURNED.findall(text)}, {*_REPEATED.findall(text)}
    theirs = total = 0.0
    for left, right, batching, contracted, *shapes in _PRODUCT.findall(text):
        sizes = [math.prod(int(n) for n in shape.split("x") if n) for shape in shapes]
        # (M K) (K N) (M N) is the square of the number of multiply-adds.
        work = math.sqrt(math.prod(sizes))
        total += work
        if batching:
            theirs += work if left in repeated or right in repeated else 0
        elif right in turned or contracted == "1":
            theirs += work
    return 4 * theirs >= total > 0


def library_work(text: str) -> str:
    """What of this text goes to YNNPACK."""
    sums = "LIBRARY_FUSION_TYPE_REDUCE"
    return f"LIBRARY_FUSION_TYPE_DOT,{sums}" if _products_suit(text) else sums
