"""The table of layers: the worst ratio first, and how many are above what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean, median

import numpy as np
from rich.table import Table
from rich.text import Text

from benchmarks.layers.row import KINDS
from benchmarks.measure import Row
from benchmarks.report import as_ratio, time_of

__all__ = ["MARKS", "as_layer_table", "as_summary", "ratio_of", "summary_of"]

MARKS = ((1.5, "▲▲", "red"), (1.2, "▲", "yellow"))
"""Ratios above which a row is marked, and how, the greatest first."""


def ratio_of(row: Row) -> float | None:
    """Our time divided by the faster peer's, the median of the rounds."""
    ratios = row.ratios("fastest")
    return median(ratios) if ratios else None


def as_layer_table(rows: Sequence[Row], frameworks: Sequence[str]) -> Table:
    """All rows, the worst first; at the end those that have no ratio."""
    table = Table(title="Medians of alternated rounds, the worst first", title_justify="left")
    table.add_column("row")
    table.add_column("inputs")
    for framework in frameworks:
        table.add_column(framework, justify="right", no_wrap=True)
    table.add_column("of the faster peer", justify="right", no_wrap=True)
    for row in sorted(rows, key=lambda row: -(ratio_of(row) or 0.0)):
        cells: list[str | Text] = [row.workload.name, row.workload.title.partition(", ")[2]]
        failed = {failure.contestant for failure in row.failures}
        for framework in frameworks:
            bad = framework in failed
            cells.append(Text("failed", style="bold red") if bad else time_of(row, framework))
        table.add_row(*cells, _marked(row))
    return table


def as_summary(rows: Sequence[Row]) -> list[str]:
    """For forward and gradient: rows measured, their geometric mean, and rows above each mark."""
    ratios = {row.workload.name: ratio_of(row) for row in rows}
    return summary_of({name: ratio for name, ratio in ratios.items() if ratio is not None})


def summary_of(ratios: Mapping[str, float]) -> list[str]:
    """The same of ratios by the names of their rows."""
    lines = []
    for kind in KINDS:
        own = [ratio for name, ratio in ratios.items() if name.endswith(f"-{kind}")]
        if own:
            mean = as_ratio(geometric_mean(own))
            above = ", ".join(
                f"{sum(ratio > least for ratio in own)} above {least:g}" for least, *_ in MARKS
            )
            lines.append(f"{kind}: {len(own)} rows, geometric mean {mean}; {above}")
    return lines


def _marked(row: Row) -> Text | str:
    ratios = row.ratios("fastest")
    if not ratios:
        return ""
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
    text = f"{as_ratio(middle)} ({as_ratio(low)} to {as_ratio(high)})"
    for least, mark, style in MARKS:
        if middle > least:
            return Text(f"{mark} {text}", style=style)
    return text
