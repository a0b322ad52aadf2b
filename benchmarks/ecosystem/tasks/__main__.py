"""The command: real tasks of libraries written for JAX, beside JAX, in turns.

    python -m benchmarks.ecosystem.tasks --stretto .venv-ecosystem/bin/python \
        --jax .venv-ecosystem-jax/bin/python

Each program runs in a process of its own: under Stretto with nothing on disk, then with what that
left, and under JAX, which keeps nothing on disk by default. `make bench-ecosystem` runs it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.catalogue import matching
from benchmarks.ecosystem.tasks.comparing import Agreement, agreement
from benchmarks.ecosystem.tasks.running import Told, command, start, versions
from benchmarks.ecosystem.tasks.table import ROWS, Task, cases, name_of
from benchmarks.measure import Failure, Row
from benchmarks.process import ROOT, WorkerError
from benchmarks.report import as_ratio, as_time, verdicts
from benchmarks.run import RESULTS, Run, end

__all__ = ["main", "measured"]

LIBRARIES = ("flax", "optax", "equinox", "diffrax", "numpyro", "blackjax", "evosax")
PACKAGES = ("jaxlib", "numpy", *LIBRARIES)
ROUNDS = 5
FEW = 2
"""Steps of a second start, which is about the first."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if all values agree, 1 if not or if a program fails."""
    options = _options(arguments)
    console = Console(width=None if sys.stdout.isatty() else 170)
    done = Run(_about(options))
    pythons = {"stretto": options.stretto, "jax": options.jax}
    chosen = [(task, form) for task, form in cases() if name_of(task, form) in options.only]
    agreements: dict[str, Agreement] = {}
    done.about["interrupted"] = True
    with suppress(KeyboardInterrupt):
        for task, form in chosen:
            name = name_of(task, form)
            try:
                agreements[name] = _compared(task, form, pythons)
                console.print(_as_line(name, agreements[name]), highlight=False, soft_wrap=True)
                if agreements[name].message is not None:
                    raise WorkerError(str(agreements[name].message))
                if options.rounds:
                    done.rows += measured(task, form, pythons, options.rounds)
            except WorkerError as error:
                done.failures.append(Failure(name, "stretto", str(error)))
                console.print(f"{name}: {error}", style="red", highlight=False, soft_wrap=True)
        done.about["interrupted"] = False
    done.about["agreement"] = {name: one.as_json() for name, one in agreements.items()}
    if done.rows:
        console.print(as_table(done.rows))
    return end(done, options, console)


def measured(task: Task, form: str, pythons: Mapping[str, str], rounds: int) -> list[Row]:
    """The rows of a task: Stretto twice and JAX once, in turns.

    JAX's column of a second start is its only one. The processor's seconds are details.
    """
    names = [f"{name_of(task, form)}-{part}" for part in ("first", "second", "step")]
    first, second, step = rows = [Row(ROWS[name]) for name in names]
    for row in rows:
        for framework in pythons:
            row.rounds[framework] = []
            row.details[framework] = {"processor": []}

    def note(row: Row, framework: str, seconds: float, processor: float) -> None:
        row.rounds[framework].append(seconds)
        row.details[framework]["processor"].append(processor)

    lines = {name: command(name, python, task.name) for name, python in pythons.items()}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
            cold = start(lines["stretto"], form, task.steps, Path(folder), {})
            theirs = start(lines["jax"], form, task.steps, None, {})
            warm = start(lines["stretto"], form, FEW, Path(folder), {})
        for row, ours in ((first, cold), (second, warm)):
            note(row, "stretto", ours.first, ours.processor_to_first)
            note(row, "jax", theirs.first, theirs.processor_to_first)
        for framework, told in (("stretto", cold), ("jax", theirs)):
            note(step, framework, median(told.steps), median(told.processor))
    return rows


def as_table(rows: list[Row]) -> Table:
    """Medians, the ratio of times by the clock with its goal, and that of the processor's."""
    table = Table(title="Medians of alternated rounds", title_justify="left")
    table.add_column("task")
    for heading in ("stretto", "jax"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("ratio, goal", no_wrap=True)
    table.add_column("ratio of processor time", justify="right")
    for row in rows:
        times = [as_time(row.median(name) or 0.0, "ms") for name in ("stretto", "jax")]
        ours, theirs = (row.details[name]["processor"] for name in ("stretto", "jax"))
        busy = median([a / b for a, b in zip(ours, theirs, strict=True)])
        table.add_row(row.workload.title, *times, verdicts(row), as_ratio(busy))
    return table


def _compared(task: Task, form: str, pythons: Mapping[str, str]) -> Agreement:
    def run(framework: str, variables: dict[str, str]) -> Told:
        line = command(framework, pythons[framework], task.name)
        return start(line, form, task.checked, None, variables)

    return agreement(task, run)


def _as_line(name: str, found: Agreement) -> str:
    text = f"{name}: float64 {found.wide:.1e} apart, float32 {found.narrow:.1e}"
    return text if found.nudged is None else f"{text}, JAX by the last place {found.nudged:.1e}"


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ecosystem.tasks", description=__doc__.partition("\n")[0]
    )
    known = [name_of(task, form) for task, form in cases()]
    parser.add_argument(
        "--stretto", default=".venv-ecosystem/bin/python", metavar="PYTHON",
        help="interpreter that has the libraries and Stretto, and no JAX (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--jax", default=".venv-ecosystem-jax/bin/python", metavar="PYTHON",
        help="interpreter that has the libraries and JAX (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--only", metavar="NAME,…", help="tasks by name or pattern: 'linen_*,*-ensemble'"
    )
    parser.add_argument("--rounds", type=int, help=f"rounds to measure ({ROUNDS})")
    parser.add_argument("--json", type=Path, help="where to write the figures (in results/)")
    parser.add_argument(
        "--check",
        action="store_const",
        const="check",
        default="full",
        dest="mode",
        help="do the values agree? no measurement",
    )
    options = parser.parse_args(arguments)
    if options.rounds is not None and options.rounds < 1:
        parser.error(f"argument --rounds: expected at least 1, got {options.rounds}")
    options.rounds = 0 if options.mode == "check" else options.rounds or ROUNDS
    try:
        options.only = matching(options.only.split(","), known) if options.only else known
    except ValueError as error:
        parser.error(f"argument --only: {error}")
    file = "tasks.json" if options.mode == "full" else "tasks-check.json"
    options.json = options.json or RESULTS / file
    options.stretto, options.jax = os.path.abspath(options.stretto), os.path.abspath(options.jax)
    return options


def _about(options: argparse.Namespace) -> dict[str, object]:
    """The circumstances, as all runs keep them."""
    frameworks = {}
    for framework, python, own in (
        ("stretto", options.stretto, "stretto"),
        ("jax", options.jax, "jax"),
    ):
        try:
            found = versions(python, (own, *PACKAGES))
        except WorkerError as error:
            raise SystemExit(str(error)) from error
        frameworks[framework] = {"python": found.pop("python"), "versions": found, "settings": {}}
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "revision": machine.revision(ROOT),
        "mode": options.mode,
        "rounds": options.rounds,
        "machine": machine.describe(),
        "frameworks": frameworks,
    }


if __name__ == "__main__":
    sys.exit(main())
