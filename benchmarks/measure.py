"""One row: check that all contestants agree, then time them in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks import rounding
from benchmarks.process import WorkerError
from benchmarks.workloads import Goal, Workload

__all__ = ["OURS", "Contestant", "Failure", "Reference", "Row", "disagreement", "measure"]

OURS = "stretto"

Results: TypeAlias = Sequence[NDArray[Any]]


class Contestant(Protocol):
    """Something that does a workload and is timed at it.

    `name` is the framework's, followed by the formulation if that is not the framework's own;
    `details` go into the report. Any method may raise `WorkerError`.
    """

    name: str
    framework: str
    details: dict[str, Any]

    def prepare(self) -> Sequence[NDArray[Any]]:
        """Get ready, and return the results to be compared with the others'."""
        ...

    def warm_up(self, seconds: float) -> None:
        """Run for a while, and decide how much work a round of `seconds` is."""
        ...

    def time(self) -> float:
        """Seconds that the workload takes, in one round."""
        ...

    def weigh(self) -> None:
        """Add the memory that the workload takes to `details`, where that is of interest."""
        ...

    def release(self) -> None:
        """Let go of what `prepare` made."""
        ...


class Reference(Protocol):
    """Something that computes an exact row in float64; `name` and `prepare` as a contestant's."""

    name: str
    framework: str

    def prepare(self) -> Sequence[NDArray[Any]]:
        """Return the results; may raise `WorkerError`."""
        ...


@dataclass(frozen=True)
class Failure:
    """Which contestant failed at what, and how."""

    workload: str
    contestant: str
    message: str


@dataclass
class Row:
    """The measurements of one workload: seconds per iteration, by contestant and round."""

    workload: Workload
    rounds: dict[str, list[float]] = field(default_factory=dict)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0
    """That measuring it took, all in all."""

    def median(self, contestant: str) -> float | None:
        """The contestant's median in seconds; None if it was not measured."""
        return median(self.rounds[contestant]) if contestant in self.rounds else None

    def peers(self) -> list[str]:
        """The formulations of other frameworks, the fastest first; NumPy has no transformations."""
        names = [name for name in self.rounds if name.split()[0] not in (OURS, "numpy")]
        return sorted(names, key=lambda name: median(self.rounds[name]))

    def own(self) -> list[str]:
        """Our formulations besides the one that is held to the goals."""
        return [name for name in self.rounds if name != OURS and name.split()[0] == OURS]

    def ratios(self, peer: str) -> list[float]:
        """Our time divided by the peer's ("fastest" is one), by round; empty if unknown."""
        if peer == "fastest":
            peer = next(iter(self.peers()), "")
        if OURS not in self.rounds or peer not in self.rounds:
            return []
        pairs = zip(self.rounds[OURS], self.rounds[peer], strict=True)
        return [ours / theirs for ours, theirs in pairs]

    def outcome(self, goal: Goal) -> float | None:
        """The median ratio that the goal is about; None if it was not measured."""
        ratios = self.ratios(goal.peer)
        return median(ratios) if ratios else None


