"""What became of the calls of each operation."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.torch_samples.calls import Call
from benchmarks.torch_samples.comparing import difference, is_as_exact
from benchmarks.torch_samples.essence import of_gradients, of_results
from benchmarks.torch_samples.exceptions import GRADIENTS, NAN, VALUES, Known
from stretto.torch.table import aten_randomness

__all__ = ["Tallies", "Tally", "is_arbitrary"]

_EMPTY = ("aten.empty", "aten.new_empty")

_KEPT, _MOST_ELEMENTS, _MOST_NODES = 2, 300, 8
"""How many calls of an operation are recorded, and of which size."""


def is_arbitrary(op: str) -> bool:
    """Whether an operation draws random numbers, or gives any, so that only types are compared."""
    return op in aten_randomness.TABLE or op.startswith(_EMPTY)


@dataclasses.dataclass
class Tally:
    """What became of an operation's calls, or of their gradients."""

    right: int = 0
    rounded: int = 0
    """Those that differ from PyTorch's of float32, and are as near to those of float64."""
    known: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    refused: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    wrong: list[str] = dataclasses.field(default_factory=list)

    def refuse(self, error: Exception) -> None:
        """Count a refusal; an error of Python's own is wrong, as it is none in words."""
        if isinstance(error, (LookupError, AttributeError, AssertionError, NameError)):
            self.wrong.append(_short(error))
        else:
            self.refused[_short(error)[:100]] += 1

    def count(self, known: Known | None, call: Call, problem: str) -> None:
        """Count what differs: it is known, or wrong."""
        if known is not None and known.applies(call):
            self.known[known.why] += 1
        else:
            self.wrong.append(f"{problem} {call.described()}")


class Tallies:
    """Compares calls, and keeps count."""

    def __init__(self) -> None:
        self.of: dict[str, Tally] = collections.defaultdict(Tally)
        self.gradients_of: dict[str, Tally] = collections.defaultdict(Tally)
        self.missing: collections.Counter[str] = collections.Counter()
        self.kept: dict[str, list[Any]] = collections.defaultdict(list)

    def look(self, call: Call, *, slopes: bool = True) -> None:
        """Compare a call's values, and if they are right, its gradients."""
        if self._values(call) and slopes:
            self._gradients(call)

    def _values(self, call: Call) -> bool:
        """Whether they are right, and can be differentiated."""
        name = call.asked.name
        tally = self.of[name]
        try:
            found = call.run()
        except NotImplementedError as error:
            tally.refuse(error)
            return False
        except Exception as error:
            tally.count(VALUES.get(name), call, _short(error))
            return False
        if is_arbitrary(name):
            tally.right += 1  # shape and dtype, which ``run`` checks
            return False

        def essence(results: Sequence[Any]) -> list[Any]:
            return of_results(name, call.node, call.arrays, results)

        expected = [np.asarray(x) for x in essence(call.expected)]
        problem = difference(essence(found), expected)
        if problem and _is_narrow(call):
            exact = _of_pytorch(lambda: call.asked.in_float64().arrays())
            if exact and is_as_exact(essence(found), expected, essence(exact)):
                tally.rounded += 1
                return True
        if problem:
            tally.count(VALUES.get(name), call, problem)
            return False
        tally.right += 1
        small = call.size < _MOST_ELEMENTS and 0 < len(call.graph.nodes) < _MOST_NODES
        if small and len(self.kept[name]) < _KEPT and not difference(found, call.expected):
            self.kept[name].append(call.to_json())
        return True

    def _gradients(self, call: Call) -> None:
        """Compare the gradients of a combination of a call's results."""
        wanted, slopes = call.asked.gradients()
        if wanted is None:
            return
        name, tally = call.asked.name, self.gradients_of[call.asked.name]
        expected = of_gradients(name, call.node, wanted)
        try:
            found = of_gradients(name, call.node, call.gradients(slopes))
        except Exception as error:
            tally.count(GRADIENTS.get(name), call, _short(error))
            return
        problem = difference(found, expected)
        if problem and _is_narrow(call):
            exact = _of_pytorch(lambda: call.asked.in_float64().gradients()[0])
            if exact and is_as_exact(found, expected, of_gradients(name, call.node, exact)):
                tally.rounded += 1
                return
        if problem:
            others = [np.where(np.isnan(y), x, y) for x, y in zip(found, expected, strict=True)]
            undefined = NAN.get(name) if not difference(found, others) else None
            tally.count(undefined or GRADIENTS.get(name), call, problem)
        else:
            tally.right += 1

    def problems(self) -> list[str]:
        """What is wrong, but for what is known."""
        lines = []
        for what, tallies in (("", self.of), ("gradients ", self.gradients_of)):
            for name, tally in sorted(tallies.items()):
                if tally.wrong:
                    lines.append(f"{name}: {len(tally.wrong)} {what}wrong, {tally.wrong[0]}")
        return lines

    def notes(self) -> list[str]:
        """What is known to differ, and what is refused."""
        lines = []
        for what, tallies in (("", self.of), ("gradients ", self.gradients_of)):
            for name, tally in sorted(tallies.items()):
                for why, count in tally.known.items():
                    lines.append(f"{name}: {count} {what}known: {why}")
                for why, count in tally.refused.items():
                    lines.append(f"{name}: {count} {what}refused: {why}")
                if tally.rounded:
                    lines.append(f"{name}: {tally.rounded} {what}rounded in another way")
        return lines

    def summary(self) -> str:
        """All of it in two lines."""
        return (
            f"{len(self.of)} operations: calls {_counts(self.of)}\n"
            f"gradients {_counts(self.gradients_of)}"
        )


def _counts(tallies: dict[str, Tally]) -> str:
    every = tallies.values()
    right, rounded = sum([t.right for t in every]), sum([t.rounded for t in every])
    known = sum([sum(t.known.values()) for t in every])
    refused = sum([sum(t.refused.values()) for t in every])
    wrong = sum([len(t.wrong) for t in every])
    return (
        f"{right + rounded} right ({rounded} of them rounded otherwise than PyTorch's), {wrong} "
        f"wrong, {known} known to differ, {refused} refused"
    )


def _is_narrow(call: Call) -> bool:
    return any([a.dtype in (np.float32, np.complex64) for a in (*call.arrays, *call.expected)])


def _of_pytorch(compute: Callable[[], list[np.ndarray] | None]) -> list[np.ndarray] | None:
    """Compute something by PyTorch; None if it has no such function."""
    try:
        return compute()
    except Exception:  # PyTorch's own
        return None


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:150]}"
