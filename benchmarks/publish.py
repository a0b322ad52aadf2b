"""The tables and the picture of ``docs/performance.md``, from the files of some full runs.

    python -m benchmarks.publish 1.json 2.json 3.json --models m1.json ... --layers l1.json ...

A figure is the median over the runs, each run's being the median of its rounds. Runs of several
machines are never mixed: the times are those of the machine whose run comes first, and each has a
ratio of its own, beside the others'. The counts come from the file that `make counts` keeps.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import counts, picture
from benchmarks.catalogue import TABLES, WORKLOADS
from benchmarks.ecosystem.tasks import table as tasks
from benchmarks.layers.catalogue import TASKS
from benchmarks.layers.report import MARKS, summary_of
from benchmarks.measure import OURS, Row
from benchmarks.networks import table as networks
from benchmarks.outcomes import Outcome, Report, by_machine, outcomes, rows_of, spread
from benchmarks.process import ROOT
from benchmarks.report import as_ratio, as_time, peak_flops
from benchmarks.report_ensembles import as_memory
from benchmarks.workloads import Workload
from benchmarks.workloads_shapes import SHAPE_ROWS

__all__ = [
    "filled",
    "main",
    "sections",
    "sections_of_layers",
    "sections_of_models",
    "sections_of_shapes",
    "sections_of_tasks",
]

PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "performance.png"
RUNS, ROUNDS = 3, 5
"""Fewer make no figures to rely on, which the page then says."""

OVERHEADS = {"stretto": "Stretto", "jax": "JAX", "torch": "PyTorch", "numpy": "NumPy"}
NETWORKS = {
    "stretto": "Stretto",
    "jax": "JAX",
    "torch": "PyTorch",
    "torch compile": "torch compile",
}
ENSEMBLES = {
    "stretto": "Stretto",
    "jax": "JAX vmap",
    "jax lax.map": "JAX lax.map",
    "jax unroll": "JAX unroll",
    "jax loop": "JAX loop",
    "torch": "torch vmap",
    "torch compile": "torch compile",
    "torch loop": "torch loop",
}
SIZES = {
    "stretto": "Stretto",
    "stretto full": "at the bucket's size",
    "jax": "JAX",
    "torch": "PyTorch",
    "torch compile": "torch compile",
}
RAGGED = {
    "stretto": "Stretto",
    "stretto longest": "by hand",
    "jax": "JAX",
    "jax bucket": "JAX, bucket",
    "torch": "PyTorch",
    "torch compile": "torch compile",
    "torch nested": "torch nested",
    "torch packed": "torch packed",
}
LAYERS = {"stretto": "Stretto", "torch": "PyTorch", "jax": "JAX"}
TASKS_COLUMNS = {"stretto": "Stretto", "jax": "JAX"}


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.publish", description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="JSON files of `make bench`")
    parser.add_argument(
        "--models", nargs="*", type=Path, default=[], help="JSON files of `make bench-models`"
    )
    parser.add_argument(
        "--layers", nargs="*", type=Path, default=[], help="JSON files of `make bench-layers`"
    )
    parser.add_argument(
        "--shapes",
        nargs="*",
        type=Path,
        default=[],
        help="JSON files of `make bench`, for the rows about shapes that change",
    )
    parser.add_argument(
        "--tasks", nargs="*", type=Path, default=[], help="JSON files of `make bench-ecosystem`"
    )
    parser.add_argument("--counts", type=Path, default=counts.FILE, help="(%(default)s)")
    parser.add_argument("--page", type=Path, default=PAGE, help="(%(default)s)")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="(%(default)s)")
    options = parser.parse_args(arguments)
    runs, of_models, of_layers, of_shapes, of_tasks = [
        [json.loads(file.read_text(encoding="utf-8")) for file in files]
        for files in (options.runs, options.models, options.layers, options.shapes, options.tasks)
    ]
    kept = (
        json.loads(options.counts.read_text(encoding="utf-8")) if options.counts.exists() else None
    )
    page = options.page.read_text(encoding="utf-8")
    try:
        texts = sections(runs, kept) | sections_of_models(of_models)
        texts |= sections_of_shapes(of_shapes) | sections_of_tasks(of_tasks)
        page = filled(page, texts | sections_of_layers(of_layers))
    except ValueError as error:
        parser.error(f"{options.page}: {error}")
    options.page.write_text(page, encoding="utf-8")
    print(f"Written to {options.page}")
    if runs:
        picture.write(outcomes(runs), options.picture)
        print(f"Drawn to {options.picture}")
    return 0


def filled(page: str, texts: Mapping[str, str]) -> str:
    """The page with each text between its markers, ``<!-- name -->`` and ``<!-- /name -->``.

    Raises `ValueError` naming the markers that are missing.
    """
    for name, text in texts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if pattern.search(page) is None:
            raise ValueError(f"expected <!-- {name} --> and <!-- /{name} -->, found no such pair")
        page = pattern.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page, count=1)
    return page


def sections(runs: Sequence[Report], kept: Mapping[str, Any] | None) -> dict[str, str]:
    """What goes between the markers of calls and ensembles; nothing without runs, but counts."""
    texts: dict[str, str] = {}
    if runs:
        texts = {
            "runs": _about(runs),
            "overheads": _table(runs, OVERHEADS, TABLES["Overheads"], WORKLOADS),
            "ensembles": _table(runs, ENSEMBLES, TABLES["Ensembles"], WORKLOADS),
        }
    return texts if kept is None else {**texts, "counts": _counts(kept)}


def sections_of_models(runs: Sequence[Report]) -> dict[str, str]:
    """What goes between the markers of whole networks, of the tables that have measured rows."""
    if not runs:
        return {}
    rows = [networks.ROWS[name] for name in networks.FULL]
    timed = [row for row in rows if row.shows_memory]
    alone = [row for row in timed if "-n1-" in row.name]
    several = [row for row in timed if row not in alone]
    first = [row for row in rows if row.name.endswith(("-first", "-second"))]
    tables = {
        "models": (NETWORKS, alone),
        "models-several": (ENSEMBLES, several),
        "models-first": (NETWORKS, first),
    }
    measured = {one["name"] for run in runs for one in run["benchmarks"]}
    if measured.isdisjoint([row.name for row in rows]):
        raise ValueError(_absent(rows))
    return {"models-runs": _about(runs)} | {
        name: _table(runs, columns, rows, networks.ROWS)
        for name, (columns, rows) in tables.items()
        if not measured.isdisjoint([row.name for row in rows])
    }


def sections_of_shapes(runs: Sequence[Report]) -> dict[str, str]:
    """What goes between the markers of shapes that change; nothing without runs."""
    if not runs:
        return {}
    sizes = [row for row in SHAPE_ROWS if row.name.startswith("sizes-")]
    ragged = [row for row in SHAPE_ROWS if row not in sizes]
    return {
        "shapes-runs": _about(runs),
        "shapes-sizes": _table(runs, SIZES, sizes, WORKLOADS),
        "shapes-ragged": _table(runs, RAGGED, ragged, WORKLOADS),
    }


def sections_of_tasks(runs: Sequence[Report]) -> dict[str, str]:
    """What goes between the markers of tasks of JAX's libraries; nothing without runs."""
    if not runs:
        return {}
    lines = [
        "| values, apart at most, relative to the largest | float64 | float32 | JAX's own, by the "
        "last place of the data |",
        "| --- | --- | --- | --- |",
    ]
    for task, form in tasks.cases():
        name = tasks.name_of(task, form)
        every = [run["agreement"][name] for run in runs if name in run["agreement"]]
        if every:
            largest = [
                max((one[kind] for one in every if one[kind] is not None), default=None)
                for kind in ("wide", "narrow", "nudged")
            ]
            cells = ["" if distance is None else f"{distance:.0e}" for distance in largest]
            lines.append(f"| {' | '.join([tasks.title_of(task, form), *cells])} |")
    return {
        "tasks-runs": _about(runs),
        "tasks": _table(runs, TASKS_COLUMNS, list(tasks.ROWS.values()), tasks.ROWS),
        "tasks-values": "\n".join(lines),
    }


