"""What became of the calls of each operation."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import stretto as st
from benchmarks.torch_samples.calls import Call, comparable, difference
from stretto.torch.run import run

__all__ = ["EXCEPTIONS", "OTHER_GRADIENTS", "Tallies", "Tally", "is_random"]

EXCEPTIONS = {
    "aten.bincount.default": "elements that are not below minlength are refused",
    "aten.linalg_lstsq.default": "residuals of complex numbers are the squares of their sizes",
    "aten.logaddexp.default": "of complex numbers, the imaginary part may differ by 2 pi",
    "aten.logcumsumexp.default": "complex numbers are refused",
}
"""Operations of which some calls are known to differ, and how."""

OTHER_GRADIENTS = {
    "aten.linalg_pinv.atol_rtol_tensor": "hermitian=True of a matrix that is not so",
    "aten.cholesky_inverse.default": "only the triangle that is read has a gradient here",
    "aten.cholesky_solve.default": "only the triangle that is read has a gradient here",
    "nn.functional.max_unpool1d": "where indices repeat, which values count is not defined",
    "nn.functional.max_unpool2d": "where indices repeat, which values count is not defined",
    "nn.functional.max_unpool3d": "where indices repeat, which values count is not defined",
}
"""Operations whose gradients are known to differ, and how."""

_RANDOM = (
    "bernoulli",
    "dropout",
    "rrelu",
    "rand",
    "normal",
    "uniform",
    "exponential",
    "multinomial",
)
_EMPTY = ("aten.empty", "aten.new_empty")

_KEPT, _MOST_ELEMENTS, _MOST_NODES = 2, 300, 8
"""How many calls of an operation are recorded, and of which size."""


def is_random(op: str) -> bool:
    """Whether an operation draws random numbers, so that only types can be compared."""
    return any([part in op for part in _RANDOM])


@dataclasses.dataclass
class Tally:
    """What became of the calls of an operation."""

    right: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)
    refused: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    gradients: int = 0
    wrong_gradients: list[str] = dataclasses.field(default_factory=list)


class Tallies:
    """Compares calls, and keeps count."""

    def __init__(self) -> None:
        self.of: dict[str, Tally] = collections.defaultdict(Tally)
        self.missing: collections.Counter[str] = collections.Counter()
        self.kept: dict[str, list[Any]] = collections.defaultdict(list)

    def values(self, name: str, call: Call) -> bool:
        """Compare a call's values; whether they are right."""
        tally = self.of[name]
        try:
            found = run(call.graph, [st.numpy.asarray(a) for a in call.arrays])
        except NotImplementedError as error:
            tally.refused[str(error)[:80]] += 1
            return False
        except Exception as error:
            tally.wrong.append(f"{_short(error)} {call.described()}")
            return False
        if is_random(name) or name.startswith(_EMPTY):
            tally.right += 1  # shape and dtype, which ``run`` checks
            return False
        found = [x for x in found if hasattr(x, "shape")]
        problem = difference(*comparable(name, call, found))
        if problem:
            tally.wrong.append(f"{problem} {call.described()}")
            return False
        tally.right += 1
        small = call.size < _MOST_ELEMENTS and 0 < len(call.graph.nodes) < _MOST_NODES
        if small and len(self.kept[name]) < _KEPT and not difference(found, call.expected):
            self.kept[name].append(call.to_json())
        return True

    def gradients(
        self, name: str, call: Call, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> None:
        """Compare the gradients of a random combination of a call's results."""
        wanted = call.gradients_by_torch(function, args, kwargs)
        if wanted is None:
            return
        tally = self.of[name]
        try:
            problem = difference(call.gradients(), wanted)
        except Exception as error:
            problem = _short(error)
        if problem:
            tally.wrong_gradients.append(f"{problem} {call.described()}")
        else:
            tally.gradients += 1

    def problems(self) -> list[str]:
        """What is wrong, but for the known exceptions."""
        lines = []
        for name, tally in sorted(self.of.items()):
            if tally.wrong and name not in EXCEPTIONS:
                lines.append(f"{name}: {len(tally.wrong)} wrong, {tally.wrong[0]}")
            if tally.wrong_gradients and name not in OTHER_GRADIENTS:
                first = tally.wrong_gradients[0]
                lines.append(f"{name}: {len(tally.wrong_gradients)} gradients wrong, {first}")
        return lines

    def summary(self) -> str:
        """All of it in a line."""
        tallies = self.of.values()
        right, wrong = sum([t.right for t in tallies]), sum([len(t.wrong) for t in tallies])
        gradients = sum([t.gradients for t in tallies])
        bent = sum([len(t.wrong_gradients) for t in tallies])
        refused = sum([sum(t.refused.values()) for t in tallies])
        return (
            f"{len(self.of)} operations: {right} calls right, {wrong} not, {refused} refused; "
            f"gradients of {gradients} right, of {bent} not"
        )


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:150]}"
