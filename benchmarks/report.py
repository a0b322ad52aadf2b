"""The measurements as a table for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, Literal

import numpy as np
from rich.table import Table
from rich.text import Text

from benchmarks.measure import OURS, Row
from benchmarks.workloads import Goal

__all__ = [
    "as_json",
    "as_ratio",
    "as_table",
    "as_time",
    "fraction_of_peak",
    "peak_flops",
    "time_of",
    "verdicts",
]

_SCALE = {"us": (1e6, "µs"), "ms": (1e3, "ms")}


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Every row with every round's figure, in seconds, and the ratios and goals they lead to."""
    peak = peak_flops(rows)
    return [
        {
            "name": row.workload.name,
            "title": row.workload.title,
            "unit": "s",
            "tolerance": {
                "rtol": row.workload.rtol,
                "atol": row.workload.atol,
                "of_largest": row.workload.of_largest,
            },
            "flops": row.workload.flops,
            "measured_within": row.seconds,
            "left_out": row.workload.left_out,
            "contestants": {
                name: {
                    **row.details[name],
                    "rounds": seconds,
                    "median": row.median(name),
                    "fraction_of_peak": fraction_of_peak(row, name, peak),
                }
                for name, seconds in row.rounds.items()
            },
            "fastest_peer": next(iter(row.peers()), None),
            "ratios": {
                peer: {"rounds": row.ratios(peer), "median": median(row.ratios(peer))}
                for peer in [*row.peers(), *row.own()]
                if row.ratios(peer)
            },
            "goals": [
                {
                    "peer": goal.peer,
                    "at_most": goal.at_most,
                    "ratio": row.outcome(goal),
                    "met": _met(row, goal),
                }
                for goal in row.workload.goals
            ],
            "failures": [
                {"contestant": one.contestant, "message": one.message} for one in row.failures
            ],
        }
        for row in rows
    ]


def as_table(rows: Sequence[Row], frameworks: Sequence[str]) -> Table:
    """A column for each framework, medians in the row's unit, and the goals.

    A cell is empty where the framework has no such thing. The fastest peer is named where another
    formulation than the framework's own is the fastest.
    """
    peak = peak_flops(rows)
    table = Table(title="Medians of alternated rounds", title_justify="left")
    table.add_column("workload")
    for framework in frameworks:
        table.add_column(framework, justify="right", no_wrap=True)
    table.add_column("fastest peer", justify="right")
    if peak and OURS in frameworks:
        table.add_column(f"{OURS} of peak", justify="right")
    table.add_column("ratio, goal", no_wrap=True)
    for row in rows:
        cells: list[str | Text] = [row.workload.title]
        cells += [_cell(row, framework) for framework in frameworks]
        fastest = next(iter(row.peers()), None)
        named = fastest is not None and fastest not in frameworks
        cells.append(f"{fastest}\n{time_of(row, fastest)}" if fastest and named else "")
        if peak and OURS in frameworks:
            fraction = fraction_of_peak(row, OURS, peak)
            cells.append(f"{fraction:.0%}" if fraction else "")
        cells.append(verdicts(row))
        table.add_row(*cells, end_section=True)
    return table


def peak_flops(rows: Sequence[Row]) -> float | None:
    """The machine's matrix peak: the most that any contestant reached in the row "product"."""
    for row in rows:
        if row.workload.name == "product" and row.rounds:
            return max(row.workload.flops / min(seconds) for seconds in row.rounds.values())
    return None


def fraction_of_peak(row: Row, contestant: str, peak: float | None) -> float | None:
    """The flops of the contestant's median against the peak; None where either is unknown."""
    seconds = row.median(contestant)
    return row.workload.flops / seconds / peak if seconds and peak and row.workload.flops else None


def time_of(row: Row, contestant: str) -> str:
    """The contestant's median in the row's unit; nothing if it was not measured."""
    seconds = row.median(contestant)
    return "" if seconds is None else as_time(seconds, row.workload.unit)


def as_ratio(ratio: float) -> str:
    """A ratio, small ones with two digits."""
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.2g}"


def as_time(seconds: float, unit: Literal["us", "ms"]) -> str:
    """A time with three digits or so, such as "5.16 µs"."""
    scale, symbol = _SCALE[unit]
    figure = seconds * scale
    decimals = 2 if figure < 10 else 1 if figure < 100 else 0
    return f"{figure:,.{decimals}f} {symbol}"


def _cell(row: Row, framework: str) -> str | Text:
    if any(failure.contestant == framework for failure in row.failures):
        return Text("failed", style="bold red")
    return time_of(row, framework)


def _met(row: Row, goal: Goal) -> bool | None:
    ratio = row.outcome(goal)
    return None if ratio is None else ratio <= goal.at_most


def verdicts(row: Row) -> Text:
    """A line for each peer, such as "0.21 (0.20 to 0.23) of jax: ≤ 0.15 missed".

    In brackets are the quartiles.
    """
    lines: list[Text] = []
    for peer in dict.fromkeys(goal.peer for goal in row.workload.goals):
        ratios = row.ratios(peer)
        if ratios:
            low, middle, high = map(as_ratio, np.quantile(ratios, [0.25, 0.5, 0.75]))
            line = Text(f"{middle} ({low} to {high}) of {peer}: ")
        else:
            line = Text(f"of {peer}: ")
        goals = [goal for goal in row.workload.goals if goal.peer == peer]
        lines.append(line + Text(", ").join(_aim(goal, _met(row, goal)) for goal in goals))
    return Text("\n").join(lines)


def _aim(goal: Goal, is_met: bool | None) -> Text:
    if is_met is None:
        return Text(f"≤ {goal.at_most:g}", style="dim")
    verdict, style = ("met", "green") if is_met else ("missed", "red")
    return Text(f"≤ {goal.at_most:g} {verdict}", style=style)