def sections_of_layers(runs: Sequence[Report]) -> dict[str, str]:
    """What goes between the markers of the layers: how many are slow, and which; nothing if no run.

    A row's ratio is that to the faster peer; ``spread`` says of which rounds or runs. Raises
    `ValueError` if the runs have no rows of layers, or come from several machines.
    """
    if not runs:
        return {}
    machines = by_machine(runs)
    if len(machines) > 1:
        raise ValueError(f"expected layers of one machine, got {'; '.join(machines)}")
    workloads = {name: task.workload for name, task in TASKS.items()}
    tables = [rows_of(run, workloads) for run in runs]
    measured: dict[str, tuple[float, float, float]] = {}
    for name in workloads:
        ratios = spread([table[name].ratios("fastest") for table in tables if name in table])
        if ratios is not None:
            measured[name] = ratios
    if not measured:
        raise ValueError("expected runs with rows of layers; these runs have none")
    middle = {name: ratio for name, (_, ratio, _) in measured.items()}
    lines = [f"- {line}." for line in summary_of(middle)]
    slow = [name for name in middle if middle[name] > MARKS[0][0]]
    headings = ["", "inputs", *LAYERS.values(), "ratio"]
    cells = [headings, ["---"] * len(headings)]
    for name in sorted(slow, key=lambda name: -middle[name]):
        title, _, inputs = workloads[name].title.partition(", ")
        times = [_median_time([table.get(name) for table in tables], one) for one in LAYERS]
        shown = ["" if time is None else as_time(time, workloads[name].unit) for time in times]
        title = f"{title}, {name.rpartition('-')[2]}"
        cells.append([title, inputs, *shown, _ratio(*measured[name])])
    summary = [] if len(runs) >= RUNS else [f"**Not final: there should be {RUNS} runs.**", ""]
    texts = [*summary, *lines, "", *(f"| {' | '.join(one)} |" for one in cells)]
    return {"layers-runs": _about(runs), "layers": "\n".join(texts)}


