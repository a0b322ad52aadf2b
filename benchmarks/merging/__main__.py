"""Merge checkpoints by ``stretto merge`` and by its peers: whole processes, in turns.

Run by ``make bench-merging``, or by hand:

    python -m benchmarks.merging --peer-python .venv-merging/bin/python

Both read one recipe and the same files, and write the same shards. A figure is the median of what
whole processes took, imports and compilation included: seconds of processor time of all threads,
seconds on the clock, and the most memory. Values are compared in the same run. ``--size 3`` takes
larger models; ``--peers`` with no names leaves the peers out. ``--adapters`` compares what becomes
of LoRA adapters with what PEFT makes of them.

The memory is what was resident, with pages of mapped files: of jaxlib's code, and of models, which
PyTorch's readers map.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.merging import adapters
from benchmarks.merging.cases import CASES, Case
from benchmarks.merging.models import DTYPES, SIZES, write
from benchmarks.merging.values import apart
from benchmarks.process import ROOT, environment

__all__ = ["main"]

SHARD = 100_000_000
PEERS = ("mergekit", "loop", "AVX2")
AVX2 = {"XLA_FLAGS": "--xla_cpu_max_isa=AVX2"}
GOALS = {"linear": (0.25, 256), "ties": (0.15, 400)}
"""The most of mergekit's processor time, and MiB."""


class Failed(Exception):
    """A command failed; the message has its last words."""


def commands(
    case: Case, recipe: Path, peers: list[str], peer_python: str | None
) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return the command of each contestant, but for where the result goes, with its variables."""
    ours = [sys.executable, "-m", "stretto", "merge", str(recipe), "{}", "--shard-size", str(SHARD)]
    found: dict[str, tuple[list[str], dict[str, str]]] = {"stretto": (ours, {})}
    if "AVX2" in peers:
        found["AVX2"] = ours, AVX2
    if peer_python and "mergekit" in peers:
        # Its shards are counted in parameters.
        count = str(SHARD // DTYPES[json.loads(recipe.read_text())["out_dtype"]][1].itemsize)
        words = [peer_python, "-m", "mergekit.scripts.run_yaml", str(recipe), "{}"]
        found["mergekit"] = [*words, "--out-shard-size", count, "--no-copy-tokenizer"], {}
    if peer_python and "loop" in peers and case.loop:
        words = [peer_python, "-m", "benchmarks.merging.torch_loop", str(recipe), "{}", str(SHARD)]
        found["loop"] = words, {}
    return found


def taken(command: list[str], variables: dict[str, str]) -> dict[str, float]:
    """Run a command, and return what it took."""
    source = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("measured.py")), *command],
        env={**environment(), "PYTHONPATH": source, "HF_HUB_OFFLINE": "1", **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Failed(f"{command[:3]}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measured(
    name: str, folder: Path, dtype: str, peers: list[str], peer_python: str | None, rounds: int
) -> dict[str, Any]:
    """Run a case's contestants in turns; return medians, and how far their values are from ours."""
    case = CASES[name]
    recipe = folder / "recipe.yaml"  # JSON is YAML
    recipe.write_text(json.dumps(case.recipe(folder, dtype)))
    row: dict[str, Any] = {"name": name, "dtype": dtype, "figures": {}, "apart": {}}
    times: dict[str, list[dict[str, float]]] = {}
    for k in range(rounds):
        places = {}
        for who, (command, variables) in commands(case, recipe, peers, peer_python).items():
            places[who] = folder / f"out-{who}"
            shutil.rmtree(places[who], ignore_errors=True)
            full = [word.replace("{}", str(places[who])) for word in command]
            times.setdefault(who, []).append(taken(full, variables))
        for who, place in places.items() if k == rounds - 1 else ():
            if who != "stretto":
                row["apart"][who] = apart(str(places["stretto"]), str(place))._asdict()
        for place in places.values():
            shutil.rmtree(place)
    for who, each in times.items():
        row["figures"][who] = {key: statistics.median(t[key] for t in each) for key in each[0]}
    return row


