"""What XLA's CPU backend should hand to the library YNNPACK: each choice, on rows of the ensembles.

Decision 22 rests on it. One process, all choices in turn; medians in milliseconds, least in
brackets.

    python -m benchmarks.library --only 'wide-*,cnn-*' --rounds 11
"""

from __future__ import annotations

import argparse
import statistics
import time
from fnmatch import fnmatchcase

from rich.console import Console
from rich.table import Table

from benchmarks import workloads_ensembles as ensembles
from benchmarks.ensembles_stretto import ensemble
from benchmarks.worker import run_once

__all__ = ["main"]

OPTION = "xla_cpu_experimental_ynn_fusion_type"
PREFIX = "LIBRARY_FUSION_TYPE_"
CHOICES = {
    "ours": None,
    "nothing": "",
    "sums": "REDUCE",
    "products": "DOT",
    "sums, products": "DOT,REDUCE",
    "convolutions": "INDIVIDUAL_CONVOLUTION",
    "all of these": "DOT,REDUCE,INDIVIDUAL_CONVOLUTION",
}


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.library", description=__doc__)
    parser.add_argument("--only", default="*", help="names of rows, or patterns, with commas")
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args(arguments)
    table = Table("row", *CHOICES)
    for task in ensembles.all_tasks():
        if any(fnmatchcase(task.name, pattern) for pattern in options.only.split(",")):
            table.add_row(task.name, *measured(task, options.rounds))
    Console().print(table)


def measured(task: ensembles.Task, rounds: int) -> list[str]:
    """A row's figures, for each choice."""
    cases = []
    for value in CHOICES.values():
        names = ",".join(PREFIX + name for name in value.split(",")) if value else value
        cases.append(ensemble(task, None if names is None else {OPTION: names}))
    times: list[list[float]] = [[] for _ in cases]
    for turn in range(rounds + 2):
        for case, durations in zip(cases, times, strict=True):
            start = time.perf_counter()
            run_once(case)
            if turn > 1:
                durations.append(1e3 * (time.perf_counter() - start))
    return [f"{statistics.median(durations):.2f} ({min(durations):.2f})" for durations in times]


if __name__ == "__main__":
    main()
