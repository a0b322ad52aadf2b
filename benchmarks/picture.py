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

TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 1, 1.5, 2, 5, 10)
ROW_HEIGHT, FRAME_HEIGHT = 0.27, 1.6


def write(
    results: Sequence[Outcome], file: Path, panel_of: Callable[[Workload], str] = table_of
) -> None:
    """Draw to a file, whose ending says the format."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draw(results, panel_of).savefig(file, dpi=150)


def draw(results: Sequence[Outcome], panel_of: Callable[[Workload], str] = table_of) -> Figure:
    """A line for each goal: the ratio with its spread, and a bar where the goal is.

    `panel_of` gives the title of the panel that a row is in; panels come as their first rows do.
    """
    panels: dict[str, list[Outcome]] = {}
    for one in results:
        panels.setdefault(panel_of(one.workload), []).append(one)
    longest = max(map(len, panels.values()), default=1)
    size = (8 * max(1, len(panels)), FRAME_HEIGHT + ROW_HEIGHT * longest)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle("Stretto's time divided by a peer's; left of the bar the goal is met")
    if panels:
        columns = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, group) in zip(columns, panels.items(), strict=True):
            _panel(axes, title, group)
        styles = {}
        for axes in columns:
            styles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        figure.legend(styles.values(), styles.keys(), loc="outside lower center", ncols=3)
    return figure


def _panel(axes: Axes, title: str, results: Sequence[Outcome]) -> None:
    count = sum(one.met for one in results)
    axes.set_title(f"{title}: {count} of {len(results)} goals met")
    for style, verdict in ((MET, True), (MISSED, False)):
        places = [place for place, one in enumerate(results) if one.met is verdict]
        if places:
            ratios = [results[place].ratio for place in places]
            spread = [
                [results[place].ratio - results[place].low for place in places],
                [results[place].high - results[place].ratio for place in places],
            ]
            axes.errorbar(ratios, places, xerr=spread, linestyle="none", markersize=6, **style)
    goals = [one.goal.at_most for one in results]
    axes.plot(
        goals,
        range(len(results)),
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
        range(len(results)), [f"{one.workload.title} ÷ {one.goal.peer}" for one in results]
    )
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.tick_params(axis="y", labelsize="small")
    axes.grid(visible=True, axis="x", which="major", alpha=0.3)
