"""Which work of a program XLA's CPU backend hands to the library YNNPACK, told from its text.

Layer 6 (runtime). Decision 22 has the measurements. Next, read ``pjrt``.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

__all__ = ["Libraries", "library_work"]

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


_SMALL = 16
"""The most rows and columns of results in batches for which YNNPACK is faster."""


class Libraries(NamedTuple):
    """What of a program goes to YNNPACK, and why."""

    work: str
    """As XLA's option takes it: names of kinds of work, joined by commas; empty for none."""
    products: bool
    """Whether products are among it."""
    reason: str


def _share_that_suits(text: str) -> float:
    """The share of the work in products that is of the kinds that YNNPACK is faster at.

    These are products with a transposed matrix on the right, for which Eigen takes two to four
    times as long, in batches where the results are small; and those of one matrix with many, which
    Eigen must have copies of.
    """
    turned, repeated = {*_TURNED.findall(text)}, {*_REPEATED.findall(text)}
    theirs = total = 0.0
    for left, right, batching, contracted, *shapes in _PRODUCT.findall(text):
        sizes = [[int(n) for n in shape.split("x") if n] for shape in shapes]
        # (M K) (K N) (M N) is the square of the number of multiply-adds.
        work = math.sqrt(math.prod(map(math.prod, sizes)))
        total += work
        suits = right in turned
        if batching:
            small = contracted == str(len(sizes[1]) - 1) and max(sizes[2][-2:]) <= _SMALL
            suits = small or left in repeated or right in repeated
        theirs += work if suits else 0
    return theirs / total if total else 0.0


def library_work(text: str) -> Libraries:
    """What of this text goes to YNNPACK."""
    sums = "LIBRARY_FUSION_TYPE_REDUCE"
    share = _share_that_suits(text)
    reason = f"{share:.0%} of their work is with transposed or repeated matrices"
    if share >= 0.25:
        works = f"LIBRARY_FUSION_TYPE_DOT,{sums}"
        return Libraries(works, True, f"{reason}, for which Eigen takes long")
    return Libraries(sums, False, f"{reason}; Eigen suits the rest")
