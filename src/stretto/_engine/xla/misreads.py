"""Find what YNNPACK was seen to compute wrongly in a compiled program.

This is the only place where text is searched: XLA's own, of the optimized program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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
    """Yield the instructions of each of these computations, as lines."""
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
    """Say whether a product in a computation has a broadcast on the right."""
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
    """Say whether a sum is repeated where a broadcast is the first operand of work."""
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
