"""What one run, or several, say about the goals: figures for the picture and for publication.

Runs are reports as in the JSON files. Goals are today's: an old file is held to them too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

import numpy as np

from benchmarks.catalogue import WORKLOADS
from benchmarks.measure import OURS, Row
from benchmarks.workloads import Goal, Workload

__all__ = ["Outcome", "Report", "by_machine", "machine_of", "outcomes", "rows_of", "spread"]

Report: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """A goal, and the ratio that was measured on one machine.

    ``low`` and ``high`` say how far it differs: see ``spread``.
    """

    workload: Workload
    goal: Goal
    low: float
    ratio: float
    high: float
    machine: str

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.ratio <= self.goal.at_most


def outcomes(
    runs: Sequence[Report], workloads: Mapping[str, Workload] = WORKLOADS
) -> list[Outcome]:
    """Return an outcome for each machine and goal of each row that was measured.

    They come in the order of `workloads`; those of several machines for one goal are neighbours.
    """
    tables = {
        machine: [rows_of(run, workloads) for run in group]
        for machine, group in by_machine(runs).items()
    }
    results = []
    for workload in workloads.values():
        for goal in workload.goals:
            for machine, of_it in tables.items():
                measured = spread(
                    [
                        table[workload.name].ratios(goal.peer)
                        for table in of_it
                        if workload.name in table
                    ]
                )
                if measured is not None:
                    results.append(Outcome(workload, goal, *measured, machine))
    return results


def by_machine(runs: Sequence[Report]) -> dict[str, list[Report]]:
    """Return the runs of each machine, in the order in which the machines' first runs come."""
    groups: dict[str, list[Report]] = {}
    for run in runs:
        groups.setdefault(machine_of(run), []).append(run)
    return groups


def machine_of(run: Report) -> str:
    """Return the processor's name and the number of cores that a run had."""
    return f"{run['machine']['cpu']}, {run['machine']['cores']} cores"


def spread(rounds: Sequence[Sequence[float]]) -> tuple[float, float, float] | None:
    """The middle of the ratios of each run's rounds, between two that say how far they differ.

    Of one run these are the quartiles of its rounds; of several, the least and the greatest of
    their medians. None if there are no ratios.
    """
    measured = [ratios for ratios in rounds if ratios]
    if not measured:
        return None
    if len(measured) == 1:
        low, ratio, high = np.quantile(measured[0], [0.25, 0.5, 0.75]).tolist()
        return low, ratio, high
    medians = [median(ratios) for ratios in measured]
    return min(medians), median(medians), max(medians)


def rows_of(run: Report, workloads: Mapping[str, Workload] = WORKLOADS) -> dict[str, Row]:
    """The measured rows of a report, by name; rows that are not in `workloads` are left out."""
    rows = {}
    for entry in run["benchmarks"]:
        contestants = entry["contestants"]
        if entry["name"] in workloads and OURS in contestants:
            rows[entry["name"]] = Row(
                workloads[entry["name"]],
                {name: one["rounds"] for name, one in contestants.items()},
                contestants,
            )
    return rows
