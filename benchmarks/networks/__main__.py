"""The command: measure whole networks, print the tables, write the JSON file and the picture.

Run by `make bench-models`, or by hand:

    python -m benchmarks.networks --peer-python .venv-bench/bin/python
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks import picture
from benchmarks.networks.table import FULL, ROWS
from benchmarks.outcomes import outcomes
from benchmarks.report import as_table
from benchmarks.report_ensembles import as_ensemble_table
from benchmarks.run import RESULTS, add_options, check_options, end, run
from benchmarks.workloads import Workload

__all__ = ["main"]

FRAMEWORKS = ("stretto", "jax", "torch")
FILES = {"full": "models", "quick": "models-quick"}
ROUNDS = {"full": 7, "quick": None, "check": 0}
PATIENCE = 900.0
"""Seconds that a command may take: some networks compile for minutes."""


def panel(workload: Workload) -> str:
    """Where in the picture the row is."""
    return "Steps, outputs and tokens" if workload.shows_memory else "First times"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if all went well, 1 if a check failed or a worker died."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=__doc__)
    quick = [row.name for row in ROWS.values() if row.quick_rounds]
    add_options(
        parser,
        list(ROWS),
        quick,
        package="benchmarks.networks",
        frameworks=FRAMEWORKS,
        rounds=ROUNDS,
        patience=PATIENCE,
    )
    options = parser.parse_args(arguments)
    if options.mode != "quick":
        options.only = options.only or FULL
    if options.json is None and options.mode != "check":
        options.json = RESULTS / f"{FILES[options.mode]}.json"
    check_options(parser, options, "models")
    console = Console(width=None if sys.stdout.isatty() else 180)
    done = run([ROWS[name] for name in options.only], options, console)
    alone = [row for row in done.rows if row.workload.shows_memory and "-n1-" in row.workload.name]
    several = [row for row in done.rows if row.workload.shows_memory and row not in alone]
    first = [row for row in done.rows if not row.workload.shows_memory]
    if alone:
        console.print(as_ensemble_table(alone, done.rows, "Single networks", own="one"))
    if several:
        console.print(as_ensemble_table(several, done.rows, "Ensembles of five"))
    if first:
        console.print(as_table(first, options.frameworks))
    if options.mode != "check":
        picture.write(outcomes([done.report()], ROWS), options.picture, panel)
        console.print(f"Drawn to {options.picture}", highlight=False, soft_wrap=True)
    return end(done, options, console)


if __name__ == "__main__":
    sys.exit(main())