def _about(runs: Sequence[Report]) -> str:
    """When, on what and how; and, where that is so, that it is not enough."""
    machines = by_machine(runs)
    versions = {
        ", ".join(f"{name} {one['versions'][name]}" for name, one in run["frameworks"].items())
        + f", Python {run['frameworks'][OURS]['python']}"
        for run in runs
    }
    lines = [
        *(
            f"- Runs on {machine}: {', '.join(_run(run) for run in group)}."
            for machine, group in machines.items()
        ),
        f"- Versions: {'; '.join(sorted(versions))}.",
    ]
    flaws = _flaws(runs, versions)
    if flaws:
        lines = [f"**Not final: {', '.join(flaws)}.**", "", *lines]
    return "\n".join(lines)


def _run(run: Report) -> str:
    revision = run.get("revision")
    return run["measured_at"][:16].replace("T", " ") + (f" ({revision})" if revision else "")


def _flaws(runs: Sequence[Report], versions: set[str]) -> list[str]:
    """Say why the figures are not reliable; empty if they are."""
    flaws = []
    if any((run["rounds"] or 0) < ROUNDS for run in runs):
        flaws.append(f"fewer than {ROUNDS} rounds")
    if len(versions) > 1:
        flaws.append("runs of different versions")
    return flaws


def _table(
    runs: Sequence[Report],
    columns: Mapping[str, str],
    group: Sequence[Workload],
    known: Mapping[str, Workload],
) -> str:
    """Return the rows of a group that were measured, and how many goals each machine meets.

    Raises `ValueError` if none of the rows was measured: a table of no runs says nothing.
    """
    measured = {name for run in runs for name in rows_of(run, known)}
    workloads = [row for row in group if row.name in measured]
    if not workloads:
        raise ValueError(_absent(group))
    machines, every = by_machine(runs), outcomes(runs, known)
    results = {
        machine: [one for one in every if one.machine == machine and one.workload in workloads]
        for machine in machines
    }
    first = [rows_of(run, known) for run in next(iter(machines.values()))]
    peaks = [peak_flops(list(table.values())) for table in first]
    shows_memory = any(row.shows_memory for row in workloads)
    counts_flops = any(row.flops for row in workloads)
    extra = ["memory", f"{columns['jax']}'s"] if shows_memory else []
    extra = ["of peak", *extra] if counts_flops else extra
    ratios = (
        [f"{kind}, {_short(machine)}" for machine in machines for kind in ("ratio", "goal")]
        if len(machines) > 1
        else ["ratio", "goal"]
    )
    headings = ["", *columns.values(), *ratios, *extra]
    lines = [headings, ["---"] * len(headings)]
    for workload in workloads:
        rows = [table.get(workload.name) for table in first]
        times = {name: _median_time(rows, name) for name in columns}
        peers = {
            name: time
            for name, time in times.items()
            if time is not None and name.split()[0] != OURS
        }
        named = any(goal.peer == "fastest" for goal in workload.goals) and peers
        fastest = min(peers, key=lambda name: peers[name]) if named else None
        cells = [workload.title]
        for name in columns:
            time = times[name]
            text = "" if time is None else as_time(time, workload.unit)
            cells.append(f"**{text}**" if name == fastest else text)
        for of_it in results.values():
            goals = [one for one in of_it if one.workload.name == workload.name]
            spreads = [_ratio(one.low, one.ratio, one.high) for one in goals]
            cells += [" / ".join(spreads), " / ".join(map(_goal, goals))]
        if counts_flops:
            cells.append(_of_peak(workload, rows, peaks))
        if shows_memory:
            cells += [_memory(rows, OURS), _memory(rows, "jax")]
        lines.append(cells)
    summary = [
        _summary(machine if len(machines) > 1 else "", of_it, results[machine], known)
        for machine, of_it in machines.items()
    ]
    left_out = len(group) - len(workloads)
    if left_out:
        summary.append(f"{left_out} rows of this table were not measured in these runs.")
    return "\n".join([" ".join(summary), "", *(f"| {' | '.join(cells)} |" for cells in lines)])


