"""Earlier runs: kept beside the file of the last one, and compared with it, row by row.

What slows the machine slows the peers too, so times relative to theirs are compared; and a row has
moved if it did relative to most of them, so that one peer's bad day is outvoted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from benchmarks.measure import OURS

__all__ = ["Change", "Standing", "as_json", "as_lines", "compare", "earlier_runs", "keep"]

KEPT = 20
"""Earlier runs that stay on disk."""

MOVED = 1.1
"""A row moves by more than this factor before it is named."""

Report: TypeAlias = Mapping[str, Any]
Verdict: TypeAlias = Literal["slower", "faster", "as before", "not compared"]


class Standing(NamedTuple):
    """Quartiles of a row's figure, over the rounds of one run."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Change:
    """One row, now and in the last run that had it.

    The figures are relative to `peer`, the one in the middle of those that both runs have; without
    one, they are seconds. `because` says why a row is not compared, or what differs between the
    runs.
    """

    name: str
    verdict: Verdict
    since: str | None = None
    peer: str | None = None
    before: Standing | None = None
    now: Standing | None = None
    because: str = ""


def keep(report: Report, file: Path) -> None:
    """Write a copy of the report where `earlier_runs` finds it; the oldest copies are removed."""
    folder = _folder(file)
    folder.mkdir(parents=True, exist_ok=True)
    moment = report["measured_at"].replace("-", "").replace(":", "").partition("+")[0]
    copy = folder / f"{file.stem}-{moment}Z.json"
    copy.write_text(json.dumps(report) + "\n", encoding="utf-8")
    for old in _copies(file)[:-KEPT]:
        old.unlink()


def earlier_runs(file: Path) -> list[Report]:
    """The reports kept of runs that wrote this file, the latest first."""
    return [json.loads(copy.read_text(encoding="utf-8")) for copy in reversed(_copies(file))]


def compare(report: Report, earlier: Iterable[Report]) -> list[Change]:
    """Each row of the report beside the last run, of those `earlier`, that has it.

    A row is slower if, relative to most of the peers that both runs have, its median is
    greater by more than a tenth, and its lower quartile is above the earlier upper one.
    """
    runs = list(earlier)
    return [_change(report, entry, runs) for entry in report["benchmarks"]]


def as_lines(changes: Sequence[Change]) -> list[str]:
    """The comparison in words: first what moved, then how many did not."""
    lines = []
    for verdict in ("slower", "faster"):
        for one in changes:
            if one.verdict == verdict:
                remark = f", {one.because}" if one.because else ""
                lines.append(f"{verdict}: {one.name}: {_figures(one)} (since {one.since}{remark})")
    still = [one for one in changes if one.verdict == "as before"]
    if still:
        since = sorted({str(one.since) for one in still})
        when = since[0] if len(since) == 1 else f"{since[0]} to {since[-1]}"
        lines.append(f"as before, within a tenth or the noise: {_rows(still)} (since {when})")
    for because in dict.fromkeys(one.because for one in changes if one.verdict == "not compared"):
        idle = [one for one in changes if one.verdict == "not compared" and one.because == because]
        lines.append(f"not compared: {_rows(idle)}: {because}")
    return lines


def as_json(changes: Sequence[Change]) -> dict[str, Any]:
    """The comparison for the JSON file: the names of the rows that moved, and every figure."""
    names = {
        verdict: [one.name for one in changes if one.verdict == verdict]
        for verdict in ("slower", "faster")
    }
    rows = {
        one.name: {
            "verdict": one.verdict,
            "since": one.since,
            "relative_to": one.peer,
            "before": one.before and one.before._asdict(),
            "now": one.now and one.now._asdict(),
            "because": one.because,
        }
        for one in changes
    }
    return {**names, "rows": rows}


def _folder(file: Path) -> Path:
    return file.parent / "history"


def _copies(file: Path) -> list[Path]:
    """The copies of this file, the oldest first."""
    return sorted(_folder(file).glob(f"{file.stem}-[0-9]*T[0-9]*Z.json"))


def _change(report: Report, entry: Report, runs: Sequence[Report]) -> Change:
    name = entry["name"]
    for run in runs:
        previous = next((one for one in run["benchmarks"] if one["name"] == name), None)
        if previous is not None:
            break
    else:
        return Change(name, "not compared", because="no earlier run has the row")
    since = run["measured_at"]
    rounds, earlier_rounds = _rounds(entry), _rounds(previous)
    if OURS not in rounds or OURS not in earlier_rounds:
        return Change(name, "not compared", since, because=f"not measured for {OURS} in both runs")
    peers = [peer for peer in rounds if peer in earlier_rounds and peer != OURS]
    differs = _differences(report, run, peers)
    if not peers and differs:
        because = f"no peer is in both runs, and {differs}"
        return Change(name, "not compared", since, because=because)
    standings = [
        (_standing(earlier_rounds, peer), _standing(rounds, peer), peer) for peer in peers or [None]
    ]
    standings.sort(key=lambda one: one[1].middle / one[0].middle)
    votes = [_moved(before, now) for before, now, _ in standings]
    verdict: Verdict = max(set(votes), key=votes.count)
    if 2 * votes.count(verdict) <= len(votes):
        verdict = "as before"
    before, now, peer = standings[len(standings) // 2]
    return Change(name, verdict, since, peer, before, now, differs)


def _moved(before: Standing, now: Standing) -> Verdict:
    if now.middle > MOVED * before.middle and now.low > before.high:
        return "slower"
    if before.middle > MOVED * now.middle and before.low > now.high:
        return "faster"
    return "as before"


def _rounds(entry: Report) -> dict[str, list[float]]:
    return {name: one["rounds"] for name, one in entry["contestants"].items()}


def _standing(rounds: Mapping[str, Sequence[float]], peer: str | None) -> Standing:
    """Of our time relative to the peer's; without one, of our time."""
    figures = np.asarray(rounds[OURS])
    if peer is not None:
        figures = figures / np.asarray(rounds[peer])
    low, middle, high = np.quantile(figures, [0.25, 0.5, 0.75]).tolist()
    return Standing(low, middle, high)


def _differences(report: Report, run: Report, peers: Sequence[str]) -> str:
    """What differs between the machines, or the peers, of two runs; nothing if nothing does."""
    texts = []
    if any(report["machine"][key] != run["machine"][key] for key in ("cpu", "cores")):
        texts.append("on another machine")
    for peer in dict.fromkeys(peer.partition(" ")[0] for peer in peers):
        here, there = (one["frameworks"][peer]["versions"][peer] for one in (report, run))
        if here != there:
            texts.append(f"with {peer} {there}")
    return ", ".join(texts)


def _figures(change: Change) -> str:
    """Then and now, such as "0.41 → 0.55 of jax" or, without peers, "1.2 → 1.5 ms"."""
    assert change.before is not None and change.now is not None
    scale, of = (1.0, f"of {change.peer}") if change.peer else (1e3, "ms")
    return f"{scale * change.before.middle:.3g} → {scale * change.now.middle:.3g} {of}"


def _rows(changes: Sequence[Change]) -> str:
    return f"{len(changes)} row{'s' if len(changes) > 1 else ''}"
