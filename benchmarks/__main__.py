"""The command: measure the rows, print the tables, write the JSON file and the picture."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks import picture
from benchmarks.catalogue import QUICK, WORKLOADS, table_of
from benchmarks.measure import Row
from benchmarks.outcomes import outcomes
from benchmarks.report import as_table
from benchmarks.report_ensembles import as_ensemble_table
from benchmarks.run import add_options, check_options, end, run

OWN = {"Ensembles": "vmap", "Shapes that change": "its own"}
"""What a column is called that has a framework's own formulation, by table."""

NOTE = (
    "A ratio is Stretto's time divided by the peer's, round by round, and then the median "
    "(and the quartiles). "
    "Of peak: flops of the products per second, against the best 1,024³ product of this run."
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if all went well, 1 if a check failed or a worker died."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add_options(parser, list(WORKLOADS), QUICK)
    options = parser.parse_args(arguments)
    check_options(parser, options, "latest")
    # Redirected output has no width of its own; give the tables what they need.
    console = Console(width=None if sys.stdout.isatty() else 180)
    done = run([WORKLOADS[name] for name in options.only], options, console)
    tables: dict[str, list[Row]] = {}
    for row in done.rows:
        tables.setdefault(table_of(row.workload), []).append(row)
    for title, rows in tables.items():
        if title == "Overheads":
            console.print(as_table(rows, options.frameworks))
        else:
            console.print(as_ensemble_table(rows, done.rows, title, OWN[title]))
    console.print(NOTE, highlight=False, soft_wrap=True)
    if options.mode != "check":
        picture.write(outcomes([done.report()]), options.picture)
        console.print(f"Drawn to {options.picture}", highlight=False, soft_wrap=True)
    return end(done, options, console)


if __name__ == "__main__":
    sys.exit(main())