def _summary(
    machine: str, runs: Sequence[Report], results: Sequence[Outcome], known: Mapping[str, Workload]
) -> str:
    """Say how many goals are met, and by medians of how many runs at least."""
    tables = [rows_of(run, known) for run in runs]
    names = {one.workload.name for one in results}
    least = min((sum(name in table for table in tables) for name in names), default=0)
    count = sum(one.met for one in results)
    text = f"{count} of {len(results)} goals are met, by medians of {least} runs or more"
    text = f"{machine}: {text}." if machine else f"{text}."
    return text if least >= RUNS else f"{text} **Not final: there should be {RUNS}.**"


def _absent(group: Sequence[Workload]) -> str:
    names = ", ".join(row.name for row in group[:3])
    return f"expected runs with rows of a table, as {names}; these runs have none"


def _short(machine: str) -> str:
    """Return what tells a machine from another in a heading: the width of its vectors, if known."""
    found = re.search(r"\d+-bit", machine)
    return found[0] if found else machine


def _median_time(rows: Sequence[Row | None], name: str) -> float | None:
    times = [time for row in rows if row and (time := row.median(name)) is not None]
    return median(times) if times else None


def _ratio(low: float, ratio: float, high: float) -> str:
    return f"{as_ratio(ratio)} ({as_ratio(low)} to {as_ratio(high)})"


def _goal(one: Outcome) -> str:
    return f"≤ {one.goal.at_most:g} of {one.goal.peer}: {'met' if one.met else '**missed**'}"


def _of_peak(workload: Workload, rows: Sequence[Row | None], peaks: Sequence[float | None]) -> str:
    fractions = [
        workload.flops / time / peak
        for row, peak in zip(rows, peaks, strict=True)
        if row and peak and (time := row.median(OURS))
    ]
    return f"{median(fractions):.0%}" if fractions else ""


def _memory(rows: Sequence[Row | None], name: str) -> str:
    peaks = [row.details.get(name, {}).get("peak_bytes") for row in rows if row]
    measured = [one for one in peaks if one is not None]
    return as_memory(median(measured)) if measured else ""


def _counts(kept: Mapping[str, Any]) -> str:
    made_with = ", ".join(f"{name} {version}" for name, version in kept["made_with"].items())
    lines = [
        f"Made with {made_with}, at {kept['revision']}.",
        "",
        "| one time along | instructions | blocks held | garbage | bytes at most |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, figures_of_path in kept["counts"].items():
        figures = (figures_of_path.get(kind) for kind in ("held", "garbage", "peak"))
        cells = ["" if figure is None else f"{figure:,.10g}" for figure in figures]
        title, instructions = kept["titles"][name], f"{figures_of_path['instructions']:,.0f}"
        lines.append(f"| {' | '.join([title, instructions, *cells])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
