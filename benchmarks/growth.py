"""How time and memory grow with the number of members, from 1 to 1,000, as a picture.

Run by `make bench-growth`, or by hand:

    python -m benchmarks.growth --peer-python .venv-bench/bin/python
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

from benchmarks.memory import RESOLUTION
from benchmarks.report_ensembles import as_ensemble_table
from benchmarks.run import add_options, check_options, end, run
from benchmarks.workloads_ensembles import GROWTH, GROWTH_ROWS, Task

__all__ = ["draw", "main"]

COLOURS = {"stretto": "tab:red", "jax": "tab:blue", "torch": "tab:orange", "numpy": "tab:grey"}
MARKERS = {"": "o", "lax.map": "v", "unroll": "s", "loop": "x"}


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if all went well, 1 if a check failed or a worker died."""
    rows = {row.name: row for row in GROWTH_ROWS}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    add_options(parser, list(rows))
    options = parser.parse_args(arguments)
    check_options(parser, options, "growth")
    console = Console(width=None if sys.stdout.isatty() else 180)
    done = run([rows[name] for name in options.only], options, console)
    console.print(as_ensemble_table(done.rows, done.rows))
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    draw(done.report()["benchmarks"]).savefig(options.picture, dpi=150)
    console.print(f"Drawn to {options.picture}", highlight=False, soft_wrap=True)
    return end(done, options, console)


def draw(benchmarks: Sequence[dict[str, Any]]) -> Figure:
    """Time for each member above, memory of a call below, for each network and kind of work.

    `benchmarks` are entries of the report, as in the JSON file.
    """
    tasks = {task.name: task for ensemble in GROWTH for task in ensemble.tasks}
    panels: dict[str, list[tuple[Task, dict[str, Any]]]] = {}
    for entry in benchmarks:
        task = tasks[entry["name"]]
        network = task.ensemble.title.partition(",")[0]
        panels.setdefault(f"{network}, {task.kind}", []).append((task, entry["contestants"]))
    figure = Figure(figsize=(4.5 * max(1, len(panels)), 8), layout="constrained")
    axes = figure.subplots(2, max(1, len(panels)), squeeze=False, sharex=True)
    for column, (title, points) in enumerate(panels.items()):
        above, below = axes[:, column]
        above.set_title(title)
        _curves(above, points, "median", lambda task: 1e6 / task.ensemble.members)
        _curves(below, points, "peak_bytes", lambda _: 2.0**-20, least=RESOLUTION)
        above.set_ylabel("µs for each member")
        below.set_ylabel("memory of a call, MB")
        below.set_xlabel("members")
        above.legend(fontsize="small")
    return figure


def _curves(
    axes: Axes,
    points: Sequence[tuple[Task, dict[str, Any]]],
    figure: str,
    scale: Any,
    least: float = 0.0,
) -> None:
    """One curve for each contestant; figures that are missing or below `least` have no point."""
    for name in dict.fromkeys(name for _, contestants in points for name in contestants):
        framework, _, formulation = name.partition(" ")
        curve = [
            (task.ensemble.members, contestants[name][figure] * scale(task))
            for task, contestants in points
            if (contestants.get(name, {}).get(figure) or -1.0) >= least
        ]
        if curve:
            axes.loglog(
                *zip(*curve),
                color=COLOURS[framework],
                marker=MARKERS[formulation],
                linewidth=2.5 if framework == "stretto" else 1,
                label=name,
            )
    axes.grid(visible=True, which="major", alpha=0.3)


if __name__ == "__main__":
    sys.exit(main())
