"""All rows of the table, in its order, and the choice among them by name."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from benchmarks.workloads import OVERHEAD_ROWS, Workload
from benchmarks.workloads_ensembles import ENSEMBLE_ROWS

__all__ = ["QUICK", "WORKLOADS", "matching"]

WORKLOADS: dict[str, Workload] = {row.name: row for row in [*OVERHEAD_ROWS, *ENSEMBLE_ROWS]}


SHOWN = 200
"""Names that an error message gives at most."""

QUICK: list[str] = [row.name for row in WORKLOADS.values() if row.quick_rounds]
"""The rows of the quick run."""


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
