"""Which work of a program XLA's CPU backend hands to the library YNNPACK, told from its text.

Decision 22 has the measurements.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_TURNED = re.compile(
    r'(%[\w#]+) = "stablehlo\.transpose"\([^)]*\) '
    r"\{permutation = array<i64: (?:1, 0|0, 2, 1|0, 1, 3, 2)>\}"
)
_REPEATED = re.compile(r'(%[\w#]+) = "stablehlo\.broadcast_in_dim"')
_PRODUCT = re.compile(
    r'"stablehlo\.dot_general"\((%[\w#]+), (%[\w#]+)\) \{dot_dimension_numbers = '
    r"#stablehlo\.dot<lhs_batching_dimensions = \[([^\]]*)\].*?"
    r"lhs_contracting_dimensions = \[([^\]]*)\].*?"
    r"rhs_contracting_dimensions = \[([^\]]*)\].*?"
    r" : \(tensor<([\dx]*)f32>, tensor<([\dx]*)f32>\) -> tensor<([\dx]*)f32>"
)


_SMALL = 1 << 13
"""The most elements of a matrix on the right in a batch for which YNNPACK is much faster."""

_MEDIUM, _LARGE = 1 << 20, 1 << 24
"""The elements of all matrices on the right of a batch up to which YNNPACK is faster where one
matrix is repeated, and from which it is much slower."""

_WORTH = 0.98
"""The share of Eigen's time below which YNNPACK gets the products."""


class Libraries(NamedTuple):
    """What of a program goes to YNNPACK, and why."""

    work: str
    """As XLA's option takes it: names of kinds of work, joined by commas; empty for none."""
    products: bool
    """Whether products are among it."""
    reason: str


def multiply_adds(left: int, right: int, result: int) -> float:
    """How many a product of matrices of so many elements takes: (M K) (K N) (M N) = (M N K)²."""
    return math.sqrt(left * right * result)


def _time_of_products(text: str) -> float:
    """How long YNNPACK takes for all products of a text, as a share of Eigen's time.

    Eigen takes long for products with a transposed matrix on the right, for small matrices in
    batches, and for those of one matrix with many, which it must have copies of. YNNPACK takes long
    for batches that it has to copy much for, and leaves products with a transposed matrix on the
    left to Eigen.
    """
    turned, repeated = {*_TURNED.findall(text)}, {*_REPEATED.findall(text)}
    ours = eigens = 0.0
    for left, right, batching, columns, rows, *shapes in _PRODUCT.findall(text):
        x, y, out = [[int(n) for n in shape.split("x") if n] for shape in shapes]
        work = multiply_adds(math.prod(x), math.prod(y), math.prod(out))
        transposed = (rows == str(len(y) - 1)) != (right in turned)
        if not batching:
            share = 0.6 if transposed else 1.0
        elif (columns == str(len(x) - 1)) == (left in turned):
            share = 1.0
        elif math.prod(y) > _LARGE:
            share = 2.0
        elif math.prod(y[-2:]) <= _SMALL:
            share = 0.7
        elif transposed:
            share = 0.8
        else:
            repeats = left in repeated or right in repeated
            share = 0.9 if repeats and math.prod(y) <= _MEDIUM else 1.1
        ours += work * share
        eigens += work
    return ours / eigens if eigens else 1.0


def library_work(text: str) -> Libraries:
    """What of this text goes to YNNPACK."""
    sums = "LIBRARY_FUSION_TYPE_REDUCE"
    time = _time_of_products(text)
    reason = f"YNNPACK is expected to take {time:.0%} of Eigen's time for them"
    if time < _WORTH:
        return Libraries(f"LIBRARY_FUSION_TYPE_DOT,{sums}", True, reason)
    return Libraries(sums, False, reason)


_FUSED = re.compile(r'calls=%([\w.\-]+),.*"kind":"__ynn_fusion"')
_INSTRUCTION = re.compile(r"(?:ROOT )?%([\w.\-]+) = \S+ ([\w\-]+)\(([^()]*)\)")
_OPERAND = re.compile(r"%([\w.\-]+)")
_MIXES = {"reduce", "reduce-window", "dot", "convolution"}
_MOVES = {"bitcast", "reshape", "copy", "transpose"}


def misreads(hlo: str) -> bool:
    """Return whether optimized HLO has YNNPACK compute what it was seen to compute wrongly.

    Its kernels read other elements than those of a broadcast (jaxlib 0.10.2), and 98 % of a
    result's elements were wrong:

    - where a product has the broadcast on the right. On the left, or as a factor or term of an
      operand, it is read rightly. What is computed from broadcasts alone counts as one, since XLA
      moves broadcasts behind element-wise work.
    - where it is the first operand of element-wise work beside a sum that is repeated along the
      axis of its terms, all in one kernel, as in ``x * sum(x * y, -1, keepdims=True)`` of one ``x``
      for all members. As a second operand it is read rightly.
    """
    calls = {*_FUSED.findall(hlo)}
    return bool(calls) and any(
        [
            _multiplies_by_broadcast(lines) or _repeats_sum_beside_broadcast(lines)
            for lines in _computations(hlo, calls)
        ]
    )


def _computations(hlo: str, names: set[str]) -> Iterator[list[str]]:
    """The instructions of each of these computations, as lines."""
    lines: list[str] | None = None
    for line in hlo.split("\n"):
        if line.startswith("%"):
            lines = [] if line[1:].partition(" ")[0] in names else None
        elif line.startswith("}"):
            if lines is not None:
                yield lines
            lines = None
        elif lines is not None:
            lines.append(line)


def _instructions(lines: Sequence[str]) -> Iterator[tuple[str, str, list[str], str]]:
    """Name, operation, operands and line of each instruction."""
    for line in lines:
        match = _INSTRUCTION.match(line.strip())
        if match is not None:
            name, operation, written = match.groups()
            yield name, operation, _OPERAND.findall(written), line


def _multiplies_by_broadcast(lines: Sequence[str]) -> bool:
    """Whether a product in a computation has a broadcast on the right."""
    repeated: set[str] = set()
    for name, operation, operands, line in _instructions(lines):
        if operation == "dot" and operands[1] in repeated:
            return True
        if (
            operation == "broadcast"
            or (operation == "constant" and "[]" not in line.partition("constant(")[0])
            or (operands and operation != "dot" and repeated.issuperset(operands))
        ):
            repeated.add(name)
    return False


def _repeats_sum_beside_broadcast(lines: Sequence[str]) -> bool:
    """Whether a sum in a computation is repeated, and a broadcast is the first operand of work."""
    sums: set[str] = set()
    repeated: set[str] = set()
    is_first = sum_is_repeated = False
    for name, operation, operands, line in _instructions(lines):
        of_sum = not sums.isdisjoint(operands)
        if operation == "broadcast" and "dimensions={}" not in line:
            sum_is_repeated |= of_sum
            if not of_sum:
                repeated.add(name)
        elif operation in _MOVES:
            if not repeated.isdisjoint(operands):
                repeated.add(name)
        elif operands and operation not in _MIXES:
            is_first |= operands[0] in repeated
        if of_sum or operation in _MIXES:
            sums.add(name)
    return is_first and sum_is_repeated
