"""A run: start the workers, measure row after row, and say on which machine."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import history, machine, memory
from benchmarks.catalogue import matching
from benchmarks.imports import ImportContestant
from benchmarks.measure import OURS, Contestant, Failure, Row, measure
from benchmarks.process import (
    PATIENCE,
    ROOT,
    Worker,
    WorkerContestant,
    WorkerError,
    WorkerReference,
)
from benchmarks.report import as_json
from benchmarks.starts import STARTERS, StartContestant
from benchmarks.workloads import QUICK_ROUNDS, Exact, Workload

__all__ = ["FRAMEWORKS", "RESULTS", "Run", "add_options", "check_options", "end", "run"]

FRAMEWORKS = (OURS, "jax", "torch", "numpy")
PEERS = ("jax", "torch")
"""The frameworks that live in the peers' environment."""

RESULTS = ROOT / "benchmarks" / "results"

ROUNDS: dict[str, int | None] = {"full": 7, "quick": None, "check": 2}
"""Without ``--rounds``; None: each row has its own; 0: results are compared, nothing is timed."""

SLOW = {"torch compile": "it compiles for longer than a quick run may take"}
"""Contestants that the quick run leaves out, with the reason."""

SECONDS = {"full": 0.1, "quick": 0.04, "check": 0.02}
"""That a round takes, if a call takes less."""


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
    """Measure the workloads, in turns between the frameworks.

    An interruption ends it after the last whole row, and what was measured is kept.
    """
    seconds = options.seconds[options.mode]
    done = Run(
        {
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "revision": machine.revision(ROOT),
            "mode": options.mode,
            "rounds": options.rounds,
            "seconds_per_round": seconds,
            "machine": machine.describe(),  # before the load is ours
        }
    )
    if options.mode == "quick":
        workloads = [replace(one, left_out={**SLOW, **one.left_out}) for one in workloads]
    with ExitStack() as stack:

        def start(**settings: Any) -> dict[str, Worker]:
            workers: dict[str, Worker] = {}
            for framework in options.frameworks:
                python = options.peer_python if framework in PEERS else sys.executable
                try:
                    workers[framework] = Worker(
                        framework, python, options.patience, package=options.package, **settings
                    )
                except WorkerError as error:
                    done.failures.append(Failure("start", framework, str(error)))
                    continue
                stack.callback(workers[framework].close)
            return workers

        workers = start()
        weighers: dict[str, Worker] = {}
        if options.mode != "quick" and any(one.shows_memory for one in workloads):
            weighers = start(variables=memory.ALLOCATOR)
        exact = start() if any(one.exact for one in workloads) else {}
        done.about["frameworks"] = {
            name: {key: worker.about[key] for key in ("versions", "python", "settings")}
            for name, worker in workers.items()
        }
        with console.status("", refresh_per_second=1) as status, suppress(KeyboardInterrupt):
            done.about["interrupted"] = True
            for workload in workloads:
                start_of_row = time.perf_counter()
                row = measure(
                    workload,
                    _contestants(workload, workers, weighers, options.patience),
                    _rounds(workload, options),
                    seconds,
                    progress=_progress(workload.name, status),
                    references=[
                        WorkerReference(worker, workload.exact)
                        for worker in exact.values()
                        if workload.exact is not None
                    ],
                )
                row.seconds = time.perf_counter() - start_of_row
                console.print(f"{workload.name}: {row.seconds:.0f} s", style="dim")
                done.rows.append(row)
                done.failures += row.failures
            done.about["interrupted"] = False
    return done


def _rounds(workload: Workload, options: argparse.Namespace) -> int:
    """The rounds requested; by default those of the quick run depend on the row."""
    if options.rounds is not None:
        return options.rounds
    return workload.quick_rounds or QUICK_ROUNDS


def _progress(name: str, status: Any) -> Callable[[str], None]:
    return lambda doing: status.update(f"{name}: {doing}")


def _contestants(
    workload: Workload, workers: dict[str, Worker], weighers: dict[str, Worker], patience: float
) -> list[Contestant]:
    """All contestants that have the workload, in the order of the columns."""
    if workload.timed_by == "import":
        return [
            ImportContestant(framework, worker.python, worker.about["import_statement"])
            for framework, worker in workers.items()
        ]
    if workload.timed_by in ("first start", "second start"):
        again = workload.timed_by == "second start"
        return [
            StartContestant(
                framework,
                workers[framework].python,
                again,
                [part.format(framework=framework) for part in workload.program],
                patience,
            )
            for framework in STARTERS
            if framework in workers
        ]
    return [
        WorkerContestant(
            worker,
            name,
            formulation,
            weighers.get(framework) if workload.shows_memory else None,
            workload.settle,
        )
        for framework, worker in workers.items()
        for name, formulation in worker.cases
        if name == workload.name
        and formulation != Exact.FORMULATION
        and f"{framework} {formulation}" not in workload.left_out
    ]


