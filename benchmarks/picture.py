"""The ratios beside their goals, as a picture: a panel each for overheads, ensembles and so on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.catalogue import table_of
from benchmarks.outcomes import Outcome
from benchmarks.workloads import Workload

__all__ = ["draw", "write"]

# Told apart by everyone (Okabe and Ito), and by their shapes.
MET: dict[str, Any] = {"color": "#0072B2", "marker": "o", "label": "goal met"}
MISSED: dict[str, Any] = {"color": "#D55E00", "marker": "D", "label": "goal missed"}

# Machines, by how their marks are filled.
FILLS = ("full", "none", "left", "right")

TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 1, 1.5, 2, 5, 10)
ROW_HEIGHT, FRAME_HEIGHT = 0.27, 1.6


def write(
    results: Sequence[Outcome], file: Path, panel_of: Callable[[Workload], str] = table_of
) -> None:
    """Draw to a file, whose ending says the format."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draw(results, panel_of).savefig(file, dpi=150)


def draw(results: Sequence[Outcome], panel_of: Callable[[Workload], str] = table_of) -> Figure:
    """Draw a line for each goal: the ratio with its spread, and a bar where the goal is.

    `panel_of` gives the title of the panel that a row is in; panels come as their first rows do.
    Where results are of several machines, a goal's line has a mark for each, told apart by how it
    is filled.
    """
    panels: dict[str, list[Outcome]] = {}
    for one in results:
        panels.setdefault(panel_of(one.workload), []).append(one)
    machines = list(dict.fromkeys(one.machine for one in results))
    longest = max((len(_goals(group)) for group in panels.values()), default=1)
    height = ROW_HEIGHT * (1 + 0.4 * max(0, len(machines) - 1))
    size = (8 * max(1, len(panels)), FRAME_HEIGHT + height * longest)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle("Stretto's time divided by a peer's; left of the bar the goal is met")
    if panels:
        columns = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, group) in zip(columns, panels.items(), strict=True):
            _panel(axes, title, group, machines)
        styles = {}
        for axes in columns:
            styles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        figure.legend(styles.values(), styles.keys(), loc="outside lower center", ncols=3)
    return figure


def _goals(results: Sequence[Outcome]) -> dict[tuple[str, str], Outcome]:
    """Return one outcome for each goal, by row and peer: those of several machines share it."""
    return {(one.workload.name, one.goal.peer): one for one in reversed(results)}


def _panel(axes: Axes, title: str, results: Sequence[Outcome], machines: Sequence[str]) -> None:
    counts = []
    shared = list(reversed(_goals(results).items()))
    heights = {key: height for height, (key, _) in enumerate(shared)}
    for number, machine in enumerate(machines):
        of_it = [one for one in results if one.machine == machine]
        if not of_it:
            continue
        counts.append(f"{sum(one.met for one in of_it)} of {len(of_it)} goals met")
        shift = 0.0 if len(machines) == 1 else 0.5 * (number / (len(machines) - 1) - 0.5)
        for style, verdict in ((MET, True), (MISSED, False)):
            shown = [one for one in of_it if one.met is verdict]
            if shown:
                label = style["label"] if len(machines) == 1 else f"{style['label']}, {machine}"
                axes.errorbar(
                    [one.ratio for one in shown],
                    [heights[one.workload.name, one.goal.peer] + shift for one in shown],
                    xerr=[
                        [one.ratio - one.low for one in shown],
                        [one.high - one.ratio for one in shown],
                    ],
                    linestyle="none",
                    markersize=6,
                    fillstyle=FILLS[number % len(FILLS)],
                    **style | {"label": label},
                )
    axes.set_title(f"{title}: {' / '.join(counts)}")
    goals = [one.goal.at_most for _, one in shared]
    axes.plot(
        goals,
        range(len(shared)),
        linestyle="none",
        marker="|",
        markersize=13,
        markeredgewidth=2.5,
        color="black",
        label="goal",
    )
    axes.set_xscale("log")
    axes.set_xticks(TICKS)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    lows, highs = [one.low for one in results], [one.high for one in results]
    axes.set_xlim(0.8 * min(*lows, *goals, 0.5), 1.25 * max(*highs, *goals, 1.5))
    axes.set_yticks(
        range(len(shared)), [f"{one.workload.title} ÷ {one.goal.peer}" for _, one in shared]
    )
    axes.set_ylim(len(shared) - 0.4, -0.6)
    axes.tick_params(axis="y", labelsize="small")
    axes.grid(visible=True, axis="x", which="major", alpha=0.3)