def wrong(row: dict[str, Any]) -> list[str]:
    """Say which values are further from ours than the case allows."""
    case = CASES[row["name"]]
    limit, near = case.units[row["dtype"]], case.near.get(row["dtype"])
    found = []
    for who, between in row["apart"].items():
        most = 0 if who == "AVX2" else limit
        if most is not None and who != "loop" and between["most"] > most:
            found.append(f"{row['name']}: {who} is {between['most']} units away, at most {most}")
        if near is not None and between["largest"] > near:
            found.append(
                f"{row['name']}: {who} is {between['largest']:.1e} away, at most {near:.1e}"
            )
    return found


def met(row: dict[str, Any]) -> str:
    """Say whether the goals of a row are met; nothing where it has none."""
    goal, figures = GOALS.get(row["name"]), row["figures"]
    if goal is None or "mergekit" not in figures:
        return ""
    ours = figures["stretto"]
    ratio = ours["cpu"] / figures["mergekit"]["cpu"]
    good = ratio <= goal[0] and ours["memory"] <= goal[1] << 20
    return f"{'met' if good else 'missed'}: {goal[0]:g}, {goal[1]} MiB"


def table(rows: list[dict[str, Any]]) -> Table:
    """Return the figures: processor seconds, seconds, MiB."""
    made = Table(title="processor time, time, peak memory")
    made.add_column("recipe")
    names = list(dict.fromkeys(who for row in rows for who in row["figures"]))
    for who in names:
        made.add_column(who, justify="right")
    for head in ("of mergekit's time", "units", "goal"):
        made.add_column(head, justify="right")
    for row in rows:
        figures = row["figures"]
        cells = [
            f"{f['cpu']:.1f} s, {f['wall']:.1f} s, {f['memory'] / 2**20:,.0f}"
            if (f := figures.get(who))
            else ""
            for who in names
        ]
        peer = figures.get("mergekit")
        ratio = f"{figures['stretto']['cpu'] / peer['cpu']:.3f}" if peer else ""
        between = row["apart"].get("mergekit")
        units = f"{between['most']:,} ({between['share']:.1%})" if between else ""
        made.add_row(f"{row['name']} {row['dtype']}", *cells, ratio, units, met(row))
    return made


def beside_peft(python: str, console: Console) -> int:
    """Compare with PEFT; 1 if values are further apart than they may be."""
    far = 0
    for dtype, near in adapters.NEAR.items():
        with tempfile.TemporaryDirectory() as folder:
            for found in adapters.compared(python, Path(folder), dtype):
                console.print(f"{found.name} {dtype}: {found.apart:.1e} apart")
                far += found.apart > near
    return int(far > 0)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 if values are further apart than they may be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merging", description=__doc__)
    parser.add_argument("--peer-python", help="the Python that has mergekit and PEFT")
    parser.add_argument("--peers", nargs="*", default=[*PEERS], choices=PEERS)
    parser.add_argument("--only", nargs="*", default=[*CASES], choices=[*CASES], metavar="NAME")
    parser.add_argument("--size", default="0.3", choices=[*SIZES], help="gigabytes in bfloat16")
    parser.add_argument("--dtype", default="bfloat16", choices=[*DTYPES])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "merging")
    parser.add_argument("--adapters", action="store_true", help="compare with PEFT, and stop")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 180)
    if options.adapters:
        if options.peer_python is None:
            parser.error("--adapters needs --peer-python")
        return beside_peft(options.peer_python, console)
    folder = options.folder / f"{options.size}-{options.dtype}"
    most = max(CASES[name].models for name in options.only)
    for k in range(most + 1):
        place = folder / (f"tuned-{k}" if k else "base")
        write(place, SIZES[options.size], options.dtype, k)
    rows, problems = [], []
    for name in options.only:
        try:
            row = measured(
                name, folder, options.dtype, options.peers, options.peer_python, options.rounds
            )
        except Failed as error:
            problems.append(str(error))
            continue
        rows.append(row)
        problems += wrong(row)
        console.print(json.dumps(row), style="dim", soft_wrap=True)
    console.print(table(rows))
    about = {**machine.describe(), "revision": machine.revision(ROOT)}
    console.print(json.dumps(about), style="dim", soft_wrap=True)
    for problem in problems:
        console.print(problem, style="red", markup=False)
    if options.json:
        options.json.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
