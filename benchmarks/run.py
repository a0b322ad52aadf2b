"""A run: start the workers, measure row after row, and say on what."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import machine, memory
from benchmarks.catalogue import matching
from benchmarks.imports import ImportContestant
from benchmarks.measure import OURS, Contestant, Failure, Row, measure
from benchmarks.process import ROOT, Worker, WorkerContestant, WorkerError
from benchmarks.report import as_json
from benchmarks.workloads import Workload

__all__ = ["FRAMEWORKS", "RESULTS", "Run", "add_options", "check_options", "end", "run"]

FRAMEWORKS = (OURS, "jax", "torch", "numpy")
PEERS = ("jax", "torch")
"""The frameworks that live in the peers' environment."""

RESULTS = ROOT / "benchmarks" / "results"


@dataclass
class Run:
    """What was measured, what failed, and the circumstances."""

    about: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def report(self) -> dict[str, Any]:
        """All of it, for a JSON file."""
        failures = [vars(failure) for failure in self.failures]
        return {**self.about, "failures": failures, "benchmarks": as_json(self.rows)}


def run(workloads: Sequence[Workload], options: argparse.Namespace, console: Console) -> Run:
    """Measure the workloads, in turns between the frameworks."""
    seconds = 0.02 if options.quick else 0.1
    done = Run(
        {
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "rounds": options.rounds,
            "seconds_per_round": seconds,
            "quick": options.quick,
            "machine": machine.describe(),  # before the load is ours
        }
    )
    with ExitStack() as stack:

        def start(**settings: Any) -> dict[str, Worker]:
            workers: dict[str, Worker] = {}
            for framework in options.frameworks:
                python = options.peer_python if framework in PEERS else sys.executable
                try:
                    workers[framework] = Worker(framework, python, **settings)
                except WorkerError as error:
                    done.failures.append(Failure("start", framework, str(error)))
                    continue
                stack.callback(workers[framework].close)
            return workers

        workers = start()
        weighers: dict[str, Worker] = {}
        if any(workload.shows_memory for workload in workloads):
            weighers = start(variables=memory.ALLOCATOR)
        done.about["frameworks"] = {
            name: {key: worker.about[key] for key in ("versions", "python")}
            for name, worker in workers.items()
        }
        with console.status("", refresh_per_second=1) as status:
            for workload in workloads:
                start_of_row = time.perf_counter()
                row = measure(
                    workload,
                    _contestants(workload, workers, weighers),
                    options.rounds,
                    seconds,
                    progress=_progress(workload.name, status),
                )
                row.seconds = time.perf_counter() - start_of_row
                console.print(f"{workload.name}: {row.seconds:.0f} s", style="dim")
                done.rows.append(row)
                done.failures += row.failures
    return done


def _progress(name: str, status: Any) -> Callable[[str], None]:
    return lambda doing: status.update(f"{name}: {doing}")


def _contestants(
    workload: Workload, workers: dict[str, Worker], weighers: dict[str, Worker]
) -> list[Contestant]:
    """All who have the workload, in the order of the columns."""
    if workload.timed_by == "import":
        return [
            ImportContestant(framework, worker.python, worker.about["import_statement"])
            for framework, worker in workers.items()
        ]
    return [
        WorkerContestant(
            worker,
            name,
            formulation,
            weighers.get(framework) if workload.shows_memory else None,
        )
        for framework, worker in workers.items()
        for name, formulation in worker.cases
        if name == workload.name
    ]


def end(done: Run, file: Path, console: Console) -> int:
    """Print the circumstances and the failures, write the file, and return the exit status."""
    _print_circumstances(done, console)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(done.report(), indent=1) + "\n", encoding="utf-8")
    console.print(f"Written to {file}", highlight=False, soft_wrap=True)
    for failure in done.failures:
        message = f"{failure.workload}: {failure.contestant}: {failure.message}"
        Console(stderr=True).print(
            message, style="red", markup=False, highlight=False, soft_wrap=True
        )
    return 1 if done.failures else 0


def _print_circumstances(done: Run, console: Console) -> None:
    """What one must know to read the figures."""
    about, rounds = done.about["machine"], done.about["rounds"]
    versions = ", ".join(
        f"{name} {one['versions'][name]}" for name, one in done.about["frameworks"].items()
    )
    console.print(
        f"{about['cpu']}, {about['cores']} cores; {versions}", highlight=False, soft_wrap=True
    )
    load = about["load_average"]
    if load and load[0] > about["cores"] / 2:
        busy = f"The machine was busy when this began (load {load[0]:.1f}): mind the spread."
        console.print(busy, style="yellow", soft_wrap=True)
    if rounds < 5:
        console.print(
            "Fewer than 5 rounds: a smoke test, no measurement.", style="yellow", soft_wrap=True
        )


def add_options(parser: argparse.ArgumentParser, known: Sequence[str], file: Path) -> None:
    """The options of every command that measures; `known` are the names of its rows."""
    parser.add_argument(
        "--peer-python", default=".venv-bench/bin/python", help="interpreter that has jax and torch"
    )
    parser.add_argument(
        "--rounds", type=int, help="rounds to measure, after a warm-up (7; with --quick 2)"
    )
    parser.add_argument(
        "--only",
        type=_names_of(known),
        default=list(known),
        metavar="NAME,…",
        help="rows to measure, by name or by pattern, such as 'cnn-*,*-step-*'",
    )
    parser.add_argument(
        "--frameworks", type=_names_of(FRAMEWORKS), default=list(FRAMEWORKS), metavar="NAME,…"
    )
    parser.add_argument(
        "--json", type=Path, default=file, help="where to write the figures (%(default)s)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="short batches: does everything run and agree?"
    )


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Fill in what depends on other options, and refuse what makes no sense."""
    if options.rounds is None:
        options.rounds = 2 if options.quick else 7
    if options.rounds < 1:
        parser.error(f"argument --rounds: expected at least 1, got {options.rounds}")
    # A worker starts in the repository, wherever this command was given. Links stay as they are:
    # the interpreter of a virtual environment is one.
    options.peer_python = os.path.abspath(options.peer_python)


def _names_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    """A parser for a comma-separated choice from `known`, in the order of `known`."""

    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        try:
            return matching(names, known)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse
