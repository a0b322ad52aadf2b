"""The command: each layer at three sizes, forward and with its gradient, beside the peers."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks import picture
from benchmarks.layers.catalogue import TASKS
from benchmarks.layers.report import as_layer_table, as_summary
from benchmarks.outcomes import outcomes
from benchmarks.run import add_options, check_options, end, run

__all__ = ["main"]

FRAMEWORKS = ("stretto", "torch", "jax")
"""PyTorch's results are the reference: it has every row."""

ROUNDS = {"full": 5, "check": 0}
SECONDS = {"full": 0.04, "check": 0.04}

NOTE = (
    "A ratio is Stretto's time divided by the faster peer's, round by round, and then the median "
    "(and the quartiles). ▲ above 1.2, ▲▲ above 1.5."
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if all results agree, 1 if some differ or a worker died."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.layers", description=__doc__)
    add_options(
        parser,
        list(TASKS),
        package="benchmarks.layers",
        frameworks=FRAMEWORKS,
        rounds=ROUNDS,
        seconds=SECONDS,
    )
    options = parser.parse_args(arguments)
    check_options(parser, options, "layers")
    console = Console(width=None if sys.stdout.isatty() else 160)
    workloads = {name: TASKS[name].workload for name in options.only}
    done = run(list(workloads.values()), options, console)
    if options.mode != "check":
        console.print(as_layer_table(done.rows, options.frameworks))
        for line in [*as_summary(done.rows), NOTE]:
            console.print(line, highlight=False, soft_wrap=True)
        drawn = outcomes([done.report()], workloads)
        picture.write(drawn, options.picture, lambda workload: TASKS[workload.name].kind)
        console.print(f"Drawn to {options.picture}", highlight=False, soft_wrap=True)
    return end(done, options, console)


if __name__ == "__main__":
    sys.exit(main())
