"""The command: measure fits, predictions and chains beside the peers, and print the table.

Run by `make bench-posteriors`, or by hand:

    python -m benchmarks.posteriors --peer-python .venv-posteriors/bin/python
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks import picture
from benchmarks.outcomes import outcomes
from benchmarks.posteriors.table import ROWS
from benchmarks.report import as_table
from benchmarks.run import add_options, check_options, end, run

__all__ = ["main"]

FRAMEWORKS = ("stretto", "torch", "jax")
ROUNDS = {"full": 5, "quick": None, "check": 0}


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if all went well, 1 if a check failed or a worker died."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.posteriors", description=__doc__)
    add_options(
        parser,
        list(ROWS),
        list(ROWS),
        package="benchmarks.posteriors",
        frameworks=FRAMEWORKS,
        rounds=ROUNDS,
    )
    options = parser.parse_args(arguments)
    options.only = options.only or list(ROWS)
    check_options(parser, options, "posteriors")
    console = Console(width=None if sys.stdout.isatty() else 160)
    done = run([ROWS[name] for name in options.only], options, console)
    if options.mode != "check":
        console.print(as_table(done.rows, FRAMEWORKS))
        picture.write(outcomes([done.report()], ROWS), options.picture, lambda row: "Posteriors")
    return end(done, options, console)


if __name__ == "__main__":
    sys.exit(main())
