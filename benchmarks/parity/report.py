"""The tables at the end: counts by family, and every refusal and known fault with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from benchmarks.parity.compare import AGREE, BOTH_REFUSE, DIFFER, PEER_REFUSES, PEER_WRONG, Verdict

__all__ = ["OUTCOMES", "Tried", "counts_of", "reasons_of", "table_of"]

OUTCOMES = (AGREE, BOTH_REFUSE, PEER_REFUSES, PEER_WRONG, DIFFER)


@dataclass(frozen=True)
class Tried:
    """A case that was carried out: its family, itself in a line, and what came of it."""

    family: str
    case: str
    verdict: Verdict


def counts_of(trials: Sequence[Tried]) -> Counter[str]:
    """How many cases came to each outcome."""
    return Counter(one.verdict.outcome for one in trials)


def table_of(trials: Sequence[Tried]) -> Table:
    """Families in rows, outcomes in columns, and the sums; families that agree wholly in one row.

    Layers begin with a capital letter, functions do not.
    """
    table = Table("", "families", *OUTCOMES)
    for column in table.columns[1:]:
        column.justify = "right"
    by_family: dict[str, list[Tried]] = {}
    for one in trials:
        by_family.setdefault(one.family, []).append(one)
    wholly = [name for name, cases in by_family.items() if counts_of(cases).keys() == {AGREE}]
    for kind, is_kind in (("layers", str.isupper), ("functions", str.islower)):
        names = [name for name in wholly if is_kind(name[0])]
        cases = [one for name in names for one in by_family[name]]
        table.add_row(f"other {kind}", str(len(names)), *_cells(cases))
    for name, cases in by_family.items():
        if name not in wholly:
            table.add_row(name, "1", *_cells(cases))
    table.add_section()
    table.add_row("all", str(len(by_family)), *_cells(trials))
    return table


def _cells(trials: Sequence[Tried]) -> list[str]:
    counts = counts_of(trials)
    return [str(counts[outcome] or "") for outcome in OUTCOMES]


def reasons_of(trials: Sequence[Tried]) -> list[str]:
    """For each family, PyTorch's reasons to refuse alone and its faults, each once, counted."""
    reasons: Counter[tuple[str, str, str]] = Counter()
    for one in trials:
        if one.verdict.outcome in (PEER_REFUSES, PEER_WRONG):
            why = one.verdict.why.split("\n")[0]
            reasons[one.verdict.outcome, one.family, why] += 1
    return [
        f"{outcome}: {family} ({count}): {why}"
        for (outcome, family, why), count in sorted(reasons.items())
    ]
