"""The table of the ensembles: a column for each formulation, with the memory it takes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from benchmarks.measure import OURS, Row
from benchmarks.memory import RESOLUTION
from benchmarks.report import fraction_of_peak, peak_flops, time_of, verdicts

__all__ = ["as_ensemble_table", "as_memory", "memory_of"]


def as_ensemble_table(
    rows: Sequence[Row], run: Sequence[Row], title: str = "Ensembles", own: str = "vmap"
) -> Table:
    """Medians and the memory below them, the fastest peer in bold; `run` has the row of the peak.

    `own` is what a column is called that has a framework's own formulation.

    A cell is "–" where the contestant is left out on purpose.
    """
    peak = peak_flops(run)
    columns = _columns(rows)
    weighed = ", and the memory of a call" if any(r.workload.shows_memory for r in rows) else ""
    table = Table(title=f"{title}: medians{weighed}", title_justify="left")
    table.add_column("workload")
    for name in columns:
        table.add_column(_heading(name, own), justify="right")
    if peak and OURS in columns:
        table.add_column("of peak", justify="right")
    table.add_column("ratio, goal")
    for row in rows:
        fastest = next(iter(row.peers()), None)
        cells: list[str | Text] = [row.workload.title]
        cells += [_cell(row, name, bold=name == fastest) for name in columns]
        if peak and OURS in columns:
            fraction = fraction_of_peak(row, OURS, peak)
            cells.append(f"{fraction:.0%}" if fraction else "")
        cells.append(verdicts(row))
        table.add_row(*cells, end_section=True)
    return table


def memory_of(row: Row, contestant: str) -> str:
    """The memory that a call takes, in MB of 2**20 bytes; nothing where it is not known."""
    peak = row.details.get(contestant, {}).get("peak_bytes")
    return "" if peak is None else as_memory(peak)


def as_memory(peak: float) -> str:
    """Bytes as MB of 2**20, as far as they can be told."""
    if peak < RESOLUTION:
        return f"< {RESOLUTION / 2**20:.1f} MB"
    return f"{peak / 2**20:,.1f} MB"


def _columns(rows: Sequence[Row]) -> list[str]:
    """Every contestant of any row, Stretto first, then framework by framework."""
    names = dict.fromkeys(name for row in rows for name in _contestants(row))
    frameworks = list(dict.fromkeys(name.partition(" ")[0] for name in names))
    return sorted(names, key=lambda name: frameworks.index(name.partition(" ")[0]))


def _contestants(row: Row) -> list[str]:
    return [*row.rounds, *(failure.contestant for failure in row.failures)]


def _heading(name: str, own: str) -> str:
    framework, _, formulation = name.partition(" ")
    return f"{framework}\n{formulation or own}" if framework != "numpy" else framework


def _cell(row: Row, name: str, bold: bool) -> Text:
    if any(failure.contestant == name for failure in row.failures):
        return Text("failed", style="bold red")
    if name in row.workload.left_out:
        return Text("–", style="dim")
    time, memory = time_of(row, name), memory_of(row, name)
    return Text(time, style="bold" if bold else "") + Text(f"\n{memory}" if memory else "", "dim")