def measure(
    workload: Workload,
    contestants: Sequence[Contestant],
    rounds: int,
    seconds: float,
    progress: Callable[[str], None] = lambda _: None,
    references: Sequence[Reference] = (),
) -> Row:
    """Check and time the contestants, in turns: A B C A B C … for `rounds`, most after a warm-up.

    A contestant that fails drops out, and is named in the row's failures; the others continue.
    Memory is measured after all times. With no rounds, results are compared, and that is all.
    `references` compute the row in float64, if it is exact: they must agree, and a framework
    without one is not timed.
    """
    row = Row(workload)
    running: list[Contestant] = list(contestants)

    def fail(contestant: Contestant, message: str) -> None:
        row.failures.append(Failure(workload.name, contestant.name, message))
        running.remove(contestant)

    def attempt(contestant: Contestant, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except WorkerError as error:
            fail(contestant, str(error))
            return None

    exact = {} if workload.exact is None else _agreed(row, references, progress)
    results: dict[str, Results] = {}
    # The peers come first here, so that the reference is one of theirs.
    for contestant in sorted(contestants, key=lambda one: one.framework == OURS):
        progress(f"check {contestant.name}")
        if workload.exact is not None and contestant.framework not in exact:
            fail(contestant, "its framework has no result in float64 that agrees with the others'")
            continue
        prepared = attempt(contestant, contestant.prepare)
        if prepared is not None:
            results[contestant.name] = prepared
    messages = _disagreements(workload, results, next(iter(exact.values()), None))
    for contestant in [one for one in running if one.name in messages]:
        fail(contestant, messages[contestant.name])

    if rounds == 0:
        running.clear()
    for contestant in list(running):
        progress(f"warm up {contestant.name}")
        attempt(contestant, lambda contestant=contestant: contestant.warm_up(seconds))
    times: dict[str, list[float]] = {contestant.name: [] for contestant in running}
    for turn in range(0 if workload.warm_up else 1, rounds + 1):
        for contestant in list(running):
            progress(f"round {turn} of {rounds}" if turn else "warm-up round")
            time = attempt(contestant, contestant.time)
            if time is not None and turn > 0:
                times[contestant.name].append(time)
    for contestant in list(running):
        row.rounds[contestant.name] = times[contestant.name]
        progress(f"weigh {contestant.name}")
        attempt(contestant, contestant.weigh)
        row.details[contestant.name] = contestant.details
    for contestant in contestants:
        try:
            contestant.release()
        except WorkerError as error:
            row.failures.append(Failure(workload.name, contestant.name, str(error)))
    return row


def _agreed(
    row: Row, references: Sequence[Reference], progress: Callable[[str], None]
) -> dict[str, Results]:
    """The results in float64 by framework, peers first; those that differ are failures."""
    strict = rounding.exactly(row.workload)
    exact: dict[str, Results] = {}
    first = ""
    for reference in sorted(references, key=lambda one: one.framework == OURS):
        progress(f"check {reference.name}")
        try:
            results = reference.prepare()
        except WorkerError as error:
            row.failures.append(Failure(row.workload.name, reference.name, str(error)))
            continue
        target = next(iter(exact.values()), results)
        if message := disagreement(strict, results, first, target):
            row.failures.append(Failure(row.workload.name, reference.name, message))
            continue
        first = first or reference.name
        exact[reference.framework] = results
    return exact


def _disagreements(
    workload: Workload, results: Mapping[str, Results], exact: Results | None
) -> dict[str, str]:
    """What is wrong with the results, by contestant: beside the first's, or those in float64."""
    messages: dict[str, str] = {}
    reference: tuple[str, Results] | None = None
    if exact is not None:
        results, messages = rounding.apart(workload, results, exact)
        reference = "float64", rounding.singles(workload, exact)
    for name, arrays in results.items():
        if reference is None:
            reference = name, arrays
        elif message := disagreement(workload, arrays, *reference):
            messages.setdefault(name, message)
    return messages


def disagreement(
    workload: Workload,
    results: Sequence[NDArray[Any]],
    reference: str,
    expected: Sequence[NDArray[Any]],
) -> str | None:
    """What differs between a contestant's results and the reference's; None if they are equal."""
    if len(results) != len(expected):
        return f"differs from {reference}: expected {len(expected)} arrays, got {len(results)}"
    for index, (result, target) in enumerate(zip(results, expected, strict=True)):
        of_which = f"array {index} of {len(expected)} " if len(expected) > 1 else ""
        if (result.dtype, result.shape) != (target.dtype, target.shape):
            types = f"expected {_type(target)}, got {_type(result)}"
            return f"{of_which}differs from {reference}: {types}"
        largest = float(np.max(np.abs(target), initial=0.0)) if workload.of_largest else 0.0
        atol = workload.atol + workload.of_largest * largest
        try:
            np.testing.assert_allclose(result, target, rtol=workload.rtol, atol=atol)
        except AssertionError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return f"{of_which}differs from {reference}: {'; '.join(lines[:4])}"
    return None


def _type(array: NDArray[Any]) -> str:
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"
