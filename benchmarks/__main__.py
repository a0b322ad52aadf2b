"""The command: start the workers, measure row after row, print the table, write the JSON file."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import machine
from benchmarks.imports import ImportContestant
from benchmarks.measure import OURS, Contestant, Failure, Row, measure
from benchmarks.process import ROOT, Worker, WorkerContestant, WorkerError
from benchmarks.report import as_json, as_table
from benchmarks.workloads import WORKLOADS, Workload

FRAMEWORKS = (OURS, "jax", "torch", "numpy")
PEERS = ("jax", "torch")
"""The frameworks that live in the peers' environment."""

RESULTS = ROOT / "benchmarks" / "results" / "latest.json"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if all went well, 1 if a check failed or a worker died."""
    options = _parse(arguments)
    # Redirected output has no width of its own; give the table what it needs.
    console = Console(width=None if sys.stdout.isatty() else 160)
    failures: list[Failure] = []
    rows: list[Row] = []
    seconds = 0.02 if options.quick else 0.1
    load = machine.describe()  # before the load is ours
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for framework in options.frameworks:
            python = options.peer_python if framework in PEERS else sys.executable
            try:
                worker = Worker(framework, python)
            except WorkerError as error:
                failures.append(Failure("start", framework, str(error)))
                continue
            stack.callback(worker.close)
            workers[framework] = worker
        with console.status("", refresh_per_second=1) as status:
            for name in options.only:
                workload = WORKLOADS[name]
                contestants = _contestants(workload, workers)
                row = measure(
                    workload,
                    contestants,
                    options.rounds,
                    seconds,
                    progress=lambda doing, name=name: status.update(f"{name}: {doing}"),
                )
                rows.append(row)
                failures += row.failures
    report: dict[str, Any] = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": options.rounds,
        "seconds_per_round": seconds,
        "quick": options.quick,
        "machine": load,
        "frameworks": {
            name: {key: worker.about[key] for key in ("versions", "python")}
            for name, worker in workers.items()
        },
        "failures": [vars(failure) for failure in failures],
        "benchmarks": as_json(rows),
    }
    console.print(as_table(rows, options.frameworks))
    _print_circumstances(console, report)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    console.print(f"Written to {options.json}", highlight=False, soft_wrap=True)
    for failure in failures:
        message = f"{failure.workload}: {failure.contestant}: {failure.message}"
        Console(stderr=True).print(
            message, style="red", markup=False, highlight=False, soft_wrap=True
        )
    return 1 if failures else 0


def _contestants(workload: Workload, workers: dict[str, Worker]) -> list[Contestant]:
    """All who have the workload, in the order of the columns."""
    if workload.timed_by == "import":
        return [
            ImportContestant(framework, worker.python, worker.about["import_statement"])
            for framework, worker in workers.items()
        ]
    return [
        WorkerContestant(worker, name, formulation)
        for worker in workers.values()
        for name, formulation in worker.cases
        if name == workload.name
    ]


def _print_circumstances(console: Console, report: dict[str, Any]) -> None:
    """What one must know to read the figures."""
    about = report["machine"]
    versions = ", ".join(
        f"{name} {one['versions'][name]}" for name, one in report["frameworks"].items()
    )
    console.print(
        f"{about['cpu']}, {about['cores']} cores; {versions}", highlight=False, soft_wrap=True
    )
    console.print(
        "A ratio is Stretto's time divided by the peer's, round by round, and then the median "
        "(and the quartiles). "
        "Of peak: flops of the products per second, against the best 1,024³ product of this run.",
        highlight=False,
        soft_wrap=True,
    )
    load = about["load_average"]
    if load and load[0] > about["cores"] / 2:
        busy = f"The machine was busy when this began (load {load[0]:.1f}): mind the spread."
        console.print(busy, style="yellow", soft_wrap=True)
    if report["rounds"] < 5:
        console.print(
            "Fewer than 5 rounds: a smoke test, no measurement.", style="yellow", soft_wrap=True
        )


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--peer-python", default=".venv-bench/bin/python", help="interpreter that has jax and torch"
    )
    parser.add_argument(
        "--rounds", type=int, help="rounds to measure, after a warm-up (7; with --quick 2)"
    )
    parser.add_argument(
        "--only", type=_names_of(WORKLOADS), default=list(WORKLOADS), metavar="NAME,…"
    )
    parser.add_argument(
        "--frameworks", type=_names_of(FRAMEWORKS), default=list(FRAMEWORKS), metavar="NAME,…"
    )
    parser.add_argument(
        "--json", type=Path, default=RESULTS, help="where to write the figures (%(default)s)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="short batches: does everything run and agree?"
    )
    options = parser.parse_args(arguments)
    if options.rounds is None:
        options.rounds = 2 if options.quick else 7
    if options.rounds < 1:
        parser.error(f"argument --rounds: expected at least 1, got {options.rounds}")
    # A worker starts in the repository, wherever this command was given. Links stay as they are:
    # the interpreter of a virtual environment is one.
    options.peer_python = os.path.abspath(options.peer_python)
    return options


def _names_of(known: Any) -> Any:
    """A parser for a comma-separated choice from `known`, in the order of `known`."""

    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            got = ", ".join(unknown) or "none"
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(known)}; got {got}")
        return [name for name in known if name in names]

    return parse


if __name__ == "__main__":
    sys.exit(main())