def end(done: Run, options: argparse.Namespace, console: Console) -> int:
    """Print the circumstances, what moved and what failed, write, and return the exit status.

    Runs that only check are neither kept nor compared.
    """
    _print_circumstances(done, console)
    report, file = done.report(), options.json
    file.parent.mkdir(parents=True, exist_ok=True)
    if options.mode != "check":
        changes = history.compare(report, history.earlier_runs(file))
        for line in history.as_lines(changes):
            style = {"slower": "red", "faster": "green"}.get(line.partition(":")[0], "dim")
            console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
        report["comparison"] = history.as_json(changes)
        history.keep(report, file)
    file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    console.print(f"Written to {file}", highlight=False, soft_wrap=True)
    for failure in done.failures:
        message = f"{failure.workload}: {failure.contestant}: {failure.message}"
        Console(stderr=True).print(
            message, style="red", markup=False, highlight=False, soft_wrap=True
        )
    if done.about["interrupted"]:
        return 128 + signal.SIGINT
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
    if done.about["interrupted"]:
        rows = f"Interrupted: {len(done.rows)} rows were measured."
        console.print(rows, style="yellow", soft_wrap=True)
    if rounds is not None and 0 < rounds < 5:
        console.print("Fewer than 5 rounds: no measurement.", style="yellow", soft_wrap=True)


def add_options(
    parser: argparse.ArgumentParser,
    known: Sequence[str],
    quick: Sequence[str] = (),
    *,
    package: str = "benchmarks",
    frameworks: Sequence[str] = FRAMEWORKS,
    rounds: Mapping[str, int | None] = ROUNDS,
    seconds: Mapping[str, float] = SECONDS,
    patience: float = PATIENCE,
) -> None:
    """The options of every command that measures.

    `known` are the names of its rows, `quick` those of its quick run, if it has one. `package` has
    a worker for each of the `frameworks`; `rounds` and `seconds` are the defaults of each mode;
    no command to a worker may take longer than `patience` seconds.
    """
    parser.set_defaults(
        mode="full",
        quick_rows=list(quick),
        known=list(known),
        package=package,
        patience=patience,
        usual_rounds=rounds,
        seconds=seconds,
    )
    parser.add_argument(
        "--peer-python", default=".venv-bench/bin/python", help="interpreter that has jax and torch"
    )
    parser.add_argument("--rounds", type=int, help=f"rounds to measure ({rounds['full']})")
    parser.add_argument(
        "--only",
        type=_names_of(known),
        metavar="NAME,…",
        help="rows to measure, by name or by pattern, such as 'cnn-*,*-step-*'",
    )
    parser.add_argument(
        "--frameworks", type=_names_of(frameworks), default=list(frameworks), metavar="NAME,…"
    )
    parser.add_argument("--json", type=Path, help="where to write the figures (in results/)")
    parser.add_argument(
        "--picture", type=Path, help="where to draw them (beside the JSON file, as .png)"
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--check",
        action="store_const",
        const="check",
        dest="mode",
        help="does everything run and agree? no measurement",
    )
    if quick:
        modes.add_argument(
            "--quick",
            action="store_const",
            const="quick",
            dest="mode",
            help="few rounds of some rows, without memory, in two minutes",
        )


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace, name: str) -> None:
    """Fill in what depends on other options, and refuse what makes no sense.

    `name` is that of the file for the figures, unless the mode has one of its own.
    """
    if options.rounds is None:
        options.rounds = options.usual_rounds[options.mode]
    elif options.rounds < 1:
        parser.error(f"argument --rounds: expected at least 1, got {options.rounds}")
    options.only = options.only or (
        options.quick_rows if options.mode == "quick" else options.known
    )
    options.json = (
        options.json or RESULTS / f"{name if options.mode == 'full' else options.mode}.json"
    )
    options.picture = options.picture or options.json.with_suffix(".png")
    # A worker starts in the repository, wherever this command was given. Links stay as they are:
    # the interpreter of a virtual environment is one.
    options.peer_python = os.path.abspath(options.peer_python)


def _names_of(rows: Sequence[str]) -> Callable[[str], list[str]]:
    """A parser for a comma-separated choice from `rows`, in their order."""

    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        try:
            return matching(names, rows)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse
