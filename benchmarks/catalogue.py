"""All rows of the table, in its order, and the choice among them by name."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from benchmarks.workloads import OVERHEAD_ROWS, Workload
from benchmarks.workloads_ensembles import ENSEMBLE_ROWS
from benchmarks.workloads_shapes import SHAPE_ROWS

__all__ = ["QUICK", "TABLES", "WORKLOADS", "matching", "table_of"]

TABLES: dict[str, list[Workload]] = {
    "Overheads": OVERHEAD_ROWS,
    "Ensembles": ENSEMBLE_ROWS,
    "Shapes that change": SHAPE_ROWS,
}
"""The rows of each table, by its title."""

WORKLOADS: dict[str, Workload] = {row.name: row for rows in TABLES.values() for row in rows}

_TABLE = {row.name: title for title, rows in TABLES.items() for row in rows}


SHOWN = 200
"""Names that an error message gives at most."""

QUICK: list[str] = [row.name for row in WORKLOADS.values() if row.quick_rounds]
"""The rows of the quick run."""


def table_of(workload: Workload) -> str:
    """The title of the table that has the row."""
    return _TABLE[workload.name]


def matching(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """Those of `names` that match any of the shell patterns, in their order.

    Raises `ValueError` naming the patterns that match nothing.
    """
    patterns, names = list(patterns), list(names)
    idle = [one for one in patterns if not any(fnmatchcase(name, one) for name in names)]
    if idle or not patterns:
        got = ", ".join(idle) or "none"
        some = [*names[:SHOWN], *(["…"] if len(names) > SHOWN else [])]
        raise ValueError(f"expected some of {', '.join(some)}, or patterns of them; got {got}")
    return [name for name in names if any(fnmatchcase(name, one) for one in patterns)]
